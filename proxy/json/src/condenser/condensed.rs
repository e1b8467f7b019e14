//! A condensed text, and what it lacks.

use super::string::StringCutter;
use crate::text::Text;

/// Places that are remembered. Behind them, what is left out is known as a whole only.
const PLACES_MAX: usize = 1_024;

/// A condensed text, what was left out of it, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Condensed {
    pub(super) text: Vec<u8>,
    /// Offsets in the text, ascending, and how much is missing there: bytes of a string as they are
    /// decoded, or elements of a list.
    places: Vec<(usize, u64)>,
    lacks_text: bool,
    lacks_values: bool,
}

impl Condensed {
    pub(super) const fn new() -> Self {
        Self { text: Vec::new(), places: Vec::new(), lacks_text: false, lacks_values: false }
    }

    /// Notes that the string at the end of the text was cut.
    pub(super) fn cut_string(&mut self, string: &StringCutter) {
        if string.left_out() > 0 {
            self.lacks_text |= !string.is_data();
            self.leave_out(string.left_out());
        }
    }

    /// Notes that `count` bytes or elements are missing at the end of the text.
    pub(super) fn leave_out(&mut self, count: u64) {
        if self.places.len() < PLACES_MAX {
            self.places.push((self.text.len(), count));
        } else {
            self.lack_values();
        }
    }

    /// Notes that strings, objects or lists are missing.
    pub(super) const fn lack_values(&mut self) {
        self.lacks_values = true;
    }

    /// The condensed text.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How much is missing in a string or a list that was read from the text: bytes as they are
    /// decoded, or elements.
    #[must_use]
    pub fn left_out_of(&self, part: &Text<'_>) -> u64 {
        let Some((from, to)) = part.place_in(&self.text) else { return 0 };
        let first = self.places.partition_point(|(at, _)| *at < from);
        let within = self.places.iter().skip(first).take_while(|(at, _)| *at <= to);
        within.map(|(_, count)| count).sum()
    }

    /// Whether the end of a string is missing that may be text.
    #[must_use]
    pub const fn lacks_text(&self) -> bool {
        self.lacks_text || self.lacks_values()
    }

    /// Whether strings, objects or lists are missing, so that no one can know what they say.
    #[must_use]
    pub const fn lacks_values(&self) -> bool {
        self.lacks_values
    }
}
