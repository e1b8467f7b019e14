//! The journals, and whether the store agrees with them.

use std::path::Path;

use taximeter_journal::CORRECTIONS;
use taximeter_store::Store;
use taximeter_store::feeds;

use super::account::{Account, account};
use super::findings::Findings;
use super::store;

/// Reads both journals whole, feeds the store what it lacks, and compares.
///
/// Errors: what cannot be read at all.
pub(super) fn verify(
    data_dir: &Path,
    store: &mut Store,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    let mut requests = account(data_dir, Account::default())?;
    requests.tell("journal", data_dir, findings);
    // A journal that is not whole has been told, and cannot be fed.
    if requests.examination.faults.is_empty() {
        store.catch_up(&mut feeds(data_dir))?;
    }
    let dir = data_dir.join(CORRECTIONS);
    let mut corrections = requests.take_posts(store.is_shared());
    if dir.is_dir() {
        corrections = account(&dir, corrections)?;
        corrections.tell("corrections", &dir, findings);
        // Somebody may have corrected since the store was fed.
        if requests.examination.faults.is_empty() && corrections.examination.faults.is_empty() {
            store.catch_up(&mut feeds(data_dir))?;
        }
    }
    store::compare(store, &requests, &mut corrections, &dir, findings)
}
