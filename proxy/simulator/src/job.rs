//! One answer, decided before its first byte: how many tokens, which text, and how it ends.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ask::{Ask, CacheTtl};
use crate::behaviour::Behaviour;
use crate::prefix::{Prefix, PrefixCache};
use crate::route::Route;
use crate::text;

/// Longest `x-request-id` that becomes part of the answer's id, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Why the engine stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
    ToolCall,
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) route: Route,
    /// Ends in the client's `x-request-id`, as vLLM's do, if that can stand in JSON as it is.
    pub(crate) id: String,
    /// As asked for.
    pub(crate) model: String,
    /// The same as a JSON string, quotes included.
    pub(crate) model_json: String,
    /// Unix time in seconds.
    pub(crate) created: u64,
    pub(crate) include_usage: bool,
    /// Running totals in each chunk of a stream.
    pub(crate) continuous_usage: bool,
    /// Ids of all tokens in a stream.
    pub(crate) token_ids: bool,
    /// All tokens of the prompt.
    pub(crate) input: u64,
    /// Of them, from the cache.
    pub(crate) cached: u64,
    /// Of them, into the cache.
    pub(crate) cache_written: u64,
    pub(crate) cache_ttl: CacheTtl,
    /// Answers side by side.
    pub(crate) choices: u64,
    /// Tokens of one choice.
    pub(crate) output: u64,
    /// Of them, reasoning.
    pub(crate) reasoning: u64,
    pub(crate) finish: Finish,
    /// Stands for the text.
    pub(crate) seed: u64,
    pub(crate) behaviour: Arc<Behaviour>,
}

/// What jobs are made with.
#[derive(Debug, Default)]
pub(crate) struct Foreman {
    ids: AtomicU64,
    prefixes: PrefixCache,
}

impl Foreman {
    /// Decides the answer to `ask`.
    pub(crate) fn plan(
        &self,
        route: Route,
        ask: &Ask,
        behaviour: Arc<Behaviour>,
        request_id: Option<&str>,
        created: u64,
    ) -> Job {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let id = match request_id.filter(|id| stands_in_json(id)) {
            Some(request_id) => format!("{}{request_id}", route.id_prefix()),
            None => format!("{}{number:032x}", route.id_prefix()),
        };
        let model = ask.model.clone().unwrap_or_else(|| behaviour.model.clone());
        let prompt = ask.prompt();
        let input = behaviour.input_tokens.unwrap_or_else(|| prompt.tokens());
        let prefix = self.prefix(route, ask, &behaviour, &prompt.text, input);
        let (output, finish) = output(route, ask, &behaviour);
        let reasoning = if route.reasons() { behaviour.reasoning_tokens.min(output) } else { 0 };
        Job {
            route,
            id,
            model_json: serde_json::Value::from(model.as_str()).to_string(),
            model,
            created,
            include_usage: ask.include_usage(),
            continuous_usage: ask.continuous_usage() && !behaviour.no_usage,
            token_ids: ask.token_ids(),
            input,
            cached: prefix.read,
            cache_written: prefix.written,
            cache_ttl: ask.cache_ttl().unwrap_or(CacheTtl::FiveMinutes),
            choices: if route.has_choices() { ask.choices() } else { 1 },
            output,
            reasoning,
            finish,
            seed: prompt.text.len() as u64,
            behaviour,
        }
    }

    fn prefix(
        &self,
        route: Route,
        ask: &Ask,
        behaviour: &Behaviour,
        prompt: &str,
        input: u64,
    ) -> Prefix {
        // Anthropic caches only what the prompt marks.
        let marked = route != Route::Messages || ask.cache_ttl().is_some();
        let found = if behaviour.prefix_cache && marked {
            self.prefixes.visit(prompt)
        } else {
            Prefix::default()
        };
        // OpenAI's shapes name a write only where it is billed, so only where it was asked for.
        let written = if route == Route::Messages { found.written } else { 0 };
        let read = behaviour.cached_tokens.unwrap_or(found.read).min(input);
        let written = behaviour.cache_write_tokens.unwrap_or(written).min(input - read);
        Prefix { read, written }
    }
}

impl Job {
    /// Output tokens of all choices.
    pub(crate) fn output_total(&self) -> u64 {
        self.choices * self.output
    }

    /// Reasoning tokens of all choices.
    pub(crate) fn reasoning_total(&self) -> u64 {
        self.choices * self.reasoning
    }

    /// Output tokens of all choices, and of them reasoning, after so many chunks.
    pub(crate) fn tokens_of(&self, chunks: u64) -> (u64, u64) {
        let each = self.behaviour.chunk_tokens.max(1);
        let thinking = self.reasoning.div_ceil(each);
        let reasoning = chunks.saturating_mul(each).min(self.reasoning);
        let content = chunks.saturating_sub(thinking).saturating_mul(each);
        let output = reasoning + content.min(self.output - self.reasoning);
        (self.choices * output, self.choices * reasoning)
    }

    /// Writes tokens of one choice's reasoning.
    pub(crate) fn write_reasoning(
        &self,
        choice: u64,
        tokens: Range<u64>,
        out: &mut impl Write,
    ) -> std::fmt::Result {
        text::write(!self.choice_seed(choice), tokens, out)
    }

    /// Writes tokens of one choice's text, as it stands in a JSON string. A tool call's are JSON
    /// themselves, so its first and last bring quotes and braces.
    pub(crate) fn write_content(
        &self,
        choice: u64,
        tokens: Range<u64>,
        out: &mut impl Write,
    ) -> std::fmt::Result {
        let call = self.finish == Finish::ToolCall;
        if call && tokens.start == 0 {
            out.write_str(r#"{\"text\":\""#)?;
        }
        let last = tokens.end == self.output - self.reasoning;
        text::write(self.choice_seed(choice), tokens, out)?;
        if call && last {
            out.write_str(r#"\"}"#)?;
        }
        Ok(())
    }

    /// The whole reasoning of one choice.
    pub(crate) fn reasoning_text(&self, choice: u64) -> String {
        let mut text = String::new();
        // Memory cannot refuse to be written to.
        _ = self.write_reasoning(choice, 0..self.reasoning, &mut text);
        text
    }

    /// The whole text of one choice, as it stands in a JSON string.
    pub(crate) fn content_text(&self, choice: u64) -> String {
        let mut text = String::new();
        // Memory cannot refuse to be written to.
        _ = self.write_content(choice, 0..self.output - self.reasoning, &mut text);
        text
    }

    fn choice_seed(&self, choice: u64) -> u64 {
        self.seed ^ (choice << 32)
    }

    /// Chunks that the answer takes as a stream.
    pub(crate) fn chunks(&self) -> u64 {
        let each = self.behaviour.chunk_tokens.max(1);
        self.reasoning.div_ceil(each) + (self.output - self.reasoning).div_ceil(each)
    }
}

fn output(route: Route, ask: &Ask, behaviour: &Behaviour) -> (u64, Finish) {
    if route == Route::Embeddings {
        return (0, Finish::Stop);
    }
    match ask.output_tokens_max() {
        Some(max) if max < behaviour.output_tokens => (max, Finish::Length),
        _ if behaviour.tool_call && route.calls_tools() => {
            (behaviour.output_tokens, Finish::ToolCall)
        }
        _ => (behaviour.output_tokens, Finish::Stop),
    }
}

fn stands_in_json(id: &str) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
