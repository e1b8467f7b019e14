//! Selects the vocabulary that counts for a model: first the files of the configuration, then the
//! built-in ones.

use taximeter_config::ModelPattern;

use crate::counting::Counting;

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

    /// What counts: the vocabulary of the model that answered, or else of the one that was asked
    /// for; the nearest one, not exact, where neither has one.
    pub fn choose(&self, request_model: Option<&str>, response_model: Option<&str>) -> Counting {
        let models = [response_model, request_model].into_iter().flatten();
        let own = models.clone().find_map(|model| self.own(model));
        let near = || models.clone().find_map(|model| self.find(model, false));
        let counting = own.or_else(near).unwrap_or_else(|| Counting::built_in(""));
        match self.count_bytes_max {
            Some(bytes_max) => counting.within(bytes_max),
            None => counting,
        }
    }

    /// The model's own vocabulary.
    fn own(&self, model: &str) -> Option<Counting> {
        let built_in = || Some(Counting::built_in(model)).filter(|own| own.choice.exact);
        self.find(model, true).or_else(built_in)
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
        let choice = of.choose(request, response).choice;
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

    #[test]
    fn every_vocabulary_counts_so_much_at_once_and_no_more() {
        let of = Tokenizers::new(vec![entry("llama", "llama-*", false)]).within(8);
        for model in ["llama-3", "gpt-4o", "mystery"] {
            let tokenizer = of.choose(Some(model), None).choice.tokenizer;
            assert!(!tokenizer.count(["12345678"]).estimated, "{model}");
            assert!(tokenizer.count(["123456789"]).estimated, "{model}");
        }
    }
}
