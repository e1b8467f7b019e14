//! Splits a text into the pieces that are merged separately.
//!
//! Vocabularies publish their split as a regex. These scanners find the same pieces in one pass,
//! without a regex and without going back. Tests compare them with the regexes.

mod class;
mod deep_seek;
mod space;
#[cfg(test)]
mod tests;
mod text;
mod words;

use class::Class;
use text::Text;

/// How a vocabulary splits a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// GPT-2's, of `r50k_base` and `p50k_base` too.
    Gpt2,
    /// That of `cl100k_base` and those after it.
    Cl100k {
        /// Most digits of a piece.
        digits: usize,
        /// Whether blanks at the end of a text are one piece even if there are newlines in it.
        whole_end: bool,
    },
    /// That of `o200k_base` and those after it.
    O200k {
        /// Most digits of a piece.
        digits: usize,
        /// Whether `'s` and the like belong to the word before.
        contractions: bool,
    },
    /// DeepSeek V3's three splits, one after the other.
    DeepSeekV3,
    /// No split: the whole text is one piece.
    Whole,
}

/// Regexes as vocabularies' files have them, and what stands for each. DeepSeek V3's splits are
/// three regexes; theirs is the last.
const REGEXES: &[(&str, Pattern)] = &[
    (r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", Pattern::Gpt2),
    (
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
        Pattern::Gpt2,
    ),
    (
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        Pattern::CL100K,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::LLAMA3,
    ),
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::QWEN2,
    ),
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::O200K,
    ),
    (
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        Pattern::TEKKEN,
    ),
];

/// DeepSeek V3's splits; the newlines in the last stand there as such.
const DEEP_SEEK_V3: &[&str] = &[
    r"\p{N}{1,3}",
    "[一-龥\u{3040}-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

impl Pattern {
    pub(crate) const CL100K: Self = Self::Cl100k { digits: 3, whole_end: true };
    pub(crate) const LLAMA3: Self = Self::Cl100k { digits: 3, whole_end: false };
    /// Of Qwen 2, 2.5 and 3.
    pub(crate) const QWEN2: Self = Self::Cl100k { digits: 1, whole_end: false };
    pub(crate) const O200K: Self = Self::O200k { digits: 3, contractions: true };
    /// Of Mistral's tekken.
    pub(crate) const TEKKEN: Self = Self::O200k { digits: 1, contractions: false };

    /// The pattern that gives the pieces of `regex`, as a vocabulary's file has it.
    pub(crate) fn of_regex(regex: &str) -> Option<Self> {
        REGEXES.iter().find(|(known, _)| *known == regex).map(|&(_, pattern)| pattern)
    }

    /// The pattern that gives the pieces of several regexes, each splitting what those before it
    /// left.
    pub(crate) fn of_regexes(regexes: &[&str]) -> Option<Self> {
        match regexes {
            [regex] => Self::of_regex(regex),
            _ if regexes == DEEP_SEEK_V3 => Some(Self::DeepSeekV3),
            _ => None,
        }
    }

    /// The pieces of `text`, in order. Together they are the text.
    #[cfg(test)]
    pub(crate) fn pieces(self, text: &str) -> impl Iterator<Item = &str> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let piece = text.get(at..self.piece_end(text, at))?;
            at += piece.len();
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Where the piece ends that begins at `at`; `at` itself at the end of `text`.
    #[inline]
    pub(crate) fn piece_end(self, text: &str, at: usize) -> usize {
        match self {
            Self::Gpt2 => words::gpt2(Text(text), at),
            Self::Cl100k { digits, whole_end } => words::cl100k(Text(text), at, digits, whole_end),
            Self::O200k { digits, contractions } => {
                words::o200k(Text(text), at, digits, contractions)
            }
            Self::DeepSeekV3 => deep_seek::v3(Text(text), at),
            Self::Whole => text.len(),
        }
    }

    /// The last place in `text` where a piece ends and another begins, whatever follows the text:
    /// the pieces before it and those after it are those of the whole.
    pub(crate) fn last_boundary(self, text: &str) -> Option<usize> {
        if self == Self::Whole {
            return None;
        }
        let mut after = None;
        text.char_indices().rev().find_map(|(at, before)| {
            let cut = after.is_some_and(|after| is_boundary(before, after));
            after = Some(before);
            cut.then_some(at + before.len_utf8())
        })
    }
}

/// Whether all patterns split between these two, whatever is around them: a blank begins a new
/// piece, and so does what neither continues a word nor a number.
pub(crate) fn is_boundary(before: char, after: char) -> bool {
    let (last, next) = (Class::of(before), Class::of(after));
    (!last.is(Class::SPACE) && next.is(Class::BLANK))
        || (last.is(Class::LETTER) && !next.is(Class::LETTER.or(Class::MARK)) && after != '\'')
        || (last.is(Class::NUMBER) && !next.is(Class::NUMBER.or(Class::MARK)))
}
