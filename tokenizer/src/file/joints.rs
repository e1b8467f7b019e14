//! Finds places where a text without a split can be cut: between characters that no merge joins.

use std::collections::HashSet;

use foldhash::fast::FixedState;

/// Pairs of characters that some merge joins: one at the end of its left part, one at the start of
/// its right part. Between any other two, what is merged on one side knows nothing of the other.
#[derive(Default)]
pub(super) struct Joints {
    /// Of ASCII, by the character before: one bit for each after it.
    ascii: Vec<u128>,
    others: HashSet<(char, char), FixedState>,
}

impl Joints {
    pub(super) fn add(&mut self, left: &str, right: &str) {
        let (Some(before), Some(after)) = (left.chars().next_back(), right.chars().next()) else {
            return;
        };
        if !(before.is_ascii() && after.is_ascii()) {
            self.others.insert((before, after));
            return;
        }
        self.ascii.resize(128, 0);
        if let Some(afters) = self.ascii.get_mut(before as usize) {
            *afters |= 1 << u32::from(after);
        }
    }

    /// Whether some merge joins these two.
    #[inline]
    pub(super) fn join(&self, before: char, after: char) -> bool {
        if before.is_ascii() && after.is_ascii() {
            self.ascii
                .get(before as usize)
                .is_some_and(|afters| afters >> u32::from(after) & 1 == 1)
        } else {
            self.others.contains(&(before, after))
        }
    }
}
