//! Seals requests of a store and merges their files, beside the process that feeds it.
//!
//! What takes long holds no lock of the store: a file is written first. Then one transaction names it,
//! and its requests leave the tables. This is on the device before a file goes that was replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use taximeter_billing::{Closing, closing};
use taximeter_database::database::{SessionsCure, WrongSessions};
use taximeter_database::day::{DAY_MICROS, day_of};
use taximeter_database::error::StoreError;
use taximeter_database::sealing::{DayFileState, DayState, SealPolicy, Step, due};

use super::days::{self, Interrupt, LiveFile, PART_ROWS_MAX, Sealing};
use super::gone;
use super::handle::Sqlite;
use super::kept_tables;
use super::ledgers;
use super::log::LOG_BYTES_MAX;
use super::reached;
use super::session_sealing;

const NEXT: &str = "SELECT min(started_at) FROM requests WHERE started_at >= ?1";
const COUNT: &str = "
    SELECT count(*), count(*) FILTER (WHERE number <= ?3)
    FROM requests WHERE started_at >= ?1 AND started_at < ?2";
/// Of the last ones.
const MEMBERS: &str = "
    SELECT coalesce(sum(length(members)) / count(*), 0)
    FROM (SELECT members FROM requests ORDER BY number DESC LIMIT 256)";
/// What a request takes besides: time and id in the table and in its index, and numbers.
const ROW_BYTES: u64 = 80;
/// Forms whose request may have left are looked at in so many steps, so that each is short.
const FORMS_AT_ONCE: i64 = 4096;
const USED_FORMS: &str = "
    DROP TABLE IF EXISTS temp.used;
    CREATE TEMP TABLE used (form INTEGER PRIMARY KEY);
    INSERT OR IGNORE INTO used SELECT form FROM requests";
const FORGET_FORMS: &str = "
    DELETE FROM forms
    WHERE number > ?1 AND number <= ?2 AND number NOT IN (SELECT form FROM temp.used)
        AND number NOT IN (SELECT form FROM requests WHERE number > ?3)";

/// The newest closed day is looked for in so many days.
const CLOSED_LOOKS: i64 = 400;

/// Who seals. There is one for a data directory.
#[derive(Debug)]
pub struct Sealer {
    pub(super) sqlite: Sqlite,
    pub(super) gateway: String,
    rows_max: usize,
    /// Days whose details cannot go, and why: what they are noted by cannot be read.
    pub(super) kept_back: BTreeMap<i64, String>,
    _lock: File,
}

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SealWork {
    /// Requests that left the tables.
    pub sealed: u64,
    /// Files that were merged with others.
    pub merged: u64,
    /// Sums by the hour that left the tables.
    pub hours: u64,
    /// Files of hours that were merged with others.
    pub merged_hours: u64,
    /// Requests that no file can have: they cannot be read, or two have one id. They stay.
    pub misfits: u64,
    /// Files that cannot be read, and what is wrong. What needs them waits, and nothing else.
    pub damaged: Vec<String>,
    /// Files in the folder that the store does not name, and that have requests which are nowhere else.
    pub unknown: Vec<String>,
    /// The same of sums by the hour.
    pub unknown_hours: Vec<String>,
}

impl SealWork {
    /// What was done; `None` if a file of a day or of hours cannot be read, which is noted.
    pub(super) fn unless_damaged<T>(
        &mut self,
        done: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match done {
            Err(fault @ (StoreError::DayFile { .. } | StoreError::HoursFile { .. })) => {
                let fault = fault.to_string();
                if !self.damaged.contains(&fault) {
                    self.damaged.push(fault);
                }
                Ok(None)
            }
            done => done.map(Some),
        }
    }

