//! What there is to know of an engine.

/// An engine's habits within the wire formats: each dialect fills in one.
///
/// What it leaves out is as with an engine of which nothing is known but the format that it speaks.
pub(super) trait Habits: Sync {
    /// `gen_ai.provider.name`: the OpenTelemetry registry's value where it has one, ours (`vllm` …)
    /// where it has none.
    fn provider(&self) -> &'static str;

    /// Whether a stream tells its usage.
    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::Unknown
    }

    /// Whether `stream_options.continuous_usage_stats` brings usage with every chunk.
    fn takes_continuous_usage(&self) -> bool {
        false
    }

    /// Whether `return_token_ids` brings the tokens themselves.
    fn takes_token_ids(&self) -> bool {
        false
    }

    /// Whether output may be counted in nothing but the total.
    fn hides_thinking(&self) -> bool {
        false
    }

    /// Values of `owned_by` in its answers to `/v1/models` that no other engine uses.
    fn owners(&self) -> &'static [&'static str] {
        &[]
    }
}

/// When a stream of chat completions tells its usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamUsage {
    /// Asked or not.
    Always,
    /// When `stream_options.include_usage` asks; knows that field.
    WhenAsked,
    /// It may or not, and may refuse to be asked.
    Unknown,
}
