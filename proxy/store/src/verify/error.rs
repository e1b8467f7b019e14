//! Why a ledger cannot be verified, and how a verification tells its progress.

use std::io;
use std::path::PathBuf;

use taximeter_billing::{BillError, PeriodError};
use taximeter_database::error::StoreError;
use taximeter_journal::JournalError;

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
    /// Details of requests went whenever the ledger was read.
    #[error(
        "details of requests went each time that the ledger was read, because they are too old or \
         need room; verify it again later"
    )]
    DetailsGo,
    /// The manifest of an export cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The manifest.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file is not the manifest of an export.
    #[error("{} is not the manifest of an export: {source}", path.display())]
    NoManifest {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: serde_json::Error,
    },
    /// The period of an export is none.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// The sums of the period cannot be made.
    #[error(transparent)]
    Bill(#[from] BillError),
    /// A sum that a decimal cannot hold.
    #[error("the sums are too large to be kept exactly")]
    TooLarge,
}
