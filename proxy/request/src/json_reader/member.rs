//! The members of a request's body that we act on.

use taximeter_meter::Wire;

/// Members that we act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyMember {
    Model,
    Stream,
    Background,
    StreamOptions,
    Choices,
    BestOf,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    Predict,
    User,
    ServiceTier,
    IncludeUsage,
    IncludeObfuscation,
    ContinuousUsageStats,
    ReturnTokenIds,
    Prompt,
    /// A prompt in token ids, or a list of them.
    PromptIds,
}

impl BodyMember {
    /// The member with this key, at the top (depth 1) or inside `stream_options` (depth 2).
    pub(super) fn named(depth: usize, key: &str) -> Option<Self> {
        match (depth, key) {
            (1, "model") => Some(Self::Model),
            (1, "stream") => Some(Self::Stream),
            (1, "background") => Some(Self::Background),
            (1, "stream_options") => Some(Self::StreamOptions),
            (1, "n") => Some(Self::Choices),
            (1, "best_of") => Some(Self::BestOf),
            (1, "max_tokens") => Some(Self::MaxTokens),
            (1, "max_completion_tokens") => Some(Self::MaxCompletionTokens),
            (1, "max_output_tokens") => Some(Self::MaxOutputTokens),
            (1, "n_predict") => Some(Self::Predict),
            (1, "user") => Some(Self::User),
            (1, "service_tier") => Some(Self::ServiceTier),
            (1, "return_token_ids") => Some(Self::ReturnTokenIds),
            (1, "text" | "inputs") => Some(Self::Prompt),
            (1, "input_ids") => Some(Self::PromptIds),
            (2, "include_usage") => Some(Self::IncludeUsage),
            (2, "include_obfuscation") => Some(Self::IncludeObfuscation),
            (2, "continuous_usage_stats") => Some(Self::ContinuousUsageStats),
            _ => None,
        }
    }

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Stream => "stream",
            Self::Background => "background",
            Self::StreamOptions => "stream_options",
            Self::Choices => "n",
            Self::BestOf => "best_of",
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxOutputTokens => "max_output_tokens",
            Self::Predict => "n_predict",
            Self::User => "user",
            Self::ServiceTier => "service_tier",
            Self::IncludeUsage => "stream_options.include_usage",
            Self::IncludeObfuscation => "stream_options.include_obfuscation",
            Self::ContinuousUsageStats => "stream_options.continuous_usage_stats",
            Self::ReturnTokenIds => "return_token_ids",
            Self::Prompt => "text",
            Self::PromptIds => "input_ids",
        }
    }

    /// Whether the gateway acts on the value on this wire format. If not, the engine judges it.
    pub(super) const fn is_acted_on(self, wire: Wire) -> bool {
        match self {
            Self::Model => true,
            Self::Stream => !matches!(wire, Wire::Embeddings | Wire::Opaque),
            Self::Choices
            | Self::BestOf
            | Self::MaxTokens
            | Self::MaxCompletionTokens
            | Self::MaxOutputTokens
            | Self::Predict => wire.obeys_max_tokens(),
            Self::Background
            | Self::StreamOptions
            | Self::User
            | Self::ServiceTier
            | Self::IncludeUsage
            | Self::IncludeObfuscation
            | Self::ContinuousUsageStats
            | Self::ReturnTokenIds
            | Self::Prompt
            | Self::PromptIds => false,
        }
    }

    /// What the value must be, where the gateway acts on it.
    pub(super) const fn requirement(self) -> &'static str {
        match self {
            Self::Model => MODEL_REQUIREMENT,
            Self::Stream => "true or false",
            _ => "a number from -18446744073709551615 to 18446744073709551615",
        }
    }
}

/// What a model's name must be.
pub(crate) const MODEL_REQUIREMENT: &str = "a text of 1 to 256 bytes without control characters";
