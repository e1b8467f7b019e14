//! Reads the part of a `tokenizer.json` that must be known before its merges can be learned. In
//! most files it comes before them. It is read alone while the other parts are read.

use serde_json::Value;
use taximeter_json::Reader;

use super::recipe::Unsupported;
use super::texts::Texts;
use super::values::{meaning, value};

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
        let read = found.read(&mut Reader::new(file));
        if !found.is_whole() {
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
    /// Reads on until it is whole.
    fn read(&mut self, file: &mut Reader<'_>) -> Result<(), Unsupported> {
        file.enter(b'{')?;
        while let Some(name) = file.next_key()? {
            match &*meaning(name)? {
                "normalizer" => self.normalizer = Some(value(file)?),
                "pre_tokenizer" => self.pre_tokenizer = Some(value(file)?),
                "model" => self.read_model(file)?,
                // It would be a large part of another kind of file.
                "vocab" => return Err(Unsupported(NO_MODEL.to_owned())),
                _ => file.skip()?,
            }
            if self.is_whole() {
                break;
            }
        }
        Ok(())
    }

    fn read_model(&mut self, model: &mut Reader<'_>) -> Result<(), Unsupported> {
        model.enter(b'{')?;
        while let Some(name) = model.next_key()? {
            match &*meaning(name)? {
                "vocab" => self.vocab = Some(Vocab::read(model)?),
                _ => model.skip()?,
            }
            if self.is_whole() {
                break;
            }
        }
        Ok(())
    }

    /// Whether all is found, and there is no need to read on.
    const fn is_whole(&self) -> bool {
        self.normalizer.is_some() && self.pre_tokenizer.is_some() && self.vocab.is_some()
    }
}

impl Vocab {
    fn read(vocab: &mut Reader<'_>) -> Result<Self, Unsupported> {
        let mut read = Self::default();
        vocab.enter(b'{')?;
        while let Some(token) = vocab.next_key()? {
            read.texts.push(&meaning(token)?);
            read.ids.push(value(vocab)?);
        }
        Ok(read)
    }
}
