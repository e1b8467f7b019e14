//! What the commands that ask the ledger share.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use taximeter_config::{Config, Store as Configured};

use super::failure::Failure;
use crate::edge::journal;
use crate::edge::store::{FedStore, Feed, Location, Store, StoreError};

/// What the store of a data directory is called, as in a configuration.
const OWN: &str = "sqlite";
/// Whom the store knows as the one who only asks.
const NO_GATEWAY: &str = "";

/// Where a command finds what gateways have recorded
#[derive(Debug, Clone, Args)]
pub(crate) struct LedgerArgs {
    /// The gateway's data directory
    #[arg(
        long,
        value_name = "DIR",
        env = "TAXIMETER_DATA_DIR",
        default_value = "./taximeter-data"
    )]
    pub(super) data_dir: PathBuf,

    /// The PostgreSQL database that gateways share, instead of a data directory:
    /// postgres://USER:PASSWORD@HOST/DATABASE; or sqlite, the directory's own, also where its
    /// gateway feeds a database
    // A text until it is used: what complains about arguments would show the password.
    #[arg(long, value_name = "URL", env = "TAXIMETER_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
}

/// A store that is open, and what people call it.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) store: Store,
    pub(super) name: String,
}

impl LedgerArgs {
    /// The journals that the store may lack something of; none of a database that gateways feed.
    pub(crate) fn feeds(&self) -> Vec<Feed<'static>> {
        if self.named_database().is_some() {
            return Vec::new();
        }
        journal::feeds(&self.data_dir).into()
    }

    /// Opens the store that was named, or else the one that the gateway of `config` feeds, or else
    /// the data directory's; this one is fed what `feeds` have.
    ///
    /// Errors: as [`Failure`] says; `Elsewhere` when nothing is named and the directory's gateway
    /// feeds a database, so that the directory may lack much of it.
    pub(super) fn open(
        &self,
        config: Option<&Config>,
        feeds: &mut [Feed<'_>],
    ) -> Result<Asked, Failure> {
        let configured = config.map(|config| &config.ledger.store);
        let url = match (self.named_database(), &self.store, configured) {
            (Some(url), ..) => url.parse().map_err(Failure::StoreUrl)?,
            (None, None, Some(Configured::Postgres(url))) => url.as_ref().clone(),
            (None, ..) => {
                if self.store.is_none() {
                    nowhere_else(&self.data_dir)?;
                }
                let name = Location::DataDir(self.data_dir.clone()).to_string();
                return Ok(Asked { store: open(&self.data_dir, feeds)?, name });
            }
        };
        Ok(Asked { store: Store::connect(&url, NO_GATEWAY)?, name: url.to_string() })
    }

    /// Opens the store that was named, or else the data directory's, as the one whom the directory's
    /// gateway feeds.
    ///
    /// Errors: as [`open`](Self::open).
    pub(super) fn open_as_its_gateway(&self) -> Result<Store, Failure> {
        let dir = &self.data_dir;
        let Some(url) = self.named_database() else {
            if self.store.is_none() {
                nowhere_else(dir)?;
            }
            return Ok(Store::open(dir)?);
        };
        let url = url.parse().map_err(Failure::StoreUrl)?;
        let word = |source| Failure::Word { dir: dir.clone(), source };
        let place = dir.canonicalize().map_err(|_| StoreError::NoDataDir(dir.clone()))?;
        let gateway = FedStore::of(dir).map_err(word)?.map(|fed| fed.gateway);
        let gateway = gateway.unwrap_or_else(|| place.display().to_string());
        Ok(Store::connect(&url, &gateway)?)
    }

    fn named_database(&self) -> Option<&str> {
        self.store.as_deref().filter(|store| *store != OWN)
    }

    /// What to say when no request was ever settled.
    pub(super) fn empty(&self, asked: &Asked) -> String {
        if asked.store.is_shared() {
            return format!("{} is empty: no gateway has fed it a request yet.\n", asked.name);
        }
        format!(
            "The ledger in {} is empty: no request has ended yet.\n\
             Send one through the gateway, or name another data directory with --data-dir.\n",
            self.data_dir.display()
        )
    }
}

/// Errors: the gateway of `data_dir` feeds a store elsewhere.
pub(super) fn nowhere_else(data_dir: &Path) -> Result<(), Failure> {
    let dir = || data_dir.to_owned();
    let fed = FedStore::of(data_dir).map_err(|source| Failure::Word { dir: dir(), source })?;
    fed.map_or(Ok(()), |fed| Err(Failure::Elsewhere { dir: dir(), store: fed.store }))
}

/// Opens the store and feeds it what the journals have, so that answers are right whether or not
/// the gateway runs.
pub(super) fn open(data_dir: &Path, feeds: &mut [Feed<'_>]) -> Result<Store, Failure> {
    let mut store = Store::open(data_dir)?;
    store.catch_up(feeds)?;
    Ok(store)
}

/// A reader that goes away (`| head`) has what it wanted.
pub(super) fn unless_reader_left(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}
