//! Stores many short texts one after the other. A vocabulary has hundreds of thousands.

use std::ops::Range;
use std::string::FromUtf8Error;

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
    pub(super) fn push(&mut self, text: &str) {
        self.joined.push_str(text);
        self.ends.0.push(self.joined.len());
    }

    /// The text of this number; empty if there is none.
    pub(super) fn get(&self, number: usize) -> &str {
        self.joined.get(self.ends.range(number)).unwrap_or_default()
    }

    /// The number of `text`, if it is among these.
    pub(super) fn find(&self, text: &str, among: Range<usize>) -> Option<usize> {
        let mut start = self.ends.range(among.start).start;
        let ends = self.ends.0.get(among.clone())?;
        let found = ends.iter().position(|&end| {
            let range = start..end;
            start = end;
            range.len() == text.len() && self.joined.get(range) == Some(text)
        });
        Some(among.start + found?)
    }

    pub(super) const fn len(&self) -> usize {
        self.ends.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> + Clone {
        (0..self.len()).map(|number| self.get(number))
    }
}

impl Bytes {
    /// Adds what comes in two parts.
    pub(super) fn push(&mut self, first: &[u8], second: &[u8]) {
        self.joined.extend_from_slice(first);
        self.joined.extend_from_slice(second);
        self.ends.0.push(self.joined.len());
    }

    /// Whether what was added last is these two parts.
    pub(super) fn ends_with(&self, first: &[u8], second: &[u8]) -> bool {
        let last = self.ends.0.len().checked_sub(1).map(|last| self.get(last));
        let parts = last.and_then(|last| last.split_at_checked(first.len()));
        parts.is_some_and(|(one, other)| {
            other.len() == second.len() && one == first && other == second
        })
    }

    /// The bytes of this number; none if there are none.
    pub(super) fn get(&self, number: usize) -> &[u8] {
        self.joined.get(self.ends.range(number)).unwrap_or_default()
    }
}

impl TryFrom<Bytes> for Texts {
    type Error = FromUtf8Error;

    fn try_from(bytes: Bytes) -> Result<Self, FromUtf8Error> {
        Ok(Self { joined: String::from_utf8(bytes.joined)?, ends: bytes.ends })
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
