//! Why a ledger cannot be verified, and how a verification tells its progress.

use taximeter_journal::JournalError;

use crate::error::StoreError;

/// Called for each entry and record that was read; the words name the work.
pub type Steps<'a> = dyn FnMut(&'static str) + 'a;

/// Why a ledger cannot be verified.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A journal cannot be read at all.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be read at all.
    #[error(transparent)]
    Store(#[from] StoreError),
}
