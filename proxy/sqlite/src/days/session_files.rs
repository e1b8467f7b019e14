//! Files of sessions: of a day that is closed what its sessions add up to, beside the file of its requests.
//!
//! The table `session_files` says which ones count. Sums leave the table `sessions` in the transaction
//! that names the file which has them (`session_sealing.rs`). A file has requests alone. What comes late
//! stays in `sessions`, and what corrections change is in `session_changes`; who asks adds all three. A
//! file says which requests it has, so that none is added again when a store is built anew.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use taximeter_collections::Gather as _;
use taximeter_columnar::ReadError;
use taximeter_database::day::{date_of, day_of, first_of};
use taximeter_ledger::{LedgerId, Place};
use taximeter_sessions::{SessionsFile, SessionsFooter, check_sessions};

use super::adopt::FoundFile;
use super::folder;
use super::open::Days;
use crate::ask::unreadable;
use crate::digest::{digest, is_whole};
use crate::kept_tables;

const LIST: &str = "
    SELECT day, name, sessions, bytes, sha256, last_entries FROM session_files ORDER BY day";
const ADD: &str = "INSERT INTO session_files VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const REMOVE: &str = "DELETE FROM session_files WHERE day = ?1";

/// A file whose sessions count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LiveSessions {
    /// First instant of the day, in microseconds since 1970.
    pub(crate) day: i64,
    pub(crate) name: String,
    sessions: u64,
    pub(crate) bytes: u64,
    pub(crate) sha256: [u8; 32],
    /// Which requests it has.
    last_entries: BTreeMap<LedgerId, u64>,
}

/// Which requests the files have, by the first instant of their day.
#[derive(Debug, Default)]
pub(crate) struct SessionCovers(BTreeMap<i64, BTreeMap<LedgerId, u64>>);

impl SessionCovers {
    /// What is listed now.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let files = all_sessions(connection)?.into_iter();
        Ok(Self(files.map(|file| (file.day, file.last_entries)).gather()))
    }

    /// Whether a file has a request that was admitted at `at`.
    pub(crate) fn has_request(&self, at: i64, place: Place) -> bool {
        let of_day = self.0.get(&day_of(at));
        of_day.and_then(|of_day| of_day.get(&place.ledger)).is_some_and(|last| place.seq <= *last)
    }
}

/// All files, in order of day; none in a store that has no list.
pub(crate) fn all_sessions(connection: &Connection) -> rusqlite::Result<Vec<LiveSessions>> {
    if !kept_tables::has(connection, "session_files")? {
        return Ok(Vec::new());
    }
    connection.prepare_cached(LIST)?.query_map((), live)?.collect()
}

fn live(row: &Row<'_>) -> rusqlite::Result<LiveSessions> {
    let sha256 = row.get_ref(4)?.as_blob()?;
    let last_entries = row.get_ref(5)?.as_str()?;
    Ok(LiveSessions {
        day: row.get(0)?,
        name: row.get(1)?,
        sessions: row.get(2).map(i64::cast_unsigned)?,
        bytes: row.get(3).map(i64::cast_unsigned)?,
        sha256: sha256.try_into().map_err(|error| unreadable(4, error))?,
        last_entries: serde_json::from_slice(last_entries.as_bytes())
            .map_err(|error| unreadable(5, error))?,
    })
}

/// Names a file. Needs an open transaction.
pub(crate) fn name_sessions(connection: &Connection, file: &LiveSessions) -> rusqlite::Result<()> {
    let last_entries = serde_json::to_string(&file.last_entries)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let (sessions, bytes) = (file.sessions.cast_signed(), file.bytes.cast_signed());
    let mut add = connection.prepare_cached(ADD)?;
    add.execute(params![file.day, file.name, sessions, bytes, file.sha256, last_entries])?;
    Ok(())
}

/// Names the file of a day no longer. Needs an open transaction.
pub(crate) fn unname_sessions(connection: &Connection, day: i64) -> rusqlite::Result<()> {
    connection.prepare_cached(REMOVE)?.execute([day]).map(|_| ())
}

/// The file of a day, if there is one.
pub(crate) fn sessions_of(
    connection: &Connection,
    day: i64,
) -> rusqlite::Result<Option<LiveSessions>> {
    Ok(all_sessions(connection)?.into_iter().find(|file| file.day == day))
}

/// What the list says about a file that is written whole.
pub(crate) fn sessions_described(
    day: i64,
    (bytes, sha256): (u64, [u8; 32]),
    footer: SessionsFooter,
) -> LiveSessions {
    let SessionsFooter { sessions, last_entries, .. } = footer;
    LiveSessions { day, name: folder::sessions_name(day), sessions, bytes, sha256, last_entries }
}

