//! `taximeter count`: tokens of a text, or of a request body.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use taximeter_meter::{Wire, prompt_text};
use taximeter_tokenizer::Tokenizer;

const EXAMPLES: &str = "\
Examples:
  echo 'Hello, world' | taximeter count --model gpt-5.4
  taximeter count --model gpt-5.4 prompt.txt
  taximeter count --model gpt-5.4 request.json    a chat request body: messages, names, tools";

/// Tokens of a text or of a request body
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CountArgs {
    /// Model whose vocabulary counts.
    #[arg(long, value_name = "MODEL")]
    model: String,
    /// Text or JSON request body [default: standard input].
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// Prints the count, and where it comes from.
pub(crate) fn run(
    args: &CountArgs,
    input: &mut impl Read,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let mut bytes = Vec::new();
    match &args.file {
        Some(file) => {
            bytes =
                std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        }
        None => {
            input.read_to_end(&mut bytes).context("cannot read standard input")?;
        }
    }
    let choice = Tokenizer::for_model(&args.model);
    let mut estimated = !choice.exact;
    let (kind, tokens) = match wire(&bytes) {
        Some(wire) => {
            let prompt = prompt_text(wire, Some(&args.model), &bytes);
            estimated |= prompt.estimated;
            let count = choice.tokenizer.count(&prompt.texts);
            estimated |= count.estimated;
            ("request", prompt.tokens + prompt.image_tokens + count.tokens)
        }
        None => {
            let count = choice.tokenizer.count([String::from_utf8_lossy(&bytes)]);
            estimated |= count.estimated;
            ("text", count.tokens)
        }
    };
    let sure = if estimated { "estimated" } else { "exact" };
    writeln!(out, "{tokens} tokens  ({kind}, {}, {sure})", choice.tokenizer.name())?;
    Ok(ExitCode::SUCCESS)
}

/// The wire format of a request body, if it is one.
fn wire(bytes: &[u8]) -> Option<Wire> {
    let body: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(bytes).ok()?;
    if body.contains_key("messages") {
        let anthropic = body.contains_key("system") || body.contains_key("anthropic_version");
        Some(if anthropic { Wire::Messages } else { Wire::ChatCompletions })
    } else if body.contains_key("prompt") {
        Some(Wire::Completions)
    } else if body.contains_key("input") {
        Some(Wire::Responses)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(model: &str, input: &str) -> String {
        let args = CountArgs { model: model.into(), file: None };
        let mut out = Vec::new();
        run(&args, &mut input.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_is_counted_as_it_is() {
        assert_eq!(count("gpt-4o", "hello world"), "2 tokens  (text, o200k_base, exact)\n");
    }

    #[test]
    fn a_request_body_counts_what_its_messages_cost() {
        let body = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hello world"}]}"#;
        assert_eq!(count("gpt-4o", body), "9 tokens  (request, o200k_base, exact)\n");
    }

    #[test]
    fn a_model_that_nobody_knows_is_estimated() {
        assert!(count("tiny", "hello world").contains("estimated"));
    }
}
