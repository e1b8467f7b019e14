//! Values that clients and engines choose, as labels: the first so many.

use dashmap::DashSet;

/// What the rest is called.
pub(super) const OTHER: &str = "other";

/// Longest value that is a label, in bytes.
const VALUE_BYTES_MAX: usize = 256;

/// Values that may be labels: the first so many.
pub(super) struct Bounded {
    known: DashSet<String>,
    max: usize,
}

impl Bounded {
    pub(super) fn new(max: usize) -> Self {
        Self { known: DashSet::new(), max }
    }

    /// The label for `value`: itself, or `other`.
    pub(super) fn label<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(value) {
            return value;
        }
        let fits = value.len() <= VALUE_BYTES_MAX
            && !value.contains(char::is_control)
            && self.known.len() < self.max;
        if fits && self.known.insert(value.to_owned()) {
            return value;
        }
        OTHER
    }

    /// The same for a value that nothing speaks for: it becomes no label that was not one.
    pub(super) fn label_if_known<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(value) { value } else { OTHER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_maximum_everything_new_is_other() {
        let bounded = Bounded::new(2);
        assert_eq!(bounded.label("a"), "a");
        assert_eq!(bounded.label_if_known("b"), OTHER);
        assert_eq!(bounded.label("b"), "b");
        assert_eq!(bounded.label("c"), OTHER);
        assert_eq!(bounded.label("a"), "a");
        assert_eq!(bounded.label_if_known("b"), "b");
    }

    #[test]
    fn what_is_very_long_or_moves_a_terminal_is_no_label() {
        let bounded = Bounded::new(9);
        assert_eq!(bounded.label(&"x".repeat(VALUE_BYTES_MAX + 1)), OTHER);
        for value in ["a\nb", "a\0b", "\u{1b}[2J", "a\u{9b}b"] {
            assert_eq!(bounded.label(value), OTHER);
        }
    }
}
