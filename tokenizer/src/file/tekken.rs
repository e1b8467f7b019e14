//! Reads `tekken.json`, the vocabularies of Mistral's newer models.

use std::borrow::Cow;
use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use foldhash::fast::FixedState;
use serde::Deserialize;
use serde_json::{Value, json};
use taximeter_collections::Gather as _;

use super::beside::beside;
use super::joints::Joints;
use super::json::AddedToken;
use super::ours::Ours;
use super::preparation::Preparation;
use super::recipe::{AlphabetKind, Prepend, Recipe, Split, Unsupported};
use super::substrings::Substrings;
use super::{Counts, File, LoadError, byte_level, reduced, trial};
use crate::bpe::{Bpe, NO_SYMBOL};
use crate::scan::Pattern;

#[derive(Deserialize)]
struct RawTekken<'a> {
    config: TekkenConfig,
    #[serde(borrow)]
    vocab: Vec<RawToken<'a>>,
    special_tokens: Option<Vec<RawSpecial>>,
}

#[derive(Deserialize)]
struct TekkenConfig {
    pattern: String,
    default_vocab_size: usize,
    default_num_special_tokens: usize,
}

#[derive(Deserialize)]
struct RawToken<'a> {
    rank: usize,
    /// In Base64.
    #[serde(borrow)]
    token_bytes: Cow<'a, str>,
}

#[derive(Deserialize)]
struct RawSpecial {
    token_str: String,
}

/// Of files that do not list theirs.
const SPECIALS: &[&str] = &[
    "<unk>",
    "<s>",
    "</s>",
    "[INST]",
    "[/INST]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[TOOL_CALLS]",
    "[IMG]",
    "<pad>",
    "[IMG_BREAK]",
    "[IMG_END]",
    "[PREFIX]",
    "[MIDDLE]",
    "[SUFFIX]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[TOOL_CONTENT]",
];

