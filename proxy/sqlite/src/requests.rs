//! Adds requests to their table, in the order of their entries.

use std::sync::LazyLock;

use rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE;
use rusqlite::{CachedStatement, Connection, OptionalExtension};
use sha2::{Digest as _, Sha256};
use taximeter_database::batch::{Batch, NewHours, NewPost};
use taximeter_database::post::Post;
use taximeter_ledger::{Correction, RequestId};

use super::ask::{self, unreadable};
use super::known::{Known, Left};
use super::ledgers::End;

// A number that is not named is simply the next one: SQLite then keeps no copy of the pages that the
// statement changes, and does not look for the place of each row.
const ADD_REQUEST: &str = "
    INSERT OR IGNORE INTO requests (started_at, id, form, seq, members) VALUES (?, ?, ?, ?, ?)";
const ADD_NUMBERED: &str = "
    INSERT INTO requests (started_at, id, form, seq, members, number) VALUES (?, ?, ?, ?, ?, ?)";
/// Columns of a request that are given.
const COLUMNS: usize = 5;
/// So many requests are added at once: a third of the cost is that of the statement.
const AT_ONCE: usize = 32;
/// Adds those before the first one that is here already.
static ADD_REQUESTS: LazyLock<String> = LazyLock::new(|| {
    let rows = vec!["(?, ?, ?, ?, ?)"; AT_ONCE].join(", ");
    format!("INSERT OR FAIL INTO requests (started_at, id, form, seq, members) VALUES {rows}")
});
const IS_HERE: &str = "SELECT 1 FROM requests WHERE started_at = ?1 AND id = ?2";

const FORM: &str = "SELECT number FROM forms WHERE digest = ?1 AND strings = ?2";
const ADD_FORM: &str = "INSERT INTO forms VALUES (NULL, ?1, ?2, ?3)";

const WAITING: &str = "
    SELECT correction FROM corrections
    WHERE waiting = 1 AND started_at = ?1 AND corrects = ?2";
const WAIT_NO_LONGER: &str = "
    UPDATE corrections SET waiting = 0
    WHERE waiting = 1 AND started_at = ?1 AND corrects = ?2";

/// A request with its time and the number of its form.
type Row<'a, 'b> = (i64, &'a NewPost<'b>, i64);

/// Adds the requests of a batch that are new.
pub(super) struct Requests<'a, 'b> {
    connection: &'a Connection,
    known: &'a mut Known,
    batch: &'a Batch<'b>,
    /// What the new ones add up to.
    hours: &'a mut NewHours,
    /// What has left the tables.
    left: Left,
    /// Whether corrections wait for their requests.
    is_awaited: bool,
    end: End,
    /// The numbers of the forms of the batch.
    forms: Vec<Option<i64>>,
    /// Those that are added next.
    rows: Vec<Row<'a, 'b>>,
    add: CachedStatement<'a>,
    add_all: CachedStatement<'a>,
    added: u64,
}

impl<'a, 'b> Requests<'a, 'b> {
    /// Needs an open transaction, and what is `known` as of it.
    pub(super) fn of(
        connection: &'a Connection,
        known: &'a mut Known,
        batch: &'a Batch<'b>,
        (hours, left): (&'a mut NewHours, Left),
        is_awaited: bool,
    ) -> rusqlite::Result<Self> {
        let end = known.end.take().map_or_else(|| End::read(connection), Ok)?;
        Ok(Self {
            connection,
            known,
            batch,
            hours,
            left,
            is_awaited,
            end,
            forms: vec![None; batch.forms.count()],
            rows: Vec::with_capacity(AT_ONCE),
            add: connection.prepare_cached(ADD_REQUEST)?,
            add_all: connection.prepare_cached(&ADD_REQUESTS)?,
            added: 0,
        })
    }

    /// Adds a request unless it is here. Its entry is behind those of the requests before.
    pub(super) fn add(&mut self, post: &'a NewPost<'b>) -> rusqlite::Result<()> {
        let at = post.numbers.started_at.as_microsecond();
        if !self.end.takes(post.place) {
            // What is here already keeps its key. Only what is new begins a further row of keys.
            self.flush()?;
            let mut is_here = self.connection.prepare_cached(IS_HERE)?;
            let key = request_key(at, &post.bytes.id);
            if is_here.query_row(key, |_| Ok(())).optional()?.is_some() {
                return Ok(());
            }
            self.end.begin(self.connection, post.place.ledger)?;
        }
        self.end.expect(post.place);
        let form = self.form_of(post)?;
        self.rows.push((at, post, form));
        if self.rows.len() == AT_ONCE { self.flush() } else { Ok(()) }
    }

    /// Adds what is left. How many were new.
    pub(super) fn finish(mut self) -> rusqlite::Result<u64> {
        self.flush()?;
        self.known.end = Some(self.end);
        Ok(self.added)
    }

    fn flush(&mut self) -> rusqlite::Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        let mut first = 0;
        if rows.len() == AT_ONCE && self.end.named().is_none() {
            first = add_rows(self.connection, &mut self.add_all, &rows)?;
            self.count(rows.get(..first).unwrap_or_default())?;
        }
        for row in rows.get(first..).unwrap_or_default().chunks(1) {
            let added = match self.end.named() {
                None => add_rows(self.connection, &mut self.add, row)?,
                Some(number) => {
                    let mut add = self.connection.prepare_cached(ADD_NUMBERED)?;
                    add.raw_bind_parameter(COLUMNS + 1, number)?;
                    add_rows(self.connection, &mut add, row)?
                }
            };
            self.count(row.get(..added).unwrap_or_default())?;
        }
        rows.clear();
        self.rows = rows;
        Ok(())
    }

