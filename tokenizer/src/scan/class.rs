//! The classes of characters that the patterns use.

/// A class of characters, or several: `\p{…}` of the patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class(u16);

/// Written by `build.rs`: of each 256 characters, the block that says their classes.
static BLOCK_OF: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/class_block_of"));
/// Blocks of 256 classes.
static BLOCKS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/class_blocks"));
/// Classes of ASCII: the first stage spared for what is met most.
static ASCII: [Class; 128] = ascii();

impl Class {
    /// No character: the end of the text. In no other class.
    pub(crate) const END: Self = Self(0);
    /// `Lu`, `Lt`.
    pub(crate) const UPPER: Self = Self(1 << 0);
    /// `Ll`.
    pub(crate) const LOWER: Self = Self(1 << 1);
    /// `Lm`, `Lo`: letters without case.
    pub(crate) const UNCASED: Self = Self(1 << 2);
    /// `M`.
    pub(crate) const MARK: Self = Self(1 << 3);
    /// `N`.
    pub(crate) const NUMBER: Self = Self(1 << 4);
    /// `P`, `S`.
    pub(crate) const SIGN: Self = Self(1 << 5);
    /// White space but for CR and LF.
    pub(crate) const BLANK: Self = Self(1 << 6);
    /// CR, LF.
    pub(crate) const NEWLINE: Self = Self(1 << 7);
    /// Controls, joiners, what is not assigned.
    pub(crate) const OTHER: Self = Self(1 << 8);

    /// `L`.
    pub(crate) const LETTER: Self = Self::UPPER.or(Self::LOWER).or(Self::UNCASED);
    /// `\s`.
    pub(crate) const SPACE: Self = Self::BLANK.or(Self::NEWLINE);

    /// The characters of both.
    pub(crate) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a character of this class is one of `class`.
    pub(crate) const fn is(self, class: Self) -> bool {
        self.0 & class.0 != 0
    }

    /// Class of a character.
    pub(crate) fn of(char: char) -> Self {
        let code = char as usize;
        let number = BLOCK_OF
            .get(code >> 8)
            .and_then(|&block| BLOCKS.get(usize::from(block) << 8 | (code & 0xff)));
        number.map_or(Self::OTHER, |&number| Self(1 << number))
    }

    /// Class of an ASCII character; of anything else, [`Class::END`].
    pub(crate) fn of_ascii(byte: u8) -> Self {
        ASCII.get(usize::from(byte)).copied().unwrap_or(Self::END)
    }
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler, for bytes below 128")]
const fn ascii() -> [Class; 128] {
    let mut classes = [Class::OTHER; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'A'..=b'Z' => Class::UPPER,
            b'a'..=b'z' => Class::LOWER,
            b'0'..=b'9' => Class::NUMBER,
            b'\r' | b'\n' => Class::NEWLINE,
            b'\t' | 0x0b | 0x0c | b' ' => Class::BLANK,
            0x21..0x7f => Class::SIGN,
            _ => Class::OTHER,
        };
        byte += 1;
    }
    classes
}

#[cfg(test)]
mod tests {
    use regex_syntax::hir::{self, HirKind};

    use super::*;

    #[test]
    fn every_character_has_the_class_that_a_regex_sees() {
        let classes = [
            (Class::UPPER, r"[\p{Lu}\p{Lt}]"),
            (Class::LOWER, r"\p{Ll}"),
            (Class::UNCASED, r"[\p{Lm}\p{Lo}]"),
            (Class::LETTER, r"\p{L}"),
            (Class::MARK, r"\p{M}"),
            (Class::NUMBER, r"\p{N}"),
            (Class::SIGN, r"[\p{P}\p{S}]"),
            (Class::SPACE, r"\s"),
            (Class::NEWLINE, r"[\r\n]"),
            (Class::OTHER, r"[^\p{L}\p{M}\p{N}\p{P}\p{S}\s]"),
        ];
        for (class, regex) in classes {
            let parsed = regex_syntax::parse(regex).unwrap();
            let HirKind::Class(hir::Class::Unicode(ranges)) = parsed.kind() else { panic!() };
            let expected: Vec<char> =
                ranges.iter().flat_map(|range| range.start()..=range.end()).collect();
            let found: Vec<char> =
                ('\0'..=char::MAX).filter(|&char| Class::of(char).is(class)).collect();
            assert!(found == expected, "{regex}");
        }
    }

    #[test]
    fn ascii_has_the_same_classes_by_either_way() {
        for byte in 0..128 {
            assert_eq!(Class::of_ascii(byte), Class::of(char::from(byte)), "{byte}");
        }
        assert_eq!(Class::of_ascii(128), Class::END);
    }
}
