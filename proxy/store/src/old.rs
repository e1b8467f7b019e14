//! Reads the SQLite stores of formats 2 and 3, whose rows are JSON, so that they can be converted.
//! Only a conversion needs it: it has what the journals no longer have.

use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row};
use serde::de::DeserializeOwned;
use taximeter_ledger::{
    Correction, Record, RefusalCount, RefusalKind, Refusals, RequestId, TenantId,
};
use uuid::Uuid;

use super::keeper::STORE;

/// The formats that are read. Format 2 has no counts of refusals.
const FORMATS: [u32; 2] = [2, 3];

const REQUESTS: &str =
    "SELECT number, seq, record FROM requests WHERE number > ?1 ORDER BY number LIMIT ?2";
const CORRECTIONS: &str =
    "SELECT number, seq, correction FROM corrections WHERE number > ?1 ORDER BY number LIMIT ?2";
const REFUSALS: &str = "
    SELECT minute, id, tenant, others, reason, status, admitted, count FROM refusals
    WHERE minute > ?1 ORDER BY minute, id";
const HAS_REFUSALS: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'refusals'";

/// An old store. It is only read.
#[derive(Debug)]
pub struct OldStore {
    connection: Connection,
}

/// What a row says.
#[derive(Debug, PartialEq)]
pub struct OldRow<T> {
    /// Its place in the order of arrival. The next page begins behind it.
    pub number: i64,
    /// The sequence number of its entry in the journal.
    pub seq: u64,
    /// The value, or why it cannot be read.
    pub value: Result<T, String>,
}

impl OldStore {
    /// Opens the store in `data_dir`. `None` if there is none, or it has another format.
    ///
    /// # Errors
    /// The file cannot be read, or is no database.
    pub fn open(data_dir: &Path) -> rusqlite::Result<Option<Self>> {
        let path = data_dir.join(STORE);
        if !path.exists() {
            return Ok(None);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        let format = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok(FORMATS.contains(&format).then_some(Self { connection }))
    }

    /// Requests behind the row `after`, at most so many. The records have no `seq`.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn requests(&self, after: i64, limit: u32) -> rusqlite::Result<Vec<OldRow<Record>>> {
        page(&self.connection, REQUESTS, after, limit)
    }

    /// Corrections behind the row `after`, at most so many.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn corrections(&self, after: i64, limit: u32) -> rusqlite::Result<Vec<OldRow<Correction>>> {
        page(&self.connection, CORRECTIONS, after, limit)
    }

    /// Counts of refusals of the minutes behind `after`, at most so many minutes: one entry for each
    /// of the journal. The time of an entry is its minute, and its gateway is not known.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn refusals(&self, after: Timestamp, limit: u32) -> rusqlite::Result<Vec<Refusals>> {
        refusals(&self.connection, after, limit)
    }
}

/// Rows of a question for number, sequence number and JSON.
fn page<T: DeserializeOwned>(
    connection: &Connection,
    question: &str,
    after: i64,
    limit: u32,
) -> rusqlite::Result<Vec<OldRow<T>>> {
    let mut query = connection.prepare_cached(question)?;
    let rows = query.query_map((after, limit), |row| {
        let json = row.get_ref(2)?.as_str()?;
        let value = serde_json::from_str(json).map_err(|error| error.to_string());
        Ok(OldRow { number: row.get(0)?, seq: row.get(1).map(i64::cast_unsigned)?, value })
    })?;
    rows.collect()
}

fn refusals(
    connection: &Connection,
    after: Timestamp,
    limit: u32,
) -> rusqlite::Result<Vec<Refusals>> {
    let is_there = connection.query_row(HAS_REFUSALS, (), |_| Ok(())).optional()?;
    let mut entries: Vec<Refusals> = Vec::new();
    if is_there.is_none() {
        return Ok(entries);
    }
    let mut query = connection.prepare_cached(REFUSALS)?;
    let mut rows = query.query((after.as_microsecond(),))?;
    let mut minutes = 0;
    while let Some(row) = rows.next()? {
        let (minute, id, count) = refusal(row)?;
        let last = entries.last_mut();
        if last.as_ref().is_none_or(|last| last.minute != minute) {
            if minutes == limit {
                break;
            }
            minutes += 1;
        }
        match last.filter(|last| (last.minute, last.id) == (minute, id)) {
            Some(entry) => entry.counts.push(count),
            None => entries.push(Refusals {
                id,
                gateway: String::new(),
                at: minute,
                minute,
                counts: vec![count],
            }),
        }
    }
    Ok(entries)
}

