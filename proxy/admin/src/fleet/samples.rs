//! `/api/v1/fleet/samples`: what engines, GPUs and hosts told over time.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use taximeter_billing::Zone;
use taximeter_fleet::{Field, QUANTITIES, Statistic};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::memory::{FoundSeries, Query, STEPS_MAX};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use crate::ask::ask_thread;
use crate::problem::ApiError;
use crate::query::{self, Params};

/// Default number of series in an answer.
const SERIES: u32 = 500;
/// Most series in an answer.
const SERIES_MAX: u32 = 5_000;
/// The time that is asked for where the request does not say it, in seconds.
const USUAL_SECONDS: i64 = 3_600;
/// The longest step, in seconds.
const STEP_MAX: u32 = 31_536_000;

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(crate) struct SampleParams {
    /// The name of the quantity, such as hw.power
    pub(super) quantity: Option<String>,
    /// Only this statistic: mean, min, max, last, increase, sum, count, p50 or p95. Default: all that are kept
    pub(super) statistic: Option<String>,
    /// Only this source, by its name
    pub(super) source: Option<String>,
    /// Only this host
    pub(super) host: Option<String>,
    /// Only the GPU with this id, which is its PCI address where no other is told
    pub(super) gpu: Option<String>,
    /// Only this part of a GPU
    pub(super) part: Option<String>,
    /// Only this pod
    pub(super) pod: Option<String>,
    /// Only this engine of a server that has several
    pub(super) engine: Option<String>,
    /// Only this model
    pub(super) model: Option<String>,
    /// From this time on. Default: an hour before the end
    pub(super) from: Option<String>,
    /// Before this time. Default: now
    pub(super) to: Option<String>,
    /// Seconds from one point to the next. Default: so that there are at most 300, of samples that are still kept
    pub(super) step: Option<String>,
    /// Also the same time so long before: hours, days or weeks, such as 1w
    pub(super) compare: Option<String>,
    /// Most series in the answer, from 1 to 5000. Default: 500
    pub(super) limit: Option<String>,
}

/// What engines, GPUs and hosts told over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SamplesAnswer {
    /// The first time that is asked for.
    pub(super) from: Timestamp,
    /// The end of that.
    pub(super) to: Timestamp,
    /// Seconds from one point to the next.
    pub(super) step: i64,
    /// The samples that the points are made of: `1s`, `1m` or `1h`.
    pub(super) grid: &'static str,
    /// The series.
    pub(super) series: Vec<SampleSeries>,
    /// The same time before, with the times of today. Null unless it is asked for.
    pub(super) compared: Option<Vec<SampleSeries>>,
    /// Whether there are more series or points than the answer has.
    pub(super) more: bool,
}

/// A series over time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SampleSeries {
    /// The source that told it.
    pub(super) source: String,
    /// The short name of the program.
    pub(super) program: String,
    /// Whom it is about, and what else tells it apart: texts by their names.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub(super) labels: Box<RawValue>,
    /// What a point is of the values of its time.
    pub(super) statistic: &'static str,
    /// The unit of the values. A count of observations has none.
    pub(super) unit: String,
    /// Each step that has a sample: its first second, since 1970, and the value. Others are not there.
    pub(super) points: Vec<(i64, f64)>,
}

/// What engines, GPUs and hosts told over time
///
/// From the samples that the section `fleet.memory` keeps, up to the last whole minute. Steps from a minute
/// on are made of minutes, and steps from an hour on of hours.
#[utoipa::path(get, path = "/api/v1/fleet/samples", tag = "fleet", params(SampleParams), responses(
    (status = 200, description = "The samples", body = SamplesAnswer),
    ApiError,
))]
pub(crate) async fn samples(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<SampleParams>,
) -> Result<Json<SamplesAnswer>, ApiError> {
    let (mut query, before, has_step) = asked.query(clock::wall())?;
    let memory = gateway.samples.get().cloned();
    let asked = ask_thread(&gateway, move |_| {
        let Some(memory) = memory else { return Ok(SamplesAnswer::to(&query)) };
        if !has_step {
            let kept = memory.grid_since(query.from - before.unwrap_or(0)).map_err(unreadable)?;
            query.step = query.step.max(kept.seconds());
        }
        let mut answer = SamplesAnswer::to(&query);
        let found = memory.ask(&query).map_err(unreadable)?;
        answer.more = found.more;
        answer.series =
            found.series.into_iter().filter_map(|one| SampleSeries::of(one, 0)).collect();
        if let Some(before) = before {
            let (from, to) = (query.from - before, query.to - before);
            let found = memory.ask(&Query { from, to, ..query }).map_err(unreadable)?;
            answer.more |= found.more;
            let compared = found.series.into_iter();
            answer.compared =
                Some(compared.filter_map(|one| SampleSeries::of(one, before)).collect());
        }
        Ok(answer)
    });
    asked.await.map(Json)
}

