//! The model of a `tokenizer.json`: its tokens and merges.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::byte_level;
use super::joints::Joints;
use super::json::RawModel;
use super::recipe::{self, Unsupported};
use crate::bpe::{Alphabet, Bpe, Rule};

/// Tokens and their numbers, as they are looked for.
#[derive(Default)]
struct Ids<'a> {
    /// Of most tokens: found without a look at their texts, which lie all over the file.
    short: HashMap<Short, u32, FixedState>,
    long: HashMap<&'a str, u32, FixedState>,
}

/// A text of up to 15 bytes, and behind it its length.
type Short = [u8; 16];

fn short(text: &str) -> Option<Short> {
    let mut short = [0; 16];
    let (length, bytes) = short.split_last_mut()?;
    bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
    *length = u8::try_from(text.len()).ok()?;
    Some(short)
}

impl<'a> Ids<'a> {
    /// Errors: a token that is there twice.
    fn new(vocab: &'a [(Cow<'_, str>, u32)]) -> Result<Self, Unsupported> {
        let mut ids = Self::default();
        ids.short.reserve(vocab.len());
        for (token, id) in vocab {
            let known = match short(token) {
                Some(short) => ids.short.insert(short, *id),
                None => ids.long.insert(token, *id),
            };
            if known.is_some() {
                return Err(Unsupported("model.vocab has a token twice".to_owned()));
            }
        }
        Ok(ids)
    }

    fn get(&self, token: &str) -> Option<u32> {
        match short(token) {
            Some(short) => self.short.get(&short).copied(),
            None => self.long.get(token).copied(),
        }
    }
}

/// Reads a model.
///
/// Errors: what is no BPE, or one with a rule that we do not have.
pub(super) fn read(
    raw: &RawModel<'_>,
    alphabet: recipe::Alphabet,
) -> Result<(Bpe, Joints), Unsupported> {
    refuse_strange(raw, alphabet)?;
    let vocab = raw.vocab.0.as_slice();
    let ids = Ids::new(vocab)?;
    let by_bytes = alphabet == recipe::Alphabet::Bytes;
    let mut joints = Joints::default();
    let mut rules = Vec::with_capacity(raw.merges.0.len());
    let mut last = 0;
    for (left, right) in &raw.merges.0 {
        let id = |token: &str| {
            let unknown = || Unsupported(format!("a merge of {token:?}, which is no token"));
            ids.get(token).ok_or_else(unknown)
        };
        let merged = match listed(vocab, last, left, right) {
            Some(id) => id,
            None => id(&format!("{left}{right}"))?,
        };
        last = merged;
        rules.push(Rule { left: id(left)?, right: id(right)?, merged });
        if !by_bytes {
            joints.add(left, right);
            if names_byte(left, "") || names_byte(right, "") || names_byte(left, right) {
                return Err(Unsupported(format!("a merge of {left:?} and {right:?}, a byte")));
            }
        }
    }
    let tokens = Texts::of(vocab, by_bytes);
    let alphabet = symbols(vocab, &ids, by_bytes)?;
    let bpe = Bpe::from_rules(alphabet, &rules, &tokens.all(), raw.ignore_merges);
    Ok((bpe, joints))
}

/// The number of what `left` and `right` make, if it stands where most files have it: they list
/// tokens by number and merges by what they make, so that it is the `last` one or the next.
fn listed(vocab: &[(Cow<'_, str>, u32)], last: u32, left: &str, right: &str) -> Option<u32> {
    let (_, rest) = vocab.split_at_checked(last as usize)?;
    let mut nearest = rest.iter().take(2);
    let found = nearest.find(|(token, _)| token.strip_prefix(left) == Some(right));
    found.map(|(_, id)| *id)
}

/// The texts that tokens stand for; what stands for none is left out.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn of(vocab: &[(Cow<'_, str>, u32)], by_bytes: bool) -> Self {
        let mut texts = Self { bytes: Vec::new(), ends: Vec::with_capacity(vocab.len()) };
        let mut text = Vec::new();
        for (token, _) in vocab {
            if !by_bytes {
                texts.bytes.extend_from_slice(token.as_bytes());
            } else if byte_level::decode(token, &mut text) {
                texts.bytes.extend_from_slice(&text);
            }
            if texts.ends.last() != Some(&texts.bytes.len()) {
                texts.ends.push(texts.bytes.len());
            }
        }
        texts
    }

    fn all(&self) -> Vec<&[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, &end)| self.bytes.get(start..end)).collect()
    }
}

/// What pieces begin as.
///
/// Errors: bytes that have no token.
fn symbols(
    vocab: &[(Cow<'_, str>, u32)],
    ids: &Ids<'_>,
    by_bytes: bool,
) -> Result<Alphabet, Unsupported> {
    let mut bytes = Box::new([0; 256]);
    let mut name = String::new();
    for (byte, symbol) in (0..=u8::MAX).zip(bytes.iter_mut()) {
        name.clear();
        if by_bytes {
            name.push(byte_level::letter(byte));
        } else {
            name = format!("<0x{byte:02X}>");
        }
        let missing = || Unsupported(format!("no token for byte {byte:#04x}"));
        *symbol = ids.get(&name).ok_or_else(missing)?;
    }
    if by_bytes {
        return Ok(Alphabet::Bytes(bytes));
    }
    let single = |token: &str| {
        let mut chars = token.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    let characters = vocab.iter().filter_map(|(token, id)| Some((single(token)?, *id))).collect();
    Ok(Alphabet::Characters { characters, bytes })
}

/// Whether these two make the name of a token for a single byte.
fn names_byte(left: &str, right: &str) -> bool {
    left.len() + right.len() == "<0x00>".len()
        && left.bytes().chain(right.bytes()).take(3).eq(*b"<0x")
}

/// Errors: rules that we do not have.
fn refuse_strange(raw: &RawModel<'_>, alphabet: recipe::Alphabet) -> Result<(), Unsupported> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let characters = alphabet == recipe::Alphabet::Characters;
    let strange = if raw.kind.as_ref().is_some_and(|kind| kind != "BPE") {
        "model.type"
    } else if raw.dropout.is_some_and(|dropout| dropout != 0.0) {
        "model.dropout"
    } else if given(&raw.continuing_subword_prefix) {
        "model.continuing_subword_prefix"
    } else if given(&raw.end_of_word_suffix) {
        "model.end_of_word_suffix"
    } else if characters && !raw.byte_fallback {
        "a model of characters without byte_fallback"
    } else if characters && raw.ignore_merges {
        "model.ignore_merges with characters"
    } else {
        return Ok(());
    };
    Err(Unsupported(strange.to_owned()))
}
