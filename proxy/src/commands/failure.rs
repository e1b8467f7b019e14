//! Why a command that asks the ledger fails, and with which exit code.

use std::io;
use std::path::PathBuf;

use taximeter_billing::{BillError, PeriodError, TooLarge};
use taximeter_config::Invalid;

use super::count::against::AgainstError;
use super::load::{LoadError, PriceFileError};
use crate::edge::export::{ExportFault, ObjectFault, PlaceFault};
use crate::edge::store::StoreError;

/// What went wrong; its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The arguments do not fit together.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// The configuration or what it names does not do.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No store to ask.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store's URL is none.
    #[error("--store {0}")]
    StoreUrl(Invalid),
    /// The requests do not make one bill.
    #[error(transparent)]
    Bill(#[from] BillError),
    /// The amounts of an invoice are too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// No export, or no whole one.
    #[error(transparent)]
    Export(#[from] ExportFault),
    /// Bytes for programs, and a person's terminal.
    #[error("Parquet is nothing for a terminal; name a file with -o")]
    Terminal,
    /// No engine to compare with, or none that says.
    #[error(transparent)]
    Against(#[from] AgainstError),
    /// A file of prices that cannot be used.
    #[error(transparent)]
    PriceFile(#[from] PriceFileError),
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] io::Error),
    /// The answer cannot be written to the file that was named.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system lacks something that waiting needs.
    #[error("cannot wait for new records: {0}")]
    Wait(io::Error),
}

impl Failure {
    /// The process's exit code (`spec.md` §1).
    #[must_use]
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Period(_)
            | Self::StoreUrl(_)
            | Self::Terminal
            | Self::Export(ExportFault::HalfHour(_)) => 2,
            Self::Load(_) | Self::PriceFile(_) => 64,
            Self::Export(ExportFault::Place(PlaceFault::Objects(fault))) => match fault {
                ObjectFault::Url(_) | ObjectFault::Settings { .. } => 2,
                _ => 69,
            },
            Self::Export(ExportFault::Store(_)) | Self::Store(_) | Self::Against(_) => 69,
            Self::Bill(_)
            | Self::TooLarge(_)
            | Self::Export(_)
            | Self::Output(_)
            | Self::File { .. }
            | Self::Wait(_) => 1,
        }
    }
}