fn refusal(row: &Row<'_>) -> rusqlite::Result<(Timestamp, RequestId, RefusalCount)> {
    let minute = Timestamp::from_microsecond(row.get(0)?).unwrap_or_default();
    let id = RequestId(Uuid::from_bytes(row.get(1)?));
    let tenant: String = row.get(2)?;
    let status: u16 = row.get(5)?;
    let kind = RefusalKind {
        tenant: (!tenant.is_empty()).then(|| TenantId(tenant.into())),
        others: row.get(3)?,
        reason: row.get::<_, String>(4)?.into(),
        status: (status > 0).then_some(status),
        admitted: row.get(6)?,
    };
    Ok((minute, id, RefusalCount { kind, count: row.get(7).map(i64::cast_unsigned)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::record;

    /// The tables as formats 2 and 3 have them, without those that are made of others.
    const TABLES: &str = "
        CREATE TABLE requests (
            number INTEGER PRIMARY KEY, started_at INTEGER NOT NULL, id BLOB NOT NULL,
            ended_at INTEGER NOT NULL, tenant TEXT NOT NULL, upstream TEXT NOT NULL, model TEXT,
            input_tokens INTEGER, output_tokens INTEGER, seq INTEGER NOT NULL, record TEXT NOT NULL
        ) STRICT;
        CREATE TABLE corrections (
            number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, started_at INTEGER NOT NULL,
            corrects BLOB NOT NULL, made_at INTEGER NOT NULL, waiting INTEGER NOT NULL,
            seq INTEGER NOT NULL, correction TEXT NOT NULL
        ) STRICT;";
    const REFUSALS_TABLE: &str = "
        CREATE TABLE refusals (
            minute INTEGER NOT NULL, id BLOB NOT NULL, tenant TEXT NOT NULL, others INTEGER NOT NULL,
            reason TEXT NOT NULL, status INTEGER NOT NULL, admitted INTEGER NOT NULL,
            count INTEGER NOT NULL,
            PRIMARY KEY (minute, id, tenant, others, reason, status, admitted)
        ) STRICT, WITHOUT ROWID;";

    fn correction(number: u32) -> Correction {
        let record = record(number);
        Correction {
            id: RequestId(Uuid::from_u128(number.into())),
            corrects: record.id,
            started_at: record.started_at,
            tenant: record.tenant,
            made_at: record.ended_at,
            reason: "a \"price\"".to_owned(),
            before: record.cost.clone(),
            after: None,
            completion: None,
            completed: None,
        }
    }

    fn written(dir: &Path, format: u32) -> Connection {
        let connection = Connection::open(dir.join(STORE)).unwrap();
        connection.execute_batch(TABLES).unwrap();
        connection.pragma_update(None, "user_version", format).unwrap();
        for number in 1..=5 {
            let record = record(number);
            let json = String::from_utf8(record.to_json().unwrap()).unwrap();
            let columns =
                "INSERT INTO requests VALUES (?1, 1, ?2, 1, 't', 'u', NULL, 1, 1, ?3, ?4)";
            let id = record.id.0.as_bytes();
            connection.execute(columns, (number, id, 10 * number, json)).unwrap();
            let correction = correction(number);
            let json = serde_json::to_string(&correction).unwrap();
            let columns = "INSERT INTO corrections VALUES (?1, ?2, 1, ?3, 1, 0, ?4, ?5)";
            let id = correction.id.0.as_bytes();
            connection.execute(columns, (number, id, id, 100 * number, json)).unwrap();
        }
        connection
    }

    #[test]
    fn requests_and_corrections_are_read_in_pages_as_they_were_written() {
        for format in FORMATS {
            let dir = tempfile::tempdir().unwrap();
            assert!(OldStore::open(dir.path()).unwrap().is_none());
            let connection = written(dir.path(), format);
            connection.execute("UPDATE requests SET record = '{}' WHERE number = 4", ()).unwrap();
            let old = OldStore::open(dir.path()).unwrap().unwrap();
            let (mut requests, mut corrections) = (Vec::new(), Vec::new());
            while let page = old.requests(i64::try_from(requests.len()).unwrap(), 2).unwrap()
                && !page.is_empty()
            {
                requests.extend(page);
            }
            while let page = old.corrections(i64::try_from(corrections.len()).unwrap(), 2).unwrap()
                && !page.is_empty()
            {
                corrections.extend(page);
            }
            assert_eq!((requests.len(), corrections.len()), (5, 5));
            for (row, number) in requests.iter().zip(1..) {
                assert_eq!((row.number, row.seq), (number.into(), 10 * u64::from(number)));
                assert_eq!(row.value.is_err(), number == 4);
                assert!(row.value.as_ref().is_ok_and(|it| *it == record(number)) || number == 4);
            }
            for (row, number) in corrections.iter().zip(1..) {
                assert_eq!(row.seq, 100 * u64::from(number));
                assert_eq!(row.value.as_ref(), Ok(&correction(number)));
            }
            assert_eq!(old.refusals(Timestamp::MIN, 9).unwrap(), []);
        }
    }

    #[test]
    fn counts_of_refusals_are_read_as_entries_in_whole_minutes() {
        let dir = tempfile::tempdir().unwrap();
        let connection = written(dir.path(), 3);
        connection.execute_batch(REFUSALS_TABLE).unwrap();
        let minute = |number: i64| Timestamp::from_second(60 * number).unwrap();
        for (at, id, tenant, status, count) in [
            (1, 1, "acme", 429, 3),
            (1, 1, "", 0, 4),
            (1, 2, "acme", 429, 5),
            (2, 3, "blue", 401, 6),
        ] {
            let id = Uuid::from_u128(id);
            let columns = "INSERT INTO refusals VALUES (?1, ?2, ?3, 0, 'r', ?4, 0, ?5)";
            let minute = minute(at).as_microsecond();
            connection.execute(columns, (minute, id.as_bytes(), tenant, status, count)).unwrap();
        }
        let old = OldStore::open(dir.path()).unwrap().unwrap();
        let first = old.refusals(Timestamp::MIN, 1).unwrap();
        let second = old.refusals(first.last().unwrap().minute, 1).unwrap();
        assert!(old.refusals(second.last().unwrap().minute, 1).unwrap().is_empty());
        let counts: Vec<Vec<u64>> = first
            .iter()
            .chain(&second)
            .map(|entry| entry.counts.iter().map(|it| it.count).collect())
            .collect();
        assert_eq!(counts, [vec![4, 3], vec![5], vec![6]]);
        let kind = &first[0].counts[0].kind;
        assert_eq!((&kind.tenant, kind.status), (&None, None));
        assert_eq!(second[0].counts[0].kind.tenant, Some(TenantId("blue".into())));
        assert_eq!(second[0].counts[0].kind.status, Some(401));
    }

    #[test]
    fn a_store_of_today_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        drop(written(dir.path(), 4));
        assert!(OldStore::open(dir.path()).unwrap().is_none());
    }
}
