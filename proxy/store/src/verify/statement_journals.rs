//! The journals behind a statement. A statement names them, and a later check compares them.

use std::path::Path;

use taximeter_billing::StatementJournal;
use taximeter_journal::{CORRECTIONS, Extent, JournalError, REQUESTS, extent, journal_dir};

/// The journals of `data_dir` up to their last entries, without empty ones.
///
/// Errors: as [`extent`].
pub fn journals(data_dir: &Path) -> Result<Vec<StatementJournal>, JournalError> {
    let mut journals = Vec::new();
    for name in [REQUESTS, CORRECTIONS] {
        if let Some(journal) = journal(data_dir, name, u64::MAX)? {
            journals.push(journal);
        }
    }
    Ok(journals)
}

/// Why `journal` is not a journal of `data_dir`, if it is not.
///
/// Errors: as [`extent`].
pub fn fault(journal: &StatementJournal, data_dir: &Path) -> Result<Option<String>, JournalError> {
    let StatementJournal { name, last_seq, sha256, .. } = journal;
    let found = self::journal(data_dir, name, *last_seq)?;
    let dir = data_dir.display();
    Ok(match found.filter(|found| found.last_seq == *last_seq) {
        None => Some(format!(
            "{dir} has no entry {last_seq} of the {name} behind the statement, so they cannot be \
             compared"
        )),
        Some(found) if found.sha256 != *sha256 => Some(format!(
            "the {name} in {dir} is not the one behind the statement: its SHA-256 up to entry \
             {last_seq} is {}, and it was {sha256}",
            found.sha256
        )),
        Some(_) => None,
    })
}

fn journal(
    data_dir: &Path,
    name: &str,
    last: u64,
) -> Result<Option<StatementJournal>, JournalError> {
    let Some(dir) = journal_dir(data_dir, name) else { return Ok(None) };
    let named = |Extent { gateway, last, digest }| StatementJournal {
        name: name.to_owned(),
        gateway,
        last_seq: last,
        sha256: digest.to_string(),
    };
    Ok(extent(&dir, last)?.map(named))
}
