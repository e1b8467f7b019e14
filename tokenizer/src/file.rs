//! Vocabularies from files: `tokenizer.json` of any model, `tekken.json` of Mistral's.
//!
//! What our own scanner and merges do exactly, they do; that is checked over a built-in text each
//! time a file is read. Whatever is beyond them is left to Hugging Face's library, which is slower.

mod added;
mod beside;
mod byte_level;
mod hugging_face;
mod joints;
mod json;
mod model;
mod ours;
mod preparation;
mod recipe;
mod reduced;
mod substrings;
mod tekken;
#[cfg(test)]
mod tests;
mod texts;
mod trial;

use beside::beside;
use hugging_face::HuggingFace;
use json::{RawFile, Vocab};
use model::Model;
use ours::Ours;
use preparation::Preparation;
use recipe::{Recipe, Unsupported};

/// Why a file is no vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Neither a `tokenizer.json` nor a `tekken.json`, or damaged.
    #[error("is no tokenizer.json or tekken.json that can be read: {0}")]
    Unreadable(String),
}

/// A vocabulary that was read from a file.
pub(crate) struct File {
    counts: Counts,
    /// Tokens that engines put around a prompt that has no template, such as `<s>`.
    pub(crate) framing_tokens: u64,
}

enum Counts {
    Ours(Box<Ours>),
    /// And why.
    Theirs(Box<HuggingFace>, String),
}

impl File {
    /// Reads a file, by what is in it.
    ///
    /// Errors: `Unreadable`, with what Hugging Face's library says.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        match ours(bytes) {
            Ok((vocabulary, framing_tokens)) => {
                Ok(Self { counts: Counts::Ours(Box::new(vocabulary)), framing_tokens })
            }
            Err(why) => tekken::read(bytes).unwrap_or_else(|| Self::theirs(bytes, why)),
        }
    }

    fn theirs(json: &[u8], why: Unsupported) -> Result<Self, LoadError> {
        let theirs = HuggingFace::from_json(json).map_err(LoadError::Unreadable)?;
        let framing_tokens = theirs.framing_tokens();
        Ok(Self { counts: Counts::Theirs(Box::new(theirs), why.0), framing_tokens })
    }

    /// Why Hugging Face's library counts; `None` when we do.
    pub(crate) fn fallback(&self) -> Option<&str> {
        match &self.counts {
            Counts::Ours(_) => None,
            Counts::Theirs(_, why) => Some(why),
        }
    }

    /// Tokens of `text`, or some number above `limit` when there are more. `None` when Hugging
    /// Face's library gives up.
    ///
    /// Marks of special tokens are ordinary text, unless `specials`.
    pub(crate) fn count(&self, text: &str, specials: bool, limit: u64) -> Option<u64> {
        match &self.counts {
            Counts::Ours(vocabulary) => Some(vocabulary.count(text, specials, limit)),
            Counts::Theirs(theirs, _) => theirs.count(text, specials),
        }
    }

    /// The last place before the end of `text` where it may be cut, whatever follows.
    pub(crate) fn last_boundary(&self, text: &str) -> Option<usize> {
        let Counts::Ours(vocabulary) = &self.counts else { return None };
        let mut after = None;
        text.char_indices().rev().find_map(|(at, before)| {
            let cut = after.is_some_and(|after| vocabulary.is_boundary(before, after));
            after = Some(before);
            cut.then_some(at + before.len_utf8())
        })
    }
}

fn ours(bytes: &[u8]) -> Result<(Ours, u64), Unsupported> {
    let damaged = |error: serde_json::Error| Unsupported(error.to_string());
    let (raw, vocab) = beside(|| serde_json::from_slice::<RawFile>(bytes), || Vocab::read(bytes))?;
    let (raw, vocab) = (raw.map_err(damaged)?, vocab.map_err(damaged)?);
    let recipe = Recipe::read(&raw.normalizer, &raw.pre_tokenizer)?;
    let framing_tokens = recipe::framing_tokens(&raw.post_processor)?;
    let texts = trial::texts(&raw.added_tokens);
    let model = Model::new(&raw.model, &vocab, recipe.alphabet)?;
    // Both take about as long.
    let (merged, others) = beside(
        || model.merged(),
        || {
            let preparation = Preparation::new(recipe, &raw.added_tokens)?;
            let json = reduced::of_file(&raw, &vocab, &preparation, &texts);
            Ok((preparation, trial::expected(&texts, &json)?, model.known()?))
        },
    )?;
    let (preparation, expected, known) = others?;
    let (bpe, joints) = model.bpe(merged?, known);
    let vocabulary = Ours { preparation, bpe, joints };
    trial::compare(&vocabulary, &texts, &expected)?;
    Ok((vocabulary, framing_tokens))
}
