//! Why a command that asks the ledger fails, and with which exit code.

use std::io;
use std::path::PathBuf;

use taximeter_billing::{BillError, PeriodError, TooLarge, Zone};
use taximeter_config::Invalid;
use taximeter_store::StoreError;
use taximeter_store::export::{DestinationFault, ExportFault, ObjectFault};
use taximeter_top::{AdminFault, TopError};

use super::count::against::AgainstError;
use super::load::{LoadError, PriceFileError};

/// What went wrong; its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The arguments do not fit together.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// Exports know one zone.
    #[error(
        "exports are by UTC, and not by {0}: leave --zone out, or name --from and --to with their \
         offsets"
    )]
    ExportZone(Zone),
    /// Exports have lines of their own.
    #[error("exports are not split: leave --by out, or choose --format table, csv or json")]
    ExportBy,
    /// Only FOCUS has versions.
    #[error(
        "--focus-version is of the formats focus and focus-parquet: choose one, or leave it out"
    )]
    FocusVersion,
    /// The configuration or what it names does not do.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// No store to ask.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store's URL is none.
    #[error("--store {0}")]
    StoreUrl(Invalid),
    /// What the data directory has may lack much of what the database has.
    #[error(
        "the gateway of {dir} feeds {store}, and {dir} alone may lack what other gateways have and \
         what is older; name the database with --store, its URL, or take what is here with --store \
         sqlite",
        dir = dir.display()
    )]
    Elsewhere {
        /// The data directory.
        dir: PathBuf,
        /// Without the password.
        store: String,
    },
    /// Corrections of one store would lie in the journal of another.
    #[error(
        "the gateway of {dir} feeds {feeds}, so no corrections of {asked} are written there: name \
         the store that it feeds with --store, or another data directory with --data-dir",
        dir = dir.display()
    )]
    Corrects {
        /// The data directory.
        dir: PathBuf,
        /// Without the password.
        feeds: String,
        /// The same.
        asked: String,
    },
    /// Corrections are in the journal, and perhaps not in the store.
    #[error(
        "the corrections are written in {dir}, and may not all be in the store yet: {fault}; run this \
         again with the same data directory",
        dir = dir.display()
    )]
    Unfed {
        /// The data directory.
        dir: PathBuf,
        /// What the store said.
        fault: StoreError,
    },
    /// Nobody else corrects here.
    #[error(
        "--lost is of a database that gateways share, and {dir} has a store of its own: leave it out, \
         or name the database with --store or --config",
        dir = dir.display()
    )]
    NotShared {
        /// The data directory.
        dir: PathBuf,
    },
    /// Which store is fed is not known.
    #[error(
        "cannot read which store the gateway of {} feeds: {source}; name it with --store",
        dir.display()
    )]
    Word {
        /// The data directory.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
    /// A vocabulary is a model's.
    #[error("the input names no model: name it with --model, or its files with --tokenizer")]
    NoModel,
    /// No engine to compare with, or none that says.
    #[error(transparent)]
    Against(#[from] AgainstError),
    /// A file of prices that cannot be used.
    #[error(transparent)]
    PriceFile(#[from] PriceFileError),
    /// No gateway to look at, or no terminal to show it on.
    #[error(transparent)]
    Top(#[from] TopError),
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
            | Self::ExportZone(_)
            | Self::ExportBy
            | Self::FocusVersion
            | Self::StoreUrl(_)
            | Self::NotShared { .. }
            | Self::Terminal
            | Self::NoModel
            | Self::Export(ExportFault::HalfHour(_))
            | Self::Top(TopError::Admin {
                fault: AdminFault::Token | AdminFault::Files(_) | AdminFault::Unauthorised,
                ..
            }) => 2,
            Self::Load(_) | Self::PriceFile(_) => 64,
            Self::Export(ExportFault::Destination(DestinationFault::Objects(fault))) => match fault
            {
                ObjectFault::Url(_) | ObjectFault::Settings { .. } => 2,
                _ => 69,
            },
            Self::Store(StoreError::Correcting { .. }) => 75,
            Self::Export(ExportFault::Store(_))
            | Self::Store(_)
            | Self::Elsewhere { .. }
            | Self::Corrects { .. }
            | Self::Unfed { .. }
            | Self::Word { .. }
            | Self::Against(_)
            | Self::Top(TopError::Admin { .. }) => 69,
            Self::Bill(_)
            | Self::TooLarge(_)
            | Self::Export(_)
            | Self::Output(_)
            | Self::File { .. }
            | Self::Top(_)
            | Self::Wait(_) => 1,
        }
    }
}
