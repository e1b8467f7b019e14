//! Why sending cannot continue.

use std::io;
use std::time::Duration;

use taximeter_billing::export::ExportError;
use taximeter_journal::JournalError;
use taximeter_store::StoreError;

/// Why nothing goes on; it is tried again.
#[derive(Debug, thiserror::Error)]
pub(super) enum PushFault {
    #[error("{reason}")]
    Receiver {
        reason: String,
        /// How long the receiver wants to be left alone.
        wait: Option<Duration>,
    },
    #[error("cannot read the journal: {0}")]
    Journal(#[from] JournalError),
    #[error("cannot read what the journal no longer has: {0}")]
    Store(#[from] StoreError),
    #[error("cannot make an event: {0}")]
    Event(#[from] ExportError),
    #[error("cannot write to the data directory: {0}")]
    Disk(#[from] io::Error),
}
