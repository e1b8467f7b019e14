//! The usage of one request: tokens and other quantities.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The usage of one request. `None` means unknown, `Some(0)` means none.
///
/// `input_tokens` includes cache reads and writes, and `output_tokens` includes reasoning. Never
/// add a part to its whole again. The names follow OpenTelemetry GenAI.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// All input, cached or not.
    pub input_tokens: Option<u64>,
    /// The part of the input that was served from a cache.
    pub cache_read_input_tokens: Option<u64>,
    /// The part of the input that was written to a cache, with any time to live.
    pub cache_write_input_tokens: Option<u64>,
    /// The part of the cache writes with the long time to live (Anthropic 1 h, OpenAI 12 h).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long_input_tokens: Option<u64>,
    /// All output, reasoning included.
    pub output_tokens: Option<u64>,
    /// The part of the output that was reasoning.
    pub reasoning_output_tokens: Option<u64>,
    /// The same tokens by modality, if there was more than text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modalities: Option<Box<Modalities>>,
    /// Quantities besides tokens or instead of tokens, by name, exact: `web_search_requests` and
    /// other calls of hosted tools, `search_units`, `audio_seconds`, `video_seconds`, `images`,
    /// `characters`, `pages`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, Decimal>,
    /// What the answer reports about itself that can change its price.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<Condition, String>,
    /// Further model runs of the same request. They are charged in addition to the numbers above,
    /// and are not part of them.
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

/// What an answer reports about itself that can change its price, besides its service tier.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Where the model ran (Anthropic `usage.inference_geo`).
    InferenceGeo,
    /// The requested speed (Anthropic `usage.speed`).
    Speed,
    /// How much a web search reads (Perplexity `usage.search_context_size`).
    SearchContextSize,
    /// Region of the endpoint, if its address contains one.
    Region,
}

impl Condition {
    /// The word in records and price files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InferenceGeo => "inference_geo",
            Self::Speed => "speed",
            Self::SearchContextSize => "search_context_size",
            Self::Region => "region",
        }
    }

    /// Whether the standard rates hold under this value. Price files need not state it.
    pub(crate) fn is_usual(self, value: &str) -> bool {
        match self {
            Self::InferenceGeo => matches!(value, "" | "global" | "not_available"),
            Self::Speed => matches!(value, "" | "default" | "standard"),
            // Price files state the sizes that do not cost what the others do.
            Self::SearchContextSize => matches!(value, "" | "low" | "medium" | "high"),
            Self::Region => {
                matches!(
                    value,
                    "" | "global" | "us-east-1" | "us-east-2" | "us-west-1" | "us-west-2"
                )
            }
        }
    }
}

/// Tokens by modality. Each number is a part of its whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Modalities {
    /// Parts of the input.
    #[serde(default)]
    pub input: ByModality,
    /// Parts of the output.
    #[serde(default)]
    pub output: ByModality,
    /// Parts of the input that was served from a cache.
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

    /// The reported numbers by their names in records: `audio_input_tokens`, `text_output_tokens`
    /// and so on.
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
    /// Reads the names that [`named`](Self::named) makes. Ignores other names.
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

/// The parts of an input or output. `None` means not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ByModality {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<u64>,
    /// Audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<u64>,
    /// Images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<u64>,
    /// Video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<u64>,
    /// Everything but text, if the engine does not separate it (vLLM).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multimodal: Option<u64>,
}

impl ByModality {
    /// Whether nothing is reported.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}

/// A further model run inside a request (Anthropic `usage.iterations`: compaction, advisor).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pass {
    /// The model that ran, if it differs from the model of the answer.
    pub model: Option<String>,
    /// The usage of that run. Its own `passes` are empty.
    pub usage: Usage,
}

/// The source of a number.
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
    /// The engine reported it.
    Reported,
    /// Taximeter's tokenizer counted it.
    Counted,
    /// It is unknown.
    #[default]
    Unknown,
    /// Nothing was used: the engine answered with an error and nothing else.
    None,
}

impl Source {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Counted => "counted",
            Self::Unknown => "unknown",
            Self::None => "none",
        }
    }
}

/// A number of a usage, by its name in records.
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
    /// The number was counted by bytes, or with a fallback vocabulary.
    Estimated,
    /// A part is larger than its whole (cached > input, reasoning > output). The numbers are kept
    /// as reported.
    Inconsistent,
    /// Output that only the total shows (hidden thinking) was added to the output.
    Hidden,
    /// The reported total is smaller than the sum of its parts, and was ignored.
    TotalMismatch,
    /// The usage was reported twice and became smaller.
    Changed,
    /// A number was not a whole number in range, and was ignored.
    Invalid,
    /// The engine reported 0 for text that has passed. Taximeter counted the text instead.
    Zero,
    /// The engine did not report the number.
    Missing,
    /// A part of the prompt is not in the request: an earlier response, a stored prompt, a file. The
    /// number is unknown, or estimated from what was said before.
    Context,
    /// The engine reported no usage object but the ids of all tokens, and these were counted.
    TokenIds,
    /// Taximeter's exact count differs by more than a tenth. The reported number is billed.
    Differs,
    /// The answer goes on after this exchange (a response in the background). Its final usage was
    /// not known yet.
    Pending,
    /// The wall clock was set while the request ran. The time stamps are as they were read. The
    /// duration is right, because it does not use that clock.
    Clock,
    /// The gateway died, and recorded nothing of the request after its admission. The request may
    /// have reached the engine, or not.
    MaybeUnsent,
}
