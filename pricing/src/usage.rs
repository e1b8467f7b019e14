//! What one request used, in tokens.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Tokens of one request. `None` is unknown, `Some(0)` is none.
///
/// `input_tokens` includes cache reads and writes, `output_tokens` includes reasoning: the parts
/// are never added to the whole again. Names after OpenTelemetry GenAI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    /// The same tokens by modality, where there was more than text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modalities: Option<Box<Modalities>>,
    /// What is counted beside tokens or in their place, by name: `web_search_requests`,
    /// `web_fetch_requests`, `file_search_calls`, `code_interpreter_sessions`, `search_queries`,
    /// `search_units`, `audio_seconds`, `video_seconds`, `images`, `characters`, `pages`. Exact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, Decimal>,
    /// What the answer says of itself that may change its price.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<Condition, String>,
    /// Further model runs of the same request, charged beside the numbers above and not part of
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(no_recursion)]
    pub passes: Vec<Pass>,
}

impl Usage {
    /// The parts that are larger than their whole.
    pub fn inconsistent(&self) -> impl Iterator<Item = Member> + use<> {
        let exceed = |parts: [Option<u64>; 2], whole: Option<u64>| {
            let parts = parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part));
            whole.is_some_and(|whole| parts > whole)
        };
        let cached = [self.cache_read_input_tokens, self.cache_write_input_tokens];
        let input = exceed(cached, self.input_tokens);
        let output = exceed([self.reasoning_output_tokens, None], self.output_tokens);
        [
            (input && cached[0] > Some(0), Member::CacheReadInputTokens),
            (input && cached[1] > Some(0), Member::CacheWriteInputTokens),
            (output, Member::ReasoningOutputTokens),
        ]
        .into_iter()
        .filter_map(|(exceeds, member)| exceeds.then_some(member))
    }
}

/// What an answer says of itself that may change its price, beside its service tier.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Where the model ran (Anthropic `usage.inference_geo`).
    InferenceGeo,
    /// How fast it was asked to answer (Anthropic `usage.speed`).
    Speed,
    /// How much a web search was to read (Perplexity `usage.search_context_size`).
    SearchContextSize,
    /// Region of the endpoint, where its name tells.
    Region,
}

impl Condition {
    /// The word, as records and price files have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InferenceGeo => "inference_geo",
            Self::Speed => "speed",
            Self::SearchContextSize => "search_context_size",
            Self::Region => "region",
        }
    }
}

/// Tokens by what they stand for. Each is a part of its whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Modalities {
    /// Of the input.
    #[serde(default)]
    pub input: ByModality,
    /// Of the output.
    #[serde(default)]
    pub output: ByModality,
    /// Of the part of the input that was served from a cache.
    #[serde(default, skip_serializing_if = "ByModality::is_silent")]
    pub cache_read: ByModality,
}

impl Modalities {
    /// Whether there is more than text.
    #[must_use]
    pub fn are_mixed(&self) -> bool {
        [self.input, self.output].iter().any(|parts| {
            [parts.audio, parts.image, parts.video, parts.multimodal]
                .iter()
                .any(|part| *part > Some(0))
        })
    }

    /// Those that were reported, by their names on records: `audio_input_tokens`,
    /// `text_output_tokens` and so on.
    #[must_use]
    pub fn named(&self) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        let sides =
            [(self.input, "input"), (self.output, "output"), (self.cache_read, "cache_read_input")];
        for (parts, side) in sides {
            for (modality, tokens) in [
                ("text", parts.text),
                ("audio", parts.audio),
                ("image", parts.image),
                ("video", parts.video),
                ("multimodal", parts.multimodal),
            ] {
                named.extend(tokens.map(|tokens| (format!("{modality}_{side}_tokens"), tokens)));
            }
        }
        named
    }
}

impl From<&BTreeMap<String, u64>> for Modalities {
    /// What [`named`](Self::named) has named; other names say nothing.
    fn from(named: &BTreeMap<String, u64>) -> Self {
        let side = |side: &str| {
            let tokens = |modality: &str| named.get(&format!("{modality}_{side}_tokens")).copied();
            ByModality {
                text: tokens("text"),
                audio: tokens("audio"),
                image: tokens("image"),
                video: tokens("video"),
                multimodal: tokens("multimodal"),
            }
        };
        Self { input: side("input"), output: side("output"), cache_read: side("cache_read_input") }
    }
}

/// The parts of an input or output. `None` is not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ByModality {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<u64>,
    /// Sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<u64>,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<u64>,
    /// Films.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<u64>,
    /// All but text, where it is not told apart (vLLM).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multimodal: Option<u64>,
}

impl ByModality {
    /// Whether nothing was reported.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// One further model run inside a request (Anthropic `usage.iterations`: compaction, advisor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pass {
    /// Model that ran, when it differs from the response's.
    pub model: Option<String>,
    /// What that run used; its own `passes` are empty.
    pub usage: Usage,
}

/// Where a usage comes from.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
)]
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

/// A number of a usage, by its name on records.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Member {
    /// All input.
    InputTokens,
    /// Part of the input.
    CacheReadInputTokens,
    /// Part of the input.
    CacheWriteInputTokens,
    /// All output.
    OutputTokens,
    /// Part of the output.
    ReasoningOutputTokens,
}

/// What a reader of a usage should know about it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
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
    /// The engine reported 0 for text that has passed; the text was counted instead.
    Zero,
    /// The engine did not report it.
    Missing,
    /// No usage object was reported, but the ids of all tokens were, and these were counted.
    TokenIds,
    /// Our own exact count is more than a tenth away; the reported number is billed.
    Differs,
    /// The answer goes on behind the exchange (a response in the background); what it will use was
    /// not known yet.
    Pending,
    /// The wall clock was set while the request ran: its time stamps are as they were read, and its
    /// duration, which is not of that clock, is right.
    Clock,
    /// The gateway died and had told nothing of the request since its admission: it may have reached
    /// the engine, or not.
    MaybeUnsent,
}
