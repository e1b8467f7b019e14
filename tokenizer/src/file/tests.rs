//! Tests of vocabularies from files.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::BpeTrainer;

use super::head::Vocab;
use super::*;
use crate::{Count, Loaded, Tokenizer};

const LLAMA3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const DEEP_SEEK: [&str; 3] = [
    r"\p{N}{1,3}",
    "[\u{4e00}-\u{9fa5}\u{3040}-\u{309f}\u{30a0}-\u{30ff}]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
];

fn split(regex: &str) -> Value {
    json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false})
}

fn bytes(use_regex: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true,
        "use_regex": use_regex})
}

fn in_a_row(parts: &[Value]) -> Value {
    json!({"type": "Sequence", "pretokenizers": parts})
}

fn added(content: &str, special: bool) -> Value {
    json!({"id": 0, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": special})
}

/// A small `tokenizer.json` with these parts, trained on the text of the self-test.
fn trained(normalizer: &Value, pre_tokenizer: &Value, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let by_bytes = pre_tokenizer.to_string().contains("ByteLevel");
    let model = json!({"type": "BPE", "vocab": {}, "merges": []});
    let empty = reduced::ReducedFile { normalizer, pre_tokenizer, added_tokens: Vec::new(), model };
    let mut tokenizer = tokenizers::Tokenizer::from_bytes(empty.to_json()).unwrap();
    let trainer = BpeTrainer::builder().show_progress(false).vocab_size(900);
    let mut trainer: TrainerWrapper = if by_bytes {
        trainer.initial_alphabet((0..=255).map(byte_level::letter).collect()).build().into()
    } else {
        trainer.limit_alphabet(150).build().into()
    };
    let texts = trial::texts(&[]);
    tokenizer.train(&mut trainer, texts.iter()).unwrap();
    let mut file: Value = serde_json::from_str(&tokenizer.to_string(false).unwrap()).unwrap();
    let mut next = 0;
    if !by_bytes {
        let vocab = file["model"]["vocab"].as_object_mut().unwrap();
        for byte in 0..=255 {
            vocab.insert(format!("<0x{byte:02X}>"), (5_000 + byte).into());
        }
        file["model"]["byte_fallback"] = true.into();
    }
    file["added_tokens"] = json!([added("<|end|>", true), added("<tool_call>", false)]);
    change(&mut file);
    for token in file["added_tokens"].as_array_mut().unwrap() {
        token["id"] = (10_000 + next).into();
        next += 1;
    }
    file.to_string().into_bytes()
}

/// The file as we read it, and as the library does.
struct Pair {
    about: &'static str,
    ours: Tokenizer,
    theirs: HuggingFace,
}

impl Pair {
    fn new(about: &'static str, json: &[u8]) -> Self {
        let Loaded { tokenizer, fallback } = Tokenizer::from_file(about, json).unwrap();
        assert_eq!(fallback, None, "{about}");
        Self { about, ours: tokenizer, theirs: HuggingFace::from_json(json).unwrap() }
    }

    fn check(&self, text: &str) {
        let count = |tokens: u64| Count { tokens, estimated: false };
        let plain = self.theirs.count(text, false).unwrap();
        assert_eq!(self.ours.count([text]), count(plain), "{}: {text:?}", self.about);
        let rendered = self.theirs.count(text, true).unwrap();
        assert_eq!(self.ours.count_rendered(text), count(rendered), "{}: {text:?}", self.about);
    }
}

/// One file of each kind that we read ourselves.
static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let none = Value::Null;
    let nfc = json!({"type": "NFC"});
    let meta = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
    let prepend = json!({"type": "Sequence",
        "normalizers": [{"type": "Prepend", "prepend": "▁"}, meta]});
    let blanks = json!({"type": "Split", "pattern": {"String": " "},
        "behavior": "MergedWithPrevious", "invert": false});
    let meta_space = |scheme: &str, split: bool| json!({"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split});
    let words = in_a_row(&[split(LLAMA3), bytes(false)]);
    let same = |_: &mut Value| ();
    let itself = |file: &mut Value| file["model"]["ignore_merges"] = true.into();
    let flags = |file: &mut Value| {
        let mut left = added("<mask>", false);
        left["lstrip"] = true.into();
        let mut right = added("<user>", true);
        right["rstrip"] = true.into();
        let mut normal = added("Å|é", false);
        normal["normalized"] = true.into();
        file["added_tokens"] = json!([left, right, normal, added("<user", false)]);
    };
    let deep_seek: Vec<Value> = DEEP_SEEK.map(split).into_iter().chain([bytes(false)]).collect();
    vec![
        Pair::new("Llama 3's", &trained(&none, &words, itself)),
        Pair::new("its merges", &trained(&none, &words, same)),
        Pair::new("Qwen's", &trained(&nfc, &in_a_row(&[split(QWEN2), bytes(false)]), same)),
        Pair::new("flags", &trained(&nfc, &words, flags)),
        Pair::new("DeepSeek's", &trained(&none, &in_a_row(&deep_seek), same)),
        Pair::new("GPT-2's", &trained(&none, &bytes(true), same)),
        Pair::new("Gemma's", &trained(&meta, &blanks, same)),
        Pair::new("Llama 2's", &trained(&prepend, &none, same)),
        Pair::new("words", &trained(&none, &meta_space("always", true), same)),
        Pair::new("first word", &trained(&none, &meta_space("first", false), same)),
        Pair::new("no word", &trained(&none, &meta_space("never", true), same)),
    ]
});

/// What the kinds differ in, and what stands in the text that they were trained on.
const ATOMS: &[&str] = &[
    "the",
    " the",
    "The",
    "meter",
    " runs",
    "'s",
    "'LL",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "1",
    "12",
    "3456",
    "é",
    "e\u{301}",
    "\u{301}",
    "\u{323}",
    "A\u{30a}",
    "が",
    "か\u{3099}",
    "出租车",
    "。",
    "カタカナ",
    "한",
    "\u{1100}\u{1161}",
    "🚕",
    "<|end|>",
    "<tool_call>",
    "<tool",
    "<mask>",
    "<user>",
    "<user",
    "Å|é",
    "A\u{30a}|e\u{301}",
    "▁",
    "▁▁",
    "<0x0A>",
    "!",
    "?!",
    "/",
    "\u{a0}",
    "\u{3000}",
    "\u{200d}",
    "\0",
    "ﬁ",
    "क्ष",
    "ไทย",
    "x = 1;",
    "    ",
    "return",
    "==",
];

fn any_text() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        9 => prop::sample::select(ATOMS).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(atom, 0..30).prop_map(|atoms| atoms.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_text_has_as_many_tokens_as_hugging_face_says(text in any_text()) {
        PAIRS.iter().for_each(|pair| pair.check(&text));
    }

    #[test]
    fn a_text_in_parts_has_the_tokens_of_the_whole(
        texts in prop::collection::vec(any_text(), 1..8),
        part in 1_usize..200,
    ) {
        let text = texts.concat().repeat(6);
        for pair in PAIRS.iter() {
            let mut counter = pair.ours.counter();
            text.as_bytes().chunks(part).for_each(|part| counter.push(part));
            prop_assert_eq!(counter.finish(), pair.ours.count([&text]), "{}", pair.about);
        }
    }

    #[test]
    fn a_text_may_be_cut_at_its_last_boundary(text in any_text(), more in any_text()) {
        for Pair { about, ours, .. } in PAIRS.iter() {
            let Some(at) = ours.vocabulary().last_boundary(&text) else { continue };
            let whole = text.clone() + &more;
            let (head, tail) = whole.split_at(at);
            let parts = ours.count([head]).tokens + ours.count([tail]).tokens;
            prop_assert_eq!(parts, ours.count([&whole]).tokens, "{} at {}", about, at);
        }
    }
}

/// A small `tekken.json`: the bytes, and what the merges of a small `tokenizer.json` make.
fn tekken(pattern: &str) -> (Vec<Vec<u8>>, Vec<u8>) {
    let words = in_a_row(&[split(TEKKEN), bytes(false)]);
    let file: Value = serde_json::from_slice(&trained(&Value::Null, &words, |_| ())).unwrap();
    let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    for merge in file["model"]["merges"].as_array().unwrap() {
        let parts = merge.as_array().unwrap().iter().map(|part| part.as_str().unwrap());
        let mut token = Vec::new();
        assert!(byte_level::decode(&parts.collect::<String>(), &mut token));
        if !tokens.contains(&token) {
            tokens.push(token);
        }
    }
    let rows = (0..).zip(&tokens).map(|(rank, token): (usize, _)| {
        json!({"rank": rank, "token_bytes": BASE64_STANDARD.encode(token), "token_str": null})
    });
    // The file lists more tokens than the model has.
    let rows: Vec<Value> = rows.collect();
    let model = tokens.len() - 50;
    let json = json!({
        "config": {"pattern": pattern, "num_vocab_tokens": tokens.len(),
            "default_vocab_size": model + 10, "default_num_special_tokens": 10, "version": "v3"},
        "vocab": rows,
    });
    tokens.truncate(model);
    (tokens, json.to_string().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn tekken_has_as_many_tokens_as_tiktoken_says(text in any_text()) {
        static BOTH: LazyLock<(Tokenizer, tiktoken_rs::CoreBPE)> = LazyLock::new(|| {
            let (tokens, json) = tekken(TEKKEN);
            let ours = Tokenizer::from_file("tekken", &json).unwrap();
            assert_eq!(ours.fallback, None);
            let ranks = tokens.into_iter().zip(0..).collect();
            (ours.tokenizer, tiktoken_rs::CoreBPE::new(ranks, Default::default(), TEKKEN).unwrap())
        });
        let (ours, theirs) = &*BOTH;
        prop_assert_eq!(ours.count([&text]).tokens, theirs.count_ordinary(&text) as u64);
    }
}

#[test]
fn tekken_of_another_pattern_is_left_to_hugging_face() {
    let (_, json) = tekken(r"\w+|\W+");
    let Loaded { tokenizer, fallback } = Tokenizer::from_file("tekken", &json).unwrap();
    assert_eq!(fallback.unwrap(), r#"pattern "\\w+|\\W+""#);
    assert_eq!((tokenizer.framing_tokens(), tokenizer.count(["!"]).tokens), (1, 1));
    assert_eq!(tokenizer.count_rendered("[INST]![/INST]").tokens, 3);
    assert!(tokenizer.count(["[INST]![/INST]"]).tokens > 3);
}

/// A file that is like one of ours but for what `change` does to it, and why it is not for us.
fn fallback(change: impl FnOnce(&mut Value)) -> String {
    let json = trained(&Value::Null, &in_a_row(&[split(LLAMA3), bytes(false)]), change);
    let Loaded { tokenizer, fallback } = Tokenizer::from_file("other", &json).unwrap();
    let theirs = HuggingFace::from_json(&json).unwrap();
    let text = &trial::texts(&[])[0];
    assert_eq!(tokenizer.count([text]).tokens, theirs.count(text, false).unwrap());
    fallback.unwrap()
}

#[test]
fn what_we_do_not_know_is_left_to_hugging_face() {
    let told = [
        fallback(|file| file["normalizer"] = json!({"type": "Lowercase"})),
        fallback(|file| {
            let regex = &mut file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"];
            *regex = regex.as_str().unwrap().replace("{1,3}", "{1,2}").into();
        }),
        fallback(|file| file["model"]["end_of_word_suffix"] = "</w>".into()),
        fallback(|file| file["added_tokens"][0]["single_word"] = true.into()),
    ];
    let known = [
        "normalizer: unknown variant `Lowercase`",
        "pre_tokenizer",
        "model.end_of_word_suffix",
        "added token",
    ];
    for (told, known) in told.iter().zip(known) {
        assert!(told.starts_with(known), "{told}");
    }
}

#[test]
fn what_is_no_vocabulary_is_refused() {
    for bytes in [&b""[..], b"{}", b"[]", b"\xff", br#"{"config": {}}"#, br#"{"model": {}}"#] {
        let refused = Tokenizer::from_file("none", bytes).unwrap_err();
        assert!(refused.to_string().starts_with("is no tokenizer.json or tekken.json"));
    }
}

#[test]
fn a_damaged_file_is_refused() {
    let json = trained(&Value::Null, &in_a_row(&[split(LLAMA3), bytes(false)]), |_| ());
    assert!(Tokenizer::from_file("cut", &json[..json.len() - 10]).is_err());
    let mut file: Value = serde_json::from_slice(&json).unwrap();
    file["model"]["merges"][0] = json!(["no", "token of it"]);
    assert!(Tokenizer::from_file("merge", file.to_string().as_bytes()).is_err());
}

#[test]
fn tokens_are_read_as_far_as_they_go_and_the_file_as_a_whole() {
    let vocab = |file: &str| {
        let Vocab { texts, ids } = Head::read(file.as_bytes()).ok()?.vocab;
        Some((texts.iter().map(str::to_owned).collect::<Vec<_>>(), ids))
    };
    let read = Some((vec!["b".to_owned(), "é\n".to_owned()], vec![7, 1]));
    let tokens = r#"{"b": 7, "\u00e9\n": 1}"#;
    let cut = format!(
        r#"{{"x": [{{"vocab": 1}}], "normalizer": null, "pre_tokenizer": null,
            "model": {{"type": "BPE", "vocab": {tokens}, "#
    );
    assert_eq!(vocab(&cut), read);
    assert!(raw(&cut).is_err());
    let late = format!(r#"{{"model": {{"vocab": {tokens}, "x": 1}}, "pre_tokenizer": [7]}}"#);
    assert_eq!(Head::read(late.as_bytes()).unwrap().pre_tokenizer, json!([7]));
    let none =
        [r#"{"model": {}}"#, r#"{"model": {"vocab": {"a": -1}}}"#, r#"{"model": {"vocab": {"a""#];
    assert_eq!(none.map(vocab), [None, None, None]);
    let whole = r#"{"model": {"vocab": {}, "merges": []}}"#;
    assert!(raw(whole).is_ok());
    for (from, to) in [
        ("}}", r#", "vocab": {}}}"#),
        ("}}", r#", "merges": []}}"#),
        ("}}", r#"}, "model": {"merges": []}}"#),
        (r#", "merges": []"#, ""),
        ("}}", r#", "unheard_of": 1}}"#),
        ("}}", r#"}, "unheard_of": 1}"#),
    ] {
        assert!(raw(&whole.replace(from, to)).is_err(), "{to}");
    }
}

fn raw(file: &str) -> Result<RawFile, Unsupported> {
    let merges = Shelf::for_file(file.len());
    RawFile::read(file.as_bytes(), Shelving::new(&merges, channel().0))
}

#[test]
fn merges_are_the_same_however_many_are_handed_out_together() {
    let merge = |number: usize| format!(r#"["{number}", "é"], ["{number}é", "x"], "{number} éx""#);
    let all: Vec<_> = (0..20_000).map(merge).collect();
    let file = format!(r#"{{"model": {{"merges": [{}]}}}}"#, all.join(","));
    let (merges, (told, waiting)) = (Shelf::for_file(file.len()), channel());
    RawFile::read(file.as_bytes(), Shelving::new(&merges, told)).unwrap();
    assert_eq!(waiting.iter().count(), merges.all().count());
    assert!(merges.all().count() > 2);
    let mut groups = merges.groups();
    for number in 0..20_000_usize {
        let digits = u32::try_from(number.to_string().len()).unwrap();
        let [one, two] = [format!("{number}é"), format!("{number}éx")];
        assert_eq!(groups.next(), Some((&*one, &[digits][..])));
        assert_eq!(groups.next(), Some((&*two, &[digits + 1, digits][..])));
    }
    assert_eq!(groups.next(), None);
}

#[test]
fn tokens_around_a_plain_prompt_are_known() {
    let json = trained(&Value::Null, &in_a_row(&[split(LLAMA3), bytes(false)]), |file| {
        file["post_processor"] = json!({"type": "Sequence", "processors": [
            {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false},
            {"type": "TemplateProcessing",
                "single": [{"SpecialToken": {"id": "<|end|>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
                "special_tokens": {
                    "<|end|>": {"id": "<|end|>", "ids": [10_000], "tokens": ["<|end|>"]}}},
        ]});
    });
    let Loaded { tokenizer, fallback } = Tokenizer::from_file("framed", &json).unwrap();
    assert_eq!((tokenizer.framing_tokens(), fallback), (1, None));
}
