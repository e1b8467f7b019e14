//! Chooses the vocabulary of a model, by OpenAI's own table.
//!
//! Source: `tiktoken/model.py`, 0.14.0; `gpt-3.5` and `codex-mini` as in tiktoken-rs.

use crate::built_in::{BuiltIn, CL100K_BASE, O200K_BASE, P50K_BASE, R50K_BASE};

/// What a vocabulary is called, and what counts by it.
pub(crate) type Named = (&'static str, &'static BuiltIn);

pub(crate) const O200K: Named = ("o200k_base", &O200K_BASE);
/// Differs from `o200k_base` in its special tokens only, and these are ordinary text here.
const HARMONY: Named = ("o200k_harmony", &O200K_BASE);
const CL100K: Named = ("cl100k_base", &CL100K_BASE);
const P50K: Named = ("p50k_base", &P50K_BASE);
const R50K: Named = ("r50k_base", &R50K_BASE);

/// Models by their whole names.
const NAMES: &[(Named, &[&str])] = &[
    (O200K, &["o1", "o3", "o4-mini", "gpt-5", "gpt-4.1", "gpt-4o"]),
    (
        CL100K,
        &[
            "gpt-4",
            "gpt-3.5-turbo",
            "gpt-3.5",
            "gpt-35-turbo",
            "davinci-002",
            "babbage-002",
            "text-embedding-ada-002",
            "text-embedding-3-small",
            "text-embedding-3-large",
        ],
    ),
    (
        P50K,
        &[
            "text-davinci-003",
            "text-davinci-002",
            "code-davinci-002",
            "code-davinci-001",
            "code-cushman-002",
            "code-cushman-001",
            "davinci-codex",
            "cushman-codex",
            "text-davinci-edit-001",
            "code-davinci-edit-001",
        ],
    ),
    (
        R50K,
        &[
            "text-davinci-001",
            "text-curie-001",
            "text-babbage-001",
            "text-ada-001",
            "davinci",
            "curie",
            "babbage",
            "ada",
            "text-similarity-davinci-001",
            "text-similarity-curie-001",
            "text-similarity-babbage-001",
            "text-similarity-ada-001",
            "text-search-davinci-doc-001",
            "text-search-curie-doc-001",
            "text-search-babbage-doc-001",
            "text-search-ada-doc-001",
            "code-search-babbage-code-001",
            "code-search-ada-code-001",
            "gpt2",
            "gpt-2",
        ],
    ),
];

/// Models by how their names begin.
const PREFIXES: &[(Named, &[&str])] = &[
    (
        O200K,
        &[
            "o1-",
            "o3-",
            "o4-mini-",
            "gpt-5",
            "gpt-4.5-",
            "gpt-4.1-",
            "chatgpt-4o-",
            "gpt-4o-",
            "codex-mini",
        ],
    ),
    (CL100K, &["gpt-4-", "gpt-3.5-turbo-", "gpt-35-turbo-"]),
    (HARMONY, &["gpt-oss-"]),
];

/// The vocabulary of `model`, if the table names it. Fine-tuned models (`ft:…`) have that of the
/// model they came from.
pub(crate) fn vocabulary(model: &str) -> Option<Named> {
    let model = model.strip_prefix("openai/").unwrap_or(model);
    if let Some(tuned) = model.strip_prefix("ft:") {
        return vocabulary(tuned.split(':').next().unwrap_or(tuned));
    }
    let by_name = NAMES.iter().find(|(_, names)| names.contains(&model));
    let by_prefix = || {
        PREFIXES.iter().find(|(_, prefixes)| prefixes.iter().any(|&start| model.starts_with(start)))
    };
    by_name.or_else(by_prefix).map(|&(named, _)| named)
}

#[cfg(test)]
mod tests {
    use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};

    use super::*;

    #[test]
    fn the_table_is_openais() {
        let listed = NAMES.iter().chain(PREFIXES).flat_map(|(_, models)| *models);
        let odd =
            ["", "gpt", "GPT-4o", "o2", "o4", "gpt-6", "ft:", "ft:gpt-4o:acme::id", "davinci-"];
        for model in listed.chain(&odd) {
            for model in
                [(*model).to_owned(), format!("{model}2026-01-01"), format!("ft:{model}:x")]
            {
                let expected = get_tokenizer(&model).map(|tokenizer| match tokenizer {
                    Tokenizer::O200kHarmony => "o200k_harmony",
                    Tokenizer::O200kBase => "o200k_base",
                    Tokenizer::Cl100kBase => "cl100k_base",
                    Tokenizer::P50kBase | Tokenizer::P50kEdit => "p50k_base",
                    Tokenizer::R50kBase | Tokenizer::Gpt2 => "r50k_base",
                });
                assert_eq!(vocabulary(&model).map(|(name, _)| name), expected, "{model}");
            }
        }
    }
}
