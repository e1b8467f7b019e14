//! Adds up quantities by meter and source, for the dimensions of a bill.

use std::cmp::Reverse;
use std::collections::HashMap;

use rust_decimal::Decimal;
use taximeter_pricing::Source;

use crate::bill::{BillError, LINES_MAX};
use crate::group::{GroupKey, Grouping};
use crate::hours::{Hour, HourKey};
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// What splits quantities in addition to the dimensions of requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Split {
    /// `input`, `cache_read`, `output` and so on.
    pub meter: bool,
    /// The source of the quantity.
    pub source: bool,
}

/// Quantities of one unit that agree in the grouping and the split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantityLine {
    /// One for each dimension of the grouping. `None` if the requests have no value there.
    pub keys: Vec<Option<String>>,
    /// `None` if all meters are added up.
    pub meter: Option<String>,
    /// `None` if all sources are added up.
    pub source: Option<Source>,
    /// What is counted: `tokens`, `seconds`, `calls` and so on.
    pub unit: String,
    /// The quantity.
    pub quantity: Decimal,
    /// Cost before credits, exact.
    pub cost: Decimal,
    /// Cost at list price, exact.
    pub list_cost: Decimal,
}

/// Takes hours in any order and adds up all quantities with a price.
#[derive(Debug)]
pub struct Quantities {
    zone: Zone,
    by: Grouping,
    split: Split,
    lines: HashMap<QuantityKey, QuantitySum>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct QuantityKey {
    group_key: GroupKey,
    meter: Option<String>,
    source: Option<Source>,
    unit: String,
}

#[derive(Debug, Default)]
struct QuantitySum {
    quantity: Decimal,
    cost: Decimal,
    list_cost: Decimal,
}

impl Quantities {
    /// No quantities yet.
    #[must_use]
    pub fn new(zone: Zone, by: Grouping, split: Split) -> Self {
        Self { zone, by, split, lines: HashMap::new() }
    }

    /// Adds an hour. All hours must be in one currency.
    ///
    /// # Errors
    /// `Overflow` if a sum cannot be kept exactly, and `TooManyLines`. After an error the sums must
    /// not be used.
    pub fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), BillError> {
        let overflow = || BillError::Overflow { tenant: key.tenant.clone() };
        let group_key = self.by.group_key(key, &self.zone);
        for (line, quantity) in &hour.lines {
            let key = QuantityKey {
                group_key: group_key.clone(),
                meter: self.split.meter.then(|| line.meter.clone()),
                source: self.split.source.then_some(line.source),
                unit: line.unit.clone(),
            };
            let sum = self.lines.entry(key).or_default();
            let more = QuantitySum {
                quantity: *quantity,
                cost: exact_product(*quantity, line.unit_price).ok_or_else(overflow)?,
                list_cost: exact_product(*quantity, line.list_unit_price).ok_or_else(overflow)?,
            };
            sum.add(&more).ok_or_else(overflow)?;
        }
        if self.lines.len() > LINES_MAX { Err(BillError::TooManyLines) } else { Ok(()) }
    }

    /// If grouped by time, in order of time. Then the highest cost first, then by name.
    #[must_use]
    pub fn finish(self) -> Vec<QuantityLine> {
        let line = |(QuantityKey { group_key: (start, keys), meter, source, unit }, sum): (
            _,
            QuantitySum,
        )| {
            let quantity = sum.quantity.normalize();
            let (cost, list_cost) = (sum.cost.normalize(), sum.list_cost.normalize());
            (start, QuantityLine { keys, meter, source, unit, quantity, cost, list_cost })
        };
        let mut lines: Vec<_> = self.lines.into_iter().map(line).collect();
        lines.sort_by_cached_key(|(start, line)| {
            let names = (line.keys.clone(), line.meter.clone(), line.source, line.unit.clone());
            (*start, Reverse(line.cost), names)
        });
        lines.into_iter().map(|(_, line)| line).collect()
    }
}

impl QuantitySum {
    fn add(&mut self, more: &Self) -> Option<()> {
        self.quantity = add_exactly(self.quantity, more.quantity)?;
        self.cost = add_exactly(self.cost, more.cost)?;
        self.list_cost = add_exactly(self.list_cost, more.list_cost)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::RecordLine;

    use super::*;
    use crate::fixtures::{self, key};

    /// The list price is twice this price.
    fn hour(meter: &str, tokens: u64, price: &str, source: Source) -> Hour {
        let line = fixtures::line(meter, tokens, price);
        let list_unit_price = Some(line.unit_price * Decimal::TWO);
        fixtures::hour(source, vec![RecordLine { list_unit_price, ..line }])
    }

    fn lines(zone: &str, by: Grouping, split: Split) -> Vec<(String, String, String, String)> {
        let mut quantities = Quantities::new(zone.parse().unwrap(), by, split);
        for (tenant, at, hour) in [
            ("acme", "2026-11-20T10:00:00Z", hour("input", 10, "0.5", Source::Reported)),
            ("acme", "2026-11-20T11:00:00Z", hour("input", 4, "0.25", Source::Counted)),
            ("beta", "2026-11-20T10:00:00Z", hour("output", 2, "3", Source::Reported)),
        ] {
            quantities.add(&key(tenant, at), &hour).unwrap();
        }
        let shown = |line: QuantityLine| {
            let keys = line.keys.into_iter().flatten().collect::<Vec<_>>().join(" ");
            let split = format!("{:?} {:?}", line.meter, line.source);
            (keys, split, line.quantity.to_string(), format!("{} {}", line.cost, line.list_cost))
        };
        quantities.finish().into_iter().map(shown).collect()
    }

    fn line(
        keys: &str,
        split: &str,
        quantity: &str,
        costs: &str,
    ) -> (String, String, String, String) {
        (keys.to_owned(), split.to_owned(), quantity.to_owned(), costs.to_owned())
    }

    #[test]
    fn what_agrees_is_added_up_and_the_dearest_comes_first() {
        let split = Split { meter: true, source: false };
        assert_eq!(
            lines("UTC", "tenant".parse().unwrap(), split),
            [
                line("acme", "Some(\"input\") None", "14", "6 12"),
                line("beta", "Some(\"output\") None", "2", "6 12"),
            ]
        );
        let split = Split { meter: false, source: true };
        assert_eq!(
            lines("UTC", Grouping::none(), split),
            [
                line("", "None Some(Reported)", "12", "11 22"),
                line("", "None Some(Counted)", "4", "1 2"),
            ]
        );
    }

    #[test]
    fn times_come_in_order() {
        for (zone, hours) in [
            ("UTC", ["2026-11-20T10:00Z", "2026-11-20T11:00Z"]),
            ("Europe/Berlin", ["2026-11-20T11:00+01:00", "2026-11-20T12:00+01:00"]),
        ] {
            let split = Split { meter: false, source: true };
            let shown = lines(zone, "hour".parse().unwrap(), split);
            let shown: Vec<_> = shown.iter().map(|(hour, ..)| hour.as_str()).collect();
            assert_eq!(shown, hours);
        }
    }

    #[test]
    fn a_sum_that_cannot_be_kept_is_an_error() {
        let mut quantities = Quantities::new(Zone::UTC, Grouping::none(), Split::default());
        let huge = hour("input", 1, "20000000000000000000000000000", Source::Reported);
        let key = key("acme", "2026-11-20T10:00:00Z");
        quantities.add(&key, &huge).unwrap();
        let fault = quantities.add(&key, &huge);
        assert!(matches!(fault, Err(BillError::Overflow { .. })), "{fault:?}");
    }
}
