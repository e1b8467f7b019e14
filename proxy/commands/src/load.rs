//! Reads a configuration, and the price files, vocabularies and certificates that it names.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use taximeter_config::{Config, Mistakes, Tenant, Upstream};
use taximeter_gateway::counting::Counting;
use taximeter_gateway::tariffs::Tariffs;
use taximeter_gateway::tokenizers::{Entry, Tokenizers};
use taximeter_net::serving::PROTOCOLS;
use taximeter_net::tls::{Files, Tls, TlsFault, Watch};
use taximeter_pricing::{BookError, Contract, ImportError, PriceBook};

use super::model_files::{self, ModelFiles, ModelFilesError};

/// Longest file that a configuration can name, in bytes. Price books are the longest files.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Why the configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LoadError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The configuration has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// A price file cannot be used.
    #[error(transparent)]
    Prices(#[from] PriceFileError),
    /// The files of a model cannot be used.
    #[error(transparent)]
    Model(#[from] ModelFilesError),
    /// A certificate or key for clients cannot be used.
    #[error("tls: {0}")]
    Tls(#[source] TlsFault),
    /// A certificate or key for the admin address cannot be used.
    #[error("admin_tls: {0}")]
    AdminTls(#[source] TlsFault),
}

impl LoadError {
    /// One line for each mistake.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::Mistakes(mistakes) => mistakes.lines().collect(),
            other => vec![other.to_string()],
        }
    }
}

/// Why a price file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PriceFileError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {source}", path = path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The price file has mistakes.
    #[error(transparent)]
    Book(#[from] BookError),
    /// The price file of another project cannot be imported.
    #[error(transparent)]
    Import(#[from] ImportError),
}

/// Loads the configuration at `path`. It can use the environment and other files.
///
/// Errors: `Unreadable` if the file cannot be read, else every mistake in it.
pub(crate) fn config(path: &Path) -> Result<Config, LoadError> {
    config_and_secrets(path, &mut Vec::new())
}

/// The same. Also adds the secret files that it reads to `secrets`, even if they cannot be read.
///
/// Errors: as `config`.
pub(crate) fn config_and_secrets(
    path: &Path,
    secrets: &mut Vec<PathBuf>,
) -> Result<Config, LoadError> {
    let text =
        read(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    let env = |name: &str| std::env::var(name).ok();
    let looked_into = RefCell::new(secrets);
    let secret = |path: &Path| {
        looked_into.borrow_mut().push(path.to_owned());
        read(path)
    };
    Ok(Config::from_yaml(&text, &path.to_string_lossy(), &env, &secret)?)
}

/// TLS for clients, if the configuration has `tls`, and the watch for its files.
///
/// Errors: `Tls`.
pub(crate) fn tls(config: &Config) -> Result<Option<(Tls, Watch)>, LoadError> {
    config.tls.as_ref().map(|tls| open(tls, false).map_err(LoadError::Tls)).transpose()
}

/// The same for the admin address.
///
/// Errors: `AdminTls`.
pub(crate) fn admin_tls(config: &Config) -> Result<Option<(Tls, Watch)>, LoadError> {
    config.admin_tls.as_ref().map(|tls| open(tls, true).map_err(LoadError::AdminTls)).transpose()
}

fn open(tls: &taximeter_config::Tls, is_client_optional: bool) -> Result<(Tls, Watch), TlsFault> {
    let (certificate, key) = (tls.cert.clone(), tls.key.clone());
    let client_ca = tls.client_ca.clone();
    Tls::open(Files { certificate, key, client_ca, is_client_optional }, PROTOCOLS)
}

/// The files and folders that a configuration names.
pub(crate) fn named_by(config: &Config) -> Vec<PathBuf> {
    let prices = config.prices.overrides.iter();
    let agreed = config.tenants.list.iter().filter_map(|tenant| tenant.prices.as_ref());
    let vocabularies = config.tokenizers.iter().map(|file| &file.path);
    prices.chain(agreed).chain(vocabularies).cloned().collect()
}

/// The price files of a configuration, also those in folders that it names. One that cannot be looked into
/// has none.
pub(crate) fn prices_of(config: &Config) -> Vec<PathBuf> {
    let overrides = config.prices.overrides.iter();
    let overrides = overrides.flat_map(|path| price_files(path).unwrap_or_default());
    let agreed = config.tenants.list.iter().filter_map(|tenant| tenant.prices.clone());
    overrides.chain(agreed).collect()
}

/// The prices of a configuration: the built-in book with its overrides, the prices of tenants, and
/// the upstreams that are billed by GPU time.
///
/// Errors: `Prices` for the first price file that cannot be used.
pub(crate) fn tariffs(config: &Config) -> Result<Tariffs, LoadError> {
    let builtin = PriceBook::builtin().map_err(PriceFileError::from)?;
    let book = laid_over(builtin, &config.prices.overrides)?;
    let contract = |tenant: &Tenant| {
        let Tenant { name, factors, prices, .. } = tenant;
        let fixed = prices.as_deref().map(|path| fixed(config, name, path)).transpose()?;
        Ok((name.clone(), Contract::new(name, factors.clone(), fixed)))
    };
    let contracts = config.tenants.list.iter().map(contract);
    let contracts = contracts.collect::<Result<_, PriceFileError>>()?;
    let gpus = |upstream: &Upstream| (upstream.name.clone(), upstream.gpus.clone());
    let gpus = config.upstreams.iter().map(gpus).collect();
    Ok(Tariffs::new(in_currency(config, book), contracts, gpus))
}

/// The fixed prices of a tenant.
fn fixed(config: &Config, tenant: &str, path: &Path) -> Result<PriceBook, PriceFileError> {
    let book = PriceBook::fixed(tenant, &price_file(path)?, &path.to_string_lossy())?;
    Ok(in_currency(config, book))
}

fn in_currency(config: &Config, book: PriceBook) -> PriceBook {
    book.in_currency(config.prices.currency, config.prices.exchange.clone())
}

/// `book` with overrides from the files at `paths`. In a folder, every `.yaml` or `.yml` counts.
///
/// Errors: the first file that cannot be used.
pub(crate) fn laid_over(
    mut book: PriceBook,
    paths: &[PathBuf],
) -> Result<PriceBook, PriceFileError> {
    for path in paths {
        let files = price_files(path)
            .map_err(|source| PriceFileError::Unreadable { path: path.clone(), source })?;
        for path in files {
            let text = price_file(&path)?;
            book = book.with_overrides(&text, &path.to_string_lossy())?;
        }
    }
    Ok(book)
}

/// The text of a price file.
///
/// Errors: `Unreadable`.
pub(crate) fn price_file(path: &Path) -> Result<String, PriceFileError> {
    read(path).map_err(|source| PriceFileError::Unreadable { path: path.to_owned(), source })
}

/// The path itself, or the price files in that folder, in order of their names.
fn price_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        let is_yaml = file.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if is_yaml && file.is_file() {
            files.push(file);
        }
    }
    taximeter_collections::sort(&mut files);
    Ok(files)
}

/// Loads the vocabularies of a configuration. Each one has its own thread, because it can be large.
///
/// Errors: `Model` for the first one that cannot be used.
pub(crate) fn tokenizers(config: &Config) -> Result<(Tokenizers, Vec<ModelFiles>), LoadError> {
    let read: Vec<_> = std::thread::scope(|scope| {
        let start = |path| scope.spawn(move || model_files::read(path));
        let threads: Vec<_> = config.tokenizers.iter().map(|file| start(&file.path)).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut entries = Vec::new();
    let mut files = Vec::new();
    for (file, read) in config.tokenizers.iter().zip(read) {
        let found = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut counting = Counting::of_files(found.tokenizer.clone(), found.template.clone());
        counting.choice.exact = !file.estimated;
        entries.push(Entry { models: file.models.clone(), counting });
        files.push(found);
    }
    Ok((Tokenizers::new(entries), files))
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}