    /// Counts rows that were added just now.
    fn count(&mut self, rows: &[Row<'_, 'b>]) -> rusqlite::Result<()> {
        if !rows.is_empty() {
            self.end.added(self.connection.last_insert_rowid());
        }
        for (at, post, _) in rows {
            self.added += 1;
            if !self.left.covers.has_request(*at, post.place) {
                self.hours.add_post(self.batch, post);
            }
            if post.bytes.has_dimensions() && !self.left.sessions.has_request(*at, post.place) {
                self.hours.sessions.add_post(post.place, &post.bytes);
            }
            if self.is_awaited {
                add_waiting(self.connection, post, self.hours)?;
            }
        }
        Ok(())
    }

    /// The number of the form of a post.
    fn form_of(&mut self, post: &NewPost<'_>) -> rusqlite::Result<i64> {
        let place = self.forms.get_mut(post.form).ok_or(rusqlite::Error::InvalidQuery)?;
        if let Some(number) = place {
            return Ok(*number);
        }
        let form = self.batch.form(post).ok_or(rusqlite::Error::InvalidQuery)?;
        let known = &mut self.known.form(form).number;
        let number = match known {
            Some(number) => *number,
            None => {
                let number = form_number(self.connection, &form.tenant, &form.strings)?;
                *known.insert(number)
            }
        };
        Ok(*place.insert(number))
    }
}

/// The number of a form in the table; a new one when it is new.
pub(super) fn form_number(
    connection: &Connection,
    tenant: &str,
    strings: &[u8],
) -> rusqlite::Result<i64> {
    let digest = Sha256::digest(strings);
    let (digest, _) = digest.split_first_chunk().unwrap_or((&[0; 8], &[]));
    let digest = i64::from_le_bytes(*digest);
    let found = connection
        .prepare_cached(FORM)?
        .query_row((digest, strings), |row| row.get(0))
        .optional()?;
    found.map_or_else(|| connection.prepare_cached(ADD_FORM)?.insert((digest, tenant, strings)), Ok)
}

/// Adds requests by a statement for so many. How many were added: the first ones, before one that is here.
fn add_rows(
    connection: &Connection,
    add: &mut CachedStatement<'_>,
    rows: &[Row<'_, '_>],
) -> rusqlite::Result<usize> {
    for (row, (started_at, post, form)) in rows.iter().enumerate() {
        let at = row * COLUMNS;
        add.raw_bind_parameter(at + 1, started_at)?;
        add.raw_bind_parameter(at + 2, post.bytes.id.0.as_bytes())?;
        add.raw_bind_parameter(at + 3, form)?;
        add.raw_bind_parameter(at + 4, post.place.seq.cast_signed())?;
        add.raw_bind_parameter(at + 5, post.bytes.members)?;
    }
    match add.raw_execute() {
        Err(error) if is_here(&error) => {
            Ok(usize::try_from(connection.changes()).unwrap_or_default())
        }
        added => added,
    }
}

/// Whether a request with this id is here. That a number is taken is another error.
fn is_here(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_CONSTRAINT_UNIQUE)
}

/// The corrections that came before their request.
fn add_waiting(
    connection: &Connection,
    post: &NewPost<'_>,
    hours: &mut NewHours,
) -> rusqlite::Result<()> {
    let key = request_key(post.numbers.started_at.as_microsecond(), &post.bytes.id);
    let mut waiting = connection.prepare_cached(WAITING)?;
    let mut rows = waiting.query(key)?;
    let mut payload = Vec::new();
    while let Some(row) = rows.next()? {
        let correction = Correction::decode(ask::bytes(row, 0)?);
        let correction = correction.map_err(|error| unreadable(0, error))?;
        let post = Post::read(post.place, post.payload(&mut payload));
        let post = post.map_err(|error| unreadable(0, error))?;
        hours.add_correction(&post, &correction);
        hours.sessions.add_correction(&post, &correction);
    }
    connection.prepare_cached(WAIT_NO_LONGER)?.execute(key).map(|_| ())
}

pub(super) const fn request_key(at: i64, id: &RequestId) -> (i64, &[u8; 16]) {
    (at, id.0.as_bytes())
}
