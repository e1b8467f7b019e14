//! Many short texts, one behind the other: a vocabulary has hundreds of thousands.

use std::ops::Range;

/// Texts by their number.
#[derive(Debug, Default)]
pub(super) struct Texts {
    joined: String,
    ends: Ends,
}

/// The same, of any bytes.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    joined: Vec<u8>,
    ends: Ends,
}

#[derive(Debug, Default)]
struct Ends(Vec<usize>);

impl Texts {
    /// Adds a text that comes in two parts.
    pub(super) fn push(&mut self, first: &str, second: &str) {
        self.joined.push_str(first);
        self.joined.push_str(second);
        self.ends.0.push(self.joined.len());
    }

    /// The text of this number; empty if there is none.
    pub(super) fn get(&self, number: usize) -> &str {
        self.joined.get(self.ends.range(number)).unwrap_or_default()
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl Bytes {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.joined.extend_from_slice(bytes);
        self.ends.0.push(self.joined.len());
    }

    /// The bytes of this number; none if there are none.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        self.joined.get(self.ends.range(number)).unwrap_or_default()
    }
}

impl Ends {
    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).and_then(|before| self.0.get(before)).copied();
        start.unwrap_or_default()..self.0.get(number).copied().unwrap_or_default()
    }
}

/// The two parts of `text`, of which the first has so many characters.
pub(super) fn parted(text: &str, characters: u32) -> Option<(&str, &str)> {
    let at = text.char_indices().nth(characters as usize)?.0;
    text.split_at_checked(at)
}
