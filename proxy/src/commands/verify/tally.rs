//! What a set of records adds up to, in a form in which two sets can be compared.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Serialize;
use sha2::{Digest, Sha256};
use taximeter_ledger::Record;

/// The same for the same records, in whatever order they come.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Records.
    pub(super) records: u64,
    /// Those of which the cost is unknown.
    pub(super) unknown_cost: u64,
    /// What is owed, by currency, before corrections.
    pub(super) costs: BTreeMap<String, Decimal>,
    /// Sum of the hashes of all records: equal only if each record is.
    hashes: u128,
    /// A sum was too large to be kept.
    overflow: bool,
}

impl Tally {
    pub(super) fn add(&mut self, record: &Record) {
        self.records += 1;
        match &record.cost {
            None => self.unknown_cost += 1,
            Some(cost) => {
                let sum = self.costs.entry(cost.currency.clone()).or_default();
                match sum.checked_add(cost.amount) {
                    Some(added) => *sum = added.normalize(),
                    None => self.overflow = true,
                }
            }
        }
        self.hashes = self.hashes.wrapping_add(hash(record));
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
    use super::*;
    use crate::edge::store::samples::record;

    fn tally(numbers: &[u32]) -> Tally {
        let mut tally = Tally::default();
        for number in numbers {
            tally.add(&record(*number));
        }
        tally
    }

    #[test]
    fn the_order_does_not_matter_and_every_record_does() {
        assert_eq!(tally(&[1, 2, 3]), tally(&[3, 1, 2]));
        assert_ne!(tally(&[1, 2, 3]), tally(&[1, 2, 4]));
        assert_ne!(tally(&[1, 2, 2]), tally(&[1, 1, 2]));
        let mut changed = Tally::default();
        changed.add(&Record { attempt: 2, ..record(1) });
        assert_ne!(changed, tally(&[1]));
        assert_eq!(changed.costs, tally(&[1]).costs);
    }
}
