//! The habits of each engine within the wire formats. Each engine has one file.
//!
//! A new engine needs a file, a line in the table, and a fixture.

mod anthropic;
mod auto;
mod azure;
mod bedrock;
mod cohere;
mod deepseek;
mod fireworks;
mod gemini;
mod groq;
mod habits;
mod llama_cpp;
mod lmdeploy;
mod mistral;
mod mistral_rs;
mod moonshot;
mod nim;
mod ollama;
mod openai;
mod openrouter;
mod perplexity;
mod sglang;
mod tensorrt_llm;
mod tgi;
mod together;
mod vllm;
mod xai;

use serde::{Deserialize, Serialize};

use habits::{Habits, StreamUsage};
pub(crate) use habits::{Mark, Reasoning};

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

            /// Its name in configurations.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$dialect => $name,)+
                }
            }

            const fn habits(self) -> &'static dyn Habits {
                match self {
                    $(Self::$dialect => &$file::$dialect,)+
                }
            }
        }
    };
}

dialects! {
    /// Named by the host of the upstream's URL, or by the owner of all its models; else unknown.
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
    /// LMDeploy.
    "lmdeploy" Lmdeploy: lmdeploy,
    /// mistral.rs.
    "mistral_rs" MistralRs: mistral_rs,
    /// NVIDIA NIM.
    "nim" Nim: nim,
    /// Mistral's own API.
    "mistral" Mistral: mistral,
    /// DeepSeek's own API.
    "deepseek" Deepseek: deepseek,
    /// Groq.
    "groq" Groq: groq,
    /// xAI.
    "xai" Xai: xai,
    /// Perplexity.
    "perplexity" Perplexity: perplexity,
    /// OpenRouter.
    "openrouter" OpenRouter: openrouter,
    /// Gemini, on its own routes and behind OpenAI's.
    "gemini" Gemini: gemini,
    /// Together AI.
    "together" Together: together,
    /// Fireworks AI.
    "fireworks" Fireworks: fireworks,
    /// Moonshot AI.
    "moonshot" Moonshot: moonshot,
    /// Cohere.
    "cohere" Cohere: cohere,
    /// AWS Bedrock.
    "bedrock" Bedrock: bedrock,
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

    /// Whether token ids that nobody asked for are null rather than absent.
    pub(crate) fn nulls_token_ids(self) -> bool {
        self.habits().nulls_token_ids()
    }

    /// Where reasoning is counted.
    pub(crate) fn reasoning(self) -> Reasoning {
        self.habits().reasoning()
    }

    /// What gives it away in an answer.
    pub(crate) fn marks(self) -> &'static [Mark] {
        self.habits().marks()
    }

    /// The dialect of a hosted API, by the host of its URL in lower case.
    #[must_use]
    pub fn of_host(host: &str) -> Option<Self> {
        let host = host.strip_suffix('.').unwrap_or(host);
        let has_host = |dialect: &Self| dialect.hosts().iter().any(|known| is_host(known, host));
        Self::ALL.iter().copied().find(has_host)
    }

    fn hosts(self) -> &'static [&'static str] {
        self.habits().hosts()
    }

    /// The dialect that the owners of all models give away (`owned_by` in an answer to
    /// `/v1/models`): `None` where one of them has no owner or another one.
    pub fn from_owners<'o>(owners: impl IntoIterator<Item = Option<&'o str>>) -> Option<Self> {
        let mut dialects = owners.into_iter().map(|owner| owner.and_then(Self::of_owner));
        let first = dialects.next()??;
        dialects.all(|dialect| dialect == Some(first)).then_some(first)
    }

    fn of_owner(owner: &str) -> Option<Self> {
        let is_mark = |mark: &Mark| match mark {
            Mark::Engine(name) | Mark::Owner(name) => *name == owner,
            Mark::Header(_) | Mark::HeaderIs(..) | Mark::Member(_) | Mark::Fingerprint(_) => false,
        };
        Self::ALL.iter().copied().find(|dialect| dialect.marks().iter().any(is_mark))
    }

    /// Whether a list of models that all have this owner comes from the engine itself.
    #[must_use]
    pub fn owns_its_models(self) -> bool {
        self.marks().iter().any(|mark| matches!(mark, Mark::Engine(_)))
    }
}

