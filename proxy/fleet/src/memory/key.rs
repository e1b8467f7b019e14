//! What tells a kept series from all others.

use std::collections::BTreeMap;

use taximeter_collections::Gather as _;

use crate::identity::{Field, Identity};
use crate::memory::statistic::Statistic;
use crate::pool::What;

/// Who a series is about, in columns of their own: these fields of its identity.
pub const WHO: [Field; 8] = [
    Field::Node,
    Field::Gpu,
    Field::Part,
    Field::Namespace,
    Field::Pod,
    Field::Container,
    Field::Engine,
    Field::Model,
];

/// What tells a kept series from all others. Files are in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SampleKey {
    /// The quantity.
    pub quantity: String,
    /// The source that told it: its URL, or `/proc`.
    pub target: String,
    /// Whom it is about, and what else tells it apart, as a JSON object.
    pub labels: String,
    /// The short name of the program.
    pub program: String,
    /// What the values are of those of their time.
    pub statistic: Statistic,
    /// Decimal places of the values.
    pub scale: i32,
    /// The unit of the quantity. A count of observations has none.
    pub unit: String,
    /// What is in `labels` of [`WHO`].
    pub who: [Option<String>; 8],
}

impl SampleKey {
    /// Of a series of `target`. What its values are is to be [set](Self::set).
    #[must_use]
    pub fn of(target: &str, what: &What, who: &Identity) -> Self {
        let of_who = who.iter().map(|(field, value)| (field.name(), value));
        let more = what.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let labels: BTreeMap<&str, &str> = more.chain(of_who).gather();
        Self {
            quantity: what.quantity.name.to_owned(),
            target: target.to_owned(),
            labels: serde_json::to_string(&labels).unwrap_or_default(),
            program: what.program.to_owned(),
            statistic: Statistic::Mean,
            scale: 0,
            unit: what.quantity.unit.to_owned(),
            who: WHO.map(|field| who.get(field).map(str::to_owned)),
        }
    }

    /// Its values are these, and have so many decimal places where they are of the quantity's unit: a
    /// count of observations has none.
    pub fn set(&mut self, statistic: Statistic, scale: i32) {
        self.statistic = statistic;
        self.scale = if statistic == Statistic::Count { 0 } else { scale };
    }
}
