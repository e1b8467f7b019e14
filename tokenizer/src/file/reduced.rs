//! Reduces a vocabulary to what a given text can contain. The result is a small file with which
//! Hugging Face's library counts this text as with the whole one.
//!
//! A merge can happen only if its product occurs in the text. So all other merges can be left out.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde::Serialize;
use serde_json::Value;

use super::added::Part;
use super::byte_level;
use super::head::{Head, Vocab};
use super::json::{AddedToken, RawFile, RawModel};
use super::merges::Shelf;
use super::preparation::Preparation;
use super::recipe::AlphabetKind;
use super::substrings::Substrings;
use super::{texts, trial};

/// What of a `tokenizer.json` tells how texts are counted.
#[derive(Serialize)]
pub(super) struct ReducedFile<'a, M> {
    pub(super) normalizer: &'a Value,
    pub(super) pre_tokenizer: &'a Value,
    pub(super) added_tokens: Vec<&'a AddedToken>,
    pub(super) model: M,
}

impl<M: Serialize> ReducedFile<'_, M> {
    pub(super) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// The part of a file that counts `texts` alike, as a `tokenizer.json`.
pub(super) fn of_file(
    head: &Head,
    raw: &RawFile,
    merges: &Shelf,
    preparation: &Preparation,
    texts: &[String],
) -> Vec<u8> {
    let file = ReducedFile {
        normalizer: &head.normalizer,
        pre_tokenizer: &head.pre_tokenizer,
        added_tokens: found(&raw.added_tokens, texts),
        model: model(&raw.model, &head.vocab, merges, preparation, texts),
    };
    file.to_json()
}

/// Those of `added` that `texts` can contain: some vocabularies have thousands.
fn found<'a>(added: &'a [AddedToken], texts: &[String]) -> Vec<&'a AddedToken> {
    let text = trial::joined(texts.iter().map(String::as_str));
    let substrings = Substrings::of(text.as_bytes());
    // Others are looked for in a text that is not this one.
    let found =
        |token: &&AddedToken| token.normalized || substrings.contain(token.content.as_bytes());
    added.iter().filter(found).collect()
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "BPE")]
struct ReducedModel<'a> {
    unk_token: Option<&'a str>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    vocab: HashMap<&'a str, u32, FixedState>,
    merges: Vec<[&'a str; 2]>,
}

fn model<'a>(
    raw: &'a RawModel,
    Vocab { texts: tokens, ids }: &'a Vocab,
    listed: &'a Shelf,
    preparation: &Preparation,
    texts: &[String],
) -> ReducedModel<'a> {
    let alphabet = preparation.recipe.alphabet;
    let normal = merged_texts(preparation, texts);
    let substrings = Substrings::of(normal.as_bytes());
    let mut bytes = Vec::new();
    let mut occurs = |token: &str| match alphabet {
        AlphabetKind::Bytes => {
            byte_level::decode(token, &mut bytes)
                && (bytes.len() == 1 || substrings.contain(&bytes))
        }
        AlphabetKind::Characters => token.starts_with('<') || substrings.contain(token.as_bytes()),
    };
    let tokens = tokens.iter().zip(ids.iter().copied());
    let vocab: HashMap<&str, u32, FixedState> = tokens.filter(|(text, _)| occurs(text)).collect();
    let is_kept = |text: &&str| vocab.contains_key(text);
    let mut merges = Vec::new();
    for (text, lefts) in listed.groups().filter(|(text, _)| is_kept(text)) {
        let parts = lefts.iter().filter_map(|&left| texts::parted(text, left));
        let parts = parts.filter(|(left, right)| is_kept(left) && is_kept(right));
        merges.extend(parts.map(<[&str; 2]>::from));
    }
    ReducedModel {
        unk_token: raw.unk_token.as_deref(),
        fuse_unk: raw.fuse_unk,
        byte_fallback: raw.byte_fallback,
        ignore_merges: raw.ignore_merges,
        vocab,
        merges,
    }
}

/// What is merged of `texts`, each once.
fn merged_texts(preparation: &Preparation, texts: &[String]) -> String {
    let mut merged = String::new();
    for text in texts {
        for specials in [false, true] {
            preparation.parts(text, specials, &mut |part| {
                if let Part::Text(_, part) = part
                    && !merged.contains(part)
                {
                    merged.push_str(part);
                }
                true
            });
        }
    }
    merged
}
