//! An engine's habits within the wire formats: one file an engine.
//!
//! To add one: its file, its line in the table, and a fixture.

mod anthropic;
mod auto;
mod azure;
mod habits;
mod llama_cpp;
mod ollama;
mod openai;
mod sglang;
mod tensorrt_llm;
mod tgi;
mod vllm;

use serde::{Deserialize, Serialize};

use habits::{Habits, StreamUsage};

macro_rules! dialects {
    ($($(#[$words:meta])* $name:literal $dialect:ident: $file:ident,)+) => {
        /// Which engine or provider answers.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Dialect {
            $($(#[$words])* #[serde(rename = $name)] $dialect,)+
        }

        impl Dialect {
            /// Each of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$dialect),+];

            const fn habits(self) -> &'static dyn Habits {
                match self {
                    $(Self::$dialect => &$file::$dialect,)+
                }
            }
        }
    };
}

dialects! {
    /// Not known yet; nothing is spliced until the engine has shown what it is.
    #[default]
    "auto" Auto: auto,
    /// OpenAI itself, or a faithful copy.
    "openai" OpenAi: openai,
    /// Azure OpenAI.
    "azure" Azure: azure,
    /// Anthropic Messages.
    "anthropic" Anthropic: anthropic,
    /// vLLM.
    "vllm" Vllm: vllm,
    /// SGLang.
    "sglang" Sglang: sglang,
    /// Hugging Face text-generation-inference.
    "tgi" Tgi: tgi,
    /// llama.cpp's server.
    "llama_cpp" LlamaCpp: llama_cpp,
    /// Ollama's OpenAI routes.
    "ollama" Ollama: ollama,
    /// TensorRT-LLM: refuses any field it does not know.
    "tensorrt_llm" TensorrtLlm: tensorrt_llm,
}

impl Dialect {
    /// `gen_ai.provider.name` when the configuration names none.
    ///
    /// Values of the OpenTelemetry registry where it has one, ours (`vllm` …) where it has none.
    #[must_use]
    pub fn provider(self) -> &'static str {
        self.habits().provider()
    }

    /// Whether `stream_options.include_usage` may be spliced into a stream request, and has to be:
    /// some tell their usage unasked.
    #[must_use]
    pub fn accepts_include_usage(self) -> bool {
        self.habits().stream_usage() == StreamUsage::WhenAsked
    }

    /// Whether `stream_options.continuous_usage_stats` may be spliced into a stream request.
    #[must_use]
    pub fn accepts_continuous_usage(self) -> bool {
        self.habits().takes_continuous_usage()
    }

    /// Whether `return_token_ids` may be spliced into a request.
    #[must_use]
    pub fn accepts_token_ids(self) -> bool {
        self.habits().takes_token_ids()
    }

    /// Whether output may be counted in nothing but the total (Gemini's thinking, behind its OpenAI
    /// routes). Engines that are known by name count all they generate.
    pub(crate) fn hides_thinking(self) -> bool {
        self.habits().hides_thinking()
    }

    /// The dialect that `owned_by` in an answer of `/v1/models` gives away, if it does.
    #[must_use]
    pub fn from_owned_by(owned_by: &str) -> Option<Self> {
        let owns = |dialect: &&Self| dialect.habits().owners().contains(&owned_by);
        Self::ALL.iter().find(owns).copied()
    }
}
