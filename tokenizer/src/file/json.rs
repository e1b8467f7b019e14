//! The format of `tokenizer.json`: every field that this crate understands, and no other.
//!
//! An unknown field ends the reading, so that nothing that changes a count is overlooked.

use std::collections::HashSet;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use taximeter_json::Reader;

use super::head::NO_MODEL;
use super::merges::Shelving;
use super::recipe::Unsupported;
use super::values::{meaning, value};

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
    pub(super) fn read(file: &[u8], shelving: Shelving<'_>) -> Result<Self, Unsupported> {
        let mut shelving = Some(shelving);
        let (mut added_tokens, mut model) = (Vec::new(), None);
        let mut file = Reader::new(file);
        let small: Small = members(&mut file, |name, file| {
            match name {
                "added_tokens" => added_tokens = value(file)?,
                "model" => model = Some(RawModel::read(file, &mut shelving)?),
                // It would be a large part of another kind of file.
                "vocab" => return Err(Unsupported(NO_MODEL.to_owned())),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        file.end()?;
        let model = model.filter(|_| shelving.is_none());
        let model = model.ok_or_else(|| Unsupported("a file without merges".to_owned()))?;
        Ok(Self { added_tokens, post_processor: small.post_processor, model })
    }
}

impl RawModel {
    fn read(
        model: &mut Reader<'_>,
        shelving: &mut Option<Shelving<'_>>,
    ) -> Result<Self, Unsupported> {
        members(model, |name, model| {
            match (name, shelving.take()) {
                ("merges", Some(shelving)) => shelving.read(model)?,
                (name, untaken) => {
                    *shelving = untaken;
                    if name != "vocab" {
                        return Ok(false);
                    }
                    model.skip()?;
                }
            }
            Ok(true)
        })
    }
}

/// Reads an object: what `own` takes and says so, and all others as a `T`.
///
/// Errors: a name that is there twice.
fn members<'a, T: DeserializeOwned>(
    object: &mut Reader<'a>,
    mut own: impl FnMut(&str, &mut Reader<'a>) -> Result<bool, Unsupported>,
) -> Result<T, Unsupported> {
    let (mut names, mut others) = (HashSet::new(), Map::new());
    object.enter(b'{')?;
    while let Some(name) = object.next_key()? {
        let name = meaning(name)?;
        if !names.insert(name.clone()) {
            return Err(Unsupported(format!("{name:?} is there twice")));
        }
        if !own(&name, object)? {
            others.insert(name.into_owned(), value(object)?);
        }
    }
    T::deserialize(Value::Object(others)).map_err(|error| Unsupported(error.to_string()))
}
