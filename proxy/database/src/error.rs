//! The errors of the store.

use std::path::PathBuf;

use jiff::Timestamp;

/// Any error of reading a journal.
pub type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// Why the store cannot answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No such directory.
    #[error(
        "there is no data directory {}; name the gateway's with --data-dir, or start the gateway \
         first (taximeter serve)",
        .0.display()
    )]
    NoDataDir(PathBuf),
    /// Written by another version.
    #[error(
        "the store {store} has format {found}, and this taximeter reads format {known} alone; use \
         the taximeter that wrote it"
    )]
    Format {
        /// Where it is.
        store: String,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Written by an older version, or a conversion has not ended.
    #[error(
        "the store {store} is of an older taximeter; run `taximeter convert --data-dir {dir}`, which \
         converts the ledger of an older taximeter",
        dir = dir.display()
    )]
    Older {
        /// Where it is.
        store: String,
        /// The data directory.
        dir: PathBuf,
    },
    /// The same, of a database.
    #[error(
        "the store {store} is of an older taximeter; run `taximeter convert --config FILE` with the \
         configuration of a gateway that feeds it, which converts the ledger of an older taximeter"
    )]
    OlderDatabase {
        /// Where it is.
        store: String,
    },
    /// Not a store, or not whole.
    #[error(
        "the store {store} is damaged: {source}; restore it from a backup. Where there is none, move it \
         away, but not the folders `days` and `hours` beside it, and run this again: it gets what the \
         journal and the files there have, and bills say from when on that is all"
    )]
    Damaged {
        /// Where it is.
        store: String,
        /// What does not fit.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that has the requests of a day is damaged or missing.
    #[error("cannot read {}, which has requests of a day: {source}; restore the file from a backup", file.display())]
    DayFile {
        /// The file.
        file: PathBuf,
        /// Where in it, and what is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file that has sums by the hour is damaged or missing.
    #[error("cannot read {}, which has sums by the hour: {source}; restore the file from a backup", file.display())]
    HoursFile {
        /// The file.
        file: PathBuf,
        /// Where in it, and what is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// What is asked needs single requests of a time of which only sums by the hour are left.
    #[error(
        "the single requests before {} are gone, and only their sums by the hour are left; ask for a \
         time from then on, or from a day later on for shares of GPUs. Bills of whole hours (UTC) are \
         made of the sums for any time, without such shares and not by session, agent, client, \
         end user or tag",
        details_date(*from)
    )]
    DetailsGone {
        /// The first instant with single requests.
        from: Timestamp,
    },
    /// A database has something else than what was written.
    #[error("the store {store} is damaged: {source}; restore the database from a backup")]
    DamagedDatabase {
        /// Where it is.
        store: String,
        /// What does not fit.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody removed or renamed a part of the database, or hides it.
    #[error(
        "the store {store} lacks a table or a column that Taximeter made: {source}; restore the \
         database from a backup: the journals of the gateways do not have its whole history any more"
    )]
    Incomplete {
        /// Where it is.
        store: String,
        /// What is missing.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The file system, the network or another process refuses. A later attempt may succeed.
    #[error("cannot use the store {store}: {source}")]
    Unavailable {
        /// Where it is.
        store: String,
        /// What the database said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Somebody reads what the store was long ago.
    #[error(
        "another program reads the store {store} for long, and so {log} has grown to {bytes} bytes, of \
         {bytes_max} at most; end that program's transaction. Until then the store gets nothing new, \
         and the journal keeps it"
    )]
    Pinned {
        /// Where it is.
        store: String,
        /// The file that grows.
        log: String,
        /// Its length.
        bytes: u64,
        /// The length from which on the store gets nothing.
        bytes_max: u64,
    },
    /// The store lacks what the journal has, and there is no room for a copy that gets it.
    #[error(
        "the store {store} lacks what the journal has and cannot be written, and a copy of it failed: \
         {source}; set TMPDIR to a folder with room for one, or run this as the user of the gateway"
    )]
    NoCopy {
        /// Where it is.
        store: String,
        /// What failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The gateway could not write what root makes.
    #[error(
        "{dir} belongs to the user {user}, and its gateway could not write the files that root makes \
         there; run this as that user (setpriv --reuid {user} --clear-groups taximeter ...)",
        dir = dir.display()
    )]
    Closed {
        /// The data directory.
        dir: PathBuf,
        /// The number of its user.
        user: u32,
    },
    /// Another process writes corrections of the same store.
    #[error("another `taximeter rerate` corrects what {store} has; run this when that has ended")]
    Correcting {
        /// Where it is.
        store: String,
    },
    /// Another gateway wrote corrections that may not all be in the store.
    #[error(
        "a `taximeter rerate` that began at {since} has not ended, and its corrections may not all \
         be in {store}: run it again where it ran, with the data directory of {gateway}; or, where \
         that is lost, go on here with --lost '{gateway}'"
    )]
    Unfinished {
        /// Where it is.
        store: String,
        /// In whose journal they are.
        gateway: String,
        /// When it began.
        since: Timestamp,
    },
    /// The journal cannot be read. The entries before the fault are in the store.
    #[error("cannot read the journal: {0}")]
    Journal(#[source] ReadError),
}

/// The day of UTC that begins then.
fn details_date(from: Timestamp) -> String {
    from.strftime("%Y-%m-%d (UTC)").to_string()
}
