//! Limits how many values that clients and engines choose become labels. Later values share one
//! label.

use std::sync::{Mutex, PoisonError};

use dashmap::DashSet;
use taximeter_net::visible::is_visible;

use super::names::key::ERROR_TYPE;

/// What the rest is called.
pub(super) const OTHER: &str = "other";
/// What the rest of the errors is called, by OpenTelemetry's conventions.
pub(super) const OTHER_ERROR: &str = "_OTHER";

/// What the rest of a key's values is called.
pub(super) fn rest_of(key: &str) -> &'static str {
    if key == ERROR_TYPE { OTHER_ERROR } else { OTHER }
}

/// Longest value that is a label, in bytes.
const VALUE_BYTES_MAX: usize = 256;

/// Values that may be labels: the first so many.
pub(super) struct Bounded {
    known: DashSet<String>,
    max: usize,
    /// Held while a value is added, so that requests at the same time do not share out more than `max`.
    adding: Mutex<()>,
    rest: &'static str,
}

impl Bounded {
    /// Of the values of `key`, the first `max`.
    pub(super) fn new(key: &str, max: usize) -> Self {
        Self { known: DashSet::new(), max, adding: Mutex::default(), rest: rest_of(key) }
    }

    /// The label for `value`: itself, or the one of the rest.
    pub(super) fn label<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(value) {
            return value;
        }
        let can_be_a_label = value.len() <= VALUE_BYTES_MAX && value.chars().all(is_visible);
        if can_be_a_label && self.known.len() < self.max {
            let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
            if self.known.len() < self.max {
                self.known.insert(value.to_owned());
            }
        }
        // Another request may have added the same value meanwhile.
        self.label_if_known(value)
    }

    /// The same for a value that nothing speaks for: it becomes no label that was not one.
    pub(super) fn label_if_known<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(value) { value } else { self.rest }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    use super::super::names::key;
    use super::*;

    #[test]
    fn after_the_maximum_everything_new_is_other() {
        let bounded = Bounded::new(key::TENANT, 2);
        assert_eq!(bounded.label("a"), "a");
        assert_eq!(bounded.label_if_known("b"), OTHER);
        assert_eq!(bounded.label("b"), "b");
        assert_eq!(bounded.label("c"), OTHER);
        assert_eq!(bounded.label("a"), "a");
        assert_eq!(bounded.label_if_known("b"), "b");
    }

    #[test]
    fn the_rest_of_the_errors_has_the_conventions_word() {
        let bounded = Bounded::new(key::ERROR_TYPE, 1);
        let told = ["timeout", "odd", "timeout"].map(|word| bounded.label(word));
        assert_eq!(told, ["timeout", "_OTHER", "timeout"]);
    }

    /// All of these at once, by so many threads each: what each of them was told.
    fn told_at_once(bounded: &Bounded, values: &[&'static str], each: usize) -> Vec<&'static str> {
        let threads = values.len() * each;
        let barrier = Barrier::new(threads);
        thread::scope(|scope| {
            let asked = values.iter().cycle().take(threads).map(|value| {
                scope.spawn(|| {
                    barrier.wait();
                    bounded.label(value)
                })
            });
            let asked: Vec<_> = asked.collect();
            asked.into_iter().filter_map(|thread| thread.join().ok()).collect()
        })
    }

    #[test]
    fn a_value_that_comes_first_by_many_requests_at_once_is_a_label_for_each() {
        for _ in 0..200 {
            let bounded = Bounded::new(key::ERROR_TYPE, 1);
            assert_eq!(told_at_once(&bounded, &["reset"], 8), ["reset"; 8]);
        }
    }

    #[test]
    fn values_at_once_share_out_no_more_than_the_maximum() {
        for _ in 0..200 {
            let bounded = Bounded::new(key::ERROR_TYPE, 2);
            let told = told_at_once(&bounded, &["a", "b", "c", "d"], 2);
            let labels = told.iter().filter(|&&label| label != OTHER_ERROR);
            assert_eq!((labels.clone().count(), labels.collect::<HashSet<_>>().len()), (4, 2));
        }
    }

    #[test]
    fn what_is_very_long_or_moves_a_terminal_is_no_label() {
        let bounded = Bounded::new(key::TENANT, 9);
        assert_eq!(bounded.label(&"x".repeat(VALUE_BYTES_MAX + 1)), OTHER);
        for value in ["a\nb", "a\0b", "\u{1b}[2J", "a\u{9b}b", "a\u{202e}b"] {
            assert_eq!(bounded.label(value), OTHER);
        }
    }
}
