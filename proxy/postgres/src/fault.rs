//! The errors of a PostgreSQL database.

use std::error::Error as StdError;
use std::time::Duration;

use taximeter_database::error::StoreError;
use tokio_postgres::error::SqlState;

type Cause = Box<dyn StdError + Send + Sync>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    /// The server refused, or the connection broke.
    #[error("{}", message(.0))]
    Server(#[from] tokio_postgres::Error),
    /// The server did not answer in time. The connection was closed.
    #[error("the server did not answer within {}s", .0.as_secs())]
    Late(Duration),
    /// The database does not contain what was written.
    #[error("{0}")]
    Unreadable(#[source] Cause),
    /// The database has another format than at the start.
    #[error("its format is {found} now")]
    Format {
        /// What it has.
        found: i32,
        /// What this program writes.
        known: i32,
    },
    /// Its rows are those of an older program.
    #[error("its format is older")]
    Older,
    /// The database cannot be used as it is.
    #[error("{0}")]
    Unfit(String),
    /// Something is missing on this machine: a thread, a file, certificates.
    #[error("{0}")]
    Local(#[source] Cause),
}

impl Fault {
    /// What is in the database is not what was written.
    pub(super) fn unreadable(cause: impl Into<Cause>) -> Self {
        Self::Unreadable(cause.into())
    }

    /// Whether the same may well be done when it is tried again: two transactions were in each
    /// other's way, and the server undid this one.
    pub(super) fn is_passing(&self) -> bool {
        self.is_one_of(&[SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE])
    }

    /// The same, of the store that is called `store`.
    pub(super) fn of(self, store: &str) -> StoreError {
        let store = store.to_owned();
        match self {
            Self::Format { found, known } => {
                let [found, known] = [found, known].map(i32::unsigned_abs);
                StoreError::Format { store, found, known }
            }
            Self::Older => StoreError::OlderDatabase { store },
            _ if self.is_damage() => StoreError::DamagedDatabase { store, source: self.into() },
            _ if self.is_missing() => StoreError::Incomplete { store, source: self.into() },
            _ => StoreError::Unavailable { store, source: self.into() },
        }
    }

    fn is_damage(&self) -> bool {
        matches!(self, Self::Unreadable(_))
            || self.is_one_of(&[SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED])
    }

    /// Whether the server does not find a part of what this program made.
    fn is_missing(&self) -> bool {
        self.is_one_of(&[
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::INVALID_SCHEMA_NAME,
        ])
    }

    fn is_one_of(&self, codes: &[SqlState]) -> bool {
        matches!(self, Self::Server(error) if error.code().is_some_and(|code| codes.contains(code)))
    }
}

/// The library's words, and the server's behind them.
fn message(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("{}: {}", said.severity(), said.message()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
