//! Reading a configuration, and the prices and vocabularies that it names, with this process's
//! environment and files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use taximeter_config::{Config, Mistakes, TokenizerFile};
use taximeter_pricing::{BookError, PriceBook};
use taximeter_tokenizer::{self as tokenizer, Tokenizer};

use crate::tokenizers::{Entry, Tokenizers};

/// Longest file that a configuration may refer to, in bytes; books of prices are the longest.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Longest vocabulary, in bytes; that of Gemma 3 has 33 MB.
const TOKENIZER_BYTES_MAX: u64 = 256 << 20;
/// What a model's folder calls its vocabulary; the first that is there is taken.
const TOKENIZER_NAMES: [&str; 2] = ["tokenizer.json", "tekken.json"];

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LoadError {
    /// The file itself.
    #[error("{path}: cannot be read: {source}; nothing was started", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What it holds.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The prices that it names.
    #[error("{0}; nothing was started")]
    Prices(#[from] BookError),
    /// A vocabulary that it names.
    #[error("{path}: {source}; nothing was started", path = path.display())]
    Tokenizer {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: tokenizer::LoadError,
    },
}

/// A vocabulary that was read, for those who are told.
#[derive(Debug)]
pub(crate) struct LoadedTokenizer {
    /// The file.
    pub(crate) path: PathBuf,
    /// Why it is Hugging Face's library that counts, if it does.
    pub(crate) fallback: Option<String>,
}

/// The configuration in `path`, with this process's environment and files.
///
/// Errors: `Unreadable` for the file itself, else every mistake in it.
pub(crate) fn config(path: &Path) -> Result<Config, LoadError> {
    let text =
        read(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    let env = |name: &str| std::env::var(name).ok();
    Ok(Config::from_yaml(&text, &path.to_string_lossy(), &env, &read)?)
}

/// The price book of a configuration: the built-in one, under the overrides.
///
/// Errors: `Unreadable` or `Prices` for the overrides.
pub(crate) fn book(config: &Config) -> Result<PriceBook, LoadError> {
    let book = PriceBook::builtin()?;
    let Some(path) = &config.prices.overrides else { return Ok(book) };
    let text = read(path).map_err(|source| LoadError::Unreadable { path: path.clone(), source })?;
    Ok(book.with_overrides(&text, &path.to_string_lossy())?)
}

/// The vocabularies of a configuration, each read on a thread of its own: they may be large.
///
/// Errors: `Unreadable` or `Tokenizer` for the first that cannot be used.
pub(crate) fn tokenizers(config: &Config) -> Result<(Tokenizers, Vec<LoadedTokenizer>), LoadError> {
    let read: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            config.tokenizers.iter().map(|file| scope.spawn(|| tokenizer(file))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut entries = Vec::new();
    let mut told = Vec::new();
    for read in read {
        let (entry, loaded) = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        entries.push(entry);
        told.push(loaded);
    }
    Ok((Tokenizers::new(entries), told))
}

fn tokenizer(file: &TokenizerFile) -> Result<(Entry, LoadedTokenizer), LoadError> {
    let path = tokenizer_path(&file.path);
    let unreadable = |source| LoadError::Unreadable { path: path.clone(), source };
    let mut bytes = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(TOKENIZER_BYTES_MAX).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    let loaded = Tokenizer::from_file(path.to_string_lossy(), &bytes)
        .map_err(|source| LoadError::Tokenizer { path: path.clone(), source })?;
    let entry = Entry {
        models: file.models.clone(),
        tokenizer: loaded.tokenizer,
        estimated: file.estimated,
    };
    Ok((entry, LoadedTokenizer { path, fallback: loaded.fallback }))
}

/// The file itself, or the one in a folder; of a folder without any, the first that should be there.
fn tokenizer_path(path: &Path) -> PathBuf {
    if !path.is_dir() {
        return path.to_owned();
    }
    let [first, ..] = TOKENIZER_NAMES;
    let mut there = TOKENIZER_NAMES.iter().map(|name| path.join(name));
    there.find(|path| path.exists()).unwrap_or_else(|| path.join(first))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
