//! A vocabulary cut down to what a given text can contain: a small file for Hugging Face's library
//! that counts this text as the whole one does.
//!
//! A merge can happen only where its product stands in the text; so all others can be left out.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use serde_json::{Value, json};

use super::added::Part;
use super::byte_level;
use super::json::{RawFile, RawModel};
use super::preparation::Preparation;
use super::recipe::Alphabet;
use super::substrings::Substrings;
use super::texts;

/// The part of `raw` that counts `texts` alike, as a `tokenizer.json`.
pub(super) fn of_file(raw: &RawFile, preparation: &Preparation, texts: &[String]) -> Vec<u8> {
    let alphabet = preparation.recipe.alphabet;
    let normal = merged_texts(preparation, texts);
    let substrings = Substrings::of(normal.as_bytes());
    let mut bytes = Vec::new();
    let mut occurs = |token: &str| match alphabet {
        Alphabet::Bytes => {
            byte_level::decode(token, &mut bytes)
                && (bytes.len() == 1 || substrings.contain(&bytes))
        }
        Alphabet::Characters => token.starts_with('<') || substrings.contain(token.as_bytes()),
    };
    let RawModel { vocab, merges, .. } = &raw.model;
    let mut kept: HashMap<&str, u32, FixedState> = HashMap::default();
    kept.extend(vocab.texts.iter().zip(vocab.ids.iter().copied()).filter(|(text, _)| occurs(text)));
    let is_kept = |text: &&str| kept.contains_key(text);
    let mut kept_merges: Vec<[&str; 2]> = Vec::new();
    for (text, lefts) in merges.texts.iter().zip(merges.lefts()).filter(|(text, _)| is_kept(text)) {
        let parts = lefts.iter().filter_map(|&left| texts::parted(text, left));
        let parts =
            parts.filter(|(left, right)| kept.contains_key(left) && kept.contains_key(right));
        kept_merges.extend(parts.map(<[&str; 2]>::from));
    }
    file(
        json!({
            "normalizer": raw.normalizer,
            "pre_tokenizer": raw.pre_tokenizer,
            "added_tokens": raw.added_tokens,
        }),
        json!({
            "type": "BPE",
            "unk_token": raw.model.unk_token,
            "fuse_unk": raw.model.fuse_unk,
            "byte_fallback": raw.model.byte_fallback,
            "ignore_merges": raw.model.ignore_merges,
            "vocab": kept,
            "merges": kept_merges,
        }),
    )
}

/// What is merged of `texts`, one part behind the other, each once.
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

/// A `tokenizer.json` of these parts.
pub(super) fn file(mut parts: Value, model: Value) -> Vec<u8> {
    if let Some(parts) = parts.as_object_mut() {
        parts.insert("version".to_owned(), "1.0".into());
        parts.insert("model".to_owned(), model);
        for absent in ["truncation", "padding", "post_processor", "decoder"] {
            parts.insert(absent.to_owned(), Value::Null);
        }
    }
    parts.to_string().into_bytes()
}