    /// What somebody should look at, if anything.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let mut faults = Vec::new();
        if self.misfits > 0 {
            faults.push(format!(
                "{} requests cannot be read, or have an id twice, and stay in the store: see `taximeter \
                 verify`",
                self.misfits
            ));
        }
        faults.extend_from_slice(&self.damaged);
        if !self.unknown.is_empty() {
            faults.push(format!(
                "the folder `days` has files that the store does not name, with requests that are \
                 nowhere else: {}",
                self.unknown.join(", ")
            ));
        }
        if !self.unknown_hours.is_empty() {
            faults.push(format!(
                "the folder `hours` has files that the store does not name, with sums that are nowhere \
                 else: {}",
                self.unknown_hours.join(", ")
            ));
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

impl Sealer {
    /// Opens the store in `data_dir`, which belongs to this gateway. `None` while another process seals
    /// there.
    ///
    /// Errors: as [`Sqlite::open`].
    pub fn open(data_dir: &Path, gateway: &str) -> Result<Option<Self>, StoreError> {
        let mut sqlite = Sqlite::open(data_dir)?;
        // A file goes only when the device knows that another one has what it had.
        sqlite.ask(|connection| connection.pragma_update(None, "synchronous", "full"))?;
        sqlite.change(kept_tables::create)?;
        let dir = sqlite.days.dir();
        let lock = days::lock(dir).map_err(|source| StoreError::Unavailable {
            store: dir.display().to_string(),
            source: source.into(),
        })?;
        let (gateway, rows_max) = (gateway.to_owned(), PART_ROWS_MAX);
        let kept_back = BTreeMap::new();
        Ok(lock.map(|lock| Self { sqlite, gateway, rows_max, kept_back, _lock: lock }))
    }

    /// The same, with so few requests in a file.
    #[cfg(any(test, feature = "samples"))]
    #[must_use]
    pub const fn with_rows_max(mut self, rows_max: usize) -> Self {
        self.rows_max = rows_max;
        self
    }

    /// Writes the files of sessions that are missing, and does nothing else. Nothing at all while another
    /// process seals there.
    ///
    /// Errors: as [`Sqlite::open`]. What was written before stays.
    fn write_sessions(data_dir: &Path) -> Result<(), StoreError> {
        let Some(mut sealer) = Self::open(data_dir, "")? else { return Ok(()) };
        let gateway = sealer.sqlite.ask_all(|_, days| {
            let last = days.files().last().map(|file| days.open(file)).transpose()?;
            Ok(last.map(|file| file.footer().gateway.clone()))
        })?;
        sealer.gateway = gateway.unwrap_or_default();
        sealer.seal_sessions(&mut SealWork::default(), &|| true)
    }

    /// The number of the newest request. After a while everybody has seen it.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn newest(&mut self) -> Result<i64, StoreError> {
        self.sqlite.ask(ledgers::newest)
    }

    /// Up to when days are closed at the time `now`: the end of the newest one of which nothing can come
    /// any more, but late.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn closed_until(&self, now: Timestamp) -> Result<Timestamp, StoreError> {
        let gateways = self.sqlite.ask(reached::progress)?;
        let gateways: Vec<_> = gateways
            .into_iter()
            .map(|gateway| reached::named(gateway, &self.sqlite.path))
            .collect();
        let today = now.as_microsecond().div_euclid(DAY_MICROS) * DAY_MICROS;
        let ends = (0..CLOSED_LOOKS).map_while(|days| {
            Timestamp::from_microsecond(today.checked_sub(days * DAY_MICROS)?).ok()
        });
        let is_closed =
            |end: &Timestamp| matches!(closing(*end, &gateways, now), Closing::Closed { .. });
        Ok(ends.into_iter().find(is_closed).unwrap_or(Timestamp::MIN))
    }

