//! Which requests and corrections are in the hours of a file.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use taximeter_ledger::{LedgerId, Place};

/// What the hours of one UTC day in a file are made of. Entries are fed in order, so the last one tells
/// all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoursCover {
    /// The day.
    pub day: Date,
    /// Records of requests of that day.
    pub records: u64,
    /// The last entry of a request of that day, by ledger.
    pub requests: BTreeMap<LedgerId, u64>,
    /// How far each journal was that has corrections.
    #[serde(default)]
    pub corrections: Vec<JournalEnd>,
}

/// How far a journal was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEnd {
    /// Its name.
    pub journal: String,
    /// The ledgers whose entries it has.
    pub ledgers: BTreeSet<LedgerId>,
    /// The last entry.
    pub last: u64,
}

impl HoursCover {
    /// Whether the request of this entry, which was admitted on that day, is in the hours.
    #[must_use]
    pub fn has_request(&self, place: Place) -> bool {
        self.requests.get(&place.ledger).is_some_and(|last| place.seq <= *last)
    }

    /// Whether the correction of this entry of `journal` was there when the hours were sealed. It is in
    /// them if its request is.
    #[must_use]
    pub fn has_correction(&self, journal: &str, place: Place) -> bool {
        self.corrections.iter().any(|end| {
            end.journal == journal && end.ledgers.contains(&place.ledger) && place.seq <= end.last
        })
    }

    /// Adds what another file has of the same day.
    pub fn add(&mut self, other: &Self) {
        // A later file of a day knows of what earlier ones have.
        self.records = self.records.max(other.records);
        for (ledger, last) in &other.requests {
            let known = self.requests.entry(*ledger).or_default();
            *known = last.max(known).to_owned();
        }
        for other in &other.corrections {
            let same = self.corrections.iter_mut().find(|end| end.journal == other.journal);
            match same {
                None => self.corrections.push(other.clone()),
                Some(end) => {
                    end.last = end.last.max(other.last);
                    end.ledgers.extend(&other.ledgers);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(ledger: LedgerId, seq: u64) -> Place {
        Place { ledger, seq }
    }

    fn cover(ledger: LedgerId, request: u64, correction: u64) -> HoursCover {
        let ledgers = BTreeSet::from([ledger]);
        let end = JournalEnd { journal: "corrections".to_owned(), ledgers, last: correction };
        HoursCover {
            requests: [(ledger, request)].into(),
            corrections: vec![end],
            ..Default::default()
        }
    }

    #[test]
    fn the_last_entry_of_each_ledger_tells_which_ones_are_in_the_hours() {
        let [one, other] = [1, 2].map(|id| LedgerId(uuid::Uuid::from_u128(id)));
        let mut whole = cover(one, 7, 3);
        whole.add(&cover(one, 5, 4));
        assert!(whole.has_request(place(one, 7)) && !whole.has_request(place(one, 8)));
        assert!(!whole.has_request(place(other, 1)));
        whole.add(&cover(other, 2, 1));
        assert!(whole.has_request(place(other, 2)) && !whole.has_request(place(other, 3)));
        for (place, is_there) in
            [(place(one, 4), true), (place(other, 4), true), (place(one, 5), false)]
        {
            assert_eq!(whole.has_correction("corrections", place), is_there);
            assert!(!whole.has_correction("journal", place));
        }
    }
}
