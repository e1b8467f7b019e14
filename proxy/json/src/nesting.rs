//! Follows brackets and quotes in bytes that arrive in pieces. The pieces may be cut anywhere.

use crate::scan::{each, first_mark, mark_all, mark_first, quote_or_escape};

/// Whether a word may contain a bracket or a backslash: it has one of `WXYZ[\\]^wxyz{|}~`.
pub(crate) const fn may_have_bracket(word: u64) -> bool {
    // Under the mask 0xd8, each of these bytes plus one is 0x58. A carry out of 0xff does not change
    // that.
    mark_first(0x58, word.wrapping_add(each(1)) & each(0xd8)) != 0
}

/// The number of open brackets, and whether the next byte is inside a string.
///
/// The type of a bracket is not compared: `[}` closes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nesting {
    depth: usize,
    /// The lowest bit of each byte inside a string, 0 outside.
    inside: u64,
    /// Whether the last byte was a backslash in a string.
    is_escaped: bool,
}

impl Nesting {
    /// No bracket is open.
    #[must_use]
    pub const fn new() -> Self {
        Self { depth: 0, inside: 0, is_escaped: false }
    }

    /// The number of open brackets.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Reads until a bracket makes the depth `depth`, and returns the index after that bracket.
    /// `None` if all of `bytes` were read before that.
    pub fn reach(&mut self, bytes: &[u8], depth: usize) -> Option<usize> {
        let (mut state, mut rest, mut found) = (*self, bytes, None);
        while let Some((eight, tail)) = rest.split_first_chunk() {
            let word = u64::from_le_bytes(*eight);
            let quotes = mark_all(b'"', word);
            let may_matter = may_have_bracket(word);
            if state.is_escaped || may_matter && mark_first(b'\\', word) != 0 {
                (state, found) = state.read(eight, depth);
            } else if state.inside != 0 && quotes == 0 {
                // A long string.
                let length = quote_or_escape(tail).unwrap_or(tail.len());
                rest = tail.get(length..).unwrap_or_default();
                continue;
            } else {
                found = state.read_word(word, quotes, may_matter, depth);
            }
            if found.is_some() {
                break;
            }
            rest = tail;
        }
        if found.is_none() {
            (state, found) = state.read(rest, depth);
        }
        *self = state;
        found.map(|behind| bytes.len() - rest.len() + behind)
    }

    /// Does the same for eight bytes without a backslash. There, every quote begins or ends a
    /// string.
    #[inline]
    fn read_word(
        &mut self,
        word: u64,
        quotes: u64,
        may_matter: bool,
        depth: usize,
    ) -> Option<usize> {
        // Adds up the quotes before each byte. The lowest bit of each byte then says whether the
        // byte is inside a string.
        let inside = (quotes >> 7).wrapping_mul(each(1)) ^ self.inside;
        if may_matter {
            // `[` and `{` differ only in this bit, and so do `]` and `}`.
            let opened = mark_all(b'{', word | each(0x20));
            let mut brackets = (opened | mark_all(b'}', word | each(0x20))) & !(inside << 7);
            while brackets != 0 {
                let bracket = brackets & brackets.wrapping_neg();
                brackets ^= bracket;
                if self.turn(opened & bracket != 0) == depth {
                    self.inside = 0;
                    return Some(first_mark(bracket) + 1);
                }
            }
        }
        self.inside = (inside >> 56 & 1) * each(1);
        None
    }

    /// Does the same byte by byte.
    #[cold]
    #[inline(never)]
    fn read(mut self, bytes: &[u8], depth: usize) -> (Self, Option<usize>) {
        for (at, byte) in bytes.iter().enumerate() {
            if self.is_escaped {
                self.is_escaped = false;
                continue;
            }
            let opens = match byte {
                b'{' | b'[' => true,
                b'}' | b']' => false,
                b'"' => {
                    self.inside ^= each(1);
                    continue;
                }
                _ => {
                    self.is_escaped = *byte == b'\\' && self.inside != 0;
                    continue;
                }
            };
            if self.inside == 0 && self.turn(opens) == depth {
                return (self, Some(at + 1));
            }
        }
        (self, None)
    }

    /// The depth after a bracket.
    const fn turn(&mut self, opens: bool) -> usize {
        self.depth = if opens { self.depth + 1 } else { self.depth.saturating_sub(1) };
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn a_long_text_is_passed_with_all_that_is_in_it() {
        for length in 0..70 {
            let document = format!("{{\"{}}}\\\"]\":[7]}},", "x".repeat(length));
            let mut nesting = Nesting::new();
            assert_eq!(nesting.reach(document.as_bytes(), 0), Some(document.len() - 1));
        }
    }

    const PARTS: &[&[u8]] = &[
        b"\"",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"a",
        b"Y_",
        b"\xddz2",
        b"\xff",
        b"ten bytes.",
    ];

    proptest! {
        #[test]
        fn words_are_read_as_bytes_are_and_pieces_as_the_whole(
            parts in vec(
                select(PARTS),
                0..60,
            ),
            at in 0_usize..200,
            depth in 0_usize..3,
        ) {
            let bytes = &*[b"{", &*parts.concat()].concat();
            let (slow, expected) = Nesting::new().read(bytes, depth);
            let mut fast = Nesting::new();
            prop_assert_eq!(fast.reach(bytes, depth), expected);
            prop_assert_eq!(fast, slow);
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            let mut pieces = Nesting::new();
            let found = pieces.reach(head, depth).or_else(|| {
                pieces.reach(tail, depth).map(|behind| head.len() + behind)
            });
            prop_assert_eq!(found, expected);
        }
    }
}
