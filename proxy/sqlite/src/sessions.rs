//! What sessions add up to by day: in rows, and of days that are closed in files.

use std::cmp::Ordering;
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fs::File;
use std::ops::ControlFlow;

use rusqlite::{Connection, OptionalExtension, Rows, Statement};
use taximeter_collections::Gather as _;
use taximeter_database::day::date_of;
use taximeter_database::sessions::{NewSessions, SessionVisitor, Sums, WhichSessions};
use taximeter_sessions::{DaySum, SessionRow, SessionRows};

use super::ask::{bytes, unreadable};
use super::days::{self, Days, LiveSessions};
use super::kept_tables;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS sessions (
        day INTEGER NOT NULL,         -- its first instant, microseconds since 1970
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        sum BLOB NOT NULL,            -- of its requests that were admitted on that day
        PRIMARY KEY (day, tenant, session)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS session_changes (
        day INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        session TEXT NOT NULL,
        sum BLOB NOT NULL,            -- of what corrections of these requests change
        PRIMARY KEY (day, tenant, session)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS session_files (
        day INTEGER PRIMARY KEY,      -- its first instant, microseconds since 1970
        name TEXT NOT NULL,           -- of the file
        sessions INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        sha256 BLOB NOT NULL,         -- of the whole file
        last_entries TEXT NOT NULL    -- JSON: last entry by ledger, of the requests that it has
    ) STRICT";
const FORGET: [&str; 2] =
    ["DELETE FROM sessions WHERE day = ?1", "DELETE FROM session_changes WHERE day = ?1"];

/// The questions for one of the tables of sums.
struct Questions {
    sum: &'static str,
    set: &'static str,
    next_day: &'static str,
    next_tenant: &'static str,
    of_day: &'static str,
    of_tenant: &'static str,
}

macro_rules! questions {
    ($table:literal) => {
        Questions {
            sum: concat!(
                "SELECT sum FROM ",
                $table,
                " WHERE day = ?1 AND tenant = ?2 AND session = ?3"
            ),
            set: concat!("INSERT OR REPLACE INTO ", $table, " VALUES (?1, ?2, ?3, ?4)"),
            next_day: concat!("SELECT min(day) FROM ", $table, " WHERE day >= ?1 AND day < ?2"),
            next_tenant: concat!(
                "SELECT min(tenant) FROM ",
                $table,
                " WHERE day = ?1 AND tenant > ?2"
            ),
            of_day: concat!(
                "SELECT tenant, session, sum FROM ",
                $table,
                " WHERE day = ?1 ORDER BY tenant, session"
            ),
            of_tenant: concat!(
                "SELECT tenant, session, sum FROM ",
                $table,
                " WHERE day = ?1 AND tenant = ?2 ORDER BY session"
            ),
        }
    };
}

const OF_REQUESTS: Questions = questions!("sessions");
const OF_CORRECTIONS: Questions = questions!("session_changes");
const BOTH: [&Questions; 2] = [&OF_REQUESTS, &OF_CORRECTIONS];

/// Whether the tables are there.
pub(super) fn are_kept(connection: &Connection) -> rusqlite::Result<bool> {
    kept_tables::has(connection, "session_files")
}

/// Makes the tables where they are missing.
pub(super) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(TABLES)
}

/// Adds to the sums that are here. Needs an open transaction.
pub(super) fn add(connection: &Connection, new: NewSessions) -> rusqlite::Result<()> {
    write(connection, &OF_REQUESTS, new.requests)?;
    write(connection, &OF_CORRECTIONS, new.corrections)
}

fn write(connection: &Connection, table: &Questions, sums: Sums) -> rusqlite::Result<()> {
    for (of, mut sum) in sums {
        let known = sum_of(connection, table, (of.day, &of.tenant, &of.session))?;
        if let Some(mut known) = known {
            known.add(&sum);
            sum = known;
        }
        let row = (of.day, &of.tenant, &of.session, sum.encode());
        connection.prepare_cached(table.set)?.execute(row)?;
    }
    Ok(())
}

/// Forgets the sums of a day. Needs an open transaction.
pub(super) fn forget(connection: &Connection, day: i64) -> rusqlite::Result<()> {
    for forget in FORGET {
        connection.prepare_cached(forget)?.execute([day])?;
    }
    days::unname_sessions(connection, day)
}

/// Shows the sums of sessions in the order of tenant and session: one for each of their days. The files
/// are listed as of the open transaction.
pub(super) fn visit(
    connection: &Connection,
    days: &Days,
    which: WhichSessions<'_>,
    visit: &mut SessionVisitor<'_>,
) -> rusqlite::Result<()> {
    if !are_kept(connection)? {
        return Ok(());
    }
    let (from, to) = which.days;
    let mut files = days::all_sessions(connection)?;
    files.retain(|file| from <= file.day && file.day < to);
    let of_days = OfDays { connection, days, files, tenant: which.tenant };
    match which.session {
        Some(session) => of_days.of_name(which.days, session, visit),
        None => of_days.all(which.days, visit),
    }
}

/// The sums of some days.
struct OfDays<'a> {
    connection: &'a Connection,
    days: &'a Days,
    files: Vec<LiveSessions>,
    /// Only those of this tenant, if set.
    tenant: Option<&'a str>,
}

