//! The settings of the engine: times, counts, failures.

use std::str::FromStr;
use std::time::Duration;

/// Longest name of a tool, in bytes.
const TOOL_BYTES_MAX: usize = 64;

/// Settings of the engine, or of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behaviour {
    /// From the request to the first token.
    pub prefill: Duration,
    /// From one chunk to the next; zero sends as fast as the client reads.
    pub gap: Duration,
    /// Each gap is longer or shorter by up to this much.
    pub jitter: Duration,
    /// All streams send in the same instants, as an engine does that decodes in batches.
    pub in_step: bool,
    /// Tokens of each answer, reasoning included; the request's own maximum bounds it.
    pub output_tokens: u64,
    /// Of them, reasoning.
    pub reasoning_tokens: u64,
    /// Tokens in one chunk, at least 1.
    pub chunk_tokens: u64,
    /// Tokens of the prompt; `None` counts its words.
    pub input_tokens: Option<u64>,
    /// Of them, read from the cache; `None` asks the prefix cache.
    pub cached_tokens: Option<u64>,
    /// Of them, written to the cache; `None` asks the prefix cache (Anthropic only).
    pub cache_write_tokens: Option<u64>,
    /// Remembers prompts, so that a beginning seen before is cached.
    pub prefix_cache: bool,
    /// Answers with a tool call in place of text.
    pub tool_call: bool,
    /// The tool that it calls.
    pub tool: String,
    /// Leaves usage out everywhere.
    pub no_usage: bool,
    /// Streams end cleanly, but without their end mark (`[DONE]`, `message_stop`,
    /// `response.completed`).
    pub no_done: bool,
    /// Answers with this status and an error.
    pub status: Option<u16>,
    /// Closes the connection in place of an answer.
    pub die_before_head: bool,
    /// Closes the connection in place of an answer, but only if the connection has carried a
    /// request before.
    pub die_if_reused: bool,
    /// Closes the connection after the answer, without saying so in its head.
    pub close_after_response: bool,
    /// `content-length` promises this many bytes more than come. Answers that are not streams only.
    pub wrong_length: u64,
    /// What goes wrong in the middle.
    pub fault: Option<Fault>,
    /// The model that `/v1/models` lists, and that answers when the request names none.
    pub model: String,
    /// `owned_by` in `/v1/models`.
    pub owned_by: String,
}

/// What goes wrong after a number of content chunks. Each variant says what it means for an answer
/// that is not a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection breaks; an answer that is not a stream breaks in its middle.
    DieAfter(u64),
    /// Silence until the client leaves; an answer that is not a stream never begins.
    StallAfter(u64),
    /// An error event under status 200, then the end; an answer that is not a stream is a 500.
    ErrorEventAfter(u64),
    /// The message ends cleanly with neither finish reason nor usage nor end mark. Streams only.
    EndAfter(u64),
}

/// A setting that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BehaviourError {
    /// There is no such setting.
    Unknown(String),
    /// The value does not fit the setting.
    Value(String),
}

impl std::fmt::Display for BehaviourError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "no setting is called {name:?}"),
            Self::Value(setting) => {
                write!(f, "{setting:?} does not fit; numbers are written `name=12`, flags `name`")
            }
        }
    }
}

impl std::error::Error for BehaviourError {}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            prefill: Duration::from_millis(20),
            gap: Duration::from_millis(10),
            jitter: Duration::ZERO,
            in_step: false,
            output_tokens: 64,
            reasoning_tokens: 0,
            chunk_tokens: 1,
            input_tokens: None,
            cached_tokens: None,
            cache_write_tokens: None,
            prefix_cache: false,
            tool_call: false,
            tool: "look_up".to_owned(),
            no_usage: false,
            no_done: false,
            status: None,
            die_before_head: false,
            die_if_reused: false,
            close_after_response: false,
            wrong_length: 0,
            fault: None,
            model: "simulated".to_owned(),
            owned_by: "vllm".to_owned(),
        }
    }
}