/// Whether this looks like a `tekken.json` rather than a `tokenizer.json`.
fn is_one(bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Keys {
        #[expect(dead_code, reason = "only looked for")]
        config: serde::de::IgnoredAny,
        model: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice::<Keys>(bytes).is_ok_and(|keys| keys.model.is_none())
}

/// Reads a `tekken.json`; `None` if it is none.
///
/// Errors: `Unreadable`.
pub(super) fn read(bytes: &[u8]) -> Option<Result<File, LoadError>> {
    match serde_json::from_slice(bytes) {
        Ok(raw) => Some(read_raw(&raw)),
        Err(error) => is_one(bytes).then(|| Err(LoadError::Unreadable(error.to_string()))),
    }
}

fn read_raw(raw: &RawTekken<'_>) -> Result<File, LoadError> {
    let unreadable = |Unsupported(why)| LoadError::Unreadable(why);
    let tokens = tokens(raw).map_err(unreadable)?;
    let pattern = match refuse_many(tokens.len()).and_then(|()| pattern(&raw.config)) {
        Ok(pattern) => pattern,
        Err(why) => return theirs(&to_json(raw, &tokens, None), why),
    };
    let recipe = Recipe {
        nfc: false,
        meta_space: false,
        prepend: Prepend::Never,
        split: Split::By(pattern),
        alphabet: AlphabetKind::Bytes,
    };
    let preparation = Preparation::new(recipe, &added(raw)).map_err(unreadable)?;
    let texts = trial::texts(&added(raw));
    let both = beside(
        || Bpe::from_ranks(tokens.iter().map(Vec::as_slice)),
        || {
            let text = trial::joined(texts.iter().map(String::as_str));
            let within = Substrings::of(text.as_bytes());
            trial::expected(&texts, &to_json(raw, &tokens, Some(&within)))
        },
    );
    let checked = both.and_then(|(bpe, expected)| {
        let vocabulary = Ours { preparation, bpe, joints: Joints::default() };
        trial::compare(&vocabulary, &texts, &expected?)?;
        Ok(vocabulary)
    });
    let vocabulary = match checked {
        Ok(vocabulary) => vocabulary,
        Err(why) => return theirs(&to_json(raw, &tokens, None), why),
    };
    Ok(File { counts: Counts::Ours(Box::new(vocabulary)), framing_tokens: FRAMING_TOKENS })
}

/// Errors: one that we do not scan.
fn pattern(config: &TekkenConfig) -> Result<Pattern, Unsupported> {
    let regex = &config.pattern;
    Pattern::of_regex(regex).ok_or_else(|| Unsupported(format!("pattern {regex:?}")))
}

/// Errors: more than have symbols.
fn refuse_many(tokens: usize) -> Result<(), Unsupported> {
    if tokens > NO_SYMBOL as usize {
        return Err(Unsupported(format!("{tokens} tokens: more than we can number")));
    }
    Ok(())
}

/// `<s>`, which the file does not tell of.
const FRAMING_TOKENS: u64 = 1;

fn theirs(json: &[u8], why: Unsupported) -> Result<File, LoadError> {
    Ok(File { framing_tokens: FRAMING_TOKENS, ..File::theirs(json, why)? })
}

/// The tokens that the model has, in order: the file lists more.
fn tokens(raw: &RawTekken<'_>) -> Result<Vec<Vec<u8>>, Unsupported> {
    let config = &raw.config;
    let count = config.default_vocab_size.saturating_sub(config.default_num_special_tokens);
    let tokens = raw.vocab.iter().take(count).enumerate();
    tokens
        .map(|(rank, token)| {
            if token.rank != rank {
                return Err(Unsupported(format!("token {rank} has the rank {}", token.rank)));
            }
            BASE64_STANDARD
                .decode(token.token_bytes.as_bytes())
                .map_err(|error| Unsupported(format!("token {rank}: {error}")))
        })
        .collect()
}

fn added(raw: &RawTekken<'_>) -> Vec<AddedToken> {
    let own = raw.special_tokens.as_ref();
    let listed = own.map(|specials| specials.iter().map(|one| one.token_str.as_str()).collect());
    let specials: Vec<&str> = listed.unwrap_or_else(|| SPECIALS.to_vec());
    let behind = u32::try_from(raw.config.default_vocab_size).unwrap_or_default();
    (behind..)
        .zip(specials)
        .map(|(id, content)| AddedToken {
            id,
            content: content.to_owned(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
            special: true,
        })
        .collect()
}

/// The same as a `tokenizer.json`; of only those tokens that occur in a text, if one is given.
///
/// Whatever two tokens make a third is a merge, in the order of what they make.
fn to_json(raw: &RawTekken<'_>, tokens: &[Vec<u8>], within: Option<&Substrings<'_>>) -> Vec<u8> {
    let spell = |token: &[u8]| token.iter().copied().map(byte_level::letter).collect::<String>();
    let kept: Vec<(&[u8], usize)> = (0..)
        .zip(tokens)
        .map(|(rank, token)| (token.as_slice(), rank))
        .filter(|(token, _)| {
            token.len() == 1 || within.is_none_or(|substrings| substrings.contain(token))
        })
        .collect();
    let ranks: HashMap<&[u8], usize, FixedState> = kept.iter().copied().collect();
    let merges = kept.iter().flat_map(|(token, _)| {
        let halves = (1..token.len()).filter_map(|at| token.split_at_checked(at));
        halves.filter(|(left, right)| ranks.contains_key(left) && ranks.contains_key(right))
    });
    let merges: Vec<[String; 2]> =
        merges.map(|(left, right)| [spell(left), spell(right)]).collect();
    let vocab: serde_json::Map<_, _> =
        kept.iter().map(|&(token, rank)| (spell(token), rank.into())).gather();
    let split = json!({"type": "Split", "pattern": {"Regex": raw.config.pattern},
        "behavior": "Isolated", "invert": false});
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": false});
    let added = added(raw);
    let file = reduced::ReducedFile {
        normalizer: &Value::Null,
        pre_tokenizer: &json!({"type": "Sequence", "pretokenizers": [split, bytes]}),
        added_tokens: added.iter().collect(),
        model: json!({"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": merges}),
    };
    file.to_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_tokens_than_have_symbols_are_not_for_us() {
        assert_eq!(refuse_many((1 << 21) - 1), Ok(()));
        let Unsupported(why) = refuse_many(1 << 21).unwrap_err();
        assert_eq!(why, "2097152 tokens: more than we can number");
    }
}
