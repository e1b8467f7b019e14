//! Reads the part of a `tokenizer.json` that must be known before its merges can be learned. In
//! most files it comes before them. It is read alone while the other parts are read.

use serde_json::Value;

use super::cursor::Cursor;
use super::recipe::Unsupported;
use super::texts::Texts;

/// Tokens and their numbers, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Vocab {
    pub(super) texts: Texts,
    pub(super) ids: Vec<u32>,
}

/// What must be known first.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) normalizer: Value,
    pub(super) pre_tokenizer: Value,
    pub(super) vocab: Vocab,
}

/// What is wrong with a file that has a vocabulary where only its model should.
pub(super) const NO_MODEL: &str = "a vocabulary without a model";

/// What of a head has been found.
#[derive(Default)]
struct Found {
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    vocab: Option<Vocab>,
}

impl Head {
    /// Reads as much of a file as it takes.
    ///
    /// Errors: a file without tokens, or one that is damaged before it was read.
    pub(super) fn read(file: &[u8]) -> Result<Self, Unsupported> {
        let mut found = Found::default();
        let read = Cursor::new(file).object(|name, file| {
            match name {
                "normalizer" => found.normalizer = Some(file.value()?),
                "pre_tokenizer" => found.pre_tokenizer = Some(file.value()?),
                "model" => file.object(|name, model| {
                    match name {
                        "vocab" => found.vocab = Some(Vocab::read(model)?),
                        _ => model.skip()?,
                    }
                    found.not_whole()
                })?,
                // It would be a large part of another kind of file.
                "vocab" => return Err(Unsupported(NO_MODEL.to_owned())),
                _ => file.skip()?,
            }
            found.not_whole()
        });
        if found.not_whole().is_ok() {
            read?;
        }
        let Found { normalizer, pre_tokenizer, vocab } = found;
        let vocab = vocab.ok_or_else(|| Unsupported("a model without a vocabulary".to_owned()))?;
        let [normalizer, pre_tokenizer] =
            [normalizer, pre_tokenizer].map(Option::unwrap_or_default);
        Ok(Self { normalizer, pre_tokenizer, vocab })
    }
}

impl Found {
    /// Errors: all is found, and there is no need to read on.
    fn not_whole(&self) -> Result<(), Unsupported> {
        match self {
            Self { normalizer: Some(_), pre_tokenizer: Some(_), vocab: Some(_) } => {
                Err(Unsupported("no need to read on".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

impl Vocab {
    fn read(vocab: &mut Cursor<'_>) -> Result<Self, Unsupported> {
        let mut read = Self::default();
        vocab.object(|token, id| {
            read.texts.push(token);
            read.ids.push(id.number()?);
            Ok(())
        })?;
        Ok(read)
    }
}
