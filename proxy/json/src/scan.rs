//! Finds single bytes, eight at a time.
//!
//! Most JSON strings are so short that a call of `memchr`, which uses wide registers, takes longer
//! than the search here. So the first few words are searched here, and the rest with `memchr`.

use memchr::memchr2;

/// Words that are searched before the call of `memchr`.
const NEAR_WORDS: usize = 6;

/// Eight copies of a byte.
pub(crate) const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

const HIGHEST_BITS: u64 = each(0x80);

/// Index of the first marked byte.
pub(crate) const fn first_mark(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks the highest bit of each byte that equals `byte`. Only the lowest mark is reliable.
pub(crate) const fn mark_first(byte: u8, word: u64) -> u64 {
    below(1, word ^ each(byte))
}

/// Marks the highest bit of each byte that equals `byte`, and of no other byte.
pub(crate) const fn mark_all(byte: u8, word: u64) -> u64 {
    const OTHERS: u64 = !HIGHEST_BITS;
    let others = word ^ each(byte);
    !(((others & OTHERS) + OTHERS) | others | OTHERS)
}

/// Marks each byte below `bound`, which is at most 0x80. Only the lowest mark is reliable.
pub(crate) const fn below(bound: u8, word: u64) -> u64 {
    word.wrapping_sub(each(bound)) & !word & HIGHEST_BITS
}

/// Index of the first quote or backslash.
#[inline(never)]
pub(crate) fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks();
    let near = words.get(..NEAR_WORDS).unwrap_or(words);
    for (index, word) in near.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = mark_first(b'"', word) | mark_first(b'\\', word);
        if found != 0 {
            return Some(index * 8 + first_mark(found));
        }
    }
    far_quote_or_escape(bytes, near.as_flattened().len())
}

/// The same, from index `from` on.
#[inline(never)]
fn far_quote_or_escape(bytes: &[u8], from: usize) -> Option<usize> {
    memchr2(b'"', b'\\', bytes.get(from..)?).map(|at| from + at)
}

/// Whether the bytes contain a control character.
pub(crate) fn has_control(bytes: &[u8]) -> bool {
    let (words, rest) = bytes.as_chunks();
    words.iter().any(|word| below(b' ', u64::from_le_bytes(*word)) != 0)
        || rest.iter().any(|byte| *byte < b' ')
}

/// The bytes after the blanks at the front.
pub(crate) fn behind_blanks(mut bytes: &[u8]) -> &[u8] {
    loop {
        bytes = match bytes {
            [b'\n' | b'\r' | b'\t', tail @ ..] => tail,
            [b' ', tail @ ..] => match bytes.split_first_chunk() {
                Some((eight, behind)) => {
                    let spaces = mark_all(b' ', u64::from_le_bytes(*eight));
                    let length = first_mark(!spaces & HIGHEST_BITS);
                    if length == 8 { behind } else { bytes.get(length..).unwrap_or_default() }
                }
                None => tail,
            },
            _ => return bytes,
        }
    }
}

/// Number of bytes at the front that are ASCII but not a quote, backslash or control character.
#[inline]
pub(crate) fn ascii_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let special = mark_first(b'"', word) | mark_first(b'\\', word) | below(b' ', word);
        let found = special | (word & HIGHEST_BITS);
        if found != 0 {
            return index * 8 + first_mark(found);
        }
    }
    let plain = |byte: &&u8| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f);
    words.as_flattened().len() + rest.iter().take_while(plain).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_quote_or_an_escape_is_found_wherever_it_is() {
        // Most of these bytes differ from a quote or a backslash in one bit.
        for others in [b'a', b'#', b']', b'"' | 0x80, b'\\' | 0x80, 0, 0xff] {
            for length in 0..100 {
                let mut bytes = vec![others; length];
                assert_eq!(quote_or_escape(&bytes), None);
                for (first, second) in [(b'"', b'\\'), (b'\\', b'"')] {
                    bytes.extend([first, second, first]);
                    assert_eq!(quote_or_escape(&bytes), Some(length), "{bytes:?}");
                    bytes.truncate(length);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn plain_ascii_ends_at_the_first_byte_that_is_not(
            plain in "[ !#-\\[\\]-\u{7f}]{0,40}",
            rest: Vec<u8>,
            other in prop_oneof![0..0x20u8, Just(b'"'), Just(b'\\'), 0x80..=0xffu8],
        ) {
            prop_assert_eq!(ascii_length(plain.as_bytes()), plain.len());
            let bytes = [plain.as_bytes(), &[other], &rest].concat();
            prop_assert_eq!(ascii_length(&bytes), plain.len());
        }

        #[test]
        fn blanks_end_at_the_first_byte_that_is_none(blanks in "[ \n\r\t]{0,9} {0,20}", rest: Vec<u8>) {
            let behind = [b"x", &*rest].concat();
            let bytes = [blanks.as_bytes(), &behind].concat();
            prop_assert_eq!(behind_blanks(&bytes), &*behind);
            prop_assert!(behind_blanks(blanks.as_bytes()).is_empty());
        }

        #[test]
        fn every_byte_that_is_asked_for_is_marked(bytes: [u8; 8], byte in 0_u8..0x80) {
            let marks = mark_all(byte, u64::from_le_bytes(bytes)).to_le_bytes();
            let expected = bytes.map(|one| if one == byte { 0x80 } else { 0 });
            prop_assert_eq!(marks, expected);
        }
    }
}
