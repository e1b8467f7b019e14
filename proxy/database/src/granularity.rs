//! Adds up hours that a question does not tell apart. Then a month is as many sums as it has days,
//! and most of the cost of a row is paid once a day.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::{self, Write as _};

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use taximeter_billing::{HourKey, Sums, add_exactly};

/// Rows that are added up before something is shown, so that whoever looks can end it.
const ROWS_MAX: u32 = 1 << 16;

/// What sums must distinguish.
#[derive(Clone, Copy)]
pub struct Granularity<'a> {
    /// Instants in order. Hours before such an instant are in other sums than hours from it on.
    pub cuts: &'a [Timestamp],
    /// Whether of such a key every hour is told apart.
    pub is_hourly: &'a dyn Fn(&HourKey) -> bool,
}

/// What a row says: an hour, with numbers in place of its lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    /// What is added up.
    pub sums: Sums,
    /// The quantity of each line, by its number.
    pub quantities: Vec<(i64, Decimal)>,
}

/// Adds rows up as they come, in order of time.
pub struct Gathering<'a> {
    granularity: Granularity<'a>,
    /// By the number of the combination.
    gathered: HashMap<i64, Gathered>,
    /// How many cuts are behind.
    cut: usize,
    rows: u32,
}

#[derive(Debug)]
struct Gathered {
    key: HourKey,
    is_hourly: bool,
    /// Each with the first of its hours. Another one where the sum would be too large.
    sums: Vec<(Timestamp, Numbered)>,
}

impl Granularity<'_> {
    /// Every hour by itself.
    pub const HOURS: Self = Granularity { cuts: &[], is_hourly: &|_| true };
}

impl Numbered {
    /// Sums, and quantities as they are kept: JSON of decimals by the number of their line.
    ///
    /// Errors: it is none.
    pub fn new(sums: Sums, quantities: &str) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(quantities);
        let quantities = json.deserialize_map(QuantityVisitor)?;
        json.end()?;
        Ok(Self { sums, quantities })
    }

    /// The quantities, as they are kept.
    pub fn quantities_json(&self) -> String {
        let mut json = String::with_capacity(2 + 24 * self.quantities.len());
        json.push('{');
        for (index, (line, quantity)) in self.quantities.iter().enumerate() {
            json.push_str(if index == 0 { "\"" } else { ",\"" });
            // A text takes everything that is written to it. Whole numbers, which most are, are
            // written faster than decimals.
            let _ = match i64::try_from(*quantity) {
                Ok(whole) if quantity.scale() == 0 => write!(json, "{line}\":\"{whole}\""),
                _ => write!(json, "{line}\":\"{quantity}\""),
            };
        }
        json.push('}');
        json
    }

    /// Adds `other`; `None` where a sum cannot be kept exactly: nothing was added then.
    pub fn add(&mut self, other: &Self) -> Option<()> {
        let mut added = Vec::with_capacity(other.quantities.len());
        for (expected, (line, quantity)) in other.quantities.iter().enumerate() {
            let index = self.position(*line, expected);
            let sum = index.and_then(|index| self.quantities.get(index)).map(|(_, sum)| *sum);
            added.push((index, *line, add_exactly(sum.unwrap_or_default(), *quantity)?));
        }
        self.sums.add(&other.sums)?;
        for (index, line, sum) in added {
            match index.and_then(|index| self.quantities.get_mut(index)) {
                Some(known) => known.1 = sum,
                None => self.quantities.push((line, sum)),
            }
        }
        Some(())
    }

    /// Where a line is: the hours of a combination mostly have the same ones.
    fn position(&self, line: i64, expected: usize) -> Option<usize> {
        let is_line = |(known, _): &(i64, Decimal)| *known == line;
        match self.quantities.get(expected) {
            Some(known) if is_line(known) => Some(expected),
            _ => self.quantities.iter().position(is_line),
        }
    }
}

/// Reads them into a list, which is cheaper than a map and read a hundred thousand times.
struct QuantityVisitor;

impl<'de> Visitor<'de> for QuantityVisitor {
    type Value = Vec<(i64, Decimal)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("decimals by number of line")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut quantities = Vec::new();
        while let Some(quantity) = map.next_entry()? {
            quantities.push(quantity);
        }
        Ok(quantities)
    }
}

impl<'a> Gathering<'a> {
    /// Nothing yet.
    pub fn new(granularity: Granularity<'a>) -> Self {
        Self { granularity, gathered: HashMap::new(), cut: 0, rows: 0 }
    }

    /// Whether what was added has to be [taken](Self::take) before a row of `hour` is.
    pub fn is_due(&self, hour: Timestamp) -> bool {
        let next = self.granularity.cuts.get(self.cut);
        next.is_some_and(|cut| *cut <= hour) || self.rows >= ROWS_MAX
    }

    /// Adds a row. What is told apart from all others is given back, with its key.
    ///
    /// Errors: `key`'s, which tells what the number of a new combination stands for.
    pub fn add<E>(
        &mut self,
        (hour, combination): (Timestamp, i64),
        row: Numbered,
        key: impl FnOnce() -> Result<HourKey, E>,
    ) -> Result<Option<(HourKey, Numbered)>, E> {
        while self.granularity.cuts.get(self.cut).is_some_and(|cut| *cut <= hour) {
            self.cut += 1;
        }
        let gathered = match self.gathered.entry(combination) {
            Entry::Occupied(gathered) => gathered.into_mut(),
            Entry::Vacant(place) => {
                let key = key()?;
                let is_hourly = (self.granularity.is_hourly)(&key);
                place.insert(Gathered { key, is_hourly, sums: Vec::new() })
            }
        };
        if gathered.is_hourly {
            return Ok(Some((HourKey { hour, ..gathered.key.clone() }, row)));
        }
        self.rows += 1;
        match gathered.sums.last_mut().and_then(|(_, sum)| sum.add(&row)) {
            Some(()) => {}
            None => gathered.sums.push((hour, row)),
        }
        Ok(None)
    }

    /// Takes all sums out, with their keys, in the order of these.
    pub fn take(&mut self) -> Vec<(HourKey, Numbered)> {
        self.rows = 0;
        let mut taken = Vec::new();
        for Gathered { key, sums, .. } in self.gathered.values_mut() {
            let sums = sums.drain(..);
            taken.extend(sums.map(|(hour, sum)| (HourKey { hour, ..key.clone() }, sum)));
        }
        taken.sort_by(|(a, _), (b, _)| a.cmp(b));
        taken
    }
}
