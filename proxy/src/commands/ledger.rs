//! What the commands that ask the ledger share.

use std::io;
use std::path::Path;

use super::failure::Failure;
use crate::edge::store::{Feed, Store};

/// Opens the store and feeds it what the journals have, so that answers are right whether or not
/// the gateway runs.
pub(super) fn open(data_dir: &Path, feeds: &mut [Feed<'_>]) -> Result<Store, Failure> {
    let mut store = Store::open(data_dir)?;
    store.catch_up(feeds)?;
    Ok(store)
}

/// What to say when no request was ever settled.
pub(super) fn empty(data_dir: &Path) -> String {
    format!(
        "The ledger in {} is empty: no request has ended yet.\n\
         Send one through the gateway, or name another data directory with --data-dir.\n",
        data_dir.display()
    )
}

/// A reader that goes away (`| head`) has what it wanted.
pub(super) fn unless_reader_left(outcome: Result<(), Failure>) -> Result<(), Failure> {
    match outcome {
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome,
    }
}
