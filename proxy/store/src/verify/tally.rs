//! The sums of a set of records. Equal sums mean equal sets.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use rust_decimal::Decimal;
use serde::Serialize;
use sha2::{Digest, Sha256};
use taximeter_ledger::RecordCost;

/// A hash with a random secret for each run. Nobody can make two entries with the same hash on
/// purpose, and by chance it happens once in 2⁶⁴.
#[derive(Debug, Clone, Default)]
pub(super) struct Scale(RandomState);

impl Scale {
    /// The hash of the record with the number `seq` and this payload.
    pub(super) fn weigh(&self, seq: u64, payload: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(seq);
        hasher.write(payload);
        hasher.finish()
    }
}

/// The sums of a set of records, in any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Number of records.
    pub(super) records: u64,
    /// Records of unknown cost.
    pub(super) unknown_cost: u64,
    /// Cost by currency, or what is known of it, before corrections.
    pub(super) costs: BTreeMap<String, Decimal>,
    /// Sum of the hashes of all records as they are written. It is equal only if each record is.
    weight: u64,
    /// Whether a sum was too large.
    overflow: bool,
}

impl Tally {
    /// Adds a record with this hash.
    pub(super) fn add(&mut self, weight: u64, cost: Option<&RecordCost>) {
        self.records += 1;
        self.unknown_cost += u64::from(RecordCost::is_unknown(cost));
        if let Some(cost) = cost {
            self.owe(&cost.currency, cost.amount);
        }
        self.weight = self.weight.wrapping_add(weight);
    }

    /// Adds the records of another set.
    pub(super) fn add_all(&mut self, other: &Self) {
        self.records += other.records;
        self.unknown_cost += other.unknown_cost;
        other.costs.iter().for_each(|(currency, amount)| self.owe(currency, *amount));
        self.overflow |= other.overflow;
        self.weight = self.weight.wrapping_add(other.weight);
    }

    fn owe(&mut self, currency: &str, amount: Decimal) {
        if !self.costs.contains_key(currency) {
            self.costs.insert(currency.to_owned(), Decimal::ZERO);
        }
        let Some(sum) = self.costs.get_mut(currency) else { return };
        match sum.checked_add(amount) {
            Some(added) => *sum = added.normalize(),
            None => self.overflow = true,
        }
    }
}

/// Half the SHA-256 of an entry, as JSON.
pub(super) fn hash(entry: &impl Serialize) -> u128 {
    // An entry is always JSON.
    let hash = Sha256::digest(serde_json::to_vec(entry).unwrap_or_default());
    let (half, _) = hash.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
    u128::from_le_bytes(*half)
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::Record;

    use super::*;
    use crate::samples::record;

    fn add(tally: &mut Tally, scale: &Scale, seq: u64, record: &Record) {
        let weight = scale.weigh(seq, &serde_json::to_vec(record).unwrap());
        tally.add(weight, record.owed());
    }

    fn tally(scale: &Scale, numbers: &[u32]) -> Tally {
        let mut tally = Tally::default();
        for number in numbers {
            add(&mut tally, scale, u64::from(*number), &record(*number));
        }
        tally
    }

    #[test]
    fn the_order_does_not_matter_and_every_record_does() {
        let scale = Scale::default();
        let tally = |numbers: &[u32]| tally(&scale, numbers);
        assert_eq!(tally(&[1, 2, 3]), tally(&[3, 1, 2]));
        assert_ne!(tally(&[1, 2, 3]), tally(&[1, 2, 4]));
        assert_ne!(tally(&[1, 2, 2]), tally(&[1, 1, 2]));
        let mut parts = tally(&[1, 2]);
        parts.add_all(&tally(&[3]));
        assert_eq!(parts, tally(&[1, 2, 3]));
    }

    #[test]
    fn a_record_with_the_same_cost_under_another_number_or_with_another_member_is_another() {
        let scale = Scale::default();
        for (seq, attempt) in [(2, 1), (1, 2)] {
            let mut changed = Tally::default();
            add(&mut changed, &scale, seq, &Record { attempt, ..record(1) });
            assert_ne!(changed, tally(&scale, &[1]));
            assert_eq!(changed.costs, tally(&scale, &[1]).costs);
        }
    }
}
