//! A quantity, as the API tells it.

use std::collections::BTreeMap;

use serde::Serialize;
use taximeter_collections::Gather as _;
use taximeter_fleet::{Distribution, Identity, Percentile, Series, Unknown, Value};
use utoipa::ToSchema;

/// A quantity that is known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetQuantity {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// Its layer, from `L1` (GPUs) to `L8` (money).
    pub(crate) layer: &'static str,
    /// Its unit, as UCUM writes it.
    pub(crate) unit: &'static str,
    /// Its value. Null for what is a distribution.
    pub(crate) value: Option<f64>,
    /// What a histogram tells, since its program started. Null for what is a number.
    pub(crate) distribution: Option<FleetDistribution>,
    /// By how much a counter grows per second. Null for what is none, and until it is known.
    pub(crate) rate: Option<f64>,
    /// How often a counter began anew.
    pub(crate) resets: u32,
    /// How many seconds ago its program says that it was measured. Null where it says nothing.
    pub(crate) stamped_age: Option<f64>,
    /// Whom it is about, and what else tells it apart.
    pub(crate) labels: BTreeMap<String, String>,
    /// The upstream that it is of: the one at the source's address, or the one that the configuration
    /// assigns a GPU to. Null if nothing says it.
    pub(crate) upstream: Option<String>,
    /// The short name of the program.
    pub(crate) program: &'static str,
    /// The metric that it is from.
    pub(crate) from: String,
    /// What was done to the metric's value; empty if nothing.
    pub(crate) how: String,
}

/// What a histogram tells. What it does not is null.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetDistribution {
    /// How many observations.
    pub(crate) count: Option<f64>,
    /// What they add up to.
    pub(crate) sum: Option<f64>,
    /// The median.
    pub(crate) p50: FleetPercentile,
    /// The 95th percentile.
    pub(crate) p95: FleetPercentile,
}

/// A percentile, as far as buckets tell it. One member is not null.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetPercentile {
    /// About this, interpolated in its bucket.
    pub(crate) about: Option<f64>,
    /// Above this, which is the last bound.
    pub(crate) above: Option<f64>,
    /// Why it is unknown.
    pub(crate) unknown: Option<&'static str>,
}

/// A quantity that is not known.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetUnknown {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// Its layer, from `L1` (GPUs) to `L8` (money).
    pub(crate) layer: &'static str,
    /// Its unit, as UCUM writes it.
    pub(crate) unit: &'static str,
    /// What tells it apart.
    pub(crate) labels: BTreeMap<String, String>,
    /// The short name of the program.
    pub(crate) program: &'static str,
    /// Why it is not known.
    pub(crate) why: String,
    /// Of whom. Empty: of all whom the source tells of.
    pub(crate) of: Vec<BTreeMap<String, String>>,
}

impl FleetQuantity {
    /// One series, of this upstream.
    pub(crate) fn of(series: &Series, upstream: Option<String>) -> Self {
        let (value, distribution) = match series.value() {
            Value::Number(number) => (Some(number), None),
            Value::Histogram(of) => (None, Some(FleetDistribution::of(&of))),
        };
        let what = &series.what;
        Self {
            name: what.quantity.name,
            layer: what.quantity.layer.code(),
            unit: what.quantity.unit,
            value,
            distribution,
            rate: series.rate(),
            resets: series.resets(),
            stamped_age: series.stamped_age(),
            labels: labels(&series.who, &what.attributes),
            upstream,
            program: what.program,
            from: what.from.clone(),
            how: what.how.clone(),
        }
    }
}

impl FleetDistribution {
    fn of(of: &Distribution) -> Self {
        let Distribution { count, sum, p50, p95 } = *of;
        Self { count, sum, p50: FleetPercentile::of(p50), p95: FleetPercentile::of(p95) }
    }
}

impl FleetPercentile {
    const fn of(percentile: Percentile) -> Self {
        let (about, above, unknown) = match percentile {
            Percentile::About(value) => (Some(value), None, None),
            Percentile::Above(bound) => (None, Some(bound), None),
            Percentile::Unknown(why) => (None, None, Some(why)),
        };
        Self { about, above, unknown }
    }
}

impl FleetUnknown {
    /// What a program could tell, and does not.
    pub(crate) fn of(unknown: &Unknown) -> Self {
        Self {
            name: unknown.quantity.name,
            layer: unknown.quantity.layer.code(),
            unit: unknown.quantity.unit,
            labels: attributes(&unknown.attributes).collect(),
            program: unknown.program,
            why: unknown.why.clone(),
            of: unknown.of.iter().map(|of| labels(of, &[])).collect(),
        }
    }
}

/// Whom something is about, and what else tells it apart.
pub(crate) fn labels(who: &Identity, more: &[(String, String)]) -> BTreeMap<String, String> {
    let who = who.iter().map(|(field, value)| (field.name().to_owned(), value.to_owned()));
    who.chain(attributes(more)).gather()
}

fn attributes(all: &[(String, String)]) -> impl Iterator<Item = (String, String)> {
    all.iter().cloned()
}
