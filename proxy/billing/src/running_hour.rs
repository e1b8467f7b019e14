//! Adds up requests that differ only in their numbers. It costs a small part of adding an [`Hour`] for
//! each one.

use rust_decimal::Decimal;
use taximeter_ledger::{RecordCost, TOKENS_MAX};
use taximeter_pricing::Source;

use crate::billed_request::BilledRequest;
use crate::hours::{Hour, LineKey, TooLarge};
use crate::sums::{Sums, add_exactly};

/// The lines of a cost, without their quantities.
#[derive(Debug, Clone, Default)]
pub struct CostLines {
    keys: Vec<LineKey>,
    /// The place in `keys`, and the price, of each line.
    lines: Vec<(usize, Decimal)>,
}

/// The sum of requests that agree in their key and in the lines of their cost.
#[derive(Debug, Clone, Default)]
pub struct RunningHour {
    sums: Sums,
    /// Of each key of [`CostLines`].
    quantities: Vec<Decimal>,
    /// Those of the next sum, which may turn out too large.
    next: Vec<Decimal>,
    /// Of each line, of requests whose amounts follow from them. Empty if there are none.
    tokens: Vec<u64>,
}

/// The numbers of a [`RunningHour`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningTotals {
    /// Requests, tokens and money.
    pub sums: Sums,
    /// One for each of [`CostLines::keys`]. There are none if no request has a cost.
    pub quantities: Vec<Decimal>,
}

impl CostLines {
    /// The lines of `cost`, of which `source` is the source of the quantities.
    #[must_use]
    pub fn of(cost: &RecordCost, source: Source) -> Self {
        let mut lines = Self::default();
        for line in &cost.lines {
            let key = LineKey::of(cost, line, source);
            let place = lines.keys.iter().position(|known| *known == key);
            lines.lines.push((place.unwrap_or(lines.keys.len()), line.unit_price));
            if place.is_none() {
                lines.keys.push(key);
            }
        }
        lines
    }

    /// The lines of the hours.
    #[must_use]
    pub fn keys(&self) -> &[LineKey] {
        &self.keys
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
        self.next.clone_from(&self.quantities);
        self.next.resize(lines.keys.len(), Decimal::ZERO);
        for ((place, _), quantity) in lines.lines.iter().zip(quantities) {
            if let Some(sum) = self.next.get_mut(*place) {
                *sum = add_exactly(*sum, *quantity).ok_or(TooLarge)?;
            }
        }
        let sums = Sums { cost, list_cost, ..Sums::without_amounts(row) };
        self.sums.add(&sums).ok_or(TooLarge)?;
        std::mem::swap(&mut self.quantities, &mut self.next);
        Ok(())
    }

    /// Adds a request: `row` without the numbers of its cost, and the tokens of its `lines`, each
    /// at most [`TOKENS_MAX`]. All of its amounts are tokens × price.
    ///
    /// # Errors
    /// [`TooLarge`]. Then nothing was added.
    pub fn add_tokens(
        &mut self,
        row: &BilledRequest<'_>,
        lines: &CostLines,
        tokens: &[u64],
    ) -> Result<(), TooLarge> {
        let mut sums = self.tokens.iter().zip(tokens);
        if sums.any(|(sum, tokens)| sum.saturating_add(*tokens) > TOKENS_MAX) {
            return Err(TooLarge);
        }
        self.sums.add(&Sums::without_amounts(row)).ok_or(TooLarge)?;
        self.tokens.resize(lines.lines.len(), 0);
        self.tokens.iter_mut().zip(tokens).for_each(|(sum, tokens)| *sum += tokens);
        Ok(())
    }

    /// The hour. In two parts where their sum cannot be kept exactly.
    #[must_use]
    pub fn finish(self, lines: &CostLines) -> (Hour, Option<Hour>) {
        let (totals, rest) = self.totals(lines);
        (totals.hour(lines), rest.map(|rest| rest.hour(lines)))
    }

