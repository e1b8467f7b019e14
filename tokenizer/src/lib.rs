//! Text in, token count out.
//!
//! Begin with `vocabulary.rs`: `scan` splits a text, and `bpe` counts what each piece merges into.
//!
//! # Invariants
//!
//! - With the model's own vocabulary the count is exactly the model's. With the nearest vocabulary,
//!   or by bytes where counting takes too long, the count is marked as an estimate.
//! - Marks of special tokens in a text are ordinary text.
//! - It never fails and never panics.
//!
//! This crate knows no HTTP, prices or tenants.
//!
//! # How it counts
//!
//! `scan` splits a text as the regex of its vocabulary would, in one pass. `bpe` needs one look-up
//! if the piece is a token. Otherwise it merges pairs of symbols, and of a long piece window by
//! window. It makes no list of tokens. `counter` counts a stream as it arrives, up to the last
//! place where every split agrees whatever follows.
//!
//! # Vocabularies
//!
//! `build.rs` packs OpenAI's vocabularies, each token as two earlier ones, and the classes of
//! characters. A vocabulary takes memory only after something was counted with it. `file` reads
//! `tokenizer.json` and `tekken.json`. When a file is loaded, a built-in text is counted by this
//! crate and by Hugging Face's library. If the counts differ, the library counts from then on. One
//! thread learns the merges while another reads them. `template` renders chats as engines do.

mod bpe;
mod built_in;
mod counter;
mod file;
mod models;
mod scan;
mod template;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::fmt;
use std::sync::Arc;

use built_in::BuiltIn;
pub use counter::Counter;
use file::File;
pub use file::LoadError;
pub use template::{ChatTemplate, Rendered, TemplateError};
use vocabulary::Vocabulary;

/// Most bytes that one call counts where nothing else is said.
const COUNT_BYTES_MAX: usize = 4 << 20;

/// Counts tokens by one vocabulary. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    source: Source,
    /// Most bytes that one call counts; the tokens of what exceeds them are estimated.
    bytes_max: usize,
}

#[derive(Clone)]
enum Source {
    /// Loaded at the first count, once per process.
    BuiltIn { name: &'static str, built_in: &'static BuiltIn },
    /// Loaded when the tokenizer was made.
    Given(Arc<Given>),
}

struct Given {
    name: String,
    vocabulary: Vocabulary,
}

/// A tokenizer that was read from a file.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What to count with.
    pub tokenizer: Tokenizer,
    /// What in the file this crate cannot do exactly, so that Hugging Face's library counts: also
    /// exact, but slower. `None` if this crate counts.
    pub fallback: Option<String>,
}

/// The tokenizer for a model.
#[derive(Debug, Clone)]
pub struct Choice {
    /// What to count with.
    pub tokenizer: Tokenizer,
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

impl Tokenizer {
    /// The built-in tokenizer for `model`, by OpenAI's own table; `o200k_base`, not exact, for
    /// models it does not name.
    ///
    /// Fine-tuned models (`ft:…`), Azure's names and an `openai/` in front are understood.
    #[must_use]
    pub fn for_model(model: &str) -> Choice {
        let named = models::vocabulary(model);
        let (name, built_in) = named.unwrap_or(models::O200K);
        Choice { tokenizer: Self::of(Source::BuiltIn { name, built_in }), exact: named.is_some() }
    }

    /// Reads a `tokenizer.json` or a `tekken.json`, told apart by what is in it; `name` is for
    /// people.
    ///
    /// What our own scanner and merges make of it is held against Hugging Face's library over a
    /// built-in text; where they differ, or meet what they do not know, the library counts. Takes
    /// about ten milliseconds a MiB, on two threads.
    ///
    /// Errors: a file of another kind, or a damaged one.
    pub fn from_file(name: impl Into<String>, bytes: &[u8]) -> Result<Loaded, LoadError> {
        let file = File::read(bytes)?;
        let fallback = file.fallback().map(str::to_owned);
        let given = Given { name: name.into(), vocabulary: Vocabulary::File(file) };
        Ok(Loaded { tokenizer: Self::of(Source::Given(Arc::new(given))), fallback })
    }

