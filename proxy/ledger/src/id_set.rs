//! A set for tens of millions of ids. Each id takes little more than 16 bytes.
//!
//! Ids are nearly in order, because they begin with their time. So the set keeps them in sorted
//! runs that hardly overlap. Most ids that are looked up are newer than all runs.

use std::collections::HashSet;

use crate::id::RequestId;

/// Most ids that are not sorted into a run yet.
const RECENT_MAX: usize = 1 << 16;

/// A set of ids that only grows.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdSet {
    /// Each run is sorted and not empty.
    runs: Vec<Vec<u128>>,
    recent: HashSet<u128>,
}

impl IdSet {
    /// Adds an id. Returns whether it is new.
    pub(crate) fn insert(&mut self, id: RequestId) -> bool {
        let is_new = !self.contains(id);
        if is_new {
            self.recent.insert(id.0.as_u128());
            if self.recent.len() >= RECENT_MAX {
                self.sort_recent();
            }
        }
        is_new
    }

    /// Whether the set has an id.
    pub(crate) fn contains(&self, id: RequestId) -> bool {
        let id = id.0.as_u128();
        let is_in = |run: &Vec<u128>| {
            let spans = run.first().is_some_and(|first| *first <= id)
                && run.last().is_some_and(|last| id <= *last);
            spans && run.binary_search(&id).is_ok()
        };
        self.recent.contains(&id) || self.runs.iter().rev().any(is_in)
    }

    /// Makes a run of the recent ids. Merges it with the runs before it that overlap it and are not
    /// much longer. So ids in any order make few runs, and no id is copied often.
    fn sort_recent(&mut self) {
        let mut run: Vec<u128> = self.recent.drain().collect();
        run.sort_unstable();
        while let Some(before) = self.runs.pop_if(|before| {
            before.last() >= run.first()
                && before.first() <= run.last()
                && before.len() <= 2 * run.len()
        }) {
            run.extend(before);
            // The stable sort merges two sorted runs.
            run.sort();
        }
        run.shrink_to_fit();
        self.runs.push(run);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// Adds `ids`, and checks that each is in the set once and that no other is. Returns the number
    /// of runs.
    fn filled(ids: impl Iterator<Item = u128> + Clone) -> usize {
        let id = |number: u128| RequestId(Uuid::from_u128(number));
        let mut set = IdSet::default();
        for number in ids.clone() {
            assert!(set.insert(id(number << 8)));
        }
        for number in ids {
            assert!(!set.insert(id(number << 8)));
            assert!(!set.contains(id((number << 8) + 1)));
        }
        set.runs.len()
    }

    const MANY: u128 = 10 * RECENT_MAX as u128;

    #[test]
    fn an_id_is_in_it_once_it_was_added() {
        assert_eq!(filled(0..100), 0);
        assert_eq!(filled(0..MANY), 10);
        assert_eq!(filled((0..MANY).rev()), 10);
    }

    #[test]
    fn ids_in_any_order_make_few_runs() {
        // An odd factor reorders the numbers below a power of two.
        const ALL: u128 = 1 << 19;
        assert!(filled((0..ALL).map(|number| number * 0x9E37_79B1 % ALL)) <= 3);
    }
}
