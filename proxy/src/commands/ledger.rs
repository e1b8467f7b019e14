//! What the commands that ask the ledger share.

use std::io;
use std::path::Path;

use super::failure::Failure;
use crate::edge::store::{Entries, ReadJournal, Store};

/// Opens the store and feeds it what the journal has, so that answers are right whether or not the
/// gateway runs. The reader stays where the journal ends so far.
pub(super) fn open(
    data_dir: &Path,
    read: &mut ReadJournal<'_>,
) -> Result<(Store, Option<Entries>), Failure> {
    let mut store = Store::open(data_dir)?;
    let mut entries = None;
    store.catch_up(&mut entries, read)?;
    Ok((store, entries))
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
