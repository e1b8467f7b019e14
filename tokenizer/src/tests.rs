//! Tests of the public functions of this crate.

use proptest::prelude::*;

use super::*;
use tiktoken_rs::CoreBPE;

const MODELS: [&str; 5] = ["gpt-oss-20b", "gpt-5", "gpt-4", "text-davinci-003", "davinci"];

/// The built-in tokenizers.
fn all() -> [Tokenizer; 5] {
    MODELS.map(|model| Tokenizer::for_model(model).tokenizer)
}

fn o200k() -> Tokenizer {
    Tokenizer::for_model("gpt-5").tokenizer
}

#[test]
fn models_have_their_vocabulary() {
    let cases = [
        ("gpt-5-mini", "o200k_base"),
        ("gpt-4o-2024-05-13", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("openai/gpt-oss-20b", "o200k_harmony"),
        ("gpt-4", "cl100k_base"),
        ("gpt-35-turbo", "cl100k_base"),
        ("ft:gpt-3.5-turbo-0125:acme::abc", "cl100k_base"),
        ("text-embedding-3-large", "cl100k_base"),
        ("text-davinci-003", "p50k_base"),
        ("davinci", "r50k_base"),
    ];
    for (model, name) in cases {
        let choice = Tokenizer::for_model(model);
        assert_eq!((choice.tokenizer.name(), choice.exact), (name, true), "{model}");
    }
}

#[test]
fn an_unknown_model_is_counted_with_a_mark() {
    for model in ["", "llama-3.1-8b", "gpt", "GPT-4o", "mistral/gpt-4o"] {
        let choice = Tokenizer::for_model(model);
        assert_eq!((choice.tokenizer.name(), choice.exact), ("o200k_base", false), "{model}");
    }
}

/// The oracle's vocabularies, in the order of `all`.
fn oracles() -> [&'static CoreBPE; 5] {
    [
        tiktoken_rs::o200k_base_singleton(),
        tiktoken_rs::o200k_base_singleton(),
        tiktoken_rs::cl100k_base_singleton(),
        tiktoken_rs::p50k_base_singleton(),
        tiktoken_rs::r50k_base_singleton(),
    ]
}

fn check(text: &str) {
    for (tokenizer, oracle) in all().iter().zip(oracles()) {
        let tokens = oracle.count_ordinary(text) as u64;
        let count = tokenizer.count([text]);
        assert_eq!(count, Count { tokens, estimated: false }, "{} {text:?}", tokenizer.name());
    }
}

/// Counts from OpenAI's cookbook, "How to count tokens with tiktoken".
#[test]
fn counts_are_openais() {
    let cases = [
        ("antidisestablishmentarianism", [6, 6, 6, 5, 5]),
        ("2 + 2 = 4", [7, 7, 7, 5, 5]),
        ("お誕生日おめでとう", [8, 8, 9, 14, 14]),
        ("", [0; 5]),
    ];
    for (text, expected) in cases {
        let counts = all().map(|tokenizer| tokenizer.count([text]));
        assert_eq!(counts, expected.map(|tokens| Count { tokens, estimated: false }), "{text}");
    }
}

#[test]
fn special_tokens_in_a_text_are_ordinary_text() {
    for tokenizer in all() {
        assert!(tokenizer.count(["<|endoftext|>"]).tokens > 1, "{}", tokenizer.name());
    }
}

#[test]
fn counting_stops_where_the_limit_is_exceeded() {
    let prose = "The meter runs; nobody doubts it. ".repeat(100);
    let tokens = o200k().count([&prose]).tokens;
    assert_eq!(o200k().count_until(&prose, tokens), Some(tokens));
    assert_eq!(o200k().count_until(&prose, tokens - 1), None);
    assert_eq!(o200k().count_until("", 0), Some(0));
    assert_eq!(o200k().count_until(&" ".repeat(128), 1), Some(1), "the longest token");
    assert_eq!(o200k().count_until(&" ".repeat(256), 1), None);
}

#[test]
fn what_exceeds_the_limit_is_estimated() {
    for bytes_max in [2, 1_000, COUNT_BYTES_MAX] {
        let o200k = || o200k().within(bytes_max);
        let text = "a ".repeat(bytes_max / 2);
        let counted = o200k().count([&text]);
        assert!(!counted.estimated);
        assert_eq!(o200k().count_rendered(&text), counted);

        let with_more = o200k().count([text.as_str(), "taximeter"]);
        let tokens = counted.tokens + estimate("taximeter".len() as u64);
        assert_eq!(with_more, Count { tokens, estimated: true });

        let estimated = Count { tokens: estimate(bytes_max as u64 + 1), estimated: true };
        let text = text + "a";
        assert_eq!(o200k().count_rendered(&text), estimated);
        assert_eq!(o200k().count([text]), estimated);
    }
}

/// Texts in which every class of the splitters' patterns meets every other.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(
            &[
                "a",
                "Z",
                "ſ",
                "'s",
                "'LL",
                "'",
                " ",
                "  ",
                "\t",
                "\r",
                "\n",
                "\u{a0}",
                "\u{85}",
                "1",
                "٣",
                "Ⅷ",
                "½",
                "!",
                "/",
                "{\"",
                "é",
                "e\u{301}",
                "\u{301}",
                "日",
                "本",
                "。",
                "，",
                "か\u{3099}",
                "カ",
                "ー",
                "々",
                "한",
                "ǅ",
                "ʰ",
                "🙂",
                "\u{200d}",
                "\0",
                "ि",
                "क",
            ][..]
        )
        .prop_map(str::to_owned),
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

