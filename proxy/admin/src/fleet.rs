//! `/api/v1/fleet`: what engines, GPUs and hosts tell now.

pub(super) mod events;
mod joins;
pub(super) mod samples;
mod told;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_fleet::{Field, Layer, Silence, Target, TargetKind, TargetState};
use taximeter_gateway::gateway::Gateway;
use taximeter_system::clock;
use tokio::task::spawn_blocking;
use utoipa::{IntoParams, ToSchema};

pub(super) use self::joins::{FleetJoin, FleetLink, FleetLinks, joins};
pub use self::joins::{claims, whereabouts};
pub(super) use self::told::FleetQuantity;
use self::told::{FleetUnknown, labels};
use super::problem::ApiError;
use super::query::{self, Params};

/// Default number of quantities in an answer.
const QUANTITIES: u32 = 10_000;
/// Most quantities in an answer.
const QUANTITIES_MAX: u32 = 100_000;

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct FleetParams {
    /// Only quantities of this layer: L1 (GPUs), L3 (hosts), L4 (owners) or L6 (engines)
    pub(super) layer: Option<String>,
    /// Only this source, by its name
    pub(super) source: Option<String>,
    /// Most quantities in the answer, from 1 to 100000. Default: 10000. Those that are unknown count too
    pub(super) limit: Option<String>,
}

/// What engines, GPUs and hosts tell now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetAnswer {
    /// The time of the answer.
    pub(super) at: Timestamp,
    /// The sources that are asked, in the order of their addresses.
    pub(super) sources: Vec<FleetSource>,
    /// What serves each upstream, in the order of the configuration: its engine, pod, GPUs and host, and how
    /// sure that is. Empty without the section `fleet`.
    pub(super) joins: Vec<FleetJoin>,
    /// Whether there are more quantities than the answer has.
    pub(super) more: bool,
}

/// A source that is asked again and again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetSource {
    /// Its URL, or the path of what is read.
    pub(super) name: String,
    /// What it is asked for: `engine`, `gpu` or `host`; `kubelet`, for whose each GPU is; or `annotations`, the
    /// file of those of the pod, which name a place to ask.
    pub(super) kind: &'static str,
    /// The names of the upstreams at its address.
    pub(super) upstreams: Vec<String>,
    /// `waiting` before the first question has ended, `up` if the last one brought metrics, `failing`
    /// if it did not, and `stale` once the last values no longer hold.
    pub(super) state: &'static str,
    /// Why the last question brought no metrics, in one word. Null if it did.
    pub(super) cause: Option<&'static str>,
    /// The same for people.
    pub(super) why: Option<String>,
    /// Since when it is so.
    pub(super) since: Option<Timestamp>,
    /// The end of the last question. Null before the first.
    pub(super) asked_at: Option<Timestamp>,
    /// The last answer with metrics. Null before the first.
    pub(super) answered_at: Option<Timestamp>,
    /// How many seconds ago its last values may have been new. Null before the first.
    pub(super) age: Option<f64>,
    /// The time between two questions, in seconds.
    pub(super) every: f64,
    /// The time between two values of the source, in seconds, learnt from when they change. Null until
    /// it is known.
    pub(super) period: Option<f64>,
    /// How often it was asked.
    pub(super) asked: u64,
    /// How often that brought no metrics.
    pub(super) failed: u64,
    /// Counters that began anew.
    pub(super) resets: u64,
    /// Series that came after the first answer.
    pub(super) appeared: u64,
    /// Series that went.
    pub(super) vanished: u64,
    /// Series of the last answer that are left out: there are too many, or their labels are too long.
    pub(super) left_out: u64,
    /// Lines of the last answer that could not be read.
    pub(super) skipped_lines: u64,
    /// Whether the last answer is longer than is read.
    pub(super) cut: bool,
    /// The programs that its metrics are of.
    pub(super) programs: Vec<FleetProgram>,
    /// The versions of engines, drivers and kernels, as far as anybody says them.
    pub(super) versions: Vec<FleetVersion>,
    /// What is known.
    pub(super) quantities: Vec<FleetQuantity>,
    /// What is not, and why.
    pub(super) unknown: Vec<FleetUnknown>,
}

