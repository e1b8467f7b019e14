//! Checks the journals, and compares the store with them.

use std::path::Path;

use super::account::{Account, account};
use super::findings::Findings;
use super::store;
use crate::edge::journal::{CORRECTIONS, feeds};
use crate::edge::store::Store;

/// Reads both journals completely, feeds the store, and compares them.
///
/// Errors: a journal or the store cannot be read at all.
pub(super) fn verify(
    data_dir: &Path,
    store: &mut Store,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut requests = account(data_dir, Account::default())?;
    requests.tell("journal", data_dir, findings);
    // A damaged journal is reported above. The store cannot be fed from it.
    if requests.examination.faults.is_empty() {
        store.catch_up(&mut feeds(data_dir))?;
    }
    let dir = data_dir.join(CORRECTIONS);
    let mut corrections = requests.take_posts(store.is_shared());
    if dir.is_dir() {
        corrections = account(&dir, corrections)?;
        corrections.tell("corrections", &dir, findings);
        // Another process may have written corrections since the store was fed.
        if requests.examination.faults.is_empty() && corrections.examination.faults.is_empty() {
            store.catch_up(&mut feeds(data_dir))?;
        }
    }
    store::compare(store, &requests, &mut corrections, &dir, findings)
}
