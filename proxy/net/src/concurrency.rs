//! Limits how many of a kind exist at once: connections of an address, requests of a tenant.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts how many of each key exist now. A key without any takes no memory.
#[derive(Debug)]
pub struct ConcurrencyLimit<K>(Mutex<HashMap<K, usize>>);

impl<K> Default for ConcurrencyLimit<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One of the counted. It counts until it is dropped.
#[derive(Debug)]
pub struct Permit<K: Eq + Hash> {
    limit: Arc<ConcurrencyLimit<K>>,
    of: K,
}

impl<K: Clone + Eq + Hash> ConcurrencyLimit<K> {
    /// Counts one more of the key `of`; `None` if there are `most` already.
    pub fn admit(self: &Arc<Self>, of: &K, most: usize) -> Option<Permit<K>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(of.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Permit { limit: self.clone(), of: of.clone() })
    }
}

impl<K: Eq + Hash> Drop for Permit<K> {
    fn drop(&mut self) {
        let mut counts = self.limit.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_permits_of_its_own_which_come_free_and_leave_no_trace() {
        let limit = Arc::new(ConcurrencyLimit::default());
        let permits = [limit.admit(&"one", 2).unwrap(), limit.admit(&"one", 2).unwrap()];
        assert!(limit.admit(&"one", 2).is_none());
        let apart = limit.admit(&"other", 2).unwrap();
        drop(permits);
        assert!(limit.admit(&"one", 1).is_some());
        drop(apart);
        assert!(limit.0.lock().unwrap().is_empty());
    }
}