/// A program, and how it was recognised.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetProgram {
    /// Its short name.
    pub(super) name: &'static str,
    /// Its name for people.
    pub(super) title: &'static str,
    /// Whether its metrics are read. Some programs are only recognised.
    pub(super) read: bool,
    /// Whether more than one mark tells it.
    pub(super) certain: bool,
    /// What tells it.
    pub(super) marks: Vec<String>,
    /// Which generation of it, as far as its metrics say.
    pub(super) generation: Option<&'static str>,
}

/// The version of something.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FleetVersion {
    /// What has it: `engine`, `driver` (of the GPUs of a host) or `kernel`.
    pub(super) of: &'static str,
    /// The host. Null where that is not told, and for an engine.
    pub(super) host: Option<String>,
    /// As it is written.
    pub(super) version: String,
}

/// What engines, GPUs and hosts tell now
///
/// The sources of the section `fleet`. A value that is unknown has a reason and is never 0.
#[utoipa::path(get, path = "/api/v1/fleet", tag = "fleet", params(FleetParams), responses(
    (status = 200, description = "The fleet", body = FleetAnswer),
    ApiError,
))]
pub(super) async fn fleet(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<FleetParams>,
) -> Result<Json<FleetAnswer>, ApiError> {
    let query = asked.query()?;
    // It may be long, and this thread answers other clients too.
    let made = spawn_blocking(move || query.answer(&gateway, clock::now(), clock::wall())).await;
    made.map(Json).map_err(|_| ApiError::Busy("the gateway ends".to_owned()))
}

/// What is asked for.
struct FleetQuery {
    layer: Option<Layer>,
    source: Option<String>,
    limit: usize,
}

impl FleetParams {
    fn query(self) -> Result<FleetQuery, ApiError> {
        const LAYERS: [Layer; 8] = [
            Layer::Gpu,
            Layer::Collectives,
            Layer::Host,
            Layer::Owner,
            Layer::Training,
            Layer::Engine,
            Layer::Requests,
            Layer::Money,
        ];
        let layer = query::read("layer", self.layer.as_deref(), "one of L1 to L8", |text| {
            LAYERS.into_iter().find(|layer| layer.code() == text).ok_or(())
        })?;
        let limit = query::number("limit", self.limit.as_deref(), QUANTITIES_MAX)?;
        Ok(FleetQuery { layer, source: self.source, limit: limit.unwrap_or(QUANTITIES) as usize })
    }
}

impl FleetQuery {
    fn answer(&self, gateway: &Gateway, now: Instant, at: Timestamp) -> FleetAnswer {
        let targets = gateway.fleet.targets();
        let is_asked =
            |target: &&Arc<Target>| self.source.as_deref().is_none_or(|name| name == &*target.name);
        let mut room = Room { left: self.limit, more: false };
        let sources = targets.iter().filter(is_asked);
        let sources = sources.map(|target| self.source(gateway, target, now, &mut room)).collect();
        FleetAnswer { at, sources, joins: joins(gateway), more: room.more }
    }

