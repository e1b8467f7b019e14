//! `tokenizer.json` as it is written: every field that we understand, and none that we do not.
//!
//! A field of another name ends the reading, so that nothing that changes a count is overlooked.

use std::collections::HashSet;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::borrowed::Text;
use super::head::NO_MODEL;
use super::merges::Shelving;

/// The file, but for what [`Head`](super::head::Head) has and its merges.
#[derive(Debug)]
pub(super) struct RawFile {
    pub(super) added_tokens: Vec<AddedToken>,
    /// What stands before and behind a prompt.
    pub(super) post_processor: Value,
    pub(super) model: RawModel,
}

/// What is small of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Small {
    #[serde(default, rename = "version")]
    _version: IgnoredAny,
    /// How texts are cut to a length; engines do not.
    #[serde(default, rename = "truncation")]
    _truncation: IgnoredAny,
    /// How texts are filled to a length; engines do not.
    #[serde(default, rename = "padding")]
    _padding: IgnoredAny,
    /// From tokens back to text.
    #[serde(default, rename = "decoder")]
    _decoder: IgnoredAny,
    #[serde(default, rename = "normalizer")]
    _normalizer: IgnoredAny,
    #[serde(default, rename = "pre_tokenizer")]
    _pre_tokenizer: IgnoredAny,
    #[serde(default)]
    post_processor: Value,
}

/// A token that is found in the text before anything else is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddedToken {
    /// Its number.
    pub(crate) id: u32,
    /// Its text.
    pub(crate) content: String,
    /// Only between characters that belong to no word.
    pub(crate) single_word: bool,
    /// Takes the blanks before it too.
    pub(crate) lstrip: bool,
    /// Takes the blanks behind it too.
    pub(crate) rstrip: bool,
    /// Found in the normalized text.
    pub(crate) normalized: bool,
    /// Marks that no client may write: ordinary text outside of rendered prompts.
    pub(crate) special: bool,
}

/// The model, but for its tokens and merges.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawModel {
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) dropout: Option<f32>,
    #[serde(default)]
    pub(super) unk_token: Option<String>,
    #[serde(default)]
    pub(super) continuing_subword_prefix: Option<String>,
    #[serde(default)]
    pub(super) end_of_word_suffix: Option<String>,
    #[serde(default)]
    pub(super) fuse_unk: bool,
    #[serde(default)]
    pub(super) byte_fallback: bool,
    #[serde(default)]
    pub(super) ignore_merges: bool,
}

impl RawFile {
    /// Reads a file; its merges go to `shelving`.
    ///
    /// Errors: what is damaged, has a field that we do not know, or one twice.
    pub(super) fn read(file: &[u8], shelving: Shelving<'_>) -> Result<Self, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_slice(file);
        let read = File(shelving).deserialize(&mut json)?;
        json.end()?;
        Ok(read)
    }
}

/// Reads the file.
struct File<'a>(Shelving<'a>);

/// Reads its model.
struct Model<'a>(Shelving<'a>);

impl<'de> DeserializeSeed<'de> for File<'_> {
    type Value = RawFile;

    fn deserialize<D: Deserializer<'de>>(self, file: D) -> Result<RawFile, D::Error> {
        file.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for File<'_> {
    type Value = RawFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawFile, A::Error> {
        let mut shelving = Some(self.0);
        let (mut added_tokens, mut model) = (Vec::new(), None);
        let small: Small = members(map, |key, map| {
            match (key, &mut shelving) {
                ("added_tokens", _) => added_tokens = map.next_value()?,
                ("model", shelving @ Some(_)) => {
                    model = shelving.take().map(|to| map.next_value_seed(Model(to))).transpose()?;
                }
                // It would be a large part of another kind of file.
                ("vocab", _) => return Err(de::Error::custom(NO_MODEL)),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let model = model.ok_or_else(|| de::Error::missing_field("model"))?;
        Ok(RawFile { added_tokens, post_processor: small.post_processor, model })
    }
}

impl<'de> DeserializeSeed<'de> for Model<'_> {
    type Value = RawModel;

    fn deserialize<D: Deserializer<'de>>(self, model: D) -> Result<RawModel, D::Error> {
        model.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Model<'_> {
    type Value = RawModel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the model of a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawModel, A::Error> {
        let mut shelving = Some(self.0);
        let model = members(map, |key, map| {
            match (key, &mut shelving) {
                ("vocab", _) => drop(map.next_value::<IgnoredAny>()?),
                ("merges", shelving @ Some(_)) => {
                    shelving.take().map(|to| map.next_value_seed(to)).transpose()?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match shelving {
            None => Ok(model),
            Some(_) => Err(de::Error::missing_field("merges")),
        }
    }
}

/// Reads an object: what `own` takes and says so, and all others as a `T`.
///
/// Errors: a name that is there twice.
fn members<'de, A: MapAccess<'de>, T: de::DeserializeOwned>(
    mut map: A,
    mut own: impl FnMut(&str, &mut A) -> Result<bool, A::Error>,
) -> Result<T, A::Error> {
    let (mut names, mut others) = (HashSet::new(), Map::new());
    while let Some(Text(key)) = map.next_key()? {
        if !names.insert(key.to_string()) {
            return Err(de::Error::custom(format!("{key:?} is there twice")));
        }
        if !own(&key, &mut map)? {
            others.insert(key.into_owned(), map.next_value()?);
        }
    }
    T::deserialize(Value::Object(others)).map_err(de::Error::custom)
}
