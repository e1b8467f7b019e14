//! How each API says what was generated: one API, one file, one [`Shape`].

mod chat;
mod completions;
mod embeddings;
mod messages;
mod responses;

use std::fmt::{Arguments, Write};

use bytes::{Bytes, BytesMut};

use crate::job::Job;
use crate::routes::Route;

pub(crate) use embeddings::whole as embeddings;

/// One API's way to say an answer.
pub(crate) trait Shape: Sync {
    /// Events before the first token.
    fn open(&self, job: &Job, page: &mut Page);
    /// A chunk of reasoning.
    fn reasoning(&self, job: &Job) -> Template;
    /// Events between the last reasoning and the first content.
    fn turn(&self, _job: &Job, _page: &mut Page) {}
    /// A chunk of content: text, or what a tool call says.
    fn content(&self, job: &Job) -> Template;
    /// Events after the last token.
    fn close(&self, job: &Job, page: &mut Page);
    /// An error in the middle, and what still follows it.
    fn fail(&self, job: &Job, page: &mut Page);
    /// The answer that is not a stream.
    fn whole(&self, job: &Job) -> String;
}

/// The shape of `route`; embeddings are never streams and have none.
pub(crate) fn of(route: Route) -> Option<&'static dyn Shape> {
    match route {
        Route::Chat => Some(&chat::Chat),
        Route::Completions => Some(&completions::Completions),
        Route::Responses => Some(&responses::Responses),
        Route::Messages => Some(&messages::Messages),
        Route::Embeddings => None,
    }
}

/// The body of an error answer.
pub(crate) fn refusal(route: Option<Route>, status: u16, message: &str) -> String {
    let message = serde_json::Value::from(message);
    if route == Some(Route::Messages) {
        let kind = messages::error_type(status);
        return format!(r#"{{"type":"error","error":{{"type":"{kind}","message":{message}}}}}"#);
    }
    let kind = match status {
        429 => "RateLimitError",
        400..=499 => "BadRequestError",
        _ => "InternalServerError",
    };
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":{status}}}}}"#)
}

/// JSON on one line: this source breaks it where a reader likes it broken.
pub(crate) fn compact(json: &str) -> String {
    json.lines().map(str::trim_start).collect()
}

/// Stands for a number in what becomes a [`Template`].
const NUMBER: &str = "\u{1}";
/// Stands for the text in what becomes a [`Template`].
const TEXT: &str = "\u{2}";

/// An event of which only a number and a text change, rendered as far as it can be.
#[derive(Debug)]
pub(crate) struct Template {
    before: String,
    between: String,
    after: String,
    numbers: Numbers,
}

/// What the number of a template counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    Choices,
    Events,
}

impl Template {
    /// The event `name` (if it has one) with the data `json`, taken apart at [`NUMBER`] (where it
    /// has one) and at the [`TEXT`] after it.
    fn new(numbers: Numbers, name: Option<&str>, json: &str) -> Self {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let event = format!("{name}data: {}\n\n", compact(json));
        let (head, after) = event.split_once(TEXT).unwrap_or((&event, ""));
        let (before, between) = head.split_once(NUMBER).unwrap_or((head, ""));
        Self {
            before: before.to_owned(),
            between: between.to_owned(),
            after: after.to_owned(),
            numbers,
        }
    }
}

/// What is to be sent next.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: BytesMut,
    events: u64,
}

impl Page {
    /// What has been written since the last time; the room is used again when it has been sent.
    pub(crate) fn take(&mut self) -> Bytes {
        self.bytes.split().freeze()
    }

    /// `data: json`.
    pub(crate) fn data(&mut self, json: Arguments<'_>) {
        self.write(format_args!("data: {}\n\n", compact(&json.to_string())));
    }

    /// `event: name`, `data: json`.
    pub(crate) fn event(&mut self, name: &str, json: Arguments<'_>) {
        self.write(format_args!("event: {name}\ndata: {}\n\n", compact(&json.to_string())));
    }

    /// The next `sequence_number`.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.events;
        self.events += 1;
        number
    }

    /// One chunk: `text` writes its words.
    pub(crate) fn chunk(
        &mut self,
        template: &Template,
        choice: u64,
        text: impl FnOnce(&mut BytesMut) -> std::fmt::Result,
    ) {
        let number = match template.numbers {
            Numbers::Choices => choice,
            Numbers::Events => self.number(),
        };
        let Template { before, between, after, .. } = template;
        self.bytes.extend_from_slice(before.as_bytes());
        if !between.is_empty() {
            self.write(format_args!("{number}{between}"));
        }
        // Memory cannot refuse to be written to.
        _ = text(&mut self.bytes);
        self.bytes.extend_from_slice(after.as_bytes());
    }

    fn write(&mut self, text: Arguments<'_>) {
        // Memory cannot refuse to be written to.
        _ = self.bytes.write_fmt(text);
    }
}

/// `,"usage":{…}` of chat and completions, or nothing where usage is left out.
fn openai_usage(job: &Job) -> String {
    if job.behaviour.no_usage {
        return String::new();
    }
    let (input, output) = (job.input, job.output_total());
    let total = input + output;
    let prompt_details = if job.cached > 0 || job.cache_written > 0 || job.behaviour.prefix_cache {
        let written = if job.cache_written > 0 {
            format!(r#","cache_write_tokens":{}"#, job.cache_written)
        } else {
            String::new()
        };
        format!(r#"{{"cached_tokens":{}{written}}}"#, job.cached)
    } else {
        "null".to_owned()
    };
    let completion_details = if job.reasoning > 0 {
        format!(r#","completion_tokens_details":{{"reasoning_tokens":{}}}"#, job.reasoning_total())
    } else {
        String::new()
    };
    format!(
        r#","usage":{{"prompt_tokens":{input},"total_tokens":{total},"completion_tokens":{output},
           "prompt_tokens_details":{prompt_details}{completion_details}}}"#
    )
}

/// The error that vLLM puts into a stream.
const FAILURE: &str = r#"{"error":{"message":"EngineCore encountered an issue (simulated).",
    "type":"InternalServerError","param":null,"code":500}}"#;
