//! The series that are one quantity of one subject.

use std::fmt::Write as _;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::histogram::Buckets;
use crate::identity::Identity;
use crate::quantity::{Instrument, Quantity, Valid};
use crate::reading::{Measured, Value};
use crate::recognise::NAMES_MAX;
use crate::row::{Derived, Op, Row};
use crate::sample::{Declared, Sample};

/// What a sample is of its quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Number,
    Bucket,
    Sum,
    Count,
}

impl Part {
    /// What the pieces of a histogram are called.
    pub(super) const OF_HISTOGRAM: [(&'static str, Self); 3] =
        [("_bucket", Self::Bucket), ("_sum", Self::Sum), ("_count", Self::Count)];

    /// The histogram's name.
    pub(super) fn stem(self, name: &str) -> &str {
        let suffix = Self::OF_HISTOGRAM.iter().find(|(_, part)| *part == self);
        suffix.and_then(|(suffix, _)| name.strip_suffix(suffix)).unwrap_or(name)
    }
}

/// Series that are one quantity.
#[derive(Debug)]
pub(super) struct Group {
    pub row: &'static Row,
    /// Number of whom it is about.
    pub who: usize,
    pub attributes: Vec<(String, String)>,
    /// Place of the row and the name in their table: the lowest counts.
    rank: usize,
    from: String,
    how: String,
    value: Value,
    buckets: Buckets,
    /// How many series have been added.
    series: u32,
    stamped: Option<i64>,
}

impl Group {
    pub(super) fn new(
        rank: usize,
        row: &'static Row,
        name: &str,
        who: usize,
        attributes: Vec<(String, String)>,
    ) -> Self {
        Self {
            row,
            who,
            attributes,
            rank,
            from: name.to_owned(),
            how: String::new(),
            value: Value::Number(0.0),
            buckets: Buckets::default(),
            series: 0,
            stamped: None,
        }
    }

    /// Whether it is this quantity of somebody, in whatever order its attributes stand.
    pub(super) fn is_of(
        &self,
        quantity: &'static Quantity,
        who: usize,
        attributes: &[(String, String)],
    ) -> bool {
        self.who == who
            && self.row.quantity == quantity
            && self.attributes.len() == attributes.len()
            && attributes.iter().all(|attribute| self.attributes.contains(attribute))
    }

    /// The number of its row. What is made from others has none.
    pub(super) fn row_number(&self) -> Option<usize> {
        (self.rank < usize::MAX).then_some(self.rank / NAMES_MAX)
    }

    pub(super) fn is_better_than(&self, rank: usize) -> bool {
        self.rank < rank
    }

    /// Takes another metric for the same, if it stands earlier in the table.
    pub(super) fn prefer(&mut self, rank: usize, row: &'static Row, name: &str) {
        if rank < self.rank {
            let attributes = std::mem::take(&mut self.attributes);
            *self = Self::new(rank, row, name, self.who, attributes);
        }
    }

    /// Adds a number. True if it is of a series too many, and left out.
    pub(super) fn number(&mut self, row: &Row, sample: &Sample<'_>) -> bool {
        if self.series > 0 && row.sum_over.is_empty() {
            return true;
        }
        let before = match self.value {
            Value::Number(before) if self.series > 0 => before,
            _ => 0.0,
        };
        self.value = Value::Number(before + row.in_unit(sample.value));
        self.series += 1;
        if sample.declared == Declared::Nothing && !row.undeclared.is_empty() {
            self.how = row.undeclared.to_owned();
        }
        self.stamp(sample);
        false
    }

    /// Adds a piece of a histogram.
    pub(super) fn piece(&mut self, part: Part, sample: &Sample<'_>, bound: Option<&str>) {
        let add = |to: Option<f64>| Some(to.unwrap_or(0.0) + sample.value);
        match part {
            Part::Bucket => {
                if let Some(bound) = bound.and_then(|bound| bound.parse().ok()) {
                    self.buckets.add(bound, sample.value);
                }
            }
            Part::Sum => self.buckets.sum = add(self.buckets.sum),
            Part::Count => {
                self.buckets.count = add(self.buckets.count);
                self.series += 1;
            }
            Part::Number => {}
        }
        self.stamp(sample);
    }

    /// Of several time stamps the oldest counts.
    fn stamp(&mut self, sample: &Sample<'_>) {
        if let Some(stamped) = sample.stamped {
            self.stamped = Some(self.stamped.map_or(stamped, |is| is.min(stamped)));
        }
    }

    /// A quantity made from `of`. `None` if it cannot be.
    pub(super) fn derived(derived: &'static Derived, of: &[&Self]) -> Option<Self> {
        let values = of.iter().map(|group| match group.value {
            Value::Number(value) => Some(value),
            Value::Histogram(_) => None,
        });
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let (value, sign) = match (derived.how, values.as_slice()) {
            (Op::Sum, values) => (values.iter().sum(), " + "),
            (Op::Ratio, [above, below]) if *below > 0.0 => (above / below, " / "),
            (Op::Ratio, _) => return None,
        };
        if derived.row.quantity.valid == Valid::Ratio && !(0.0..=1.0).contains(&value) {
            return None;
        }
        let first = of.first()?;
        let from: Vec<&str> = of.iter().map(|group| group.from.as_str()).collect();
        let mut made = Self::new(
            usize::MAX,
            &derived.row,
            &from.join(sign),
            first.who,
            first.attributes.clone(),
        );
        made.value = Value::Number(value);
        made.how = derived.note.to_owned();
        made.series = 1;
        made.stamped = of.iter().filter_map(|group| group.stamped).min();
        Some(made)
    }

    pub(super) fn measured(
        self,
        program: &'static str,
        identity: Arc<Identity>,
        at: Timestamp,
    ) -> Measured {
        let mut how = self.how;
        let mut say = |text: &str| {
            let comma = if how.is_empty() { "" } else { ", " };
            let _ = write!(how, "{comma}{text}");
        };
        if !self.row.unit.is_empty() {
            say(&format!("in {}", self.row.unit));
        }
        if self.series > 1 {
            let over = self.row.sum_over.join(", ");
            say(&format!("{} series added over {over}", self.series));
        }
        let (value, buckets) = match self.row.quantity.instrument {
            Instrument::Histogram => (
                Value::Histogram(self.buckets.distribution(self.row.scale)),
                Some(Arc::new(self.buckets.scaled(self.row.scale))),
            ),
            _ => (self.value, None),
        };
        let age = self.stamped.and_then(|stamped| {
            let stamped = Timestamp::from_millisecond(stamped).ok()?;
            Some(SignedDuration::from_millis(
                at.duration_since(stamped).as_millis().try_into().ok()?,
            ))
        });
        Measured {
            quantity: self.row.quantity,
            value,
            buckets,
            identity,
            attributes: self.attributes,
            program,
            from: self.from,
            how,
            age,
        }
    }
}
