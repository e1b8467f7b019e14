//! Any text in the splits of open vocabularies: it has as many tokens as Hugging Face's library says,
//! whole and in any deltas.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};
use taximeter_tokenizer::Tokenizer;
use tokenizers::Tokenizer as HuggingFace;

/// A character or two of every class that a split asks for, and what they single out.
const ATOMS: [&str; 27] = [
    "a", "Z", "s", "T", "l", "'", " ", "\t", "\r", "\n", "1", "2", "!", "/", "-", "é", "ſ", "ǅ",
    "\u{301}", "日", "か", "ー", "ʰ", "٣", "½", "\u{a0}", "🙂",
];

/// The splits of Llama 3, Qwen, Mistral's tekken and GPT-4o.
const REGEXES: [&str; 4] = [
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
];

/// DeepSeek V3's splits, one after another.
const DEEP_SEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

/// Each split, as we scan it and as the library does.
static BOTH: LazyLock<Vec<(Tokenizer, HuggingFace)>> = LazyLock::new(|| {
    let vocabulary = vocabulary();
    let mut splits: Vec<Vec<&str>> = REGEXES.map(|regex| vec![regex]).into();
    splits.push(DEEP_SEEK.to_vec());
    let of_regexes = splits.iter().map(|regexes| {
        let splits = regexes.iter().map(|regex| {
            json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated",
                "invert": false})
        });
        let parts: Vec<_> = splits.chain([byte_level(false)]).collect();
        json!({"type": "Sequence", "pretokenizers": parts})
    });
    let gpt2 = byte_level(true);
    of_regexes.chain([gpt2]).map(|pre_tokenizer| both(&vocabulary, pre_tokenizer)).collect()
});

/// A vocabulary in which any two and any three of the characters make a token: wherever a split is
/// another, so are the tokens.
fn vocabulary() -> Value {
    let bytes = (0..=u8::MAX).map(|byte| (letter(byte).to_string(), byte.into()));
    let mut ids: Map<String, Value> = bytes.collect();
    let mut merges = Vec::new();
    let mut merge = |left: &str, right: &str| {
        let token = format!("{left}{right}");
        if !ids.contains_key(&token) {
            ids.insert(token, ids.len().into());
            merges.push([left.to_owned(), right.to_owned()]);
        }
    };
    let atoms = ATOMS.map(|atom| atom.bytes().map(letter).collect::<String>());
    for atom in &atoms {
        for (at, right) in atom.char_indices().skip(1) {
            merge(&atom[..at], right.encode_utf8(&mut [0; 4]));
        }
    }
    for (left, right) in pairs(&atoms) {
        merge(left, right);
    }
    for (left, right) in pairs(&atoms) {
        atoms.iter().for_each(|last| merge(&format!("{left}{right}"), last));
    }
    json!({"version": "1.0", "added_tokens": [],
        "model": {"type": "BPE", "vocab": ids, "merges": merges}})
}

fn pairs(atoms: &[String]) -> impl Iterator<Item = (&String, &String)> {
    atoms.iter().flat_map(move |left| atoms.iter().map(move |right| (left, right)))
}

/// The letter that stands for a byte in vocabularies of bytes.
fn letter(byte: u8) -> char {
    let is_itself = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    if is_itself(&byte) {
        return char::from(byte);
    }
    let others_before = (0..byte).filter(|byte| !is_itself(byte)).count();
    char::from_u32(256 + others_before as u32).expect("a letter")
}

fn byte_level(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": use_regex})
}

fn both(vocabulary: &Value, pre_tokenizer: Value) -> (Tokenizer, HuggingFace) {
    let mut file = vocabulary.clone();
    file["pre_tokenizer"] = pre_tokenizer;
    let file = file.to_string();
    let ours = Tokenizer::from_file("any", file.as_bytes()).expect("a vocabulary");
    assert_eq!(ours.fallback, None, "it is scanned by us");
    (ours.tokenizer, HuggingFace::from_bytes(file).expect("a vocabulary"))
}

fuzz_target!(|data: &[u8]| {
    let Some((&step, text)) = data.split_last() else { return };
    let whole = String::from_utf8_lossy(text);
    for (at, (ours, theirs)) in BOTH.iter().enumerate() {
        let count = ours.count([&whole]);
        let expected = theirs.encode_fast(&*whole, false).expect("tokens").len();
        assert_eq!((count.tokens, count.estimated), (expected as u64, false), "split {at}");
        let mut counter = ours.counter();
        for delta in text.chunks(usize::from(step) % 37 + 1) {
            counter.push(delta);
        }
        assert_eq!(counter.finish(), count, "split {at}");
    }
});
