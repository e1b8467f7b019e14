//! `tokenizer.json` as it is written: every field that we understand, and none that we do not.
//!
//! A field of another name ends the reading, so that nothing that changes a count is overlooked.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::texts::{Bytes, Texts};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
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
    #[serde(default)]
    pub(super) added_tokens: Vec<AddedToken>,
    #[serde(default)]
    pub(super) normalizer: Value,
    #[serde(default)]
    pub(super) pre_tokenizer: Value,
    /// What stands before and behind a prompt.
    #[serde(default)]
    pub(super) post_processor: Value,
    pub(super) model: RawModel,
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

/// The model.
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
    /// Read by itself: see [`Vocab::read`].
    #[serde(rename = "vocab")]
    _vocab: IgnoredAny,
    pub(super) merges: Merges,
}

/// Tokens and their numbers, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Vocab {
    pub(super) texts: Texts,
    pub(super) ids: Vec<u32>,
}

/// Pairs of tokens, the one to be merged first before the others; those that stand side by side and
/// make the same are one group.
#[derive(Debug, Default)]
pub(super) struct Merges {
    /// What each group makes.
    pub(super) texts: Texts,
    lefts: Lefts,
}

#[derive(Debug, Default)]
struct Lefts {
    /// Of all pairs, characters of the left token.
    all: Vec<u32>,
    /// Where each group's end.
    ends: Vec<usize>,
}

impl Vocab {
    /// Reads a file up to the end of its tokens, and nothing behind: [`RawFile`] is all but these,
    /// and may be read at the same time.
    ///
    /// Errors: a file that has none, or is damaged before their end.
    pub(super) fn read(file: &[u8]) -> Result<Self, serde_json::Error> {
        struct Within<'a>(&'a mut Option<Vocab>);
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
                while let Some(Text(key)) = map.next_key()? {
                    match &*key {
                        "model" => map.next_value_seed(Within(self.0))?,
                        "vocab" => {
                            *self.0 = Some(map.next_value()?);
                            return Err(de::Error::custom("no need to read on"));
                        }
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Err(de::Error::missing_field("vocab"))
            }
        }
        let mut vocab = None;
        let read = Within(&mut vocab).deserialize(&mut serde_json::Deserializer::from_slice(file));
        vocab.map_or_else(|| read.map(|()| Self::default()), Ok)
    }
}

impl Merges {
    /// By how many characters of it each group's text is parted.
    pub(super) fn lefts(&self) -> impl Iterator<Item = &[u32]> + Clone {
        let Lefts { all, ends } = &self.lefts;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| all.get(start..end).unwrap_or_default())
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

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                // Checked to be text as a whole, since there are so many.
                let (mut made, mut lefts) = (Bytes::default(), Lefts::default());
                while let Some(Pair(left, right)) = seq.next_element()? {
                    if made.last().strip_prefix(&*left) != Some(&*right) || lefts.ends.is_empty() {
                        made.push(&left, &right);
                        lefts.ends.push(lefts.all.len());
                    }
                    let characters = left.iter().filter(|byte| !is_continuation(**byte)).count();
                    lefts.all.push(u32::try_from(characters).unwrap_or(u32::MAX));
                    if let Some(end) = lefts.ends.last_mut() {
                        *end = lefts.all.len();
                    }
                }
                let texts = Texts::try_from(made).map_err(de::Error::custom)?;
                Ok(Merges { texts, lefts })
            }
        }
        deserializer.deserialize_seq(Pairs)
    }
}

/// Whether a byte of UTF-8 belongs to the character before it.
const fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// A merge: `"a b"`, or `["a", "b"]` in younger files, whose tokens may hold blanks.
struct Pair<'a>(Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Pair<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Pair<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a merge: two tokens")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                Ok(Pair(Cow::Borrowed(left.as_bytes()), Cow::Borrowed(right.as_bytes())))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let (left, right) = halves(text)?;
                Ok(Pair(Cow::Owned(left.into()), Cow::Owned(right.into())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let short = || de::Error::custom("a merge has two tokens");
                let Raw(left) = seq.next_element()?.ok_or_else(short)?;
                let Raw(right) = seq.next_element()?.ok_or_else(short)?;
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(Pair(left, right)),
                    Some(_) => Err(short()),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

fn halves<E: de::Error>(text: &str) -> Result<(&str, &str), E> {
    match text.split_once(' ') {
        // The comment that `merges.txt` begins with is skipped by some readers.
        Some((left, right)) if !right.contains(' ') && left != "#version:" => Ok((left, right)),
        _ => Err(de::Error::custom("a merge has two tokens with a blank between")),
    }
}

/// A text that is borrowed from the file where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowing)
    }
}

/// The bytes of a text, not checked to be UTF-8.
struct Raw<'a>(Cow<'a, [u8]>);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowing;
        impl<'de> Visitor<'de> for Borrowing {
            type Value = Raw<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_borrowed_bytes<E: de::Error>(self, text: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Raw(Cow::Borrowed(text)))
            }

            fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Self::Value, E> {
                Ok(Raw(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_bytes(Borrowing)
    }
}
