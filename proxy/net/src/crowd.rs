//! Limits how many of a kind exist at once: connections of an address, requests of a tenant.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts how many of each key exist now. A key without any takes no memory.
#[derive(Debug)]
pub struct Crowd<K>(Mutex<HashMap<K, usize>>);

impl<K> Default for Crowd<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One of the counted. It counts until it is dropped.
#[derive(Debug)]
pub struct Place<K: Eq + Hash> {
    crowd: Arc<Crowd<K>>,
    of: K,
}

impl<K: Clone + Eq + Hash> Crowd<K> {
    /// Counts one more of the key `of`; `None` if there are `most` already.
    pub fn admit(self: &Arc<Self>, of: &K, most: usize) -> Option<Place<K>> {
        let mut crowd = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = crowd.entry(of.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Place { crowd: self.clone(), of: of.clone() })
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut crowd = self.crowd.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = crowd.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                crowd.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_places_of_its_own_which_come_free_and_leave_no_trace() {
        let crowd = Arc::new(Crowd::default());
        let places = [crowd.admit(&"one", 2).unwrap(), crowd.admit(&"one", 2).unwrap()];
        assert!(crowd.admit(&"one", 2).is_none());
        let apart = crowd.admit(&"other", 2).unwrap();
        drop(places);
        assert!(crowd.admit(&"one", 1).is_some());
        drop(apart);
        assert!(crowd.0.lock().unwrap().is_empty());
    }
}
