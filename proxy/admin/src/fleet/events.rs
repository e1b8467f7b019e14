//! `/api/v1/fleet/events`: what changed of engines, GPUs, hosts and the gateway.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taximeter_billing::Zone;
use taximeter_fleet::{Event, EventKind};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::memory::{EventQuery, FoundEvents};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use crate::ask::ask_thread;
use crate::problem::ApiError;
use crate::query::{self, Params};

/// Default number of events in an answer.
const EVENTS: u32 = 1_000;
/// Most events in an answer.
const EVENTS_MAX: u32 = 10_000;
/// The time that is asked for where the request does not say it.
const USUAL: SignedDuration = SignedDuration::from_hours(24);

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct EventParams {
    /// From this time on. Default: a day before the end
    pub(super) from: Option<String>,
    /// Before this time. Default: now
    pub(super) to: Option<String>,
    /// Only this kind, such as engine_version
    pub(super) kind: Option<String>,
    /// Only what concerns this source, upstream, GPU, host or pod. What the gateway itself rests on concerns all
    pub(super) subject: Option<String>,
    /// Most events in the answer, from 1 to 10000. Default: 1000
    pub(super) limit: Option<String>,
}

/// What changed, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventsAnswer {
    /// The first time that is asked for.
    pub(crate) from: Timestamp,
    /// The end of that.
    pub(crate) to: Timestamp,
    /// The events.
    pub(crate) events: Vec<FleetEvent>,
    /// Whether there are more events than the answer has.
    pub(crate) more: bool,
    /// Lines of the files of that time that cannot be read.
    pub(crate) skipped_lines: u64,
}

/// Something has changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetEvent {
    /// When it was found.
    pub(crate) at: Timestamp,
    /// What has changed.
    pub(crate) kind: &'static str,
    /// Of whom: a source, a GPU, a host or a file.
    pub(crate) subject: String,
    /// The source that tells it. Null for what the gateway itself rests on.
    pub(crate) source: Option<String>,
    /// All whom it concerns: the subject, its source, and the upstreams, hosts and pods of these.
    pub(crate) about: Vec<String>,
    /// What it was before. Null where that cannot be told.
    pub(crate) before: Option<String>,
    /// What it is now. Null where that cannot be told.
    pub(crate) after: Option<String>,
    /// The same in one sentence.
    pub(crate) text: String,
}

/// What changed of engines, GPUs and hosts, and what the gateway itself rests on
///
/// Versions, models, drivers, owners of GPUs, sources that become stale, prices and configuration, from what
/// the section `fleet` reads. The newest first.
#[utoipa::path(get, path = "/api/v1/fleet/events", tag = "fleet", params(EventParams), responses(
    (status = 200, description = "The events", body = EventsAnswer),
    ApiError,
))]
pub(crate) async fn events(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<EventParams>,
) -> Result<Json<EventsAnswer>, ApiError> {
    let query = asked.query(clock::wall())?;
    let kept = gateway.clone();
    ask_thread(&gateway, move |_| find(&kept, &query)).await.map(Json)
}

/// The events from `from` on and before `to` that concern any of these sources, upstreams, GPUs, hosts or
/// pods, the newest first; those of all where there are none. It reads files: call it on a thread of its own.
///
/// Errors: a file cannot be read.
pub(crate) fn events_between(
    gateway: &Gateway,
    (from, to): (Timestamp, Timestamp),
    subjects: Vec<String>,
) -> Result<EventsAnswer, ApiError> {
    let events_max = EVENTS as usize;
    find(gateway, &EventQuery { from, to, kind: None, subjects, events_max })
}

fn find(gateway: &Gateway, query: &EventQuery) -> Result<EventsAnswer, ApiError> {
    let found = gateway.samples.get().map(|memory| memory.ask_events(query)).transpose();
    let found = found.map_err(|fault| ApiError::Busy(fault.to_string()))?.unwrap_or_default();
    let FoundEvents { events, more, skipped } = found;
    let events = events.into_iter().map(FleetEvent::of).collect();
    Ok(EventsAnswer { from: query.from, to: query.to, events, more, skipped_lines: skipped })
}

impl EventParams {
    fn query(self, now: Timestamp) -> Result<EventQuery, ApiError> {
        let zone = Zone::default();
        let to = query::time("to", self.to.as_deref(), &zone)?.unwrap_or(now);
        let from = query::time("from", self.from.as_deref(), &zone)?;
        let from = from.unwrap_or_else(|| to.checked_sub(USUAL).unwrap_or(Timestamp::MIN));
        let words: Vec<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        let allowed = format!("one of {}", words.join(", "));
        let kind = query::read("kind", self.kind.as_deref(), allowed, |word| {
            EventKind::ALL.iter().copied().find(|kind| kind.as_str() == word).ok_or(())
        })?;
        let subjects = self.subject.into_iter().collect();
        let limit = query::number("limit", self.limit.as_deref(), EVENTS_MAX)?.unwrap_or(EVENTS);
        Ok(EventQuery { from, to, kind, subjects, events_max: limit as usize })
    }
}

impl FleetEvent {
    fn of(event: Event) -> Self {
        let Event { at, kind, subject, source, about, before, after, text } = event;
        Self { at, kind: kind.as_str(), subject, source, about, before, after, text }
    }
}