    /// The same, with a quantity for each of [`CostLines::keys`] in place of the lines.
    #[must_use]
    pub fn totals(self, lines: &CostLines) -> (RunningTotals, Option<RunningTotals>) {
        let Self { sums, quantities, tokens, .. } = self;
        let totals = RunningTotals { sums, quantities };
        if tokens.is_empty() {
            return (totals, None);
        }
        let mut of_tokens = RunningTotals {
            sums: Sums::default(),
            quantities: vec![Decimal::ZERO; lines.keys.len()],
        };
        let mut amount = Decimal::ZERO;
        for ((place, price), tokens) in lines.lines.iter().zip(tokens) {
            let quantity = Decimal::from(tokens);
            amount += quantity * price;
            if let Some(sum) = of_tokens.quantities.get_mut(*place) {
                *sum += quantity;
            }
        }
        (of_tokens.sums.cost, of_tokens.sums.list_cost) = (Some(amount), Some(amount));
        match totals.plus(&of_tokens) {
            Some(sum) => (sum, None),
            None => (totals, Some(of_tokens)),
        }
    }
}

impl RunningTotals {
    fn hour(self, lines: &CostLines) -> Hour {
        Hour { sums: self.sums, lines: lines.keys.iter().cloned().zip(self.quantities).collect() }
    }

    /// The sum of both; `None` where it cannot be kept exactly.
    fn plus(&self, other: &Self) -> Option<Self> {
        let mut sum = other.clone();
        sum.sums.add(&self.sums)?;
        for (sum, quantity) in sum.quantities.iter_mut().zip(&self.quantities) {
            *sum = add_exactly(*sum, *quantity)?;
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
            dimensions: None,
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
        assert_eq!(running.finish(&lines), (hour.clone(), None));
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
        assert_eq!(running.finish(&lines), (Hour::of(&row(&huge)), None));
    }

    /// A cost of tokens whose amounts follow from them.
    fn of_tokens(tokens: [u64; 3]) -> RecordCost {
        let [one, two, three] = tokens;
        let mut cost = cost(vec![line("input", one, "0.0000005"), line("output", two, "0.002"), {
            line("input", three, "0.0000005")
        }]);
        for line in &mut cost.lines {
            line.amount = line.count() * line.unit_price;
        }
        cost.amount = cost.lines.iter().map(|line| line.amount).sum();
        cost.list_amount = cost.amount;
        cost
    }

    #[test]
    fn amounts_that_follow_from_tokens_are_added_up_from_them() {
        let requests = [[1, 20, 300], [0, 0, 0], [TOKENS_MAX - 1, 7, 9]];
        let lines = CostLines::of(&of_tokens(requests[0]), Source::Reported);
        let (mut running, mut hour) = (RunningHour::default(), Hour::default());
        for tokens in requests {
            let cost = of_tokens(tokens);
            running.add_tokens(&row(&cost), &lines, &tokens).unwrap();
            hour.add(&Hour::of(&row(&cost))).unwrap();
        }
        // Others of the same hour have amounts of their own.
        let rounded = RecordCost { amount: Decimal::new(7, 2), ..of_tokens([5, 6, 7]) };
        add(&mut running, &rounded, &lines).unwrap();
        hour.add(&Hour::of(&row(&rounded))).unwrap();
        let full = running.clone();
        assert_eq!(running.add_tokens(&row(&rounded), &lines, &[2, 0, 0]), Err(TooLarge));
        assert_eq!(running.finish(&lines), (hour, None));
        assert_eq!(full.finish(&lines).0.sums.requests, 4);
    }

    #[test]
    fn an_hour_is_told_in_two_parts_where_its_sum_cannot_be_kept() {
        let tokens = [1, 1, 1];
        let small = of_tokens(tokens);
        let lines = CostLines::of(&small, Source::Reported);
        let huge = RecordCost { amount: Decimal::MAX, ..small.clone() };
        let mut running = RunningHour::default();
        add(&mut running, &huge, &lines).unwrap();
        running.add_tokens(&row(&small), &lines, &tokens).unwrap();
        let (hour, rest) = running.finish(&lines);
        let rest = rest.unwrap();
        assert_eq!((hour.sums.requests, hour.sums.cost), (2, Some(Decimal::MAX)));
        assert_eq!((rest.sums.requests, rest.sums.cost), (0, Some(small.amount)));
    }
}
