use proptest::prelude::*;

use super::*;

const ALL: [&Tokenizer; 5] = [&O200K_HARMONY, &O200K_BASE, &CL100K_BASE, &P50K_BASE, &R50K_BASE];

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
        let counts = ALL.map(|tokenizer| tokenizer.count([text]));
        assert_eq!(counts, expected.map(|tokens| Count { tokens, estimated: false }), "{text}");
    }
}

#[test]
fn special_tokens_in_a_text_are_ordinary_text() {
    for tokenizer in ALL {
        assert!(tokenizer.count(["<|endoftext|>"]).tokens > 1, "{}", tokenizer.name());
    }
}

#[test]
fn long_prose_is_counted_exactly() {
    let prose =
        "The meter runs; nobody doubts it. 出租车在雨中等待，车费在上涨。\n\n\t{\"a\": [1, 2]}  ";
    let text = prose.repeat(2_000);
    assert!(text.len() > 4 * PIECE_BYTES_MAX);
    for tokenizer in [&O200K_BASE, &CL100K_BASE] {
        let whole = (tokenizer.vocabulary)().count_ordinary(&text) as u64;
        assert_eq!(tokenizer.count([&text]), Count { tokens: whole, estimated: false });
    }
}

#[test]
fn a_run_that_cannot_be_cut_is_estimated_and_the_rest_is_counted() {
    let run = "a".repeat(1 << 20);
    let text = format!("before {run} after");
    let expected = estimate(1 + run.len() as u64) + 2;
    assert_eq!(O200K_BASE.count([&text]), Count { tokens: expected, estimated: true });
}

#[test]
fn what_exceeds_the_limit_is_estimated() {
    let text = "a ".repeat(COUNT_BYTES_MAX / 2);
    let counted = O200K_BASE.count([&text]);
    assert!(!counted.estimated);

    let with_more = O200K_BASE.count([text.as_str(), "taximeter"]);
    let tokens = counted.tokens + estimate("taximeter".len() as u64);
    assert_eq!(with_more, Count { tokens, estimated: true });

    let tokens = estimate(COUNT_BYTES_MAX as u64 + 1);
    assert_eq!(O200K_BASE.count([text + "a"]), Count { tokens, estimated: true });
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

proptest! {
    #[test]
    fn pieces_are_the_whole_text(text in any_text(), bytes_max in 4..64usize) {
        let cut: Vec<Piece<'_>> = pieces(&text, bytes_max).collect();
        let texts = cut.iter().map(|piece| match piece {
            Piece::Countable(text) | Piece::Unbroken(text) => *text,
        });
        prop_assert_eq!(texts.collect::<String>(), text.as_str());
        for piece in cut {
            match piece {
                Piece::Countable(text) => prop_assert!((1..=bytes_max).contains(&text.len())),
                Piece::Unbroken(text) => prop_assert!(text.len() > bytes_max - 4),
            }
        }
    }

    #[test]
    fn counts_of_pieces_add_up_to_the_count_of_the_whole(text in any_text()) {
        for tokenizer in ALL {
            let vocabulary = (tokenizer.vocabulary)();
            let mut sum = 0;
            for piece in pieces(&text, 8) {
                match piece {
                    Piece::Countable(text) | Piece::Unbroken(text) => {
                        sum += vocabulary.count_ordinary(text);
                    }
                }
            }
            prop_assert_eq!(sum, vocabulary.count_ordinary(&text), "{}", tokenizer.name());
        }
    }

    #[test]
    fn tokens_are_never_more_than_bytes(text in any_text()) {
        for tokenizer in ALL {
            prop_assert!(tokenizer.count([&text]).tokens <= text.len() as u64);
        }
    }
}

/// Units whose runs are hard on a splitter or on the merging.
const RUNS: &[&str] =
    &["a", "A", "Aa", "a'", "^", " ", "\n", " \n", "0", "\u{200d}", "\u{301}", "日", "/"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn long_runs_of_anything_are_survived(
        unit in prop_oneof![
            any::<char>().prop_map(String::from),
            prop::sample::select(RUNS).prop_map(str::to_owned),
            "[a-z]{5}",
        ],
        bytes in prop_oneof![PIECE_BYTES_MAX - 8..PIECE_BYTES_MAX + 8, Just(1 << 20)],
    ) {
        let text = unit.repeat(bytes / unit.len());
        for tokenizer in [&O200K_BASE, &CL100K_BASE, &R50K_BASE] {
            let count = tokenizer.count([&text]);
            prop_assert!((1..=text.len() as u64).contains(&count.tokens));
        }
    }
}
