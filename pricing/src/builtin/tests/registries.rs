//! The book beside the lists of LiteLLM and genai-prices. They are older than the book, and no list is without mistakes,
//! so each difference has a reason.

use std::path::PathBuf;

use jiff::civil::Date;

use super::{DAY, book};
use crate::import::import;
use crate::{Change, PriceBook, diff};

/// How a difference begins, what else it has, and why the book differs. A difference is like
/// `openai/gpt-5.4: batch input 1.25, theirs -`.
type Reason = (&'static str, &'static str, &'static str);

const LITELLM: &[Reason] = &[
    ("openai/", "code_interpreter_sessions", "a container costs the same with every model"),
    ("openai/", "file_search_calls", "a file search costs the same with every model"),
    ("openai/gpt-5.4:", "web_search_requests", "a web search costs the same with every model"),
    ("openai/gpt-5.6-cyber", "> 272000", "OpenAI's list has no long context for it"),
    ("openai/gpt-image-", "batch cache_read_image", "OpenAI's list of batches has it"),
    ("openai/gpt-image-", "batch output_image", "OpenAI's list of batches has it"),
    ("openai/text-embedding-ada-002", "batch", "LiteLLM has it with another name of the model"),
    ("anthropic/", "batch cache_write_long", "batches halve long cache writes too"),
    (
        "anthropic/claude-haiku-4-5",
        "web_search_requests",
        "a search costs the same with every model",
    ),
    ("gcp.gemini/", "> 200000 flex", "later versions of LiteLLM have it"),
    ("gcp.gemini/", "maps_grounding_requests", "LiteLLM's field of it is not imported"),
    ("gcp.gemini/", "images", "an image costs what its tokens cost"),
    ("gcp.gemini/", "_audio -", "sound costs what text costs"),
    ("gcp.gemini/", "tts: ", "Google's list has only input and output for speech"),
    ("gcp.gemini/", "search_queries", "later versions of LiteLLM have it"),
    ("groq/whisper", "audio_seconds", "LiteLLM rounds the price of an hour"),
    ("groq/openai/gpt-oss-safeguard", "cache_read", "LiteLLM rounds it"),
    ("mistral_ai/", " batch ", "LiteLLM has no batches of Mistral; they halve every price"),
    ("mistral_ai/mistral-large-4:", "", "the price fell on 2026-10-29"),
    ("together_ai/Qwen/Qwen3.7-Max", "", "the price rose; later versions of LiteLLM have it"),
    ("x_ai/", "_calls", "xAI's list of tools has it"),
    ("x_ai/", "web_search_requests", "xAI's list of tools has it"),
    ("x_ai/", "region us", "xAI's list has it"),
];

const GENAI: &[Reason] = &[
    (
        "",
        ", theirs -",
        "genai-prices of 2026-08-21 has no tiers, regions and tools, and fewer meters",
    ),
    ("anthropic/claude-sonnet-4-5:", "> 200000", "the long context ended on 2026-04-30"),
    ("anthropic/claude-sonnet-5:", "", "the price of introduction stayed"),
    ("deepseek/", "", "the prices changed with the hours of the day on 2026-08-17"),
    ("gcp.gemini/gemma-4", "", "free at Google; theirs is OpenRouter's price"),
    ("mistral_ai/mistral-embed:", "output", "it generates nothing"),
    ("mistral_ai/mistral-small-latest:", "", "it is another model since 2026-03-16"),
    ("openai/gpt-4o-", "transcribe: input_audio", "the page of the model has one price for input"),
    ("openai/gpt-4o-mini-tts:", "output", "theirs is the price of sound"),
    ("openai/gpt-image-", "output -", "theirs is the price of images"),
    ("together_ai/meta-llama/Llama-3.3-70B", "", "LiteLLM has the later price"),
    ("x_ai/grok-4.20-multi-agent:", "", "the price fell on 2026-04-30"),
    ("x_ai/grok-4.5:", "cache_read", "theirs is the price of grok-4.6"),
    ("x_ai/grok-code-fast-1:", "", "it costs what grok-build-0.1 costs, which replaced it"),
];

/// A file of the registries, if they are here: of `TAXIMETER_PRICE_FILES`, or beside the repository.
fn file(end: &str) -> Option<String> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/prices");
    let folder = std::env::var_os("TAXIMETER_PRICE_FILES").map_or(beside, PathBuf::from);
    let mut files = std::fs::read_dir(folder).ok()?.map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.to_string_lossy().ends_with(end))?;
    Some(std::fs::read_to_string(file).unwrap())
}

/// Each price that differs, as `provider/model: price ours theirs`, with its reason.
fn differences(text: &str, reasons: &[Reason]) -> Vec<(String, Option<&'static str>)> {
    let day: Date = DAY.parse().unwrap();
    let theirs = import(text, "registry.json", day).unwrap().text;
    let theirs = PriceBook::empty().with_overrides(&theirs, "registry.yaml").unwrap();
    let reason = |difference: &str| {
        let fits = |(begin, part, _): &&Reason| {
            difference.strip_prefix(begin).is_some_and(|rest| rest.contains(part))
        };
        reasons.iter().find(fits).map(|(.., why)| *why)
    };
    let mut found = Vec::new();
    for one in diff(&book(), &theirs, day) {
        let model = format!("{}/{}", one.provider.unwrap_or_default(), one.model);
        let Change::Changed(prices) = one.change else { continue };
        for price in prices {
            let [ours, theirs] =
                [price.old, price.new].map(|price| price.unwrap_or_else(|| "-".to_owned()));
            let difference = format!("{model}: {} {ours}, theirs {theirs}", price.price);
            let why = reason(&difference);
            found.push((difference, why));
        }
    }
    found
}

fn check(end: &str, reasons: &[Reason]) {
    let Some(text) = file(end) else {
        return println!("{end} is not here");
    };
    let (mut known, mut unknown) = (0, Vec::new());
    for (difference, why) in differences(&text, reasons) {
        match why {
            Some(why) => {
                println!("{difference} ({why})");
                known += 1;
            }
            None => unknown.push(difference),
        }
    }
    assert!(unknown.is_empty(), "without a reason, beside {known}: {unknown:#?}");
}

#[test]
fn the_book_says_what_litellm_says_or_why_not() {
    check("model_prices_and_context_window.json", LITELLM);
}

#[test]
fn the_book_says_what_genai_prices_says_or_why_not() {
    check("data_slim.json", GENAI);
}
