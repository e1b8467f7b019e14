//! Translates the parts of a `tokenizer.json`, as far as this crate can do exactly the same.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::scan::Pattern;

/// Why a file is not for us: what we met, and did not understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Unsupported(pub(super) String);

/// Stands for a blank in vocabularies that come from SentencePiece.
pub(crate) const META_SPACE: char = '\u{2581}';

/// What becomes of a text before it is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recipe {
    /// Unicode's normalization form C comes first.
    pub(crate) nfc: bool,
    /// Blanks become [`META_SPACE`].
    pub(crate) meta_space: bool,
    /// Whether one more is put in front.
    pub(crate) prepend: Prepend,
    /// Where the text is cut.
    pub(crate) split: Split,
    /// What is merged.
    pub(crate) alphabet: AlphabetKind,
}

/// When a [`META_SPACE`] is put in front of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prepend {
    /// Never.
    Never,
    /// Before each part between added tokens.
    Always,
    /// The same, unless one is there.
    Missing,
    /// At the very start only, unless one is there.
    MissingAtStart,
}

/// Where a text is cut before it is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// Nowhere.
    Whole,
    /// Before each [`META_SPACE`].
    MetaSpace,
    /// By one of the patterns that we scan by hand.
    By(Pattern),
}

/// What the merges begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AlphabetKind {
    /// Bytes, each written as a letter of its own.
    Bytes,
    /// Characters; of those that have no token, the bytes (`<0x0A>`).
    Characters,
}

impl Recipe {
    /// Reads the parts of a file.
    ///
    /// Errors: the part that we cannot do exactly.
    pub(super) fn read(normalizer: &Value, pre_tokenizer: &Value) -> Result<Self, Unsupported> {
        let mut recipe = Self {
            nfc: false,
            meta_space: false,
            prepend: Prepend::Never,
            split: Split::Whole,
            alphabet: AlphabetKind::Characters,
        };
        recipe.normalizer(normalizer)?;
        recipe.pre_tokenizer(pre_tokenizer)?;
        Ok(recipe)
    }

    fn normalizer(&mut self, value: &Value) -> Result<(), Unsupported> {
        for part in parts::<Normalizer>(value, "normalizer")? {
            match part {
                Normalizer::Sequence { normalizers } => {
                    for inner in &normalizers {
                        self.normalizer(inner)?;
                    }
                }
                // After the others it would see what they made.
                Normalizer::Nfc if !self.meta_space && self.prepend == Prepend::Never => {
                    self.nfc = true;
                }
                Normalizer::Prepend { prepend }
                    if prepend == META_SPACE.to_string() && self.prepend == Prepend::Never =>
                {
                    self.prepend = Prepend::Always;
                }
                Normalizer::Replace { pattern: Find::String(find), content }
                    if find == " " && content == META_SPACE.to_string() =>
                {
                    self.meta_space = true;
                }
                other => return Err(Unsupported(format!("normalizer {other:?}"))),
            }
        }
        Ok(())
    }