impl Behaviour {
    /// This behaviour, changed by `settings`: `name=value` or `name`, separated by commas.
    ///
    /// Times in milliseconds: `prefill_ms` `gap_ms` `jitter_ms`. Counts: `output_tokens`
    /// `reasoning_tokens` `chunk_tokens` `input_tokens` `cached_tokens` `cache_write_tokens`
    /// `status` `wrong_length` `die_after` `stall_after` `error_event_after` `end_after`. Flags:
    /// `in_step` `prefix_cache` `tool_call` `no_usage` `no_done` `die_before_head` `die_if_reused`
    /// `close_after_response`. Words: `model` `owned_by` `tool`. Each does what the field of that
    /// name says; `tool` answers with a call of it.
    ///
    /// Errors: a name that is not in this list, or a value that is not of its kind.
    pub fn with(&self, settings: &str) -> Result<Self, BehaviourError> {
        let mut changed = self.clone();
        for setting in settings.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            changed.set(setting)?;
        }
        Ok(changed)
    }

    fn set(&mut self, setting: &str) -> Result<(), BehaviourError> {
        let (name, value) = match setting.split_once('=') {
            Some((name, value)) => (name, Value { setting, value: Some(value) }),
            None => (setting, Value { setting, value: None }),
        };
        match name {
            "prefill_ms" => self.prefill = value.milliseconds()?,
            "gap_ms" => self.gap = value.milliseconds()?,
            "jitter_ms" => self.jitter = value.milliseconds()?,
            "in_step" => self.in_step = value.flag()?,
            "output_tokens" => self.output_tokens = value.parse()?,
            "reasoning_tokens" => self.reasoning_tokens = value.parse()?,
            "chunk_tokens" => self.chunk_tokens = value.parse::<u64>()?.max(1),
            "input_tokens" => self.input_tokens = Some(value.parse()?),
            "cached_tokens" => self.cached_tokens = Some(value.parse()?),
            "cache_write_tokens" => self.cache_write_tokens = Some(value.parse()?),
            "prefix_cache" => self.prefix_cache = value.flag()?,
            "tool_call" => self.tool_call = value.flag()?,
            "tool" => (self.tool_call, self.tool) = (true, value.tool()?),
            "no_usage" => self.no_usage = value.flag()?,
            "no_done" => self.no_done = value.flag()?,
            "status" => self.status = Some(value.status()?),
            "die_before_head" => self.die_before_head = value.flag()?,
            "die_if_reused" => self.die_if_reused = value.flag()?,
            "close_after_response" => self.close_after_response = value.flag()?,
            "wrong_length" => self.wrong_length = value.parse()?,
            "die_after" => self.fault = Some(Fault::DieAfter(value.parse()?)),
            "stall_after" => self.fault = Some(Fault::StallAfter(value.parse()?)),
            "error_event_after" => self.fault = Some(Fault::ErrorEventAfter(value.parse()?)),
            "end_after" => self.fault = Some(Fault::EndAfter(value.parse()?)),
            "model" => self.model = value.parse()?,
            "owned_by" => self.owned_by = value.parse()?,
            _ => return Err(BehaviourError::Unknown(name.to_owned())),
        }
        Ok(())
    }
}

/// The right side of one setting.
struct Value<'a> {
    setting: &'a str,
    value: Option<&'a str>,
}

impl Value<'_> {
    fn parse<T: FromStr>(&self) -> Result<T, BehaviourError> {
        self.value.and_then(|value| value.parse().ok()).ok_or_else(|| self.misfit())
    }

    /// A name that can stand in JSON as it is.
    fn tool(&self) -> Result<String, BehaviourError> {
        let stands = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let tool: String = self.parse()?;
        let is_name = (1..=TOOL_BYTES_MAX).contains(&tool.len()) && tool.bytes().all(stands);
        is_name.then_some(tool).ok_or_else(|| self.misfit())
    }

    fn milliseconds(&self) -> Result<Duration, BehaviourError> {
        let milliseconds: f64 = self.parse()?;
        Duration::try_from_secs_f64(milliseconds / 1000.0).map_err(|_| self.misfit())
    }

    fn flag(&self) -> Result<bool, BehaviourError> {
        if self.value.is_none() { Ok(true) } else { Err(self.misfit()) }
    }

    fn status(&self) -> Result<u16, BehaviourError> {
        let status = self.parse()?;
        if (200..=599).contains(&status) { Ok(status) } else { Err(self.misfit()) }
    }

    fn misfit(&self) -> BehaviourError {
        BehaviourError::Value(self.setting.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_only_what_they_name() {
        let base = Behaviour::default();
        let changed = base.with("gap_ms=0.5, output_tokens=3,no_done").unwrap();
        assert_eq!(
            changed,
            Behaviour {
                gap: Duration::from_micros(500),
                output_tokens: 3,
                no_done: true,
                ..Behaviour::default()
            }
        );
        assert_eq!(base.with("").unwrap(), base);
    }

    #[test]
    fn a_setting_that_does_not_exist_is_named() {
        let error = Behaviour::default().with("gap_ms=1,speed=9").unwrap_err();
        assert_eq!(error, BehaviourError::Unknown("speed".to_owned()));
    }

    #[test]
    fn a_value_of_the_wrong_kind_is_refused() {
        for setting in
            ["gap_ms", "gap_ms=-1", "output_tokens=x", "no_done=1", "status=99", "tool=a\"b"]
        {
            let error = Behaviour::default().with(setting).unwrap_err();
            assert_eq!(error, BehaviourError::Value(setting.to_owned()), "{setting}");
        }
    }
}