    const fn of(source: Source) -> Self {
        Self { source, bytes_max: COUNT_BYTES_MAX }
    }

    /// The same tokenizer with another maximum of bytes that one call counts. The tokens of further
    /// bytes are estimated. The default is 4 MiB.
    #[must_use]
    pub fn within(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// Name of the vocabulary: tiktoken's name for a built-in one, or the name that was given to a
    /// file.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.source {
            Source::BuiltIn { name, .. } => name,
            Source::Given(given) => &given.name,
        }
    }

    /// Whether counting starts at once, without loading the vocabulary first.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.loaded().is_some()
    }

    /// Loads the vocabulary, if it is not yet. Takes tens of milliseconds, once per process: keep
    /// it off the threads that carry streams.
    pub fn load(&self) {
        self.vocabulary();
    }

    /// Tokens of `texts`, each counted separately. What exceeds the maximum in total is estimated.
    ///
    /// Loads the vocabulary; takes milliseconds for long texts: keep it off the threads that carry
    /// streams.
    #[must_use]
    pub fn count<T: AsRef<str>>(&self, texts: impl IntoIterator<Item = T>) -> Count {
        let mut bytes_left = self.bytes_max;
        let mut count = Count::default();
        for text in texts {
            let text = text.as_ref();
            match bytes_left.checked_sub(text.len()) {
                Some(left) => {
                    bytes_left = left;
                    count.add(self.vocabulary().count(text));
                }
                None => count.add(Count::by_bytes(text.len() as u64)),
            }
        }
        count
    }

    /// Tokens of `text`, or `None` if there are more than `limit`. It stops as soon as that is
    /// certain.
    ///
    /// Loads the vocabulary. Takes time by the limit, not by the text: at most 128 bytes a token.
    #[must_use]
    pub fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        self.vocabulary().count_until(text, limit)
    }

    /// Tokens of a prompt that the model's chat template rendered: unlike in other texts, marks of
    /// special tokens are these, as the engine reads them. More than the maximum is estimated.
    ///
    /// Built-in vocabularies know no such marks.
    #[must_use]
    pub fn count_rendered(&self, rendered: &str) -> Count {
        if rendered.len() > self.bytes_max {
            return Count::by_bytes(rendered.len() as u64);
        }
        self.vocabulary().count_rendered(rendered)
    }

    /// Tokens that engines put around a prompt that has no template, such as `<s>`.
    #[must_use]
    pub fn framing_tokens(&self) -> u64 {
        self.vocabulary().framing_tokens()
    }

    /// A counter for a text that arrives in parts.
    #[must_use]
    pub fn counter(&self) -> Counter {
        Counter::new(self.clone())
    }

    /// One that nothing else loads.
    #[cfg(test)]
    fn unloaded() -> Self {
        let built_in = Box::leak(Box::new(BuiltIn::r50k_base()));
        Self::of(Source::BuiltIn { name: "r50k_base", built_in })
    }

    fn loaded(&self) -> Option<&Vocabulary> {
        match &self.source {
            Source::BuiltIn { built_in, .. } => built_in.loaded(),
            Source::Given(given) => Some(&given.vocabulary),
        }
    }

    fn vocabulary(&self) -> &Vocabulary {
        match &self.source {
            Source::BuiltIn { built_in, .. } => built_in.vocabulary(),
            Source::Given(given) => &given.vocabulary,
        }
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tokenizer").field(&self.name()).finish()
    }
}

impl Count {
    const fn by_bytes(bytes: u64) -> Self {
        Self { tokens: estimate(bytes), estimated: bytes > 0 }
    }

    const fn add(&mut self, part: Self) {
        self.tokens += part.tokens;
        self.estimated |= part.estimated;
    }
}

/// The number of tokens that a text of this many bytes probably has: four bytes each, as in English
/// prose.
#[must_use]
pub const fn estimate(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
