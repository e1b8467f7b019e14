//! A map of bounded size, out of which goes what was put in the longest ago.

use std::collections::{HashMap, VecDeque};

/// Values by hashes of their keys, at most `MAX` of them.
#[derive(Debug)]
pub(crate) struct Recent<V, const MAX: usize> {
    values: HashMap<u128, (V, u64)>,
    /// In the order in which they were put in. A later number has replaced an earlier one.
    order: VecDeque<(u64, u128)>,
    next: u64,
}

impl<V, const MAX: usize> Default for Recent<V, MAX> {
    fn default() -> Self {
        Self { values: HashMap::new(), order: VecDeque::new(), next: 0 }
    }
}

impl<V, const MAX: usize> Recent<V, MAX> {
    pub(crate) fn get(&self, key: u128) -> Option<&V> {
        self.values.get(&key).map(|(value, _)| value)
    }

    pub(crate) fn remove(&mut self, key: u128) {
        self.values.remove(&key);
    }

    pub(crate) fn put(&mut self, key: u128, value: V) {
        let number = self.next;
        self.next += 1;
        self.values.insert(key, (value, number));
        self.order.push_back((number, key));
        while self.values.len() > MAX || self.order.len() > 2 * MAX {
            let Some((number, key)) = self.order.pop_front() else { return };
            if self.values.get(&key).is_some_and(|(_, last)| *last == number) {
                self.values.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_the_longest_ago_goes_first() {
        let mut recent: Recent<u128, 4> = Recent::default();
        for key in 0..100 {
            recent.put(key, key);
            // One that is put in again and again stays.
            recent.put(1_000, key);
            assert!(recent.values.len() <= 4 && recent.order.len() <= 8);
        }
        assert_eq!(
            [96, 97, 98, 99].map(|key| recent.get(key).is_some()),
            [false, true, true, true]
        );
        assert_eq!(recent.get(1_000), Some(&99));
        recent.remove(1_000);
        assert_eq!(recent.get(1_000), None);
    }
}