    /// Does all that is due, with the requests that have a number up to `newest`, while `go_on` says yes.
    ///
    /// Errors: `Unavailable`, `Damaged`. What was done before stays.
    pub fn work(
        &mut self,
        policy: &SealPolicy,
        newest: i64,
        go_on: &dyn Fn() -> bool,
    ) -> Result<SealWork, StoreError> {
        let [unknown, unknown_hours] = [self.tidy()?, self.tidy_hours()?];
        let mut work = SealWork { unknown, unknown_hours, ..SealWork::default() };
        // They may go when somebody has restored what is damaged.
        work.damaged.extend(std::mem::take(&mut self.kept_back).into_values());
        let mut damaged = BTreeSet::new();
        // Of each day those that were left the last time. There is nothing else left in the end.
        let mut misfits = BTreeMap::new();
        while go_on() {
            let mut days = self.days(newest)?;
            for state in &mut days {
                let left = misfits.get(&state.day).copied().unwrap_or(0);
                state.may_leave = state.may_leave.saturating_sub(left);
                state.is_damaged = damaged.contains(&state.day);
            }
            match due(&days, policy) {
                None => break,
                Some(Step::Seal { day }) => {
                    let left = misfits.entry(day).or_insert(0);
                    *left = 0;
                    work.sealed += self.seal(day, newest, left, go_on)?;
                }
                Some(Step::Merge { day, files, is_final }) => {
                    let merged = self.merge(&files, is_final, go_on);
                    match work.unless_damaged(merged)? {
                        Some(merged) => work.merged += merged,
                        None => drop(damaged.insert(day)),
                    }
                }
            }
        }
        work.misfits = misfits.into_values().sum();
        self.seal_sessions(&mut work, go_on)?;
        if work.sealed > 0 && go_on() {
            self.forget_forms()?;
        }
        self.keep_old_hours(policy, &mut work, go_on)?;
        self.keep_next_hours(policy, &mut work, go_on)?;
        if policy.left.is_some() {
            // On a full volume a removal writes to the log from its begin, which is there.
            self.sqlite.settle_log();
        }
        Ok(work)
    }

    /// Requests that left the tables. `misfits` gets the number of those that cannot.
    fn seal(
        &mut self,
        day: i64,
        newest: i64,
        misfits: &mut u64,
        go_on: &Interrupt<'_>,
    ) -> Result<u64, StoreError> {
        let Self { sqlite, gateway, rows_max, .. } = self;
        let sealing = Sealing { gateway, day, newest, rows_max: *rows_max };
        let days = &sqlite.days;
        let part =
            sqlite.ask(|connection| days::seal(connection, days, sealing, misfits, go_on))?;
        let Some(part) = part.filter(|_| go_on()) else { return Ok(0) };
        sqlite.change(|connection| days::leave(connection, &part))?;
        // Who reads what was before keeps the log long until later.
        let _ = sqlite.shorten_log(LOG_BYTES_MAX);
        Ok(part.file.requests)
    }

    /// Sums of sessions of closed days leave their table for a file beside that of the day.
    fn seal_sessions(
        &mut self,
        work: &mut SealWork,
        go_on: &Interrupt<'_>,
    ) -> Result<(), StoreError> {
        for day in self.sqlite.ask(session_sealing::due)? {
            let Self { sqlite, gateway, .. } = self;
            let part = sqlite.ask_all(|connection, days| {
                session_sealing::seal(connection, days, (gateway, day), go_on)
            });
            let part = work.unless_damaged(part)?.flatten();
            let Some(part) = part.filter(|_| go_on()) else { continue };
            // Where something came meanwhile, the next call writes the file again.
            sqlite.change(|connection| session_sealing::leave(connection, &part))?;
            let _ = sqlite.shorten_log(LOG_BYTES_MAX);
        }
        Ok(())
    }

    /// Files that are one now.
    fn merge(
        &mut self,
        numbers: &[i64],
        is_final: bool,
        go_on: &Interrupt<'_>,
    ) -> Result<u64, StoreError> {
        let Self { sqlite, gateway, .. } = self;
        let mut files = sqlite.ask(days::all)?;
        files.retain(|file| numbers.contains(&file.number));
        let days = &sqlite.days;
        let merged = sqlite
            .ask(|connection| days::merge(connection, days, gateway, &files, is_final, go_on))?;
        let Some(merged) = merged.filter(|_| go_on()) else { return Ok(0) };
        sqlite.change(|connection| days::replace(connection, &files, &merged))?;
        Ok(files.len() as u64)
    }

