//! Days whose details are gone, and how details go.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_billing::Zone;
use taximeter_database::day::{DAY_MICROS, day_of};
use taximeter_database::gone::{GoneCause, GoneDay};
use taximeter_ledger::{Correction, LedgerId, Place};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::fault::Fault;
use super::link::Link;
use super::schema;

const LAST: &str = "SELECT max(day) FROM taximeter.gone_days";
const LIST: &str = "
    SELECT day, ledger, last_seq, requests, first_at, last_at, gone_at
    FROM taximeter.gone_days ORDER BY day, ledger";
const OF_DAYS: &str = "
    SELECT day, ledger, last_seq FROM taximeter.gone_days WHERE day = ANY($1)";
const CORRECTIONS: &str = "
    SELECT correction
    FROM (SELECT DISTINCT day FROM taximeter.gone_days) AS gone
        JOIN taximeter.corrections ON started_at >= day AND started_at < day + 86400000000
    ORDER BY started_at";
/// The oldest ones. What it removes is noted with it.
const REMOVE: &str = "
    WITH old AS (
        SELECT started_at, id FROM taximeter.requests
        WHERE started_at < $1
        ORDER BY started_at, id
        LIMIT $2
    ), removed AS (
        DELETE FROM taximeter.requests USING old
        WHERE requests.started_at = old.started_at AND requests.id = old.id
        RETURNING requests.started_at, requests.ledger, requests.seq
    ), noted AS (
        INSERT INTO taximeter.gone_days AS known
        SELECT floor(started_at / 86400000000.0)::bigint * 86400000000, ledger, max(seq), count(*),
            min(started_at), max(started_at), $3
        FROM removed
        GROUP BY 1, 2
        ON CONFLICT (day, ledger) DO UPDATE SET
            last_seq = greatest(known.last_seq, excluded.last_seq),
            requests = known.requests + excluded.requests,
            first_at = least(known.first_at, excluded.first_at),
            last_at = greatest(known.last_at, excluded.last_at),
            gone_at = excluded.gone_at
    )
    SELECT count(*) FROM removed";

/// Sums of sessions go with the last request of their day.
const FORGET_SESSIONS: &str = "
    DELETE FROM taximeter.sessions WHERE day IN (
        SELECT day FROM (SELECT DISTINCT day FROM taximeter.sessions WHERE day < $1) AS old
        WHERE NOT EXISTS (
            SELECT 1 FROM taximeter.requests
            WHERE started_at >= old.day AND started_at < old.day + 86400000000))";

/// The last entries of requests whose details are gone, by the first instant of their day and by ledger.
#[derive(Debug, Default)]
pub(super) struct Gone(BTreeMap<i64, BTreeMap<LedgerId, u64>>);

impl Gone {
    /// Those of the days of these admissions. `last` is the last day without details.
    pub(super) fn of(
        link: &Link,
        last: Option<i64>,
        admissions: impl Iterator<Item = i64>,
    ) -> Result<Self, Fault> {
        let mut gone = Self::default();
        let Some(last) = last else { return Ok(gone) };
        let mut days: Vec<_> = admissions.map(day_of).filter(|day| *day <= last).collect();
        taximeter_collections::sort(&mut days);
        days.dedup();
        if days.is_empty() {
            return Ok(gone);
        }
        for row in link.query(OF_DAYS, &[(&days, Type::INT8_ARRAY)])? {
            let (ledger, last) = entry(&row, 1)?;
            gone.0.entry(row.try_get(0)?).or_default().insert(ledger, last);
        }
        Ok(gone)
    }

    /// Whether this request was here and has gone. It was admitted at `at`.
    pub(super) fn has(&self, at: i64, place: Place) -> bool {
        let last = self.0.get(&day_of(at)).and_then(|ledgers| ledgers.get(&place.ledger));
        last.is_some_and(|last| place.seq <= *last)
    }

    /// Whether the day of `at` has no details, but for requests that came late.
    pub(super) fn has_day(&self, at: i64) -> bool {
        self.0.contains_key(&day_of(at))
    }
}

/// The first instant with details, if any are gone.
pub(super) fn details_from(link: &Link) -> Result<Option<Timestamp>, Fault> {
    if !schema::has_later(link)? {
        return Ok(None);
    }
    let last: Option<i64> = link.query_one(LAST, &[])?.try_get(0)?;
    let from = last.map(|day| Timestamp::from_microsecond(day.saturating_add(DAY_MICROS)));
    from.transpose().map_err(Fault::unreadable)
}

/// All days, in order.
pub(super) fn days(link: &Link) -> Result<Vec<GoneDay>, Fault> {
    let mut days = Vec::<GoneDay>::new();
    if !schema::has_later(link)? {
        return Ok(days);
    }
    for row in link.query(LIST, &[])? {
        let time = |column: usize| {
            Timestamp::from_microsecond(row.try_get(column)?).map_err(Fault::unreadable)
        };
        let (ledger, last) = entry(&row, 1)?;
        let found = GoneDay {
            day: Zone::UTC.date_of(time(0)?),
            requests: row.try_get::<_, i64>(3)?.cast_unsigned(),
            first: time(4)?,
            last: time(5)?,
            files: Vec::new(),
            last_entries: BTreeMap::from([(ledger, last)]),
            gone_at: time(6)?,
            cause: GoneCause::Age,
        };
        match days.last_mut().filter(|day| day.day == found.day) {
            None => days.push(found),
            Some(day) => {
                day.requests += found.requests;
                (day.first, day.last) = (day.first.min(found.first), day.last.max(found.last));
                day.gone_at = day.gone_at.max(found.gone_at);
                day.last_entries.extend(found.last_entries);
            }
        }
    }
    Ok(days)
}

/// Shows each correction of a request of those days.
pub(super) fn corrections(link: &Link, visit: &mut dyn FnMut(&Correction)) -> Result<(), Fault> {
    if !schema::has_later(link)? {
        return Ok(());
    }
    link.each(CORRECTIONS, &[], |row| {
        visit(&Correction::decode(row.try_get(0)?).map_err(Fault::unreadable)?);
        Ok(std::ops::ControlFlow::Continue(()))
    })
}

/// Removes at most so many of the oldest requests of days that end up to `before`: how many. Needs an
/// open change.
pub(super) fn remove(
    link: &Link,
    before: Timestamp,
    rows_max: u32,
    now: Timestamp,
) -> Result<u64, Fault> {
    let (before, now) = (day_of(before.as_microsecond()), now.as_microsecond());
    let rows_max = i64::from(rows_max);
    let given = [(&before as _, Type::INT8), (&rows_max as _, Type::INT8), (&now as _, Type::INT8)];
    let removed = link.query_one(REMOVE, &given)?.try_get::<_, i64>(0)?.cast_unsigned();
    link.query(FORGET_SESSIONS, &[(&before, Type::INT8)])?;
    Ok(removed)
}

/// A ledger and an entry of it, from two columns.
fn entry(row: &Row, column: usize) -> Result<(LedgerId, u64), Fault> {
    let ledger: Uuid = row.try_get(column)?;
    Ok((LedgerId(ledger), row.try_get::<_, i64>(column + 1)?.cast_unsigned()))
}
