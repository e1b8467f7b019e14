//! An engine's habits within the wire formats: one row an engine.

use serde::{Deserialize, Serialize};

/// Which engine or provider answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Not known yet; nothing is spliced until the engine has shown what it is.
    #[default]
    Auto,
    /// OpenAI itself, or a faithful copy.
    #[serde(rename = "openai")]
    OpenAi,
    /// Azure OpenAI.
    Azure,
    /// Anthropic Messages.
    Anthropic,
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// Hugging Face text-generation-inference.
    Tgi,
    /// llama.cpp's server.
    LlamaCpp,
    /// Ollama's OpenAI routes.
    Ollama,
    /// TensorRT-LLM: refuses any field it does not know.
    TensorrtLlm,
}

impl Dialect {
    /// Whether `stream_options.include_usage` may be spliced into a stream request.
    #[must_use]
    pub const fn accepts_include_usage(self) -> bool {
        match self {
            Self::OpenAi
            | Self::Azure
            | Self::Vllm
            | Self::Sglang
            | Self::Tgi
            | Self::LlamaCpp
            | Self::Ollama => true,
            Self::Auto | Self::Anthropic | Self::TensorrtLlm => false,
        }
    }

    /// Whether output may be counted in nothing but the total (Gemini's thinking, behind its OpenAI
    /// routes). Engines that are known by name count all they generate.
    pub(crate) const fn hides_thinking(self) -> bool {
        matches!(self, Self::Auto | Self::OpenAi)
    }

    /// `gen_ai.provider.name` when the configuration names none.
    ///
    /// Values of the OpenTelemetry registry where it has one, ours (`vllm` …) where it has none.
    #[must_use]
    pub const fn provider(self) -> &'static str {
        match self {
            Self::Auto | Self::OpenAi => "openai",
            Self::Azure => "azure.ai.openai",
            Self::Anthropic => "anthropic",
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Tgi => "tgi",
            Self::LlamaCpp => "llama_cpp",
            Self::Ollama => "ollama",
            Self::TensorrtLlm => "tensorrt_llm",
        }
    }

    /// The dialect that `owned_by` in an answer of `/v1/models` gives away, if it does.
    #[must_use]
    pub fn from_owned_by(owned_by: &str) -> Option<Self> {
        match owned_by {
            "llamacpp" => Some(Self::LlamaCpp),
            "vllm" => Some(Self::Vllm),
            "sglang" => Some(Self::Sglang),
            "library" => Some(Self::Ollama),
            "openai" | "openai-internal" | "system" => Some(Self::OpenAi),
            "tensorrt_llm" => Some(Self::TensorrtLlm),
            _ => None,
        }
    }
}