impl OfDays<'_> {
    /// The days that have sums.
    fn days(&self, period: (i64, i64)) -> rusqlite::Result<BTreeSet<i64>> {
        let mut days: BTreeSet<_> = self.files.iter().map(|file| file.day).gather_set();
        for table in BOTH {
            let mut next = self.connection.prepare_cached(table.next_day)?;
            let (mut from, to) = period;
            while let Some(day) = next.query_row((from, to), |row| row.get::<_, Option<i64>>(0))? {
                days.insert(day);
                from = day.saturating_add(1);
            }
        }
        Ok(days)
    }

    /// The file of a day, if it has one.
    fn file(&self, day: i64, session: Option<&str>) -> rusqlite::Result<Option<SessionRows<File>>> {
        let Some(file) = self.files.iter().find(|file| file.day == day) else { return Ok(None) };
        Ok(Some(days::open_sessions(self.days, file)?.rows(self.tenant, session)))
    }

    /// The sums of one name: of one tenant, or of each that has such a session.
    fn of_name(
        &self,
        period: (i64, i64),
        session: &str,
        visit: &mut SessionVisitor<'_>,
    ) -> rusqlite::Result<()> {
        let mut found = Vec::new();
        for day in self.days(period)? {
            let mut of_day = BTreeMap::<String, DaySum>::new();
            let mut rows = self.file(day, Some(session))?;
            while let Some(row) = next_of(self.days, day, rows.as_mut())? {
                of_day.insert(row.tenant, row.sum);
            }
            for table in BOTH {
                let tenants = match self.tenant {
                    Some(tenant) => vec![tenant.to_owned()],
                    None => tenants(self.connection, table, day)?,
                };
                for tenant in tenants {
                    let sum = sum_of(self.connection, table, (day, &tenant, session))?;
                    match (sum, of_day.get_mut(&tenant)) {
                        (Some(sum), Some(known)) => known.add(&sum),
                        (Some(sum), None) => drop(of_day.insert(tenant, sum)),
                        (None, _) => {}
                    }
                }
            }
            found.extend(of_day.into_iter().map(|(tenant, sum)| (tenant, day, sum)));
        }
        // Those of a tenant stay in the order of their days.
        taximeter_collections::sort_by(&mut found, |(a, ..), (b, ..)| a.cmp(b));
        let _ =
            found.into_iter().try_for_each(|(tenant, day, sum)| visit(day, &tenant, session, sum));
        Ok(())
    }

    /// All sums. Each file and each table is in order, so only the next one of each is held.
    fn all(&self, period: (i64, i64), visit: &mut SessionVisitor<'_>) -> rusqlite::Result<()> {
        let of_days = self.days(period)?;
        let mut statements = Vec::with_capacity(BOTH.len() * of_days.len());
        for day in &of_days {
            for table in BOTH {
                let one = if self.tenant.is_some() { table.of_tenant } else { table.of_day };
                statements.push((*day, self.connection.prepare(one)?));
            }
        }
        let mut sources = Vec::with_capacity(statements.len() + self.files.len());
        for day in of_days {
            sources.extend(self.file(day, None)?.map(|rows| (day, Source::File(Box::new(rows)))));
        }
        for (day, statement) in &mut statements {
            sources.push((*day, Source::Rows(self.rows(*day, statement)?)));
        }
        // What is of one day is together, and its file comes first.
        taximeter_collections::sort_by_key(&mut sources, |(day, _)| *day);
        let mut next = BinaryHeap::with_capacity(sources.len());
        for (at, (day, source)) in sources.iter_mut().enumerate() {
            next.extend(source.take(self.days, (*day, at))?);
        }
        let mut last = None::<Next>;
        while let Some(mut first) = next.peek_mut() {
            let source = sources.get_mut(first.at);
            let following = source.map(|(day, source)| source.take(self.days, (*day, first.at)));
            // In its place, so that the others are looked at once.
            let Next { key, day, at, sum } = match following.transpose()?.flatten() {
                Some(following) => std::mem::replace(&mut *first, following),
                None => PeekMut::pop(first),
            };
            match &mut last {
                Some(last) if last.day == day && last.key == key => last.sum.add(&sum),
                _ => {
                    let whole = last.replace(Next { key, day, at, sum });
                    if whole.is_some_and(|whole| whole.show(visit).is_break()) {
                        return Ok(());
                    }
                }
            }
        }
        let _ = last.map(|last| last.show(visit));
        Ok(())
    }

    fn rows<'s>(&self, day: i64, statement: &'s mut Statement<'_>) -> rusqlite::Result<Rows<'s>> {
        match self.tenant {
            Some(tenant) => statement.query((day, tenant)),
            None => statement.query([day]),
        }
    }
}

