//! Reads the files of a model: its vocabulary and its chat template.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use taximeter_tokenizer::{self as tokenizer, ChatTemplate, TemplateError, Tokenizer};

/// Longest vocabulary, in bytes. The vocabulary of Gemma 3 has 33 MB.
const VOCABULARY_BYTES_MAX: u64 = 256 << 20;

/// Longest file with a template, in bytes.
const TEMPLATE_BYTES_MAX: u64 = 64 << 20;

/// Names of the vocabulary in a model's folder. The first one that exists is used.
const VOCABULARIES: [&str; 2] = ["tokenizer.json", "tekken.json"];

/// The content of a model's files.
#[derive(Debug)]
pub(crate) struct ModelFiles {
    /// The file of the vocabulary.
    pub(crate) path: PathBuf,
    pub(crate) tokenizer: Tokenizer,
    /// The chat template, if the path is a folder that has one.
    pub(crate) template: Option<ChatTemplate>,
    /// Why Hugging Face's library counts instead of Taximeter's code, if it does.
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
        /// The error of the system.
        source: io::Error,
    },
    /// The vocabulary cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Vocabulary {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: tokenizer::LoadError,
    },
    /// The chat template cannot be used.
    #[error("{path}: {source}", path = path.display())]
    Template {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        source: TemplateError,
    },
}

/// Reads a vocabulary, or the folder of a model with its chat template.
///
/// Errors: a file cannot be read or used. The error has its path.
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

/// The file itself, or the vocabulary in that folder. If the folder has none, the first name.
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

/// The text of a file. `None` if the file does not exist.
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
            // Without this, the growing Vec would copy a vocabulary many times.
            let len = file.metadata()?.len().min(bytes_max);
            bytes.reserve_exact(usize::try_from(len).unwrap_or_default());
            file.take(bytes_max).read_to_end(&mut bytes)
        })
        .map_err(|source| ModelFilesError::Unreadable { path: path.to_owned(), source })?;
    Ok(bytes)
}