    fn pre_tokenizer(&mut self, value: &Value) -> Result<(), Unsupported> {
        let parts = match parts::<PreTokenizer>(value, "pre_tokenizer")?.pop() {
            None => return Ok(()),
            Some(PreTokenizer::Sequence { pretokenizers }) => pretokenizers,
            Some(single) => vec![single],
        };
        let (last, before) = match parts.split_last() {
            Some((PreTokenizer::ByteLevel { add_prefix_space: false, use_regex, .. }, before)) => {
                self.alphabet = AlphabetKind::Bytes;
                (Some(*use_regex), before)
            }
            _ => (None, parts.as_slice()),
        };
        let unknown = || Unsupported(format!("pre_tokenizer {parts:?}"));
        self.split = match (last, before) {
            (Some(true), []) => Split::By(Pattern::Gpt2),
            (Some(false), []) => Split::Whole,
            (Some(false), splits) => {
                let patterns = splits.iter().map(PreTokenizer::isolated);
                let patterns: Vec<&str> = patterns.collect::<Option<_>>().ok_or_else(unknown)?;
                Split::By(Pattern::of_regexes(&patterns).ok_or_else(unknown)?)
            }
            (None, [PreTokenizer::Metaspace { .. }]) if self.nfc || self.meta_space => {
                return Err(unknown());
            }
            (None, [PreTokenizer::Metaspace { replacement, scheme, split, .. }])
                if *replacement == META_SPACE =>
            {
                self.meta_space = true;
                self.prepend = match scheme {
                    Scheme::Never => Prepend::Never,
                    Scheme::Always => Prepend::Missing,
                    Scheme::First => Prepend::MissingAtStart,
                };
                if *split { Split::MetaSpace } else { Split::Whole }
            }
            // No blank is left to split at.
            (None, [PreTokenizer::Split { pattern: Find::String(find), .. }])
                if find == " " && self.meta_space =>
            {
                Split::Whole
            }
            _ => return Err(unknown()),
        };
        Ok(())
    }
}

/// Tokens that a `post_processor` puts around a plain prompt.
pub(super) fn framing_tokens(value: &Value) -> Result<u64, Unsupported> {
    let mut tokens = 0;
    for part in parts::<PostProcessor>(value, "post_processor")? {
        match part {
            PostProcessor::ByteLevel {} => {}
            PostProcessor::Sequence { processors } => {
                for inner in &processors {
                    tokens += framing_tokens(inner)?;
                }
            }
            PostProcessor::TemplateProcessing { single, special_tokens } => {
                for piece in single.iter().filter_map(|piece| piece.get("SpecialToken")) {
                    let ids = piece
                        .get("id")
                        .and_then(Value::as_str)
                        .and_then(|name| special_tokens.get(name)?.get("ids")?.as_array());
                    let ids = ids.ok_or_else(|| Unsupported(format!("post_processor {value}")))?;
                    tokens += ids.len() as u64;
                }
            }
        }
    }
    Ok(tokens)
}

fn parts<T: for<'de> Deserialize<'de>>(value: &Value, key: &str) -> Result<Vec<T>, Unsupported> {
    if value.is_null() {
        return Ok(Vec::new());
    }
    let part = T::deserialize(value).map_err(|error| Unsupported(format!("{key}: {error}")))?;
    Ok(vec![part])
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum Normalizer {
    Sequence {
        normalizers: Vec<Value>,
    },
    #[serde(rename = "NFC")]
    Nfc,
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: Find,
        content: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum PreTokenizer {
    Sequence {
        pretokenizers: Vec<PreTokenizer>,
    },
    Split {
        pattern: Find,
        behavior: String,
        invert: bool,
    },
    ByteLevel {
        add_prefix_space: bool,
        #[serde(default = "yes")]
        use_regex: bool,
        /// Where a token begins is of no interest here.
        #[serde(default, rename = "trim_offsets")]
        _trim_offsets: IgnoredAny,
    },
    Metaspace {
        replacement: char,
        /// An older name of the scheme, which says the same.
        #[serde(default, rename = "add_prefix_space")]
        _add_prefix_space: IgnoredAny,
        #[serde(default, rename = "prepend_scheme")]
        scheme: Scheme,
        #[serde(default = "yes")]
        split: bool,
    },
}

impl PreTokenizer {
    /// The pattern of a split that keeps what it finds as pieces of their own.
    fn isolated(&self) -> Option<&str> {
        match self {
            Self::Split { pattern: Find::Regex(regex), behavior, invert: false }
                if behavior == "Isolated" =>
            {
                Some(regex)
            }
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
enum Find {
    String(String),
    Regex(String),
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scheme {
    First,
    Never,
    #[default]
    Always,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
enum PostProcessor {
    Sequence { processors: Vec<Value> },
    ByteLevel {},
    TemplateProcessing { single: Vec<Value>, special_tokens: Value },
}

const fn yes() -> bool {
    true
}
