//! Compares files of sessions with the requests of their days, while a store is built anew.
//!
//! A file can be as it was written and have sums that are wrong all the same. What its requests add up to
//! is gathered in a table: a day may have more sessions than memory has room for. If that is something
//! else, the file counts no longer, and what was gathered is what counts.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _, Row};
use taximeter_collections::Gather as _;
use taximeter_database::post::Post;
use taximeter_database::sessions::{NewSessions, SessionDay, session_of};
use taximeter_sessions::{DaySum, DueSum};

use super::ask::{bytes, unreadable};
use super::days::{self, Days, LiveSessions};
use super::sessions;

/// Most sums that wait before they are written: bounds their memory.
const SUMS_MAX: usize = 2048;

const BEGIN: &str = "
    CREATE TABLE checked_sessions (
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        sum BLOB NOT NULL,
        is_exact INTEGER NOT NULL,    -- 0 if its cost depends on the order of its requests
        PRIMARY KEY (tenant, session)
    ) STRICT, WITHOUT ROWID";
const KNOWN: &str = "
    SELECT tenant, session, sum, is_exact FROM checked_sessions
    WHERE tenant = ?1 AND session = ?2";
const SET: &str = "INSERT OR REPLACE INTO checked_sessions VALUES (?1, ?2, ?3, ?4)";
const ALL: &str = "
    SELECT tenant, session, sum, is_exact FROM checked_sessions ORDER BY tenant, session";
const FORGET: &str = "DELETE FROM checked_sessions";
const END: &str = "DROP TABLE checked_sessions";

/// Tenant and name of a session.
type Key = (String, String);

/// The comparison, one day after the other.
pub(super) struct SessionCheck<'a> {
    connection: &'a Connection,
    files: BTreeMap<i64, LiveSessions>,
    /// The day whose requests come, if it has a file.
    day: Option<i64>,
    gathered: BTreeMap<Key, DueSum>,
    /// The files that count no longer.
    wrong: Vec<String>,
}

impl<'a> SessionCheck<'a> {
    /// Needs an open transaction until its end.
    pub(super) fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        connection.execute_batch(BEGIN)?;
        let files = days::all_sessions(connection)?.into_iter();
        let files = files.map(|file| (file.day, file)).gather();
        Ok(Self { connection, files, day: None, gathered: BTreeMap::new(), wrong: Vec::new() })
    }

    /// From here on requests of this day come. All of those of the last one have come.
    pub(super) fn go_to(&mut self, days: &Days, day: i64) -> rusqlite::Result<()> {
        if self.day != Some(day) {
            self.end_day(days)?;
            self.day = Some(day).filter(|day| self.files.contains_key(day));
        }
        Ok(())
    }

    /// Adds a request that the file of the day has.
    pub(super) fn add(&mut self, post: &Post<'_>) -> rusqlite::Result<()> {
        let Some((SessionDay { tenant, session, .. }, request)) = session_of(post) else {
            return Ok(());
        };
        let due = DueSum::of(DaySum::of(&request));
        match self.gathered.get_mut(&(tenant.clone(), session.clone())) {
            Some(known) => known.add(&due),
            None => drop(self.gathered.insert((tenant, session), due)),
        }
        if self.gathered.len() > SUMS_MAX { self.write() } else { Ok(()) }
    }

    /// The names of the files that count no longer, and of those of whose days no requests have come.
    pub(super) fn end(mut self, days: &Days) -> rusqlite::Result<(Vec<String>, Vec<String>)> {
        self.end_day(days)?;
        self.connection.execute_batch(END)?;
        Ok((self.wrong, self.files.into_values().map(|file| file.name).collect()))
    }

    fn end_day(&mut self, days: &Days) -> rusqlite::Result<()> {
        let Some(file) = self.day.take().and_then(|day| self.files.remove(&day)) else {
            return Ok(());
        };
        self.write()?;
        // One that nobody can read has no such sums either.
        if !self.is_right(days, &file).unwrap_or(false) {
            days::unname_sessions(self.connection, file.day)?;
            self.count(file.day)?;
            self.wrong.push(file.name);
        }
        self.connection.execute_batch(FORGET)
    }

    fn write(&mut self) -> rusqlite::Result<()> {
        let mut known = self.connection.prepare_cached(KNOWN)?;
        let mut set = self.connection.prepare_cached(SET)?;
        for ((tenant, session), mut due) in std::mem::take(&mut self.gathered) {
            if let Some((_, mut before)) = known.query_row((&tenant, &session), read).optional()? {
                before.add(&due);
                due = before;
            }
            set.execute((&tenant, &session, due.sum.encode(), due.is_exact))?;
        }
        Ok(())
    }

    /// Whether the file has the sums that were gathered, and no other ones.
    fn is_right(&self, days: &Days, file: &LiveSessions) -> rusqlite::Result<bool> {
        let fault = |error| days.fault(&file.name, error);
        let mut kept = days::open_sessions(days, file)?.rows(None, None);
        let mut gathered = self.connection.prepare_cached(ALL)?;
        let mut gathered = gathered.query(())?;
        loop {
            let row = kept.next_row().map_err(fault)?;
            let due = gathered.next()?.map(read).transpose()?;
            match (row, due) {
                (None, None) => return Ok(true),
                (Some(row), Some((key, due)))
                    if (&row.tenant, &row.session) == (&key.0, &key.1)
                        && row.sum.is_of_same_requests(&due.sum, due.is_exact) => {}
                _ => return Ok(false),
            }
        }
    }

    /// Adds what was gathered to the sums of the day in the tables.
    fn count(&self, day: i64) -> rusqlite::Result<()> {
        let mut gathered = self.connection.prepare_cached(ALL)?;
        let mut gathered = gathered.query(())?;
        let mut new = NewSessions::default();
        while let Some(row) = gathered.next()? {
            let ((tenant, session), due) = read(row)?;
            new.requests.insert(SessionDay { day, tenant, session }, due.sum);
            if new.count() > SUMS_MAX {
                sessions::add(self.connection, std::mem::take(&mut new))?;
            }
        }
        sessions::add(self.connection, new)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<(Key, DueSum)> {
    let sum = DaySum::decode(bytes(row, 2)?).map_err(|error| unreadable(2, error))?;
    Ok(((row.get(0)?, row.get(1)?), DueSum { sum, is_exact: row.get(3)? }))
}
