//! Selects the vocabulary that counts for a model: first the files of the configuration, then the
//! built-in ones.

use taximeter_config::ModelPattern;
use taximeter_meter::Dialect;
use taximeter_tokenizer::Choice;

use crate::counting::Counting;

/// How the names of the models begin whose weights OpenAI has published.
const OPEN_MODELS: [&str; 3] = ["gpt-oss-", "gpt2", "gpt-2"];

/// The names of a model, and who serves it.
#[derive(Debug, Clone, Copy)]
pub struct Models<'a> {
    /// The model that the request names.
    pub request: Option<&'a str>,
    /// The model that the answer names.
    pub response: Option<&'a str>,
    /// Who serves it.
    pub server: Server,
}

/// Who serves a model, by the dialect of the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// OpenAI itself, or Azure: a model is what its name says.
    OpenAi,
    /// A provider, or anybody.
    Any,
    /// An engine that runs weights of its own: it has OpenAI's open models at most, whatever its
    /// model is called.
    Engine,
}

impl Server {
    /// Who speaks this dialect.
    pub const fn of(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAi | Dialect::Azure => Self::OpenAi,
            Dialect::Vllm
            | Dialect::Sglang
            | Dialect::Tgi
            | Dialect::LlamaCpp
            | Dialect::Ollama
            | Dialect::TensorrtLlm
            | Dialect::Lmdeploy
            | Dialect::MistralRs
            | Dialect::Nim => Self::Engine,
            _ => Self::Any,
        }
    }
}

/// The built-in vocabulary of a model, if there is one and `server` can have the model.
fn built_in(model: &str, server: Server) -> Option<Counting> {
    let is_open = || {
        let name = model.rsplit('/').next().unwrap_or(model);
        OPEN_MODELS.iter().any(|open| name.starts_with(open))
    };
    let counting = Counting::built_in(model);
    (counting.choice.exact && (server != Server::Engine || is_open())).then_some(counting)
}

/// Vocabularies, in order of preference.
#[derive(Debug, Clone, Default)]
pub struct Tokenizers {
    entries: Vec<Entry>,
    /// Text that is counted at once, in bytes; `None` is what the tokenizer has of itself.
    count_bytes_max: Option<usize>,
}

/// What counts, and for whom; not exact where the models' own vocabulary is another.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The models that it counts for.
    pub models: Vec<ModelPattern>,
    /// How it counts.
    pub counting: Counting,
}

impl Tokenizers {
    /// Those of a configuration, in its order.
    pub const fn new(entries: Vec<Entry>) -> Self {
        Self { entries, count_bytes_max: None }
    }

    /// The same, that count so much text at once, in bytes.
    pub fn within(self, count_bytes_max: usize) -> Self {
        Self { count_bytes_max: Some(count_bytes_max), ..self }
    }

    /// What counts: the vocabulary of the model that answered.
    ///
    /// Files that the configuration names for the model that was asked for count where the answer's
    /// name tells nothing. A built-in vocabulary does so only where nothing contradicts it: the answer
    /// names no model, and the upstream is one of OpenAI's. Otherwise the nearest vocabulary counts, and
    /// is not exact.
    pub fn choose(&self, models: Models<'_>) -> Counting {
        let Models { request, response, server } = models;
        let names = || [response, request].into_iter().flatten();
        let own = response.and_then(|model| self.find(model, true));
        let named = || response.and_then(|model| built_in(model, server));
        let asked = || request.and_then(|model| self.find(model, true));
        let is_assumed = response.is_none() && server == Server::OpenAi;
        let assumed = || request.filter(|_| is_assumed).and_then(|model| built_in(model, server));
        let near = || names().find_map(|model| self.find(model, false));
        let counting =
            own.or_else(named).or_else(asked).or_else(assumed).or_else(near).unwrap_or_else(|| {
                let Counting { choice, form } = Counting::built_in(request.unwrap_or_default());
                Counting { choice: Choice { exact: false, ..choice }, form }
            });
        match self.count_bytes_max {
            Some(bytes_max) => counting.within(bytes_max),
            None => counting,
        }
    }

    fn find(&self, model: &str, exact: bool) -> Option<Counting> {
        let fits = |entry: &&Entry| {
            entry.counting.choice.exact == exact
                && entry.models.iter().any(|pattern| pattern.matches(model))
        };
        self.entries.iter().find(fits).map(|entry| entry.counting.clone())
    }
}

#[cfg(test)]
mod tests {
    use taximeter_tokenizer::Tokenizer;

    use super::*;

    const FILE: &[u8] = include_bytes!("../../../tests/fixtures/tokenizers/tiny/tokenizer.json");

