//! The names of the members of usage objects, and what each of them means.
//!
//! There is one table for every dialect, because a provider may stand behind another dialect. It
//! lists each name once for each place where it may stand. `docs/reference/usage.md` is made from
//! it.

use taximeter_pricing::Condition;

use super::readings::Tokens;

/// What a member tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A number of tokens.
    Tokens(Tokens),
    /// The tokens of one modality.
    Modality(Side, Modality),
    /// A whole number of what is no token.
    Unit(&'static str),
    /// A quantity of what is no token, which need not be whole.
    Quantity(&'static str),
    /// What may change the price.
    Condition(Condition),
    /// The tier that has served.
    ServiceTier,
    /// Calls of a hosted tool, by the name of their unit.
    Tool(&'static str),
    /// Calls of all hosted tools together.
    ToolCalls,
    /// Sources that a search has read. Objects that tell them count reasoning beside the output.
    Sources,
    /// No calls of a hosted tool, in an object that holds those.
    NoTool,
    /// What the provider asks for it.
    Cost,
    /// The same, in ten thousand millionths of a dollar.
    CostTicks,
    /// The same, before it is final.
    EstimatedCost,
    /// What the provider behind this one asks for it.
    UpstreamCost,
    /// Whether the provider behind this one is paid with the client's own key.
    OwnKey,
    /// Further passes of a model.
    Iterations,
    /// An object with members of its own.
    Object(Place),
    /// A list of modalities and their tokens.
    Modalities(Side),
    /// A list of times to live and the tokens that were written for each.
    Lifetimes,
    /// A list of answers that were generated and not chosen.
    Sequences,
}

impl Meaning {
    /// Whether an object with such a member counts reasoning beside the output: Perplexity's and
    /// xAI's do.
    pub(super) const fn is_reasoning_beside(self) -> bool {
        matches!(
            self,
            Self::Tokens(Tokens::Citations)
                | Self::Condition(Condition::SearchContextSize)
                | Self::Sources
        )
    }
}

/// The whole that a modality is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Input,
    Output,
    CacheRead,
}

/// What tokens stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modality {
    Text,
    Audio,
    Image,
    Video,
    Multimodal,
}

impl Modality {
    /// Google's word for a modality; pages of documents are images.
    pub(super) fn of_word(word: &str) -> Option<Self> {
        Some(match word {
            "TEXT" => Self::Text,
            "AUDIO" => Self::Audio,
            "IMAGE" | "DOCUMENT" => Self::Image,
            "VIDEO" => Self::Video,
            _ => return None,
        })
    }
}

macro_rules! members {
    ($($(#[doc = $words:literal])+ $place:ident {
        $($name:literal $(| $other:literal)* => $meaning:expr,)+
    })+) => {
        /// Where a member stands.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Place {
            $($(#[doc = $words])+ $place,)+
        }

        impl Place {
            /// Which object it is, in words.
            #[cfg(test)]
            const fn words(self) -> &'static str {
                match self {
                    $(Self::$place => concat!($($words),+),)+
                }
            }
        }

        /// What the member `name` tells in the object at `place`; `None` is nothing that counts.
        pub(super) const fn meaning(place: Place, name: &[u8]) -> Option<Meaning> {
            match place {
                $(Place::$place => match name {
                    $($name $(| $other)* => Some($meaning),)+
                    _ => None,
                },)+
            }
        }

        /// The rows of the table, in its order.
        #[cfg(test)]
        const TABLE: &[(Place, &[&[u8]], Meaning)] = &[
            $($((
                Place::$place,
                &[$name.as_slice() $(, $other.as_slice())*],
                $meaning,
            ),)+)+
        ];
    };
}