    /// Removes what nobody needs. The names of files whose requests are nowhere else.
    pub(super) fn tidy(&mut self) -> Result<Vec<String>, StoreError> {
        let mut leftovers = self.sqlite.ask_all(days::leftovers)?;
        // The process ended before they were removed.
        let gone = self.sqlite.ask(gone::names)?;
        let (gone, unknown) = leftovers.unknown.into_iter().partition(|name| gone.contains(name));
        (leftovers.unknown, leftovers.useless) = (unknown, [leftovers.useless, gone].concat());
        if !leftovers.useless.is_empty() {
            let useless = &leftovers.useless;
            self.sqlite.change_with_days(|_, days| days::remove(days, useless))?;
        }
        Ok(leftovers.unknown)
    }

    /// What there is of each day.
    fn days(&self, newest: i64) -> Result<Vec<DayState>, StoreError> {
        self.sqlite.ask(|connection| {
            let mut states = Vec::new();
            for (day, requests, may_leave) in counts(connection, newest)? {
                let end = day.saturating_add(DAY_MICROS);
                states.push(DayState { day, end, requests, may_leave, ..DayState::default() });
            }
            let each = bytes_of_one(connection)?;
            for state in &mut states {
                state.bytes = state.requests.saturating_mul(each);
            }
            for LiveFile { number, day, bytes, is_final, .. } in days::all(connection)? {
                let file = DayFileState { number, bytes, is_final };
                match states.binary_search_by_key(&day, |state| state.day) {
                    Ok(at) => states.get_mut(at).into_iter().for_each(|it| it.files.push(file)),
                    Err(at) => {
                        let end = day.saturating_add(DAY_MICROS);
                        let files = vec![file];
                        states.insert(at, DayState { day, end, files, ..DayState::default() });
                    }
                }
            }
            Ok(states)
        })
    }

    /// Removes forms that no request has any more.
    fn forget_forms(&mut self) -> Result<(), StoreError> {
        let number = |connection: &Connection, question: &str| {
            connection.query_row(question, (), |row| row.get::<_, i64>(0))
        };
        let (newest, last) = self.sqlite.ask(|connection| {
            // Requests that come between the two are looked at later.
            let newest = ledgers::newest(connection)?;
            let last = number(connection, "SELECT coalesce(max(number), 0) FROM forms")?;
            connection.execute_batch(USED_FORMS)?;
            Ok((newest, last))
        })?;
        let mut after = 0;
        while after < last {
            let end = last.min(after + FORMS_AT_ONCE);
            self.sqlite.change(|connection| {
                connection.prepare_cached(FORGET_FORMS)?.execute(params![after, end, newest])
            })?;
            after = end;
        }
        self.sqlite.ask(|connection| connection.execute_batch("DROP TABLE temp.used"))
    }
}

/// Writes files of sessions again that a rebuild has found to be wrong. `kept` have no requests.
///
/// Errors: `Damaged`, `Unavailable`. Not if a file cannot be written: its sums are in the store.
pub(super) fn cure_sessions(
    sqlite: &Sqlite,
    wrong: Vec<String>,
    kept: Vec<String>,
) -> Result<Vec<WrongSessions>, StoreError> {
    let mut named = Vec::new();
    if !wrong.is_empty() && sqlite.is_own() {
        // An old file goes only when the device knows that nobody names it.
        sqlite.settle_log();
        let data_dir = sqlite.path.parent().unwrap_or(&sqlite.path);
        let _ = Sealer::write_sessions(data_dir);
        named = sqlite.ask(days::all_sessions)?;
    }
    let path = |name: String| format!("{}/{name}", days::FOLDER);
    let wrong = wrong.into_iter().map(|name| {
        let is_written = named.iter().any(|file| file.name == name);
        let cure = if is_written { SessionsCure::Written } else { SessionsCure::Counted };
        WrongSessions { file: path(name), cure }
    });
    let kept =
        kept.into_iter().map(|name| WrongSessions { file: path(name), cure: SessionsCure::Kept });
    Ok(wrong.chain(kept).collect())
}

