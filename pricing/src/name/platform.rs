//! The platforms, and what their names are made of.

/// A platform that serves models.
#[derive(Debug, Clone, Copy)]
pub(super) struct Platform {
    /// Other spellings of the platform's name. Routers and price lists put them before a `/`.
    spellings: &'static [&'static str],
    /// Whether it is the vendor of some of its models too, as in `perplexity/sonar`.
    is_vendor: bool,
    /// The parts of its names.
    pub(super) grammar: Grammar,
    /// Whether a snapshot costs what the model without a date costs.
    pub(super) has_dated_snapshots: bool,
    /// The end of a name that stands for the newest snapshot and costs the same.
    pub(super) latest: Option<&'static str>,
}

/// The parts that names can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// The model, a date, a variant behind a colon, a fine-tuned model.
    Plain,
    /// A region before a `/`, and Azure's fine-tuned models.
    Azure,
    /// AWS Bedrock's identifiers and ARNs.
    Bedrock,
    /// Vertex AI's resource names, and versions behind an `@`.
    Vertex,
    /// The Gemini API's resource names.
    Gemini,
    /// Fireworks' resource names.
    Fireworks,
}

/// Of a platform that is not named here.
const OTHER: Platform = Platform {
    spellings: &[],
    is_vendor: false,
    grammar: Grammar::Plain,
    has_dated_snapshots: true,
    latest: None,
};

impl Platform {
    /// The platform called `provider` (`gen_ai.provider.name`).
    pub(super) fn of(provider: &str) -> Self {
        let spelled = |spellings| Self { spellings, ..OTHER };
        match provider {
            "anthropic" => Self { latest: Some("-latest"), ..OTHER },
            "aws.bedrock" => Self {
                grammar: Grammar::Bedrock,
                ..spelled(&[
                    "bedrock",
                    "bedrock_converse",
                    "bedrock_mantle",
                    "amazon-bedrock",
                    "aws",
                ])
            },
            "azure.ai.openai" => Self {
                grammar: Grammar::Azure,
                ..spelled(&["azure", "azure_openai", "azure-openai", "azure_text"])
            },
            "azure.ai.inference" => {
                Self { grammar: Grammar::Azure, ..spelled(&["azure_ai", "azure-ai"]) }
            }
            "cohere" => spelled(&["cohere_chat"]),
            // Snapshots of Qwen have prices of their own.
            "dashscope" | "qwencloud" | "qwen_ai_platform" => {
                Self { has_dated_snapshots: false, ..OTHER }
            }
            "fireworks_ai" => {
                Self { grammar: Grammar::Fireworks, ..spelled(&["fireworks", "fireworks-ai"]) }
            }
            "gcp.gemini" | "gcp.gen_ai" => {
                Self { grammar: Grammar::Gemini, ..spelled(&["gemini", "google"]) }
            }
            "gcp.vertex_ai" => Self {
                grammar: Grammar::Vertex,
                ..spelled(&["vertex_ai", "vertex-ai", "vertex", "vertexai", "google-vertex"])
            },
            "ibm.watsonx.ai" => spelled(&["watsonx"]),
            "mistral_ai" => spelled(&["mistral", "mistralai"]),
            "moonshot_ai" => spelled(&["moonshot", "moonshotai"]),
            // In Ollama a name without a tag has this one.
            "ollama" => Self { latest: Some(":latest"), ..spelled(&["ollama_chat"]) },
            "openai" => spelled(&["text-completion-openai"]),
            // Its list has each snapshot as a model of its own.
            "openrouter" => Self { has_dated_snapshots: false, is_vendor: true, ..OTHER },
            "perplexity" => Self { is_vendor: true, ..OTHER },
            "together_ai" => spelled(&["together", "together-ai"]),
            "vllm" => spelled(&["hosted_vllm"]),
            "voyage" => spelled(&["voyageai"]),
            "x_ai" => Self { latest: Some("-latest"), ..spelled(&["xai", "x-ai"]) },
            _ => OTHER,
        }
    }

    /// `name` without this platform before its first `/`.
    pub(super) fn without_provider<'a>(&self, provider: &str, name: &'a str) -> Option<&'a str> {
        let (head, rest) = name.split_once('/')?;
        let is_own = |spelling: &str| head.eq_ignore_ascii_case(spelling);
        let names_platform = is_own(provider) || self.spellings.iter().any(|word| is_own(word));
        let names_model = if self.is_vendor { rest.contains('/') } else { !rest.is_empty() };
        (names_platform && names_model).then_some(rest)
    }

    /// Whether `name` can have a region, a variant or an owner. It is a quick look and can be wrong
    /// in one way: a name may have none in the end.
    pub(super) fn may_qualify(&self, name: &str) -> bool {
        match self.grammar {
            Grammar::Plain | Grammar::Gemini | Grammar::Fireworks => {
                name.bytes().any(|byte| matches!(byte, b':' | b'#' | b'/'))
            }
            Grammar::Azure | Grammar::Bedrock | Grammar::Vertex => true,
        }
    }
}