/// Opens a file that is listed.
pub(crate) fn open_sessions(
    days: &Days,
    file: &LiveSessions,
) -> rusqlite::Result<SessionsFile<File>> {
    let handle = File::open(days.dir().join(&file.name)).map_err(ReadError::Read);
    let opened = handle.and_then(SessionsFile::open);
    let opened = opened.map_err(|error| days.fault(&file.name, error))?;
    let footer = opened.footer();
    let is_same = first_of(footer.day) == Some(file.day)
        && footer.sessions == file.sessions
        && footer.last_entries == file.last_entries
        && opened.bytes() == file.bytes;
    if is_same { Ok(opened) } else { Err(days.other_file(&file.name)) }
}

/// Reads a file that is named, and tells what is wrong with it.
pub(crate) fn check_file_of_sessions(
    connection: &Connection,
    days: &Days,
    file: &LiveSessions,
    tell: &mut dyn FnMut(String),
) -> rusqlite::Result<()> {
    let path = days.dir().join(&file.name);
    let opened = File::open(&path).map_err(ReadError::Read);
    let wrong = match opened.and_then(|opened| Ok((digest(&path)?, check_sessions(opened)?))) {
        Ok((_, findings)) if !findings.is_empty() => {
            let findings = findings.into_iter();
            findings.map(|finding| format!("{}: {}", finding.part, finding.what)).collect()
        }
        Ok((whole, _)) if whole != (file.bytes, file.sha256) => {
            vec!["it is another file than the one that was written".to_owned()]
        }
        Ok(_) => Vec::new(),
        // The details of the day may have gone.
        Err(error) if sessions_of(connection, file.day)?.as_ref() == Some(file) => {
            vec![error.to_string()]
        }
        Err(_) => Vec::new(),
    };
    for what in wrong {
        tell(format!(
            "{}, which has sessions of {}: {what}; restore the file from a backup, or make it anew with \
             `taximeter verify --rebuild`",
            path.display(),
            date_of(file.day)
        ));
    }
    Ok(())
}

/// Names no longer what is not what was written, if there are files of the requests of which its sums can
/// be made. The names of these files. Needs an open transaction, as of which the files are listed.
pub(crate) fn forget_damaged_sessions(
    connection: &Connection,
    days: &Days,
) -> rusqlite::Result<Vec<String>> {
    let mut damaged = all_sessions(connection)?;
    damaged.retain(|file| {
        let path = days.dir().join(&file.name);
        !is_whole(&path, file.bytes, file.sha256).unwrap_or(false)
            && days.files().iter().any(|it| it.day == file.day)
    });
    damaged.iter().try_for_each(|file| unname_sessions(connection, file.day))?;
    Ok(damaged.into_iter().map(|file| file.name).collect())
}

/// Names the file of sessions beside the one file of a day, if it has all requests of that. Needs an open
/// transaction, and a list that is lost.
pub(crate) fn adopt_sessions(
    connection: &Connection,
    days: &Days,
    found: &FoundFile,
) -> rusqlite::Result<()> {
    let Some(day) = found.closed_day() else { return Ok(()) };
    let path = days.dir().join(folder::sessions_name(day));
    let opened = File::open(&path).map_err(ReadError::Read).and_then(SessionsFile::open);
    let whole = digest(&path);
    // What cannot be read is made anew.
    let (Ok(file), Ok(whole)) = (opened, whole) else { return Ok(()) };
    let file = sessions_described(day, whole, file.footer().clone());
    let last_of = |ledger| file.last_entries.get(&ledger).copied().unwrap_or_default();
    let ledgers = &found.day.footer().ledgers;
    if ledgers.iter().all(|range| range.last <= last_of(range.ledger)) {
        name_sessions(connection, &file)?;
    }
    Ok(())
}

/// Whether the file of this name is one of sessions that counts no longer, or never did.
pub(super) fn is_left_over(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    if !folder::is_sessions(name) {
        return Ok(false);
    }
    const NAMED: &str = "SELECT 1 FROM session_files WHERE name = ?1";
    if !kept_tables::has(connection, "session_files")? {
        return Ok(false);
    }
    let named = connection.prepare_cached(NAMED)?.query_row([name], |_| Ok(())).optional()?;
    Ok(named.is_none())
}

/// The files of sessions in a folder.
pub(crate) fn session_names(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names = folder::names(dir)?;
    names.retain(|name| folder::is_sessions(name));
    Ok(names)
}