/// The days that have requests in the tables: how many, and how many of them up to a number.
fn counts(connection: &Connection, newest: i64) -> rusqlite::Result<Vec<(i64, u64, u64)>> {
    let mut next = connection.prepare_cached(NEXT)?;
    let mut count = connection.prepare_cached(COUNT)?;
    let mut counts = Vec::new();
    let mut from = i64::MIN;
    while let Some(at) = next.query_row([from], |row| row.get::<_, Option<i64>>(0))? {
        let day = day_of(at);
        let end = day.saturating_add(DAY_MICROS);
        let (requests, may_leave): (i64, i64) =
            count.query_row((day, end, newest), |row| Ok((row.get(0)?, row.get(1)?)))?;
        counts.push((day, requests.cast_unsigned(), may_leave.cast_unsigned()));
        from = end;
    }
    Ok(counts)
}

/// About what a request takes in the tables.
fn bytes_of_one(connection: &Connection) -> rusqlite::Result<u64> {
    let mut members = connection.prepare_cached(MEMBERS)?;
    let members: i64 = members.query_row((), |row| row.get(0))?;
    Ok(members.cast_unsigned().saturating_add(ROW_BYTES))
}

#[cfg(test)]
mod tests {
    use taximeter_database::batch::Batch;
    use taximeter_database::database::Database as _;
    use taximeter_ledger::{LedgerId, Payload, Place, Record, RequestId};
    use uuid::Uuid;

    use super::*;

    const PATTERN: &str = r#"{
        "id": "01930000-0000-7000-8000-000000000000", "request_id": "", "attempt": 1,
        "gateway": "pod-7f9c/0", "started_at": "2026-11-01T00:00:00Z",
        "ended_at": "2026-11-01T00:00:01Z", "tenant": "acme", "key_id": "acme-prod",
        "identity": "api_key", "labels": {"team": "search"}, "operation": "chat",
        "route": "/v1/chat/completions", "stream": true, "upstream": "local", "provider": "vllm",
        "request_model": "m", "response_model": "m-2026", "response_id": null, "status": 200,
        "end": "complete", "finish_reasons": ["stop"],
        "usage": {"source": "reported", "input_tokens": 100, "output_tokens": 10},
        "timing": {"output_chunks": 10, "duration": 1.18, "gateway": 0.0004},
        "resource": {"k8s.pod.name": "pod-7f9c"}
    }"#;

    /// The payload of the `number`th request of November, one each second.
    fn payload(number: u32) -> Vec<u8> {
        let mut record: Record = serde_json::from_str(PATTERN).unwrap();
        record.id = RequestId(Uuid::from_u128(record.id.0.as_u128() + u128::from(number)));
        record.request_id = format!("client-{number}");
        record.response_id = Some(format!("chatcmpl-{number}"));
        record.started_at += jiff::SignedDuration::from_secs(number.into());
        let mut payload = Vec::new();
        record.encode(&mut payload);
        payload
    }

    #[test]
    fn the_bytes_of_a_day_are_about_those_of_its_part_of_the_database() {
        let dir = tempfile::tempdir().unwrap();
        let mut sqlite = Sqlite::open(dir.path()).unwrap();
        let payloads: Vec<_> = (0..20_000).map(|it| Payload::from(&*payload(it))).collect();
        let mut batch = Batch::default();
        for (seq, payload) in (1..).zip(&payloads) {
            let place = Place { ledger: LedgerId::UNKNOWN, seq };
            batch.push_post(place, payload.post().unwrap()).unwrap();
        }
        assert_eq!(sqlite.add(&batch).unwrap().posts, 20_000);
        sqlite.commit().unwrap();
        let sealer = Sealer::open(dir.path(), "pod-7f9c/0").unwrap().unwrap();
        let days = sealer.days(i64::MAX).unwrap();
        let pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let sqlite = &sealer.sqlite;
        let whole = sqlite.ask(|it| it.query_row(pages, (), |row| row.get::<_, i64>(0))).unwrap();
        let found = days.iter().map(|day| day.bytes).sum::<u64>().cast_signed();
        assert!((whole * 3 / 4..=whole).contains(&found), "{found} of {whole}");
    }
}