    fn source(
        &self,
        gateway: &Gateway,
        target: &Target,
        now: Instant,
        room: &mut Room,
    ) -> FleetSource {
        let told = &target.quantities;
        let silence = target.silence(now);
        let (quantities, unknown) = match &silence {
            None => self.told(gateway, target, room),
            Some(silence) => (Vec::new(), self.silent(target, silence, room)),
        };
        let (cause, why, since) = match &target.state {
            TargetState::Failing { cause, why, since } => {
                (Some(*cause), Some(why.to_string()), Some(*since))
            }
            TargetState::Waiting | TargetState::Up => (None, None, None),
        };
        FleetSource {
            name: target.name.to_string(),
            kind: target.kind.as_str(),
            upstreams: target.upstreams.to_vec(),
            state: target.state_word(now),
            cause,
            why,
            since,
            asked_at: target.asked_at,
            answered_at: target.answered_at,
            age: told.period.age(now).map(|age| age.as_secs_f64()),
            every: target.every.as_secs_f64(),
            period: told.period.learnt().map(|period| period.as_secs_f64()),
            asked: target.asked,
            failed: target.failed,
            resets: told.counts.resets,
            appeared: told.counts.appeared,
            vanished: told.counts.vanished,
            left_out: told.counts.left_out,
            skipped_lines: target.skipped,
            cut: target.cut,
            programs: target.programs.iter().map(FleetProgram::of).collect(),
            versions: target.versions.iter().map(FleetVersion::of).collect(),
            quantities,
            unknown,
        }
    }

    fn is_asked(&self, layer: Layer) -> bool {
        self.layer.is_none_or(|asked| asked == layer)
    }

    /// What a source tells that answers.
    fn told(
        &self,
        gateway: &Gateway,
        target: &Target,
        room: &mut Room,
    ) -> (Vec<FleetQuantity>, Vec<FleetUnknown>) {
        let assigned = gateway.config.fleet.as_ref().map(|fleet| &fleet.assigned);
        let upstream = |who: &taximeter_fleet::Identity| match target.kind {
            TargetKind::Engine => target.upstreams.first().cloned(),
            _ => {
                let whole = who.get(Field::Gpu).map(Cow::Borrowed);
                let names = who.device().into_iter().chain(whole);
                names.filter_map(|name| assigned?.get(&*name).cloned()).next()
            }
        };
        let told = &target.quantities;
        let series = told.series.iter().filter(|one| self.is_asked(one.what.quantity.layer));
        let quantities = series.take_while(|_| room.takes());
        let quantities =
            quantities.map(|series| FleetQuantity::of(series, upstream(&series.who))).collect();
        let unknown = told.unknown.iter().filter(|one| self.is_asked(one.quantity.layer));
        let unknown = unknown.take_while(|_| room.takes()).map(FleetUnknown::of).collect();
        (quantities, unknown)
    }

    /// What is unknown of a source that is silent: all that it has told.
    fn silent(&self, target: &Target, silence: &Silence, room: &mut Room) -> Vec<FleetUnknown> {
        let why = match &target.state {
            TargetState::Failing { why, .. } => format!("{silence}; {why}"),
            TargetState::Waiting | TargetState::Up => silence.to_string(),
        };
        let told = target.quantities.series.iter();
        let told = told.filter(|one| self.is_asked(one.what.quantity.layer));
        let unknown = told.take_while(|_| room.takes()).map(|series| FleetUnknown {
            name: series.what.quantity.name,
            layer: series.what.quantity.layer.code(),
            unit: series.what.quantity.unit,
            labels: labels(&series.who, &series.what.attributes),
            program: series.what.program,
            why: why.clone(),
            of: Vec::new(),
        });
        unknown.collect()
    }
}

/// How many quantities fit into the answer.
struct Room {
    left: usize,
    more: bool,
}

impl Room {
    /// Whether it takes another one.
    const fn takes(&mut self) -> bool {
        if self.left == 0 {
            self.more = true;
            return false;
        }
        self.left -= 1;
        true
    }
}

impl FleetVersion {
    fn of(version: &taximeter_fleet::Version) -> Self {
        let taximeter_fleet::Version { of, host, version } = version.clone();
        Self { of: of.as_str(), host, version }
    }
}

impl FleetProgram {
    fn of(program: &taximeter_fleet::Program) -> Self {
        Self {
            name: program.name,
            title: program.title,
            read: program.is_read,
            certain: program.is_certain,
            marks: program.marks.clone(),
            generation: program.generation,
        }
    }
}
