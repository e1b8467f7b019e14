//! Reads from a request what shapes the simulated answer.

use serde::Deserialize;
use serde_json::{Number, Value};

/// Longest prompt that is read, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 20;

/// The fields of a request body that shape the answer; the rest is ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) model: Option<String>,
    pub(crate) stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    return_token_ids: Option<bool>,
    n: Option<Number>,
    max_tokens: Option<Number>,
    max_completion_tokens: Option<Number>,
    max_output_tokens: Option<Number>,
    pub(crate) dimensions: Option<usize>,
    encoding_format: Option<String>,
    system: Value,
    instructions: Value,
    messages: Value,
    prompt: Value,
    input: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

/// A prompt, read.
#[derive(Debug, Default)]
pub(crate) struct Prompt {
    /// All its texts, in order, each followed by a line end.
    pub(crate) text: String,
    /// Tokens that came as numbers.
    numbers: u64,
}

impl Prompt {
    /// One for each word and for each token that came as a number.
    pub(crate) fn tokens(&self) -> u64 {
        self.numbers + self.text.split_whitespace().count() as u64
    }

    fn read(&mut self, value: &Value) {
        match value {
            Value::String(text) => {
                self.text.push_str(text);
                self.text.push('\n');
            }
            Value::Number(_) => self.numbers += 1,
            Value::Array(values) => values.iter().for_each(|value| self.read(value)),
            Value::Object(fields) => {
                for key in ["content", "text", "arguments", "output"] {
                    if let Some(value) = fields.get(key) {
                        self.read(value);
                    }
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// How long a marked prompt is to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CacheTtl {
    FiveMinutes,
    OneHour,
}

impl Ask {
    pub(crate) fn streams(&self) -> bool {
        self.stream == Some(true)
    }

    pub(crate) fn include_usage(&self) -> bool {
        self.stream_options.as_ref().and_then(|options| options.include_usage) == Some(true)
    }

    /// Running totals, which come only beside usage at the end.
    pub(crate) fn continuous_usage(&self) -> bool {
        let options = self.stream_options.as_ref();
        self.include_usage()
            && options.and_then(|options| options.continuous_usage_stats) == Some(true)
    }

    pub(crate) fn token_ids(&self) -> bool {
        self.return_token_ids == Some(true)
    }

    pub(crate) fn choices(&self) -> u64 {
        self.n.as_ref().and_then(Number::as_u64).unwrap_or(1).clamp(1, 128)
    }

    /// The smallest of the maxima that the body gives; 0 and -1 are none, as to llama.cpp.
    pub(crate) fn output_tokens_max(&self) -> Option<u64> {
        let maxima = [&self.max_tokens, &self.max_completion_tokens, &self.max_output_tokens];
        let maxima = maxima.into_iter().flatten().filter_map(Number::as_u64);
        maxima.filter(|most| *most > 0).min()
    }

    pub(crate) fn base64(&self) -> bool {
        self.encoding_format.as_deref() == Some("base64")
    }

    /// How many embeddings are asked for.
    pub(crate) fn inputs(&self) -> usize {
        match &self.input {
            Value::Array(values) if !values.iter().any(Value::is_number) => values.len(),
            _ => 1,
        }
    }

    pub(crate) fn prompt(&self) -> Prompt {
        let mut prompt = Prompt::default();
        for value in [&self.system, &self.instructions, &self.messages, &self.prompt, &self.input] {
            prompt.read(value);
        }
        prompt
    }

    /// The first `cache_control` mark of an Anthropic prompt.
    pub(crate) fn cache_ttl(&self) -> Option<CacheTtl> {
        [&self.system, &self.messages].into_iter().find_map(cache_ttl)
    }
}

fn cache_ttl(value: &Value) -> Option<CacheTtl> {
    match value {
        Value::Array(values) => values.iter().find_map(cache_ttl),
        Value::Object(fields) => match fields.get("cache_control") {
            Some(Value::Object(control)) => Some(match control.get("ttl") {
                Some(Value::String(ttl)) if ttl == "1h" => CacheTtl::OneHour,
                _ => CacheTtl::FiveMinutes,
            }),
            _ => fields.get("content").and_then(cache_ttl),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &str) -> Ask {
        serde_json::from_str(body).unwrap()
    }

    #[test]
    fn every_form_of_a_prompt_is_counted_by_its_words() {
        for body in [
            r#"{"messages":[{"role":"system","content":"be short"},{"role":"user",
               "content":[{"type":"text","text":"hi there"}]}]}"#,
            r#"{"system":[{"type":"text","text":"be short"}],"messages":[{"role":"user",
               "content":"hi there"}]}"#,
            r#"{"prompt":["be short","hi there"]}"#,
            r#"{"prompt":[1,2,3,4]}"#,
            r#"{"instructions":"be short","input":[{"role":"user","content":[{"type":"input_text",
               "text":"hi there"}]}]}"#,
            r#"{"input":"be short hi there"}"#,
        ] {
            assert_eq!(ask(body).prompt().tokens(), 4, "{body}");
        }
    }

    #[test]
    fn the_smallest_maximum_counts() {
        let asked = ask(r#"{"max_tokens":9,"max_completion_tokens":4}"#);
        assert_eq!(asked.output_tokens_max(), Some(4));
        assert_eq!(ask("{}").output_tokens_max(), None);
    }

    #[test]
    fn a_cache_mark_is_found_where_anthropic_puts_it() {
        let system = r#"{"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral",
            "ttl":"1h"}}]}"#;
        assert_eq!(ask(system).cache_ttl(), Some(CacheTtl::OneHour));
        let message = r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a",
            "cache_control":{"type":"ephemeral"}}]}]}"#;
        assert_eq!(ask(message).cache_ttl(), Some(CacheTtl::FiveMinutes));
        assert_eq!(ask(r#"{"system":"a"}"#).cache_ttl(), None);
    }
}
