//! The key of a request: the id of its ledger, and the sequence number of its entry there.
//!
//! Requests are numbered in the order of their keys, which is the order of arrival. The table `ledgers`
//! says from which number on requests are of which ledger. From there to the next of its rows sequence
//! numbers ascend. So no two requests have one key, and the numbers need no second index.
//!
//! A journal can give a sequence number to another request: one that lost its tail and goes on, or one
//! that took the place of another. Such a request begins a further row, also of the same ledger.

use rusqlite::{Connection, OptionalExtension as _};
use taximeter_ledger::{LedgerId, Place};

use super::columns::{ledger, seq, unreadable};

/// The last request, and the last row of `ledgers`.
const LAST_REQUEST: &str = "SELECT number, seq FROM requests ORDER BY number DESC LIMIT 1";
const LAST_LEDGER: &str = "SELECT first, ledger FROM ledgers ORDER BY first DESC LIMIT 1";
/// The next row has the ledger of the next number. It stands alone where nobody has that number.
const BEGIN: &str = "INSERT OR REPLACE INTO ledgers VALUES (?1, ?2)";
/// Rows of which no request is left, but for the last one.
const FORGET: &str = "
    DELETE FROM ledgers
    WHERE first < (SELECT max(first) FROM ledgers) AND NOT EXISTS (
        SELECT 1 FROM requests
        WHERE number >= ledgers.first
            AND number < (SELECT min(behind.first) FROM ledgers AS behind WHERE behind.first > ledgers.first))";
const NEWEST: &str = "
    SELECT max(
        coalesce((SELECT max(number) FROM requests), 0),
        coalesce((SELECT max(first) - 1 FROM ledgers), 0))";
const LEDGER: &str = "
    SELECT first, ledger, (SELECT min(behind.first) FROM ledgers AS behind WHERE behind.first > ?1)
    FROM ledgers WHERE first <= ?1 ORDER BY first DESC LIMIT 1";
/// Of each row of the ledger the first request.
const FIRST_SEQ: &str = "
    SELECT min((
        SELECT seq FROM requests
        WHERE number >= ledgers.first
            AND number < coalesce(
                (SELECT min(behind.first) FROM ledgers AS behind WHERE behind.first > ledgers.first),
                9223372036854775807)
        ORDER BY number LIMIT 1))
    FROM ledgers WHERE ledger = ?1";

/// The end of the requests, where the next ones are added.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// The next number.
    next: i64,
    /// The number that the table gives by itself.
    is_next_free: bool,
    /// The last row of `ledgers`.
    ledger: Option<LedgerId>,
    /// The last entry whose request is behind that row.
    seq: Option<u64>,
}

impl End {
    pub(super) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut last = connection.prepare_cached(LAST_REQUEST)?;
        let last = last.query_row((), |row| Ok((row.get::<_, i64>(0)?, seq(row, 1)?)));
        let last = last.optional()?;
        let mut row = connection.prepare_cached(LAST_LEDGER)?;
        let row = row.query_row((), |row| Ok((row.get::<_, i64>(0)?, ledger(row, 1)?)));
        let row = row.optional()?;
        let free = last.map_or(1, |(number, _)| number.saturating_add(1));
        let first = row.map_or(1, |(first, _)| first);
        Ok(Self {
            next: free.max(first),
            is_next_free: free >= first,
            ledger: row.map(|(_, ledger)| ledger),
            seq: last.filter(|(number, _)| *number >= first).map(|(_, seq)| seq),
        })
    }

    /// Whether a request from there goes on behind the last one.
    pub(super) fn takes(&self, place: Place) -> bool {
        self.ledger == Some(place.ledger) && self.seq.is_none_or(|last| last < place.seq)
    }

    /// The next request is from there.
    pub(super) const fn expect(&mut self, place: Place) {
        self.seq = Some(place.seq);
    }

    /// From here on requests are of this ledger, whichever entries they had before.
    pub(super) fn begin(
        &mut self,
        connection: &Connection,
        ledger: LedgerId,
    ) -> rusqlite::Result<()> {
        connection.prepare_cached(BEGIN)?.execute((self.next, ledger.0.as_bytes()))?;
        (self.ledger, self.seq) = (Some(ledger), None);
        Ok(())
    }

    /// The number that must be given to the next request: the table would give a lower one.
    pub(super) fn named(&self) -> Option<i64> {
        (!self.is_next_free).then_some(self.next)
    }

    /// So many requests were added, the last one with this number.
    pub(super) const fn added(&mut self, last: i64) {
        (self.next, self.is_next_free) = (last.saturating_add(1), true);
    }
}

/// The highest number that a request has or had; 0 if there is none.
pub(super) fn newest(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached(NEWEST)?.query_row((), |row| row.get(0))
}

/// Numbers up to `last` are not given again, also when their requests are gone. Needs an open
/// transaction.
pub(super) fn keep_numbers(connection: &Connection, last: i64) -> rusqlite::Result<()> {
    let mut end = End::read(connection)?;
    if end.next > last {
        return Ok(());
    }
    end.next = end.next.max(last.saturating_add(1));
    end.begin(connection, end.ledger.unwrap_or(LedgerId::UNKNOWN))
}

/// Forgets what says nothing of any request. Needs an open transaction.
pub(super) fn forget(connection: &Connection) -> rusqlite::Result<()> {
    connection.prepare_cached(FORGET)?.execute(()).map(drop)
}

/// The first entry of a ledger whose request is in the table.
pub(super) fn first_seq(
    connection: &Connection,
    ledger: LedgerId,
) -> rusqlite::Result<Option<u64>> {
    let mut first = connection.prepare_cached(FIRST_SEQ)?;
    let seq: Option<i64> = first.query_row([ledger.0.as_bytes()], |row| row.get(0))?;
    Ok(seq.map(i64::cast_unsigned))
}

/// Tells the ledgers of requests by their numbers, as of the moment of the question that has found
/// these.
#[derive(Debug)]
pub(super) struct Ledgers<'c> {
    connection: &'c Connection,
    /// The numbers from one to before another one, and their ledger.
    known: Option<(i64, Option<i64>, LedgerId)>,
}

impl<'c> Ledgers<'c> {
    pub(super) const fn new(connection: &'c Connection) -> Self {
        Self { connection, known: None }
    }

    /// Where the entry of the request with this number is.
    pub(super) fn place(&mut self, number: i64, seq: u64) -> rusqlite::Result<Place> {
        let is_known = |(first, end, _): &(i64, Option<i64>, LedgerId)| {
            *first <= number && end.is_none_or(|end| number < end)
        };
        let (_, _, ledger) = match self.known.filter(is_known) {
            Some(known) => known,
            None => *self.known.insert(self.ask(number)?),
        };
        Ok(Place { ledger, seq })
    }

    fn ask(&self, number: i64) -> rusqlite::Result<(i64, Option<i64>, LedgerId)> {
        let mut query = self.connection.prepare_cached(LEDGER)?;
        let found =
            query.query_row([number], |row| Ok((row.get(0)?, row.get(2)?, ledger(row, 1)?)));
        found.optional()?.ok_or_else(|| unreadable(0, "no ledger has the number of a request"))
    }
}
