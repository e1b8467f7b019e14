//! `taximeter count`: counts the tokens of a text or of a request body.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde_json::{Map, Value};
use taximeter_config::UpstreamUrl;
use taximeter_gateway::counting::{Counting, Form, input_tokens};
use taximeter_meter::Wire;
use taximeter_request::prompt_chats;
use taximeter_tokenizer::Count;

use super::against::{self, Answer, Input};
use super::failure::Failure;
use super::model_files;

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  echo 'Hello, world' | taximeter count --model gpt-5.4
  taximeter count request.json                     a request body: messages, names, tools, images
  taximeter count --tokenizer /models/qwen3 request.json
                                                   with the model's own files and chat template
  taximeter count --tokenizer /models/qwen3 --against http://127.0.0.1:8000 request.json
                                                   compare with an engine; exit code 1 if it differs";

/// Longest request body, in bytes. A longer input counts as a text.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Bytes of one part of a text. The counter would keep a larger part in memory.
const READ_BYTES: usize = 16 << 10;

/// Counts the tokens of a text or of a request body
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CountArgs {
    /// Model that decides the vocabulary, and the chat format of a request body [default: the model
    /// in the request body]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// The model's own vocabulary: a tokenizer.json or tekken.json, or the model's folder. The chat
    /// template in the folder renders chats
    #[arg(long, value_name = "PATH")]
    tokenizer: Option<PathBuf>,
    /// Base URL of an engine to compare with: vLLM, SGLang or llama.cpp
    #[arg(long, value_name = "URL", value_parser = url)]
    against: Option<UpstreamUrl>,
    /// File with a text or a JSON request body [default: standard input]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

fn url(text: &str) -> Result<UpstreamUrl, String> {
    UpstreamUrl::parse(text).map_err(|fault| fault.to_string())
}

/// Prints the number of tokens and how it was counted. With an engine, also prints the engine's
/// number and the difference.
///
/// The exit code is 1 if the two differ.
pub(crate) fn run(
    args: &CountArgs,
    now: Timestamp,
    input: &mut impl Read,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    let input: Box<dyn Read> = match &args.file {
        Some(path) => {
            Box::new(File::open(path).with_context(|| format!("cannot read {}", path.display()))?)
        }
        None => Box::new(input),
    };
    let mut given = Given::read(input, args).context("cannot read the input")?;
    let model = given.model.clone();
    let model = model.as_deref();
    let counting = match (&args.tokenizer, model) {
        (Some(path), _) => {
            let found = model_files::read(path)?;
            Counting::of_files(found.tokenizer, found.template)
        }
        (None, Some(model)) => Counting::built_in(model),
        (None, None) => return Err(Failure::NoModel.into()),
    };
    let (kind, count) = match given.wire {
        Some(wire) => ("request", input_tokens(wire, model, &given.head, &counting, now)),
        None => ("text", given.count(&counting).context("cannot read the input")?),
    };
    let sure = if count.estimated { "estimated" } else { "exact" };
    let name = counting.choice.tokenizer.name();
    writeln!(out, "{} tokens  ({kind}, {name}, {sure})", count.tokens)?;
    let Some(url) = &args.against else { return Ok(ExitCode::SUCCESS) };
    let answer = given.ask(url, &counting, now)?;
    writeln!(out, "{} tokens  ({} at {})", answer.tokens, answer.engine, url.authority())?;
    let difference = i128::from(count.tokens) - i128::from(answer.tokens);
    writeln!(out, "{difference:+} difference")?;
    Ok(if difference == 0 { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

/// The input.
struct Given<'a> {
    /// A request body, or the beginning of a text.
    head: Vec<u8>,
    /// The rest of a text.
    rest: Option<Box<dyn Read + 'a>>,
    /// The wire format of a request body.
    wire: Option<Wire>,
    /// The model in the arguments, else the one in the body.
    model: Option<String>,
}

impl<'a> Given<'a> {
    /// Reads a possible request body, or the whole input if an engine is asked.
    fn read(mut input: Box<dyn Read + 'a>, args: &CountArgs) -> io::Result<Self> {
        let mut head = Vec::new();
        input.by_ref().take(READ_BYTES as u64).read_to_end(&mut head)?;
        if args.against.is_some() || head.trim_ascii_start().starts_with(b"{") {
            input.by_ref().take(BODY_BYTES_MAX).read_to_end(&mut head)?;
        }
        let body = serde_json::from_slice(&head).unwrap_or_default();
        let model = args.model.clone().or_else(|| body_model(&body));
        let wire = wire(&body, model.as_deref());
        Ok(Self { head, rest: wire.is_none().then_some(input), wire, model })
    }

    /// Counts the text, which need not fit in memory.
    fn count(&mut self, counting: &Counting) -> io::Result<Count> {
        let tokenizer = &counting.choice.tokenizer;
        tokenizer.load();
        let mut counter = tokenizer.counter();
        for part in self.head.chunks(READ_BYTES) {
            counter.push(part);
        }
        if let Some(rest) = &mut self.rest {
            let mut part = vec![0; READ_BYTES];
            loop {
                match rest.read(&mut part)? {
                    0 => break,
                    length => counter.push(part.get(..length).unwrap_or_default()),
                }
            }
        }
        let mut count = counter.finish();
        count.estimated |= !counting.choice.exact;
        Ok(count)
    }

    fn ask(
        &self,
        url: &UpstreamUrl,
        counting: &Counting,
        now: Timestamp,
    ) -> anyhow::Result<Answer> {
        let text = String::from_utf8_lossy(&self.head);
        let rendered = |chat: &[u8]| match &counting.form {
            Form::Own(Some(template)) => template.render(chat, now).ok().map(|it| it.text),
            _ => None,
        };
        let input = match self.wire {
            Some(wire @ (Wire::ChatCompletions | Wire::ChatBatch)) => {
                let chats = prompt_chats(wire, &self.head).unwrap_or_default().into_iter();
                Input::Chats(chats.map(|chat| (rendered(&chat), chat)).collect())
            }
            Some(wire) => Input::Request(wire, &self.head),
            None => Input::Text(&text),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start a runtime")?;
        Ok(runtime.block_on(against::tokens(url, &input)).map_err(Failure::from)?)
    }
}

/// The model that a request body names.
fn body_model(body: &Map<String, Value>) -> Option<String> {
    body.get("model")?.as_str().map(str::to_owned)
}

/// The wire format of a request body, if it is one.
fn wire(body: &Map<String, Value>, model: Option<&str>) -> Option<Wire> {
    if let Some(messages) = body.get("messages") {
        if messages.get(0).is_some_and(Value::is_array) {
            return Some(Wire::ChatBatch);
        }
        let anthropic = body.contains_key("system") || body.contains_key("anthropic_version");
        Some(if anthropic { Wire::Messages } else { Wire::ChatCompletions })
    } else if body.contains_key("prompt") {
        Some(Wire::Completions)
    } else if body.contains_key("contents") {
        Some(Wire::GenerateContent)
    } else if body.contains_key("token_ids") {
        Some(Wire::TokenIds)
    } else {
        let input = body.get("input")?;
        Some(if embeds(body, input, model) { Wire::Embeddings } else { Wire::Responses })
    }
}

/// Whether a body with an `input` asks for embeddings, and not for a response. The members that only
/// one of the two has decide, then the name of the model.
fn embeds(body: &Map<String, Value>, input: &Value, model: Option<&str>) -> bool {
    const EMBEDDINGS: [&str; 3] = ["dimensions", "encoding_format", "input_type"];
    const RESPONSES: [&str; 8] = [
        "instructions",
        "max_output_tokens",
        "previous_response_id",
        "reasoning",
        "store",
        "stream",
        "text",
        "tools",
    ];
    let has = |names: &[&str]| names.iter().any(|name| body.contains_key(*name));
    match input {
        // Messages are objects. Texts and token ids are not.
        Value::Array(items) if !items.is_empty() => !items.iter().any(Value::is_object),
        _ if has(&RESPONSES) => false,
        _ => has(&EMBEDDINGS) || model.is_some_and(|model| model.contains("embed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(model: &str, input: &str) -> String {
        let model = Some(model.to_owned());
        let args = CountArgs { model, tokenizer: None, against: None, file: None };
        let mut out = Vec::new();
        run(&args, Timestamp::UNIX_EPOCH, &mut input.as_bytes(), &mut out).unwrap();
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
    fn a_body_names_its_model_itself() {
        let count = |input: &str| {
            let args = CountArgs { model: None, tokenizer: None, against: None, file: None };
            let mut out = Vec::new();
            run(&args, Timestamp::UNIX_EPOCH, &mut input.as_bytes(), &mut out)?;
            anyhow::Ok(String::from_utf8(out)?)
        };
        let body = r#"{"model":"gpt-4","messages":[{"role":"user","content":"hello world"}]}"#;
        assert_eq!(count(body).unwrap(), "9 tokens  (request, cl100k_base, exact)\n");
        for nameless in ["hello world", r#"{"messages":[]}"#, r#"{"model":7,"messages":[]}"#] {
            let fault = count(nameless).unwrap_err();
            assert!(matches!(fault.downcast_ref(), Some(Failure::NoModel)), "{fault}");
        }
    }

    #[test]
    fn embeddings_are_told_from_responses() {
        let embeddings = "4 tokens  (request, cl100k_base, exact)\n";
        for input in
            [r#"["hello world","hello world"]"#, r#""hello world hello world""#, "[1,2,3,4]"]
        {
            let body = format!(r#"{{"model":"text-embedding-3-small","input":{input}}}"#);
            assert_eq!(count("text-embedding-3-small", &body), embeddings, "{input}");
        }
        let wire = |body: &str| {
            let body = serde_json::from_str(body).unwrap();
            super::wire(&body, body_model(&body).as_deref())
        };
        for (body, expected) in [
            (r#"{"model":"m","input":"hello"}"#, Wire::Responses),
            (r#"{"model":"m","input":[{"role":"user","content":"hello"}]}"#, Wire::Responses),
            (r#"{"model":"m","input":[]}"#, Wire::Responses),
            (r#"{"model":"embedder","input":"hello","instructions":"Be brief."}"#, Wire::Responses),
            (r#"{"model":"m","input":["hello"]}"#, Wire::Embeddings),
            (r#"{"model":"m","input":"hello","encoding_format":"float"}"#, Wire::Embeddings),
        ] {
            assert_eq!(wire(body), Some(expected), "{body}");
        }
    }

    #[test]
    fn bodies_that_only_one_route_takes_are_counted_as_such() {
        let contents = r#"{"contents":[{"role":"user","parts":[{"text":"hello world"}]}]}"#;
        assert_eq!(count("gpt-4o", contents), "2 tokens  (request, o200k_base, estimated)\n");
        let ids = r#"{"token_ids":[1,2,3],"sampling_params":{}}"#;
        assert_eq!(count("tiny", ids), "3 tokens  (request, o200k_base, exact)\n");
        let chat = r#"[{"role":"user","content":"hello world"}]"#;
        let chats = format!(r#"{{"messages":[{chat},{chat}]}}"#);
        assert_eq!(count("gpt-4o", &chats), "18 tokens  (request, o200k_base, exact)\n");
    }

    #[test]
    fn a_long_text_is_counted_in_parts() {
        let text = "hello world ".repeat(1 << 20);
        let expected = format!("{} tokens  (text, o200k_base, exact)\n", (2 << 20) + 1);
        assert_eq!(count("gpt-4o", &text), expected);
    }

    #[test]
    fn what_only_looks_like_a_body_is_a_text() {
        assert_eq!(count("gpt-4o", "{\"a\":1}"), "5 tokens  (text, o200k_base, exact)\n");
    }

    #[test]
    fn a_model_that_nobody_knows_is_estimated() {
        assert!(count("tiny", "hello world").contains("estimated"));
    }
}