fn unreadable(fault: taximeter_store::memory::MemoryError) -> ApiError {
    ApiError::Busy(fault.to_string())
}

impl SampleParams {
    /// The question, how many seconds before it is asked again, and whether its step was given.
    fn query(self, now: Timestamp) -> Result<(Query, Option<i64>, bool), ApiError> {
        let allowed = || "the name of a quantity of the schema, such as hw.power".to_owned();
        let missing = || ApiError::Missing { name: "quantity", allowed: allowed() };
        let quantity = self.quantity.ok_or_else(missing)?;
        if !QUANTITIES.iter().any(|one| one.name == quantity) {
            let (name, got) = ("quantity", quantity);
            return Err(ApiError::Parameter { name, got, allowed: allowed() });
        }
        let words = Statistic::ALL.map(Statistic::as_str).join(", ");
        let statistic = self.statistic.as_deref();
        let statistic =
            query::read("statistic", statistic, format_args!("one of {words}"), |name| {
                Statistic::named(name).ok_or(())
            })?;
        let zone = Zone::default();
        let to = query::time("to", self.to.as_deref(), &zone)?.map(Timestamp::as_second);
        // The second that runs has samples, too.
        let to = to.unwrap_or(now.as_second() + 1);
        let from = query::time("from", self.from.as_deref(), &zone)?;
        let from = from.map_or(to - USUAL_SECONDS, Timestamp::as_second);
        let length = (to - from).max(0);
        let allowed = format!("a whole number of seconds, with at most {STEPS_MAX} steps");
        let step = query::read("step", self.step.as_deref(), allowed, |text| {
            let step = text.parse::<u32>().ok().filter(|step| (1..=STEP_MAX).contains(step));
            step.map(i64::from).filter(|step| length / step <= STEPS_MAX).ok_or(())
        })?;
        let (step, has_step) = (step.unwrap_or_else(|| Query::step_for(length)), step.is_some());
        let allowed = "hours, days or weeks, such as 24h, 1d or 1w";
        let before = query::read("compare", self.compare.as_deref(), allowed, before)?;
        if before.is_some_and(|before| before % step != 0) {
            return Err(ApiError::Parameter {
                name: "step",
                got: step.to_string(),
                allowed: "a part of the time of compare".to_owned(),
            });
        }
        let limit = query::number("limit", self.limit.as_deref(), SERIES_MAX)?.unwrap_or(SERIES);
        let who = [
            (Field::Node, self.host),
            (Field::Gpu, self.gpu),
            (Field::Part, self.part),
            (Field::Pod, self.pod),
            (Field::Engine, self.engine),
            (Field::Model, self.model),
        ];
        let who = who.into_iter().filter_map(|(field, asked)| Some((field, asked?))).collect();
        let (target, series_max) = (self.source, limit as usize);
        let query = Query { quantity, statistic, target, who, from, to, step, series_max };
        Ok((query, before, has_step))
    }
}

/// Seconds of a time such as `1w`, up to ten years.
fn before(text: &str) -> Result<i64, ()> {
    let unit = text.chars().next_back().ok_or(())?;
    let number = text.strip_suffix(unit).and_then(|text| text.parse::<u16>().ok()).ok_or(())?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 24 * 7,
        _ => return Err(()),
    };
    let hours = i64::from(number) * hours;
    if (1..=24 * 3_660).contains(&hours) { Ok(hours * 3_600) } else { Err(()) }
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}

impl SamplesAnswer {
    /// Nothing yet.
    fn to(query: &Query) -> Self {
        Self {
            from: time(query.from),
            to: time(query.to),
            step: query.step,
            grid: query.grid().name(),
            series: Vec::new(),
            compared: None,
            more: false,
        }
    }
}

impl SampleSeries {
    /// A series, with its times so many seconds later.
    fn of(found: FoundSeries, later: i64) -> Option<Self> {
        let FoundSeries { key, mut points } = found;
        points.iter_mut().for_each(|point| point.0 += later);
        Some(Self {
            source: key.target,
            program: key.program,
            labels: RawValue::from_string(key.labels).ok()?,
            statistic: key.statistic.as_str(),
            unit: if key.statistic == Statistic::Count { String::new() } else { key.unit },
            points,
        })
    }
}