    fn entry(name: &str, pattern: &str, estimated: bool) -> Entry {
        let tokenizer = Tokenizer::from_file(name, FILE).unwrap().tokenizer;
        let mut counting = Counting::of_files(tokenizer, None);
        counting.choice.exact = !estimated;
        Entry { models: vec![ModelPattern::new(pattern).unwrap()], counting }
    }

    fn chosen(of: &Tokenizers, request: Option<&str>, response: Option<&str>) -> (String, bool) {
        chosen_at(of, Server::OpenAi, request, response)
    }

    fn chosen_at(
        of: &Tokenizers,
        server: Server,
        request: Option<&str>,
        response: Option<&str>,
    ) -> (String, bool) {
        let choice = of.choose(Models { request, response, server }).choice;
        (choice.tokenizer.name().to_owned(), choice.exact)
    }

    #[test]
    fn the_first_entry_that_fits_counts_then_what_is_built_in() {
        let of = Tokenizers::new(vec![
            entry("llama", "llama-*", false),
            entry("any llama", "llama*", false),
            entry("the rest", "*", true),
        ]);
        let cases = [
            (Some("llama-3"), None, ("llama", true)),
            (Some("llama3"), None, ("any llama", true)),
            (Some("gpt-4o"), None, ("o200k_base", true)),
            (Some("alias"), Some("llama-3"), ("llama", true)),
            (Some("gpt-4o"), Some("llama-3"), ("llama", true)),
            (Some("llama-3"), Some("/models/3"), ("llama", true)),
            (Some("mystery"), None, ("the rest", false)),
            (Some("mystery"), Some("other"), ("the rest", false)),
        ];
        for (request, response, (name, exact)) in cases {
            let expected = (name.to_owned(), exact);
            assert_eq!(chosen(&of, request, response), expected, "{request:?} {response:?}");
        }
    }

    #[test]
    fn the_vocabulary_is_that_of_what_answered() {
        use Server::{Any, Engine, OpenAi};
        let of = Tokenizers::default();
        for (server, request, response, exact) in [
            // Nobody knows the model that answered.
            (OpenAi, Some("gpt-3.5-turbo-instruct"), Some("tiny"), false),
            (Any, Some("gpt-3.5-turbo-instruct"), Some("tiny"), false),
            // The answer's name is known, whatever was asked for.
            (Any, Some("alias"), Some("gpt-4o-2024-08-06"), true),
            (Any, Some("gpt-4o"), Some("openai/gpt-4o"), true),
            (Any, Some("x"), Some("ft:gpt-4o-mini-2024-07-18:acme::1"), true),
            // Without a name only OpenAI serves what is asked for.
            (OpenAi, Some("gpt-4o"), None, true),
            (Any, Some("gpt-4o"), None, false),
            // An engine repeats the name that it is given, and has no weights of that model.
            (Engine, Some("gpt-4o"), Some("gpt-4o"), false),
            (Engine, Some("gpt-oss-120b"), Some("openai/gpt-oss-120b"), true),
            (Engine, Some("gpt2"), Some("gpt2"), true),
            (Any, Some("gemini-2.5-pro"), Some("gemini-2.5-pro"), false),
            (Any, Some("claude-sonnet-4-6"), None, false),
            (Any, None, None, false),
        ] {
            let found = chosen_at(&of, server, request, response).1;
            assert_eq!(found, exact, "{server:?} {request:?} {response:?}");
        }
    }

    #[test]
    fn a_file_that_the_configuration_names_outranks_the_name_alone() {
        let of = Tokenizers::new(vec![entry("tiny", "gpt-*", false)]);
        for server in [Server::OpenAi, Server::Any, Server::Engine] {
            for response in [None, Some("/models/tiny"), Some("gpt-4o")] {
                let found = chosen_at(&of, server, Some("gpt-4o"), response);
                assert_eq!(found, ("tiny".to_owned(), true), "{server:?} {response:?}");
            }
        }
    }

    #[test]
    fn a_model_that_nobody_knows_is_estimated() {
        let of = Tokenizers::new(vec![entry("llama", "llama-*", false)]);
        assert_eq!(chosen(&of, Some("mystery"), None), ("o200k_base".to_owned(), false));
        assert_eq!(chosen(&of, None, None), ("o200k_base".to_owned(), false));
    }

    #[test]
    fn every_vocabulary_counts_so_much_at_once_and_no_more() {
        let of = Tokenizers::new(vec![entry("llama", "llama-*", false)]).within(8);
        for model in ["llama-3", "gpt-4o", "mystery"] {
            let models = Models { request: Some(model), response: None, server: Server::OpenAi };
            let tokenizer = of.choose(models).choice.tokenizer;
            assert!(!tokenizer.count(["12345678"]).estimated, "{model}");
            assert!(tokenizer.count(["123456789"]).estimated, "{model}");
        }
    }
}
