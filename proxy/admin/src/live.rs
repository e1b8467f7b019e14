//! `/api/v1/live`: the requests that are running now, once or every second.

use std::cmp::Reverse;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures_util::stream::{self, Stream};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_gateway::gateway::Gateway;
use taximeter_gateway::live::Ride;
use taximeter_system::clock;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use utoipa::{IntoParams, ToSchema};

use super::problem::Refused;
use super::query::{self, Asked};

/// Requests in an answer where nobody says.
const REQUESTS: u32 = 100;
/// Most requests in an answer.
const REQUESTS_MAX: u32 = 1000;
/// From one snapshot to the next.
const SNAPSHOT_PERIOD: Duration = Duration::from_secs(1);
/// How long a listener may not read before it is let go.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct LiveParams {
    /// Only this tenant's
    pub(super) tenant: Option<String>,
    /// Most requests in the answer, from 1 to 1000; 100 by default
    pub(super) limit: Option<String>,
}

/// The requests that are running now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveAnswer {
    /// When it was looked.
    pub(super) at: Timestamp,
    /// How many are running, in the answer or not.
    pub(super) open: usize,
    /// Those that run longest, the longest first.
    pub(super) requests: Vec<LiveRequest>,
}

/// One of them. Times are seconds from its start.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LiveRequest {
    /// Ours; the record will have it.
    pub(super) id: String,
    /// The client's `x-request-id`, or the one made for it.
    pub(super) request_id: String,
    pub(super) tenant: String,
    /// `model` of the request.
    pub(super) request_model: Option<String>,
    pub(super) upstream: String,
    pub(super) route: String,
    /// Whether a stream was asked for.
    pub(super) stream: bool,
    pub(super) started_at: Timestamp,
    /// Since the start.
    pub(super) duration: f64,
    /// `reserved`, `sent` to the engine, `answered` with a head, `generating`, or `settling`.
    pub(super) stage: &'static str,
    /// Null before the first token.
    pub(super) time_to_first_token: Option<f64>,
    /// Start to the latest token; null before the first.
    pub(super) time_to_latest_token: Option<f64>,
    /// The longest without a token between two that came; null before the second.
    pub(super) longest_stall: Option<f64>,
    /// Events with generated content.
    pub(super) output_chunks: u64,
    /// Of a stream, as known at most a second ago; null before.
    pub(super) input_tokens: Option<u64>,
    /// The same.
    pub(super) output_tokens: Option<u64>,
}

/// What is looked for.
#[derive(Debug)]
struct Look {
    tenant: Option<String>,
    limit: usize,
}

/// The requests that are running now
#[utoipa::path(get, path = "/api/v1/live", tag = "live", params(LiveParams), responses(
    (status = 200, description = "A snapshot", body = LiveAnswer),
    Refused,
))]
pub(super) async fn live(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<LiveParams>,
) -> Result<Json<LiveAnswer>, Refused> {
    Ok(Json(asked.look()?.at(&gateway)))
}

/// The same every second, as server-sent events
///
/// Each event is called `live`, and its data is one snapshot in JSON.
#[utoipa::path(get, path = "/api/v1/live/events", tag = "live", params(LiveParams), responses(
    (status = 200, description = "Snapshots", body = String, content_type = "text/event-stream"),
    Refused,
))]
pub(super) async fn events(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<LiveParams>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refused> {
    let look = asked.look()?;
    let permits = &gateway.admin.listeners;
    let permit = permits
        .take()
        .ok_or_else(|| Refused::Busy(format!("{} listeners are served", permits.most)))?;
    let (tell, mut told) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = interval(SNAPSHOT_PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A listener that has left or does not read is let go, and so is everyone at the end.
        while !gateway.is_draining() {
            ticks.tick().await;
            let Ok(event) = Event::default().event("live").json_data(look.at(&gateway)) else {
                break;
            };
            if tell.send_timeout(Ok(event), STALL_TIMEOUT).await.is_err() {
                break;
            }
        }
        drop(permit);
    });
    Ok(Sse::new(stream::poll_fn(move |cx| told.poll_recv(cx))))
}

impl LiveParams {
    fn look(self) -> Result<Look, Refused> {
        let limit = query::number("limit", self.limit.as_deref(), REQUESTS_MAX)?;
        Ok(Look { tenant: self.tenant, limit: limit.unwrap_or(REQUESTS) as usize })
    }
}

impl Look {
    fn at(&self, gateway: &Gateway) -> LiveAnswer {
        let mut rides = gateway.live.rides();
        let open = rides.len();
        if let Some(tenant) = &self.tenant {
            rides.retain(|ride| ride.boarding.tenant.as_str() == tenant);
        }
        let now = clock::now();
        rides.sort_unstable_by_key(|ride| {
            Reverse(now.saturating_duration_since(ride.boarding.started))
        });
        rides.truncate(self.limit);
        let requests = rides.iter().map(|ride| row(ride)).collect();
        LiveAnswer { at: clock::wall(), open, requests }
    }
}

fn row(ride: &Ride) -> LiveRequest {
    let (boarding, seen) = (&ride.boarding, ride.seen());
    let duration = clock::now().saturating_duration_since(boarding.started);
    LiveRequest {
        id: boarding.id.to_string(),
        request_id: boarding.request_id.to_string(),
        tenant: boarding.tenant.to_string(),
        request_model: boarding.request_model.clone(),
        upstream: boarding.upstream.to_string(),
        route: boarding.route.to_owned(),
        stream: boarding.stream,
        started_at: boarding.started_at,
        duration: duration.as_secs_f64(),
        stage: seen.stage.as_str(),
        time_to_first_token: seen.time_to_first_token.map(|time| time.as_secs_f64()),
        time_to_latest_token: seen.time_to_latest_token.map(|time| time.as_secs_f64()),
        longest_stall: seen.longest_stall.map(|time| time.as_secs_f64()),
        output_chunks: seen.output_chunks,
        input_tokens: seen.input_tokens,
        output_tokens: seen.output_tokens,
    }
}
