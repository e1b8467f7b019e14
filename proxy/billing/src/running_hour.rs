//! Adds up requests that differ only in their numbers. It costs a small part of adding an [`Hour`] for
//! each one.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_ledger::RecordCost;
use taximeter_pricing::Source;

use crate::billed_request::BilledRequest;
use crate::hours::{Hour, LineKey, TooLarge};
use crate::sums::{Sums, add_exactly};

/// The lines of a cost, without their quantities.
#[derive(Debug, Clone, Default)]
pub struct CostLines {
    keys: Vec<LineKey>,
    /// The place in `keys` of each line.
    places: Vec<usize>,
}

/// The sum of requests that agree in their key and in the lines of their cost.
#[derive(Debug, Clone, Default)]
pub struct RunningHour {
    sums: Sums,
    /// Of each key of [`CostLines`].
    quantities: Vec<Decimal>,
}

impl CostLines {
    /// The lines of `cost`, of which `source` is the source of the quantities.
    #[must_use]
    pub fn of(cost: &RecordCost, source: Source) -> Self {
        let mut lines = Self::default();
        for line in &cost.lines {
            let key = LineKey::of(cost, line, source);
            let place = lines.keys.iter().position(|known| *known == key);
            lines.places.push(place.unwrap_or(lines.keys.len()));
            if place.is_none() {
                lines.keys.push(key);
            }
        }
        lines
    }
}

impl RunningHour {
    /// Adds a request: `row` without the numbers of its cost, which are `amounts` (at the price and
    /// at list price) and the quantities of `lines`.
    ///
    /// # Errors
    /// [`TooLarge`]. Then nothing was added.
    pub fn add(
        &mut self,
        row: &BilledRequest<'_>,
        amounts: Option<(Decimal, Decimal)>,
        lines: &CostLines,
        quantities: &[Decimal],
    ) -> Result<(), TooLarge> {
        let (cost, list_cost) = amounts.unzip();
        let mut sums = self.sums.clone();
        sums.add(&Sums { cost, list_cost, ..Sums::of(row) }).ok_or(TooLarge)?;
        let mut added = self.quantities.clone();
        added.resize(lines.keys.len(), Decimal::ZERO);
        for (place, quantity) in lines.places.iter().zip(quantities) {
            if let Some(sum) = added.get_mut(*place) {
                *sum = add_exactly(*sum, *quantity).ok_or(TooLarge)?;
            }
        }
        (self.sums, self.quantities) = (sums, added);
        Ok(())
    }

    /// The hour.
    #[must_use]
    pub fn finish(self, lines: &CostLines) -> Hour {
        let Self { sums, quantities } = self;
        let lines: BTreeMap<_, _> = lines.keys.iter().cloned().zip(quantities).collect();
        Hour { sums, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{cost, line};
    use crate::hours::HourKey;

    fn row(cost: &RecordCost) -> BilledRequest<'_> {
        static LABELS: BTreeMap<String, String> = BTreeMap::new();
        BilledRequest {
            started_at: jiff::Timestamp::UNIX_EPOCH,
            tenant: "acme",
            model: Some("m"),
            provider: "vllm",
            upstream: "local",
            operation: "chat",
            route: "/v1/chat/completions",
            key_id: None,
            labels: &LABELS,
            source: Source::Reported,
            input_tokens: Some(7),
            cache_read_input_tokens: None,
            output_tokens: Some(3),
            reasoning_output_tokens: Some(0),
            cost: Some(cost),
        }
    }

    fn add(hour: &mut RunningHour, whole: &RecordCost, lines: &CostLines) -> Result<(), TooLarge> {
        let quantities: Vec<_> = whole.lines.iter().map(|line| line.count()).collect();
        let row = row(whole);
        let without_numbers = RecordCost { amount: Decimal::ZERO, ..whole.clone() };
        let bare = BilledRequest { cost: Some(&without_numbers), ..row };
        hour.add(&bare, Some((whole.amount, whole.list_amount)), lines, &quantities)
    }

    #[test]
    fn the_sum_is_the_one_of_adding_hours() {
        let costs = [1, 20, 300].map(|tokens| {
            // Two lines of one meter and price are one line of an hour.
            cost(vec![
                line("input", tokens, "0.5"),
                line("output", 3, "2"),
                line("input", 4, "0.5"),
            ])
        });
        let lines = CostLines::of(&costs[0], Source::Reported);
        let (mut running, mut hour) = (RunningHour::default(), Hour::default());
        for cost in &costs {
            add(&mut running, cost, &lines).unwrap();
            hour.add(&Hour::of(&row(cost))).unwrap();
        }
        assert_eq!(running.finish(&lines), hour);
        assert_eq!(hour.lines.len(), 2);
        assert_eq!(HourKey::of(&row(&costs[0])).tenant, "acme");
    }

    #[test]
    fn what_is_too_large_is_not_added() {
        let huge = cost(vec![line("input", 1, "70000000000000000000000000000")]);
        let lines = CostLines::of(&huge, Source::Reported);
        let mut running = RunningHour::default();
        add(&mut running, &huge, &lines).unwrap();
        assert!(add(&mut running, &huge, &lines).is_err());
        assert_eq!(running.finish(&lines), Hour::of(&row(&huge)));
    }
}