members! {
    /// `usage`, and what stands in its place: `meta_info` of SGLang, `details` of TGI, `meta` of
    /// Cohere, the answer itself of Ollama and llama.cpp.
    Usage {
        b"prompt_tokens" | b"tokens_evaluated" | b"input_length" | b"prompt_eval_count"
            => Meaning::Tokens(Tokens::Input),
        b"input_tokens" | b"inputTokens" | b"inputTokenCount"
            => Meaning::Tokens(Tokens::BareInput),
        b"completion_tokens" | b"output_tokens" | b"outputTokens" | b"outputTokenCount"
            | b"eval_count" | b"tokens_predicted" | b"generated_tokens"
            => Meaning::Tokens(Tokens::Output),
        b"total_tokens" | b"totalTokens" => Meaning::Tokens(Tokens::Total),
        b"cache_read_input_tokens" | b"cacheReadInputTokens" | b"cacheReadInputTokenCount"
            => Meaning::Tokens(Tokens::CacheReadBeside),
        b"cached_tokens" | b"num_cached_tokens" | b"cached_input_tokens"
            | b"cached_prompt_tokens" | b"cached_prompt_text_tokens" | b"cache_read_tokens"
            | b"prompt_cache_hit_tokens" => Meaning::Tokens(Tokens::CacheRead),
        b"cache_creation_input_tokens" | b"cacheCreationInputTokens" | b"cacheWriteInputTokens"
            | b"cacheWriteInputTokenCount" => Meaning::Tokens(Tokens::CacheWriteBeside),
        b"cache_write_tokens" | b"cache_write_input_tokens" | b"cache_creation_tokens"
            | b"cached_creation_tokens" | b"cached_write_tokens" | b"caching_tokens"
            | b"created_cache_tokens" | b"prompt_cache_write_tokens"
            => Meaning::Tokens(Tokens::CacheWrite),
        b"cache_creation_5m_tokens" | b"cache_creation_5m_input_tokens"
            | b"claude_cache_creation_5_m_tokens" => Meaning::Tokens(Tokens::CacheWriteShort),
        b"cache_creation_1h_tokens" | b"cache_creation_1h_input_tokens"
            | b"claude_cache_creation_1_h_tokens" => Meaning::Tokens(Tokens::CacheWriteLong),
        b"reasoning_tokens" | b"thinking_tokens" | b"reasoning_output_tokens"
            => Meaning::Tokens(Tokens::Reasoning),
        b"citation_tokens" => Meaning::Tokens(Tokens::Citations),
        b"prompt_tokens_details" | b"prompt_token_details" | b"input_tokens_details"
            | b"input_token_details" => Meaning::Object(Place::InputDetails),
        b"completion_tokens_details" | b"completion_token_details" | b"output_tokens_details"
            | b"output_token_details" => Meaning::Object(Place::OutputDetails),
        b"cache_creation" | b"cache_creation_token_details" | b"cache_write_tokens_details"
            => Meaning::Object(Place::CacheWrites),
        b"cacheDetails" => Meaning::Lifetimes,
        b"billed_units" => Meaning::Object(Place::BilledUnits),
        b"tokens" => Meaning::Object(Place::ReadTokens),
        b"best_of_sequences" => Meaning::Sequences,
        b"server_tool_use" | b"serverToolUse" => Meaning::Object(Place::ServerToolUse),
        b"server_side_tool_usage" | b"server_side_tool_usage_details"
            => Meaning::Object(Place::ServerSideTools),
        b"tool_usage" | b"tool_usage_details" | b"tool_calls_details" | b"connectors" | b"plugins"
            | b"x_tools" => Meaning::Object(Place::HostedTools),
        b"num_server_side_tools_used" => Meaning::ToolCalls,
        b"num_search_queries" => Meaning::Unit("search_queries"),
        b"num_sources_used" => Meaning::Sources,
        b"connector_tokens" => Meaning::Tokens(Tokens::ToolInput),
        b"seconds" | b"prompt_audio_seconds" => Meaning::Quantity("audio_seconds"),
        b"inference_geo" => Meaning::Condition(Condition::InferenceGeo),
        b"speed" => Meaning::Condition(Condition::Speed),
        b"search_context_size" => Meaning::Condition(Condition::SearchContextSize),
        b"service_tier" => Meaning::ServiceTier,
        b"cost" => Meaning::Cost,
        b"cost_in_usd_ticks" => Meaning::CostTicks,
        b"estimated_cost" => Meaning::EstimatedCost,
        b"cost_details" => Meaning::Object(Place::CostDetails),
        b"is_byok" => Meaning::OwnKey,
        b"iterations" => Meaning::Iterations,
    }

    /// Details of the input. Where they stand, the input includes what was cached.
    InputDetails {
        b"cached_tokens" | b"cached_read_tokens" | b"cached_input_tokens" | b"cache_read_tokens"
            | b"cache_read_input_tokens" => Meaning::Tokens(Tokens::CacheRead),
        b"cache_write_tokens" | b"cache_write_input_tokens" | b"cached_write_tokens"
            | b"cache_creation_tokens" | b"cache_creation_input_tokens"
            | b"cached_creation_tokens" | b"created_cache_tokens" | b"caching_tokens"
            => Meaning::Tokens(Tokens::CacheWrite),
        b"cache_creation_5m_tokens" | b"cache_creation_5m_input_tokens"
            | b"ephemeral_5m_input_tokens" => Meaning::Tokens(Tokens::CacheWriteShort),
        b"cache_creation_1h_tokens" | b"cache_creation_1h_input_tokens"
            | b"ephemeral_1h_input_tokens" => Meaning::Tokens(Tokens::CacheWriteLong),
        b"cache_creation" | b"cache_creation_token_details" | b"cache_creation_tokens_details"
            | b"cache_write_token_details" | b"cache_write_tokens_details"
            => Meaning::Object(Place::CacheWrites),
        b"cached_tokens_details" | b"cached_token_details"
            => Meaning::Object(Place::CacheReadDetails),
        b"text_tokens" => Meaning::Modality(Side::Input, Modality::Text),
        b"audio_tokens" => Meaning::Modality(Side::Input, Modality::Audio),
        b"image_tokens" => Meaning::Modality(Side::Input, Modality::Image),
        b"video_tokens" => Meaning::Modality(Side::Input, Modality::Video),
        b"multimodal_tokens" => Meaning::Modality(Side::Input, Modality::Multimodal),
        b"web_search_requests" => Meaning::Unit("web_search_requests"),
    }

    /// Details of the output.
    OutputDetails {
        b"reasoning_tokens" | b"thinking_tokens" => Meaning::Tokens(Tokens::Reasoning),
        b"text_tokens" => Meaning::Modality(Side::Output, Modality::Text),
        b"audio_tokens" => Meaning::Modality(Side::Output, Modality::Audio),
        b"image_tokens" => Meaning::Modality(Side::Output, Modality::Image),
        b"video_tokens" => Meaning::Modality(Side::Output, Modality::Video),
        b"multimodal_tokens" => Meaning::Modality(Side::Output, Modality::Multimodal),
    }

    /// Details of what was read from a cache.
    CacheReadDetails {
        b"text_tokens" => Meaning::Modality(Side::CacheRead, Modality::Text),
        b"audio_tokens" => Meaning::Modality(Side::CacheRead, Modality::Audio),
        b"image_tokens" => Meaning::Modality(Side::CacheRead, Modality::Image),
        b"video_tokens" => Meaning::Modality(Side::CacheRead, Modality::Video),
        b"multimodal_tokens" => Meaning::Modality(Side::CacheRead, Modality::Multimodal),
    }

    /// What was written to a cache, by its time to live.
    CacheWrites {
        b"ephemeral_5m_input_tokens" | b"ttl_30m_tokens"
            => Meaning::Tokens(Tokens::CacheWriteShort),
        b"ephemeral_1h_input_tokens" | b"ttl_12h_tokens"
            => Meaning::Tokens(Tokens::CacheWriteLong),
    }

    /// What Cohere bills. It outranks what was read.
    BilledUnits {
        b"input_tokens" => Meaning::Tokens(Tokens::BilledInput),
        b"output_tokens" => Meaning::Tokens(Tokens::BilledOutput),
        b"image_tokens" => Meaning::Tokens(Tokens::ImageInput),
        b"images" => Meaning::Unit("images"),
        b"search_units" => Meaning::Unit("search_units"),
        b"classifications" => Meaning::Tool("classification_calls"),
    }

    /// What Cohere's model read and wrote.
    ReadTokens {
        b"input_tokens" => Meaning::Tokens(Tokens::Input),
        b"output_tokens" => Meaning::Tokens(Tokens::Output),
        b"image_tokens" => Meaning::Tokens(Tokens::ImageInput),
    }

    /// Calls of Anthropic's and OpenRouter's tools. A tool that is not listed has a unit by its name.
    ServerToolUse {
        b"web_search_requests" => Meaning::Unit("web_search_requests"),
        b"web_fetch_requests" => Meaning::Unit("web_fetch_requests"),
        b"tool_calls_requested" | b"tool_calls_executed" => Meaning::NoTool,
    }

    /// Calls of xAI's tools: all that there were. A tool that is not listed has a unit by its name.
    ServerSideTools {
        b"web_search_calls" | b"SERVER_SIDE_TOOL_WEB_SEARCH"
            => Meaning::Tool("web_search_requests"),
        b"x_search_calls" | b"SERVER_SIDE_TOOL_X_SEARCH" => Meaning::Tool("x_search_calls"),
        b"code_interpreter_calls" | b"code_execution_calls" | b"code_execution"
            | b"SERVER_SIDE_TOOL_CODE_EXECUTION" => Meaning::Tool("code_interpreter_calls"),
        b"file_search_calls" | b"collections_search_calls"
            | b"SERVER_SIDE_TOOL_COLLECTIONS_SEARCH" => Meaning::Tool("file_search_calls"),
        b"document_search_calls" | b"attachment_search_calls"
            | b"SERVER_SIDE_TOOL_ATTACHMENT_SEARCH" => Meaning::Tool("document_search_calls"),
        b"image_generation_calls" => Meaning::Tool("image_generation_calls"),
        b"mcp_calls" | b"SERVER_SIDE_TOOL_MCP" => Meaning::Tool("mcp_calls"),
    }

    /// Calls of the tools of Perplexity, Mistral, Alibaba and others: a number for each, or an object
    /// with the number. A tool that is not listed has a unit by its name.
    HostedTools {
        b"web_search" | b"search_web" | b"search" => Meaning::Tool("web_search_requests"),
        b"fetch_url" => Meaning::Tool("fetch_url_calls"),
        b"code_interpreter" => Meaning::Tool("code_interpreter_calls"),
        b"image_generation" => Meaning::Tool("image_generation_calls"),
    }

    /// Parts of what OpenRouter asks for.
    CostDetails {
        b"upstream_inference_cost" => Meaning::UpstreamCost,
    }

    /// `usageMetadata` of Gemini.
    UsageMetadata {
        b"promptTokenCount" => Meaning::Tokens(Tokens::Input),
        b"toolUsePromptTokenCount" => Meaning::Tokens(Tokens::ToolInput),
        b"candidatesTokenCount" | b"responseTokenCount" => Meaning::Tokens(Tokens::Output),
        b"thoughtsTokenCount" => Meaning::Tokens(Tokens::ReasoningBeside),
        b"cachedContentTokenCount" => Meaning::Tokens(Tokens::CacheRead),
        b"totalTokenCount" => Meaning::Tokens(Tokens::Total),
        b"promptTokensDetails" | b"toolUsePromptTokensDetails"
            => Meaning::Modalities(Side::Input),
        b"candidatesTokensDetails" | b"responseTokensDetails" => Meaning::Modalities(Side::Output),
        b"cacheTokensDetails" => Meaning::Modalities(Side::CacheRead),
    }

    /// `timings` of llama.cpp, which count where no usage object does.
    Timings {
        b"prompt_n" => Meaning::Tokens(Tokens::BareInput),
        b"cache_n" => Meaning::Tokens(Tokens::CacheReadBeside),
        b"predicted_n" => Meaning::Tokens(Tokens::Output),
    }
}

#[cfg(test)]
mod tests;
