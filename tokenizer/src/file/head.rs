//! What must be known of a `tokenizer.json` before its merges can be learned. It stands before them
//! in most files, and is read by itself, while the others are read.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::borrowed::Text;
use super::texts::Texts;

/// Tokens and their numbers, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Vocab {
    pub(super) texts: Texts,
    pub(super) ids: Vec<u32>,
}

/// What must be known first.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) vocab: Vocab,
}

/// What is wrong with a file that has a vocabulary where only its model should.
pub(super) const NO_MODEL: &str = "a vocabulary without a model";

/// What of a head has been found.
#[derive(Default)]
struct Found {
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    vocab: Option<Vocab>,
}

impl Head {
    /// Reads as much of a file as it takes.
    ///
    /// Errors: a file without tokens, or one that is damaged before it was read.
    pub(super) fn read(file: &[u8]) -> Result<Self, serde_json::Error> {
        let mut found = Found::default();
        let read = Within { found: &mut found, depth: Depth::File };
        let read = read.deserialize(&mut serde_json::Deserializer::from_slice(file));
        if !found.is_whole() {
            read?;
        }
        let Found { normalizer, pre_tokenizer, vocab } = found;
        let vocab = vocab.ok_or_else(|| de::Error::missing_field("vocab"))?;
        let [normalizer, pre_tokenizer] =
            [normalizer, pre_tokenizer].map(Option::unwrap_or_default);
        Ok(Self { normalizer, pre_tokenizer, vocab })
    }
}

impl Found {
    const fn is_whole(&self) -> bool {
        self.normalizer.is_some() && self.pre_tokenizer.is_some() && self.vocab.is_some()
    }
}

#[derive(Clone, Copy)]
enum Depth {
    File,
    Model,
}

/// A reader of the file, or of its model.
struct Within<'a> {
    found: &'a mut Found,
    depth: Depth,
}

impl<'de> DeserializeSeed<'de> for Within<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, file: D) -> Result<(), D::Error> {
        file.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Within<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tokenizer.json, or its model")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let found = self.found;
        while let Some(Text(key)) = map.next_key()? {
            match (self.depth, &*key) {
                (Depth::File, "normalizer") => found.normalizer = Some(map.next_value()?),
                (Depth::File, "pre_tokenizer") => found.pre_tokenizer = Some(map.next_value()?),
                (Depth::File, "model") => {
                    map.next_value_seed(Within { found, depth: Depth::Model })?;
                }
                (Depth::Model, "vocab") => found.vocab = Some(map.next_value()?),
                // It would be a large part of another kind of file.
                (Depth::File, "vocab") => return Err(de::Error::custom(NO_MODEL)),
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if found.is_whole() {
                return Err(de::Error::custom("no need to read on"));
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tokens;
        impl<'de> Visitor<'de> for Tokens {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("tokens and their numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut vocab = Vocab::default();
                while let Some((Text(token), id)) = map.next_entry()? {
                    vocab.texts.push(&token);
                    vocab.ids.push(id);
                }
                Ok(vocab)
            }
        }
        deserializer.deserialize_map(Tokens)
    }
}