/// Sums of a day in the order of tenant and session.
enum Source<'a> {
    File(Box<SessionRows<File>>),
    Rows(Rows<'a>),
}

/// The next sum of a source.
struct Next {
    key: (String, String),
    day: i64,
    at: usize,
    /// Apart from the rest, which moves while sources are put in order.
    sum: Box<DaySum>,
}

impl Source<'_> {
    fn take(&mut self, days: &Days, (day, at): (i64, usize)) -> rusqlite::Result<Option<Next>> {
        let row = match self {
            Self::File(rows) => next_of(days, day, Some(rows))?,
            Self::Rows(rows) => match rows.next()? {
                None => None,
                Some(row) => {
                    let (tenant, session): (String, String) = (row.get(0)?, row.get(1)?);
                    let sum = read(bytes(row, 2)?, (day, &tenant, &session))?;
                    Some(SessionRow { tenant, session, sum })
                }
            },
        };
        let next = |row: SessionRow| Next {
            key: (row.tenant, row.session),
            day,
            at,
            sum: Box::new(row.sum),
        };
        Ok(row.map(next))
    }
}

impl Next {
    fn show(self, visit: &mut SessionVisitor<'_>) -> ControlFlow<()> {
        visit(self.day, &self.key.0, &self.key.1, *self.sum)
    }
}

/// The one that comes first is the greatest.
impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        (&other.key, other.at).cmp(&(&self.key, self.at))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

/// The next row of the file of a day.
fn next_of(
    days: &Days,
    day: i64,
    rows: Option<&mut SessionRows<File>>,
) -> rusqlite::Result<Option<SessionRow>> {
    let row = rows.map_or(Ok(None), SessionRows::next_row);
    row.map_err(|error| days.fault(&days::sessions_name(day), error))
}

/// The tenants that have sums of a day in a table.
fn tenants(connection: &Connection, table: &Questions, day: i64) -> rusqlite::Result<Vec<String>> {
    let mut next = connection.prepare_cached(table.next_tenant)?;
    let mut tenants = Vec::<String>::new();
    loop {
        let last = tenants.last().map_or("", |last| last.as_str());
        match next.query_row((day, last), |row| row.get::<_, Option<String>>(0))? {
            Some(tenant) => tenants.push(tenant),
            None => return Ok(tenants),
        }
    }
}

fn sum_of(
    connection: &Connection,
    table: &Questions,
    key: (i64, &str, &str),
) -> rusqlite::Result<Option<DaySum>> {
    let mut sum = connection.prepare_cached(table.sum)?;
    sum.query_row(key, |row| read(bytes(row, 0)?, key)).optional()
}

fn read(sum: &[u8], (day, tenant, session): (i64, &str, &str)) -> rusqlite::Result<DaySum> {
    DaySum::decode(sum).map_err(|error| {
        let of = format!("the sum of the session {session} of {tenant} on {}", date_of(day));
        unreadable(2, format!("{of}: {error}"))
    })
}
