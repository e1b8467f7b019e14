//! What one request used, in tokens.

use serde::{Deserialize, Serialize};

/// Tokens of one request. `None` is unknown, `Some(0)` is none.
///
/// `input_tokens` includes cache reads and writes, `output_tokens` includes reasoning: the parts
/// are never added to the whole again. Names after OpenTelemetry GenAI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// All input, cached or not.
    pub input_tokens: Option<u64>,
    /// The part of the input that was served from a cache.
    pub cache_read_input_tokens: Option<u64>,
    /// The part of the input that was written to a cache, at any time to live.
    pub cache_write_input_tokens: Option<u64>,
    /// The part of the cache writes with the long time to live (Anthropic 1 h, OpenAI 12 h).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long_input_tokens: Option<u64>,
    /// All output, reasoning included.
    pub output_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    pub reasoning_output_tokens: Option<u64>,
    /// Further model runs of the same request, charged beside the numbers above and not part of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<Pass>,
}

/// One further model run inside a request (Anthropic `usage.iterations`: compaction, advisor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pass {
    /// Model that ran, when it differs from the response's.
    pub model: Option<String>,
    /// What that run used; its own `passes` are empty.
    pub usage: Usage,
}

/// Where a usage comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The engine said so.
    Reported,
    /// Our tokenizer counted what passed.
    Counted,
    /// Nobody knows.
    #[default]
    Unknown,
}

impl Source {
    /// The word, as records have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Counted => "counted",
            Self::Unknown => "unknown",
        }
    }
}

/// What a reader of a usage should know about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flag {
    /// Counted by bytes or with a fall-back vocabulary.
    Estimated,
    /// A part is larger than its whole (cached > input, reasoning > output); kept as reported.
    Inconsistent,
    /// Output that only the total shows (hidden thinking) was added to the output.
    Hidden,
    /// The reported total is smaller than its parts; it was ignored.
    TotalMismatch,
    /// Usage was reported twice and fell.
    Changed,
    /// A member was not a whole number in range and was not taken.
    Invalid,
    /// No usage object was reported.
    Missing,
}
