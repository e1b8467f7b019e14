//! The model of a `tokenizer.json`: its tokens and merges.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::byte_level;
use super::joints::Joints;
use super::json::RawModel;
use super::recipe::{self, Unsupported};
use crate::bpe::{Alphabet, Bpe, Rule};

/// Tokens and their numbers.
type Ids<'a> = HashMap<&'a str, u32, FixedState>;

/// Reads a model.
///
/// Errors: what is no BPE, or one with a rule that we do not have.
pub(super) fn read(
    raw: &RawModel<'_>,
    alphabet: recipe::Alphabet,
) -> Result<(Bpe, Joints), Unsupported> {
    refuse_strange(raw, alphabet)?;
    let ids: Ids<'_> = raw.vocab.0.iter().map(|(token, id)| (token.as_ref(), *id)).collect();
    if ids.len() < raw.vocab.0.len() {
        return Err(Unsupported("model.vocab has a token twice".to_owned()));
    }
    let by_bytes = alphabet == recipe::Alphabet::Bytes;
    let mut joints = Joints::default();
    let mut rules = Vec::with_capacity(raw.merges.0.len());
    let mut product = String::new();
    for (left, right) in &raw.merges.0 {
        product.clear();
        product.push_str(left);
        product.push_str(right);
        let id = |token: &str| {
            let unknown = || Unsupported(format!("a merge of {token:?}, which is no token"));
            ids.get(token).copied().ok_or_else(unknown)
        };
        rules.push(Rule { left: id(left)?, right: id(right)?, merged: id(&product)? });
        if !by_bytes {
            joints.add(left, right);
            if [left, right, product.as_str()].into_iter().any(names_byte) {
                return Err(Unsupported(format!("a merge of {product:?}, a byte")));
            }
        }
    }
    let tokens = Texts::of(&ids_in_order(raw), by_bytes);
    let alphabet = symbols(&ids, by_bytes)?;
    let bpe = Bpe::from_rules(alphabet, &rules, tokens.iter(), raw.ignore_merges);
    Ok((bpe, joints))
}

fn ids_in_order<'a>(raw: &'a RawModel<'_>) -> Vec<&'a str> {
    raw.vocab.0.iter().map(|(token, _)| token.as_ref()).collect()
}

/// The texts that tokens stand for; what stands for none is left out.
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn of(tokens: &[&str], by_bytes: bool) -> Self {
        let mut texts = Self { bytes: Vec::new(), ends: Vec::with_capacity(tokens.len()) };
        let mut text = Vec::new();
        for token in tokens {
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

    fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).filter_map(|(start, &end)| self.bytes.get(start..end))
    }
}

/// What pieces begin as.
///
/// Errors: bytes that have no token.
fn symbols(ids: &Ids<'_>, by_bytes: bool) -> Result<Alphabet, Unsupported> {
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
        *symbol = ids.get(name.as_str()).copied().ok_or_else(missing)?;
    }
    if by_bytes {
        return Ok(Alphabet::Bytes(bytes));
    }
    let single = |token: &str| {
        let mut chars = token.chars();
        chars.next().filter(|_| chars.next().is_none())
    };
    let characters = ids.iter().filter_map(|(token, id)| Some((single(token)?, *id))).collect();
    Ok(Alphabet::Characters { characters, bytes })
}

/// Whether this is how a token for a single byte is called.
fn names_byte(token: &str) -> bool {
    token.len() == "<0x00>".len() && token.starts_with("<0x")
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
