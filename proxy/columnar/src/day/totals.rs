//! What the rows of a file add up to.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use sha2::{Digest as _, Sha256};
use taximeter_collections::Gather as _;
use taximeter_ledger::{LedgerId, Place, Record};

use super::footer::{Footer, LedgerRange};
use crate::kept::hex;

/// What the rows so far add up to.
#[derive(Default)]
pub(super) struct DayTotals {
    ledgers: BTreeMap<LedgerId, LedgerRange>,
    /// `None` stands for a sum that cannot be kept exactly.
    costs: BTreeMap<String, Option<Decimal>>,
    content: Sha256,
}

impl DayTotals {
    /// Adds the next row.
    pub(super) fn add(&mut self, place: Place, record: &Record, payload: &[u8]) {
        digest(&mut self.content, place, payload);
        add_cost(&mut self.costs, record);
        let Place { ledger, seq } = place;
        let range = self.ledgers.entry(ledger);
        let range = range.or_insert(LedgerRange { ledger, first: seq, last: seq, rows: 0 });
        (range.first, range.last) = (range.first.min(seq), range.last.max(seq));
        range.rows += 1;
    }

    /// Says it in a footer.
    pub(super) fn tell(self, footer: &mut Footer) {
        footer.ledgers = self.ledgers.into_values().collect();
        let costs = self.costs.into_iter();
        footer.costs = costs.filter_map(|(currency, sum)| Some((currency, sum?))).gather();
        footer.sha256 = hex(&self.content.finalize());
    }
}

/// Adds a row to a digest.
pub(super) fn digest(to: &mut Sha256, place: Place, payload: &[u8]) {
    to.update(place.ledger.0.as_bytes());
    to.update(place.seq.to_le_bytes());
    to.update(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.update(payload);
}

/// Adds what a record owes. `None` stands for a sum that cannot be kept exactly.
fn add_cost(costs: &mut BTreeMap<String, Option<Decimal>>, record: &Record) {
    let Some(owed) = record.owed() else { return };
    let amount = owed.amount.normalize();
    match costs.get_mut(&owed.currency) {
        Some(sum) => *sum = sum.and_then(|sum| add_exactly(sum, amount)),
        None => drop(costs.insert(owed.currency.clone(), Some(amount))),
    }
}

/// `a` + `b`. `None` if digits would be dropped.
fn add_exactly(a: Decimal, b: Decimal) -> Option<Decimal> {
    let sum = a.checked_add(b)?;
    (sum.scale() >= a.scale().max(b.scale())).then(|| sum.normalize())
}
