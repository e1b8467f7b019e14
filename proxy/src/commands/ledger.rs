//! What the commands that ask the ledger share.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::failure::Failure;
use crate::edge::journal;
use crate::edge::store::{Feed, Store};

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
    /// postgres://USER:PASSWORD@HOST/DATABASE
    // A text until it is used: what complains about arguments would show the password.
    #[arg(long, value_name = "URL", env = "TAXIMETER_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
}

impl LedgerArgs {
    /// The journals that the store may lack something of; none of a database that gateways feed.
    pub(crate) fn feeds(&self) -> Vec<Feed<'static>> {
        if self.store.is_some() { Vec::new() } else { journal::feeds(&self.data_dir).into() }
    }

    /// Opens the store, and feeds it what `feeds` have.
    pub(super) fn open(&self, feeds: &mut [Feed<'_>]) -> Result<Store, Failure> {
        let Some(url) = &self.store else { return open(&self.data_dir, feeds) };
        let url = url.parse().map_err(Failure::StoreUrl)?;
        Ok(Store::connect(&url, NO_GATEWAY)?)
    }

    /// What to say when no request was ever settled.
    pub(super) fn empty(&self) -> String {
        if self.store.is_some() {
            return "The store is empty: no gateway has fed it a request yet.\n".to_owned();
        }
        format!(
            "The ledger in {} is empty: no request has ended yet.\n\
             Send one through the gateway, or name another data directory with --data-dir.\n",
            self.data_dir.display()
        )
    }
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