/// Whether a host is the one that is known. A `*` stands for one label.
fn is_host(known: &str, host: &str) -> bool {
    let mut labels = host.split('.');
    known.split('.').all(|known| labels.next().is_some_and(|label| known == "*" || known == label))
        && labels.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_known_where_it_owns_every_model() {
        let known =
            |owners: &[&'static str]| Dialect::from_owners(owners.iter().map(|owner| Some(*owner)));
        assert_eq!(known(&["vllm"]), Some(Dialect::Vllm));
        assert_eq!(known(&["sglang", "sglang"]), Some(Dialect::Sglang));
        assert_eq!(known(&["openai", "openai-internal"]), Some(Dialect::OpenAi));
        for mixed in [&["me", "vllm"][..], &["vllm", "me"], &["deepseek", "xai"], &["system"], &[]]
        {
            assert_eq!(known(mixed), None, "{mixed:?}");
        }
        assert_eq!(Dialect::from_owners([Some("vllm"), None]), None);
    }

    #[test]
    fn only_an_engine_names_the_upstream_by_its_models() {
        let engines = [Dialect::Vllm, Dialect::Sglang, Dialect::LlamaCpp];
        for dialect in Dialect::ALL {
            assert_eq!(dialect.owns_its_models(), engines.contains(dialect), "{dialect:?}");
        }
    }

    #[test]
    fn the_host_of_a_url_names_a_hosted_api() {
        for (host, dialect) in [
            ("api.openai.com", Dialect::OpenAi),
            ("eu.api.openai.com", Dialect::OpenAi),
            ("api.openai.com.", Dialect::OpenAi),
            ("my-resource.openai.azure.com", Dialect::Azure),
            ("api.anthropic.com", Dialect::Anthropic),
            ("generativelanguage.googleapis.com", Dialect::Gemini),
            ("bedrock-runtime.eu-west-1.amazonaws.com", Dialect::Bedrock),
            ("api.x.ai", Dialect::Xai),
        ] {
            assert_eq!(Dialect::of_host(host), Some(dialect), "{host}");
        }
        for host in [
            "localhost",
            "openai.com",
            "api.openai.com.example",
            "a.b.api.openai.com",
            "openai.azure.com",
            "xapi.openai.com",
            "bedrock-runtime.amazonaws.com",
            "",
        ] {
            assert_eq!(Dialect::of_host(host), None, "{host}");
        }
    }

    #[test]
    fn each_host_is_one_dialects() {
        for dialect in Dialect::ALL {
            for host in dialect.hosts() {
                assert_eq!(Dialect::of_host(host), Some(*dialect), "{host}");
            }
        }
    }

    #[test]
    fn nothing_is_spliced_for_engines_that_might_refuse_it() {
        for dialect in [Dialect::Auto, Dialect::TensorrtLlm, Dialect::Together, Dialect::Cohere] {
            assert!(!dialect.accepts_include_usage(), "{dialect:?}");
            assert!(!dialect.accepts_continuous_usage(), "{dialect:?}");
            assert!(!dialect.accepts_token_ids(), "{dialect:?}");
        }
    }

    /// The page's table: a row a dialect.
    fn table() -> String {
        let yes = |is_so| if is_so { "yes" } else { "" };
        let mut table = String::new();
        for dialect in Dialect::ALL {
            let habits = dialect.habits();
            let name = serde_json::to_value(dialect).unwrap();
            let marks: Vec<_> = habits.marks().iter().map(shown).collect();
            let hosts: Vec<_> = habits.hosts().iter().map(|host| format!("`{host}`")).collect();
            let row = [
                name.as_str().unwrap(),
                habits.provider(),
                &hosts.join(", "),
                match habits.stream_usage() {
                    StreamUsage::Always => "always",
                    StreamUsage::WhenAsked => "when asked; Taximeter asks",
                    StreamUsage::Unknown => "not known; Taximeter does not ask",
                },
                yes(habits.takes_continuous_usage()),
                yes(habits.takes_token_ids()),
                match habits.reasoning() {
                    Reasoning::Unknown => "not known; the usage object may tell",
                    Reasoning::InOutput => "in the output",
                    Reasoning::BesideOutput => "beside the output",
                    Reasoning::BesideTotal => "beside the output and the total",
                    Reasoning::InTotalOnly => "in the output, or only in the total",
                },
                &marks.join(", "),
            ];
            table += &format!("| {} |\n", row.join(" | "));
        }
        table
    }

    fn shown(mark: &Mark) -> String {
        match mark {
            Mark::Engine(owner) | Mark::Owner(owner) => format!("models owned by `{owner}`"),
            Mark::Header(name) => format!("header `{name}`"),
            Mark::HeaderIs(name, value) => format!("header `{name}: {value}`"),
            Mark::Member(path) => format!("`{}`", path.join(".")),
            Mark::Fingerprint(_) => "the form of `system_fingerprint`".to_owned(),
        }
    }

    #[test]
    fn the_page_of_dialects_says_what_is_known_of_each() {
        let with_table = |stands: &str| {
            let text = stands.split_once("| --- |\n").map_or(stands, |(text, _)| text);
            format!("{text}| --- |\n{}", table())
        };
        let path = "docs/reference/dialects.md";
        assert_eq!(taximeter_tests::generated::is_fresh(path, with_table), Ok(()));
    }

    #[test]
    fn usage_that_comes_unasked_is_not_asked_for() {
        for dialect in [Dialect::Groq, Dialect::Mistral, Dialect::OpenRouter, Dialect::Anthropic] {
            assert!(!dialect.accepts_include_usage(), "{dialect:?}");
        }
        assert!(Dialect::Vllm.accepts_include_usage());
    }
}
