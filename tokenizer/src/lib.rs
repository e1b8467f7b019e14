//! Text → token count.
//!
//! Counts as the model would where its vocabulary is known, with the nearest one and a mark where
//! it is not, and by bytes where counting would take too long. Marks of special tokens in a text
//! are ordinary text. Never fails, never panics. Refuses to know HTTP, prices and tenants.

mod pieces;
#[cfg(test)]
mod tests;

use tiktoken_rs::CoreBPE;
use tiktoken_rs::tokenizer::{Tokenizer as Vocabulary, get_tokenizer};

use pieces::{Piece, pieces};

/// Most bytes that one call counts; the tokens of what exceeds them are estimated.
pub const COUNT_BYTES_MAX: usize = 4 << 20;

/// Most bytes that the vocabulary's splitter sees at once: it panics at about a million characters
/// that it cannot split.
const PIECE_BYTES_MAX: usize = 32 << 10;

/// Counts tokens by one vocabulary.
#[derive(Debug)]
pub struct Tokenizer {
    name: &'static str,
    /// Loads the vocabulary when it is first asked for; some tens of MiB, once per process.
    vocabulary: fn() -> &'static CoreBPE,
}

/// The tokenizer for a model.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// What to count with.
    pub tokenizer: &'static Tokenizer,
    /// Whether it is the model's own; if not, every count is an estimate.
    pub exact: bool,
}

/// How many tokens a text has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Tokens.
    pub tokens: u64,
    /// Whether any part was estimated from its bytes.
    pub estimated: bool,
}

static O200K_HARMONY: Tokenizer = Tokenizer {
    name: "o200k_harmony",
    // It differs from o200k_base in its special tokens only, and these are ordinary text here.
    vocabulary: tiktoken_rs::o200k_base_singleton,
};
static O200K_BASE: Tokenizer =
    Tokenizer { name: "o200k_base", vocabulary: tiktoken_rs::o200k_base_singleton };
static CL100K_BASE: Tokenizer =
    Tokenizer { name: "cl100k_base", vocabulary: tiktoken_rs::cl100k_base_singleton };
static P50K_BASE: Tokenizer =
    Tokenizer { name: "p50k_base", vocabulary: tiktoken_rs::p50k_base_singleton };
static R50K_BASE: Tokenizer =
    Tokenizer { name: "r50k_base", vocabulary: tiktoken_rs::r50k_base_singleton };

impl Tokenizer {
    /// The tokenizer for `model`, by OpenAI's own table; `o200k_base`, not exact, for models it
    /// does not name.
    ///
    /// Fine-tuned models (`ft:…`), Azure's names and an `openai/` in front are understood.
    #[must_use]
    pub fn for_model(model: &str) -> Choice {
        let name = model.strip_prefix("openai/").unwrap_or(model);
        let tokenizer = match get_tokenizer(name) {
            Some(Vocabulary::O200kHarmony) => &O200K_HARMONY,
            Some(Vocabulary::O200kBase) => &O200K_BASE,
            Some(Vocabulary::Cl100kBase) => &CL100K_BASE,
            Some(Vocabulary::P50kBase | Vocabulary::P50kEdit) => &P50K_BASE,
            Some(Vocabulary::R50kBase | Vocabulary::Gpt2) => &R50K_BASE,
            None => return Choice { tokenizer: &O200K_BASE, exact: false },
        };
        Choice { tokenizer, exact: true }
    }

    /// Name of the vocabulary, as OpenAI's tiktoken calls it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Tokens of `texts`, each counted by itself; what exceeds [`COUNT_BYTES_MAX`] is estimated.
    ///
    /// Takes about 40 ms per MiB of prose and up to 200 ms per MiB of one letter: keep it off the
    /// threads that carry streams.
    #[must_use]
    pub fn count<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Count {
        let mut bytes_left = COUNT_BYTES_MAX;
        let mut count = Count::default();
        for text in texts {
            let text = text.as_ref();
            match bytes_left.checked_sub(text.len()) {
                Some(left) => {
                    bytes_left = left;
                    count.add(self.count_text(text));
                }
                None => count.add(Count::by_bytes(text)),
            }
        }
        count
    }

    fn count_text(&self, text: &str) -> Count {
        let mut count = Count::default();
        for piece in pieces(text, PIECE_BYTES_MAX) {
            count.add(match piece {
                Piece::Countable(text) => {
                    let tokens = (self.vocabulary)().count_ordinary(text) as u64;
                    Count { tokens, estimated: false }
                }
                Piece::Unbroken(text) => Count::by_bytes(text),
            });
        }
        count
    }
}

impl Count {
    fn by_bytes(text: &str) -> Self {
        Self { tokens: estimate(text.len() as u64), estimated: true }
    }

    fn add(&mut self, part: Self) {
        self.tokens += part.tokens;
        self.estimated |= part.estimated;
    }
}

/// Tokens that a text of so many bytes is likely to have: four bytes each, as in English prose.
#[must_use]
pub const fn estimate(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
