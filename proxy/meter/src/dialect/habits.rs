//! The questions that each dialect answers about its engine.

/// An engine's habits within the wire formats: each dialect fills in one.
///
/// What it leaves out is as with an engine of which nothing is known but the format that it speaks.
pub(super) trait Habits: Sync {
    /// `gen_ai.provider.name`: the OpenTelemetry registry's value where it has one, ours (`vllm` …)
    /// where it has none.
    fn provider(&self) -> &'static str;

    /// When a stream of chat completions tells its usage.
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

    /// Whether token ids that nobody asked for are null rather than absent.
    fn nulls_token_ids(&self) -> bool {
        false
    }

    /// Where it counts what was thought.
    fn reasoning(&self) -> Reasoning {
        Reasoning::InOutput
    }

    /// Hosts of its API. A `*` stands for one label.
    fn hosts(&self) -> &'static [&'static str] {
        &[]
    }

    /// What gives it away, each for certain: no other engine does the same.
    fn marks(&self) -> &'static [Mark] {
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

/// Where reasoning is counted. A total that fits tells by itself; this says what else to think of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// Nobody knows: the usage object itself may tell.
    Unknown,
    /// In the output.
    InOutput,
    /// Beside the output and in the total.
    BesideOutput,
    /// Beside the output, and the total leaves it out too: the total tells nothing.
    BesideTotal,
    /// In the output, or in nothing but the total.
    InTotalOnly,
}

/// Something that one engine does and no other.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mark {
    /// `owned_by` of every model in the engine's answer to `/v1/models`.
    Engine(&'static str),
    /// `owned_by` of every model in a provider's answer to `/v1/models`. Servers that pass requests
    /// on list its models under the same name.
    Owner(&'static str),
    /// A header of an answer, in lower case.
    Header(&'static str),
    /// A header of an answer with this value.
    HeaderIs(&'static str, &'static str),
    /// A member of an answer's JSON, whatever its value, by the names on the way to it. A list on
    /// the way is looked into.
    Member(&'static [&'static str]),
    /// `system_fingerprint` of an answer, where the function knows it.
    Fingerprint(fn(&str) -> bool),
}
