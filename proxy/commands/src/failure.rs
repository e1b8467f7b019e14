//! The errors of commands, and their exit codes.

use std::io;
use std::path::PathBuf;

use taximeter_billing::{BillError, PeriodError, TooLarge, Zone};
use taximeter_config::Invalid;
use taximeter_export::{DestinationFault, ExportFault, ObjectFault};
use taximeter_journal::JournalError;
use taximeter_store::StoreError;
use taximeter_store::convert::ConvertError;
use taximeter_top::{AdminFault, TopError};

use super::against::AgainstError;
use super::load::{LoadError, PriceFileError};
use crate::exit::Exit;

/// Why a command failed. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    /// The arguments do not fit together.
    #[error(transparent)]
    Period(#[from] PeriodError),
    /// Exports are always in UTC.
    #[error(
        "an export is always in UTC, and --zone is {0}; remove --zone, or use --from and --to with \
         offsets"
    )]
    ExportZone(Zone),
    /// Exports cannot be split.
    #[error(
        "this export cannot be split so; remove --by, or use --format table, csv or json. FOCUS can \
         be split by session, agent, client, end_user and tag:NAME"
    )]
    ExportBy,
    /// Only FOCUS has versions.
    #[error(
        "--focus-version works only with --format focus or focus-parquet; use one of them, or \
         remove it"
    )]
    FocusVersion,
    /// Only events have receivers.
    #[error(
        "--max-age and --strict work only with --format stripe, lago, orb or cloudevents; use one \
         of them, or remove them"
    )]
    Window,
    /// The configuration, or a file that it names, cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger cannot be converted.
    #[error(transparent)]
    Convert(#[from] ConvertError),
    /// The URL of the store is not valid.
    #[error("--store {0}")]
    StoreUrl(Invalid),
    /// The data directory may lack many requests of the database.
    #[error(
        "the gateway of {dir} feeds {store}, so {dir} may lack older requests and those of other \
         gateways; use --store with the URL of the database, or --store sqlite for the requests in \
         the directory",
        dir = dir.display()
    )]
    Elsewhere {
        /// The data directory.
        dir: PathBuf,
        /// Without the password.
        store: String,
    },
    /// The journal of one store cannot have corrections of another.
    #[error(
        "the gateway of {dir} feeds {feeds}, so corrections of {asked} cannot be written there; use \
         --store with the store that it feeds, or --data-dir with another directory",
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
    /// The corrections are in the journal, but maybe not in the store.
    #[error(
        "the corrections are in {dir}, but maybe not all of them are in the store: {fault}; run the \
         command again with the same data directory",
        dir = dir.display()
    )]
    Unfed {
        /// The data directory.
        dir: PathBuf,
        /// The error of the store.
        fault: StoreError,
    },
    /// No other gateway shares this store.
    #[error(
        "--lost works only with a shared database, and {dir} has its own store; remove it, or name \
         the database with --store or --config",
        dir = dir.display()
    )]
    NotShared {
        /// The data directory.
        dir: PathBuf,
    },
    /// It is unknown which store the gateway feeds.
    #[error(
        "cannot read which store the gateway of {} feeds: {source}; name it with --store",
        dir.display()
    )]
    Word {
        /// The data directory.
        dir: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The costs cannot be added up.
    #[error(transparent)]
    Bill(#[from] BillError),
    /// The amounts of an invoice are too large.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The export failed.
    #[error(transparent)]
    Export(#[from] ExportFault),
    /// Binary output on a terminal.
    #[error("cannot print Parquet on a terminal; name a file with -o")]
    Terminal,
    /// The model decides the vocabulary.
    #[error("the input names no model; use --model, or --tokenizer with the files of the model")]
    NoModel,
    /// The engine to compare with gives no count.
    #[error(transparent)]
    Against(#[from] AgainstError),
    /// A price file cannot be used.
    #[error(transparent)]
    PriceFile(#[from] PriceFileError),
    /// `top` cannot show the gateway.
    #[error(transparent)]
    Top(#[from] TopError),
    /// What is to be read cannot be.
    #[error("cannot read {from}: {why}")]
    Scrape {
        /// The URL.
        from: String,
        /// What happened.
        why: String,
    },
    /// What is to be asked cannot be.
    #[error("the URL {0}")]
    ScrapeUrl(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The output file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// No request names this session.
    #[error("there is no session {0:?}; `taximeter sessions` lists those that there are")]
    NoSession(String),
    /// The system cannot wait.
    #[error("cannot wait for new records: {0}")]
    Wait(io::Error),
}

impl Failure {
    /// How the process ends.
    #[must_use]
    pub(crate) const fn exit(&self) -> Exit {
        match self {
            Self::Period(_)
            | Self::ExportZone(_)
            | Self::ExportBy
            | Self::FocusVersion
            | Self::Window
            | Self::StoreUrl(_)
            | Self::ScrapeUrl(_)
            | Self::NotShared { .. }
            | Self::Terminal
            | Self::NoModel
            | Self::Export(ExportFault::HalfHour(_))
            | Self::Top(TopError::Admin {
                fault: AdminFault::Token | AdminFault::Files(_) | AdminFault::Unauthorised,
                ..
            }) => Exit::Usage,
            Self::Export(
                ExportFault::OutsideWindow(_) | ExportFault::Store(StoreError::DetailsGone { .. }),
            )
            | Self::Store(StoreError::DetailsGone { .. }) => Exit::Refused,
            Self::Load(_) | Self::PriceFile(_) => Exit::Configuration,
            Self::Export(ExportFault::Destination(DestinationFault::Objects(fault))) => match fault
            {
                ObjectFault::Url(_) | ObjectFault::Settings { .. } => Exit::Usage,
                _ => Exit::Unavailable,
            },
            Self::Store(StoreError::Correcting { .. })
            | Self::Convert(ConvertError::Journal(JournalError::InUse { .. })) => Exit::InUse,
            Self::Export(ExportFault::Store(_))
            | Self::Store(_)
            | Self::Convert(ConvertError::Store(_))
            | Self::Elsewhere { .. }
            | Self::Corrects { .. }
            | Self::Unfed { .. }
            | Self::Word { .. }
            | Self::Against(_)
            | Self::Scrape { .. }
            | Self::Top(TopError::Admin { .. }) => Exit::Unavailable,
            Self::Bill(_)
            | Self::TooLarge(_)
            | Self::Export(_)
            | Self::Convert(_)
            | Self::Output(_)
            | Self::File { .. }
            | Self::Top(_)
            | Self::NoSession(_)
            | Self::Wait(_) => Exit::Failed,
        }
    }
}
