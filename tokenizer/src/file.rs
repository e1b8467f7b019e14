//! Reads vocabularies from files: `tokenizer.json` of any model, and Mistral's `tekken.json`.
//!
//! Our own scanner and merges do what they can do exactly. Each time a file is read, a built-in
//! text checks this. Hugging Face's library does the rest, and is slower.

mod added;
mod beside;
mod byte_level;
mod head;
mod hugging_face;
mod joints;
mod json;
mod merges;
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
mod values;

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};

use beside::beside;
use head::Head;
use hugging_face::HuggingFace;
use json::RawFile;
use merges::{MergeGroups, Shelf, Shelving};
use model::{Known, Learned, Model};
use ours::Ours;
use preparation::Preparation;
use recipe::{Recipe, Unsupported};
use trial::Expected;

/// Why a file cannot be used as a vocabulary.
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

/// All of a vocabulary but its merges.
struct Others {
    framing_tokens: u64,
    preparation: Preparation,
    known: Known,
    /// For the self-test.
    texts: Vec<String>,
    expected: Expected,
}

impl Others {
    fn of(raw: &RawFile, head: &Head, recipe: Recipe, merges: &Shelf) -> Result<Self, Unsupported> {
        let model = Model::new(&raw.model, &head.vocab, merges, recipe.alphabet)?;
        let framing_tokens = recipe::framing_tokens(&raw.post_processor)?;
        let preparation = Preparation::new(recipe, &raw.added_tokens)?;
        let texts = trial::texts(&raw.added_tokens);
        let json = reduced::of_file(head, raw, merges, &preparation, &texts);
        let expected = trial::expected(&texts, &json)?;
        Ok(Self { framing_tokens, preparation, known: model.known()?, texts, expected })
    }
}

/// Learns the merges of a file as they come to be `read`; tells what must be known first.
fn learn<'a>(
    bytes: &[u8],
    head: &'a OnceLock<Head>,
    to_know: Sender<(&'a Head, Recipe)>,
    read: Receiver<&'a MergeGroups>,
) -> Result<Learned, Unsupported> {
    let found = Head::read(bytes)?;
    let recipe = Recipe::read(&found.normalizer, &found.pre_tokenizer)?;
    let head = head.get_or_init(|| found);
    let alphabet = recipe.alphabet;
    // Where nobody takes it, the other thread has found that the file is not for us.
    let _ = to_know.send((head, recipe));
    Learned::of(&head.vocab, alphabet, read.into_iter())
}

fn ours(bytes: &[u8]) -> Result<(Ours, u64), Unsupported> {
    let (head, merges) = (OnceLock::new(), Shelf::for_file(bytes.len()));
    let (to_learn, read) = channel();
    let (to_know, known) = channel();
    // MergeGroups are learned while they are read: so both threads have about as much to do.
    let (others, learned) = beside(
        || {
            let raw = RawFile::read(bytes, Shelving::new(&merges, to_learn))?;
            let head = known.recv().ok();
            head.map(|(head, recipe)| Others::of(&raw, head, recipe, &merges)).transpose()
        },
        || learn(bytes, &head, to_know, read),
    )?;
    let (others, learned) = (others?, learned?);
    let (Some(others), Some(head)) = (others, head.get()) else {
        return Err(Unsupported("a file without a head".to_owned()));
    };
    let Others { framing_tokens, preparation, known, texts, expected } = others;
    let (bpe, joints) = known.bpe(learned, &head.vocab);
    let vocabulary = Ours { preparation, bpe, joints };
    trial::compare(&vocabulary, &texts, &expected)?;
    Ok((vocabulary, framing_tokens))
}
