//! Which vocabulary counts for which model: the files that the configuration names, then those
//! that are built in.

use taximeter_config::ModelPattern;
use taximeter_tokenizer::{Choice, Tokenizer};

/// Vocabularies, in order of preference.
#[derive(Debug, Default)]
pub(crate) struct Tokenizers(Vec<Entry>);

/// A vocabulary, and for whom it counts.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) models: Vec<ModelPattern>,
    pub(crate) tokenizer: Tokenizer,
    /// Whether the models' own vocabulary is another.
    pub(crate) estimated: bool,
}

impl Tokenizers {
    pub(crate) const fn new(entries: Vec<Entry>) -> Self {
        Self(entries)
    }

    /// What counts: the vocabulary of the model that answered, or else of the one that was asked
    /// for; the nearest one, not exact, where neither has one.
    pub(crate) fn choose(
        &self,
        request_model: Option<&str>,
        response_model: Option<&str>,
    ) -> Choice {
        let models = [response_model, request_model].into_iter().flatten();
        let own = models.clone().find_map(|model| self.own(model));
        let near = || models.clone().find_map(|model| self.near(model));
        own.or_else(near).unwrap_or_else(|| Tokenizer::for_model(""))
    }

    /// The model's own vocabulary.
    fn own(&self, model: &str) -> Option<Choice> {
        let given = self.find(model, false).map(|tokenizer| Choice { tokenizer, exact: true });
        given.or_else(|| Some(Tokenizer::for_model(model)).filter(|built_in| built_in.exact))
    }

    /// One that is to stand for the model's own.
    fn near(&self, model: &str) -> Option<Choice> {
        self.find(model, true).map(|tokenizer| Choice { tokenizer, exact: false })
    }

    fn find(&self, model: &str, estimated: bool) -> Option<Tokenizer> {
        let fits = |entry: &&Entry| {
            entry.estimated == estimated
                && entry.models.iter().any(|pattern| pattern.matches(model))
        };
        self.0.iter().find(fits).map(|entry| entry.tokenizer.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &[u8] = include_bytes!("../../tests/fixtures/tokenizers/tiny/tokenizer.json");

    fn entry(name: &str, pattern: &str, estimated: bool) -> Entry {
        let tokenizer = Tokenizer::from_file(name, FILE).unwrap().tokenizer;
        Entry { models: vec![ModelPattern::new(pattern).unwrap()], tokenizer, estimated }
    }

    fn chosen(of: &Tokenizers, request: Option<&str>, response: Option<&str>) -> (String, bool) {
        let choice = of.choose(request, response);
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
    fn a_model_that_nobody_knows_is_estimated() {
        let of = Tokenizers::new(vec![entry("llama", "llama-*", false)]);
        assert_eq!(chosen(&of, Some("mystery"), None), ("o200k_base".to_owned(), false));
        assert_eq!(chosen(&of, None, None), ("o200k_base".to_owned(), false));
    }
}