#[test]
fn every_character_counts_as_tiktoken_says() {
    let chars: Vec<char> = ('\0'..=char::MAX).step_by(53).collect();
    for some in chars.chunks(50) {
        check(&some.iter().flat_map(|&c| [c, ' ', c, 'a']).collect::<String>());
    }
}

proptest! {
    #[test]
    fn any_text_counts_as_tiktoken_says(text in any_text()) {
        check(&text);
    }

    /// Runs of letters are merged window by window.
    #[test]
    fn long_words_count_as_tiktoken_says(text in "[a-f]{90,400}|[a-zA-Z]{100,1000}|(ab|ba|a){60,300}|[日月火水木本語人]{40,200}|[ \n]{100,600}a|[=-]{90,500}") {
        check(&text);
    }

    #[test]
    fn tokens_are_never_more_than_bytes(text in any_text()) {
        for tokenizer in all() {
            prop_assert!(tokenizer.count([&text]).tokens <= text.len() as u64);
        }
    }
}

/// Units whose runs are hard on a splitter or on the merging.
const RUNS: &[&str] = &[
    "a",
    "A",
    "Aa",
    "a'",
    "^",
    " ",
    "\n",
    " \n",
    "0",
    "\u{200d}",
    "\u{301}",
    "日",
    "/",
    "ก็",
    "taximeter",
    "👩\u{200d}",
];

#[test]
fn runs_of_anything_count_as_tiktoken_says() {
    for unit in RUNS {
        for bytes in [300, 1_000, 5_000] {
            check(&unit.repeat(bytes / unit.len()));
            check(&format!("b{}!", unit.repeat(bytes / unit.len())));
        }
    }
}

#[test]
fn a_megabyte_without_a_place_to_cut_it_is_counted_exactly() {
    // Longest of these tokens: 128 blanks, 64 hyphens, 8 letters.
    for (unit, tokens) in [(" ", (1 << 20) / 128), ("-", (1 << 20) / 64), ("a", (1 << 20) / 8)] {
        let count = o200k().count([unit.repeat(1 << 20)]);
        assert_eq!(count, Count { tokens, estimated: false }, "{unit:?}");
    }
}
