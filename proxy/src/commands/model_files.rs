//! A model's files: its vocabulary and its chat template.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use taximeter_tokenizer::{self as tokenizer, ChatTemplate, TemplateError, Tokenizer};

/// Longest vocabulary, in bytes; that of Gemma 3 has 33 MB.
const VOCABULARY_BYTES_MAX: u64 = 256 << 20;

/// Longest file with a template, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 64 << 20;

/// What a model's folder calls its vocabulary; the first that is there is taken.
const VOCABULARIES: [&str; 2] = ["tokenizer.json", "tekken.json"];

/// What a model's files say.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    /// The file of the vocabulary.
    pub(crate) path: PathBuf,
    pub(crate) tokenizer: Tokenizer,
    /// Only of a folder that has one.
    pub(crate) template: Option<ChatTemplate>,
    /// Why it is Hugging Face's library that counts, if it does.
    pub(crate) fallback: Option<String>,
}

/// Why a model's files cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ModelFilesError {
    /// A file cannot be read.
    #[error("{path}: cannot be read: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The vocabulary.
    #[error("{path}: {source}", path = path.display())]
    Vocabulary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: tokenizer::LoadError,
    },
    /// The chat template.
    #[error("{path}: {source}", path = path.display())]
    Template {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        source: TemplateError,
    },
}

/// Reads a vocabulary, or a model's folder with a template beside it.
///
/// Errors: what cannot be read or used, with its path.
pub(crate) fn read(path: &Path) -> Result<ModelFiles, ModelFilesError> {
    let file = vocabulary_in(path);
    let loaded = bytes(&file, VOCABULARY_BYTES_MAX).and_then(|bytes| {
        Tokenizer::from_file(file.to_string_lossy(), &bytes)
            .map_err(|source| ModelFilesError::Vocabulary { path: file.clone(), source })
    })?;
    let template = if path.is_dir() { template(path)? } else { None };
    let (tokenizer, fallback) = (loaded.tokenizer, loaded.fallback);
    Ok(ModelFiles { path: file, tokenizer, template, fallback })
}

/// The file itself, or the one in a folder; of a folder without any, the first that should be there.
fn vocabulary_in(path: &Path) -> PathBuf {
    if !path.is_dir() {
        return path.to_owned();
    }
    let [first, ..] = VOCABULARIES;
    let mut there = VOCABULARIES.iter().map(|name| path.join(name));
    there.find(|path| path.exists()).unwrap_or_else(|| path.join(first))
}

fn template(folder: &Path) -> Result<Option<ChatTemplate>, ModelFilesError> {
    let jinja = optional(&folder.join("chat_template.jinja"))?;
    let config = optional(&folder.join("tokenizer_config.json"))?;
    ChatTemplate::from_config(config.as_deref().unwrap_or("{}"), jinja.as_deref())
        .map_err(|source| ModelFilesError::Template { path: folder.to_owned(), source })
}

/// A file's text; `None` where there is no such file.
fn optional(path: &Path) -> Result<Option<String>, ModelFilesError> {
    match bytes(path, TEMPLATE_BYTES_MAX) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(ModelFilesError::Unreadable { source, .. }) if source.kind() == ErrorKind::NotFound => {
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ModelFilesError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| {
            // A vocabulary would be copied again and again into a Vec that grows.
            let len = file.metadata()?.len().min(bytes_max);
            bytes.reserve_exact(usize::try_from(len).unwrap_or_default());
            file.take(bytes_max).read_to_end(&mut bytes)
        })
        .map_err(|source| ModelFilesError::Unreadable { path: path.to_owned(), source })?;
    Ok(bytes)
}
