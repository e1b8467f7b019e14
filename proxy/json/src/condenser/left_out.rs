//! What a condensed text lacks.

use super::string::StringCutter;
use crate::text::Text;

/// Places that are remembered. Behind them, what is left out is known as a whole only.
const PLACES_MAX: usize = 1_024;

/// What was left out of a condensed text, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Offsets in the condensed text, ascending, and how much is missing there: bytes of a string as
    /// they are decoded, or elements of a list.
    places: Vec<(usize, u64)>,
    lacks_text: bool,
    lacks_values: bool,
}

/// A condensed text, and what it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condensed<'a> {
    text: &'a [u8],
    left_out: &'a LeftOut,
}

impl LeftOut {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), lacks_text: false, lacks_values: false }
    }

    /// Notes that a string which ends at offset `at` was cut.
    pub(super) fn add_string(&mut self, at: usize, string: &StringCutter) {
        if string.left_out() > 0 {
            self.lacks_text |= !string.is_data();
            self.add(at, string.left_out());
        }
    }

    /// Notes that `count` bytes or elements are missing at offset `at`.
    pub(super) fn add(&mut self, at: usize, count: u64) {
        if self.places.len() < PLACES_MAX {
            self.places.push((at, count));
        } else {
            self.lack_values();
        }
    }

    /// Notes that strings, objects or lists are missing.
    pub(super) const fn lack_values(&mut self) {
        self.lacks_values = true;
    }
}

impl<'a> Condensed<'a> {
    pub(super) const fn new(text: &'a [u8], left_out: &'a LeftOut) -> Self {
        Self { text, left_out }
    }

    /// The condensed text.
    #[must_use]
    pub const fn text(self) -> &'a [u8] {
        self.text
    }

    /// How much is missing in a string or a list that was read from the text: bytes as they are
    /// decoded, or elements.
    #[must_use]
    pub fn left_out_of(self, part: &Text<'_>) -> u64 {
        let Some((from, to)) = part.place_in(self.text) else { return 0 };
        let places = &self.left_out.places;
        let first = places.partition_point(|(at, _)| *at < from);
        let within = places.iter().skip(first).take_while(|(at, _)| *at <= to);
        within.map(|(_, count)| count).sum()
    }

    /// Whether the end of a string is missing that may be text.
    #[must_use]
    pub const fn lacks_text(self) -> bool {
        self.left_out.lacks_text || self.lacks_values()
    }

    /// Whether strings, objects or lists are missing, so that no one can know what they say.
    #[must_use]
    pub const fn lacks_values(self) -> bool {
        self.left_out.lacks_values
    }
}
