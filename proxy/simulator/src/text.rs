//! The text that the engine generates: common words, each of which is one token in widely used
//! vocabularies.

use std::fmt::Write;
use std::ops::Range;

/// Single tokens in `cl100k_base` and `o200k_base`, with and without a leading blank.
const WORDS: [&str; 32] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "on", "with", "as", "by", "at", "from",
    "it", "an", "be", "this", "are", "or", "was", "not", "but", "have", "all", "new", "more",
    "time", "one", "after", "first", "other",
];

/// Writes the words `range` of the text that `seed` stands for.
pub(crate) fn write(seed: u64, range: Range<u64>, out: &mut impl Write) -> std::fmt::Result {
    for index in range {
        if index > 0 {
            out.write_char(' ')?;
        }
        out.write_str(word(seed, index))?;
    }
    Ok(())
}

fn word(seed: u64, index: u64) -> &'static str {
    // Multiplying by a large odd number spreads neighbours over the top bits; five bits pick of 32.
    let mixed = (seed ^ index).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    WORDS.get((mixed >> 59) as usize).copied().unwrap_or("the")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_the_same_in_one_piece_or_in_many() {
        let [mut pieces, mut whole, mut other] = [const { String::new() }; 3];
        for index in 0..20 {
            write(7, index..index + 1, &mut pieces).unwrap();
        }
        write(7, 0..20, &mut whole).unwrap();
        write(8, 0..20, &mut other).unwrap();
        assert_eq!(pieces, whole);
        assert_eq!(whole.split_whitespace().count(), 20);
        assert_ne!(whole, other);
    }
}
