//! What a sealer does with what is old: hours leave the tables for files, and details of days go.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use taximeter_columnar::hex;
use taximeter_database::day::{DAY_MICROS, date_of, first_of};
use taximeter_database::error::StoreError;
use taximeter_database::gone::{GoneCause, GoneDay};
use taximeter_database::sealing::SealPolicy;
use taximeter_ledger::LedgerId;

use super::days::{self, Interrupt, LiveFile, LiveSessions};
use super::gone::{self, FileOf, GoneRow};
use super::hour_files::{self, HourSealing};
use super::log::LOG_BYTES_MAX;
use super::sealer::{SealWork, Sealer};
use super::sessions;

/// Hours leave the tables when all of their month is so old.
const HOURS_AGE: SignedDuration = SignedDuration::from_hours(24 * 60);
/// How often hours are written that change meanwhile.
const TRIES_MAX: u32 = 5;

/// The oldest day with details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OldDay {
    /// The day.
    pub day: Date,
    /// Its end.
    pub end: Timestamp,
    /// Requests in its files.
    pub requests: u64,
    /// What its files take.
    pub bytes: u64,
}

impl Sealer {
    /// The oldest day that has files of requests, but for those that cannot go.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub fn oldest_day(&self) -> Result<Option<OldDay>, StoreError> {
        let files = self.oldest_files()?;
        Ok(files.first().map(|first| OldDay {
            day: date_of(first.day),
            end: Timestamp::from_microsecond(first.day.saturating_add(DAY_MICROS))
                .unwrap_or(Timestamp::MAX),
            requests: files.iter().map(|file| file.requests).sum(),
            bytes: files.iter().map(|file| file.bytes).sum(),
        }))
    }

    /// Removes the files of requests of the oldest day that has any. Its hours are in a file before.
    /// What went; `None` if there are no files. Late requests of the day count as ever, and their
    /// files go with the next call. A file that cannot be removed now goes at the next
    /// [`work`](Self::work).
    ///
    /// Errors: `Unavailable`, `DayFile`, `HoursFile`, `Damaged`. Then all of the day is there. Where a
    /// file of it cannot be read, the next call is for the next day.
    pub fn remove_oldest_day(
        &mut self,
        now: Timestamp,
        cause: GoneCause,
    ) -> Result<Option<GoneDay>, StoreError> {
        let Some(day) = self.oldest_files()?.first().map(|file| file.day) else { return Ok(None) };
        let removed = self.remove_day(day, now, cause);
        if let Err(fault @ (StoreError::DayFile { .. } | StoreError::HoursFile { .. })) = &removed {
            self.kept_back.insert(day, fault.to_string());
        }
        removed.map(Some)
    }

    fn remove_day(
        &mut self,
        day: i64,
        now: Timestamp,
        cause: GoneCause,
    ) -> Result<GoneDay, StoreError> {
        for _ in 0..TRIES_MAX {
            let files = self.files_of(day)?;
            self.keep_hours(day, &|| true)?;
            let sessions = self.sqlite.ask(|connection| days::sessions_of(connection, day))?;
            let row = self.gone_row(&files, sessions.as_ref(), (now, cause))?;
            let gone = row.clone().shown();
            let has_gone = self.sqlite.change(|connection| {
                // Somebody has added to the day since.
                let mut there = days::all(connection)?;
                there.retain(|file| file.day == day);
                if there != files || hour_files::are_left(connection, day)? {
                    return Ok(false);
                }
                for file in &files {
                    days::unlist(connection, &file.name)?;
                }
                sessions::forget(connection, day)?;
                gone::note(connection, row)?;
                Ok(true)
            })?;
            if has_gone {
                let of_sessions = sessions.map(|file| file.name);
                let names: Vec<_> =
                    files.into_iter().map(|file| file.name).chain(of_sessions).collect();
                // The day has gone, whatever becomes of its files now.
                let _ = self.sqlite.change_with_days(|_, days| days::remove(days, &names));
                return Ok(gone);
            }
        }
        self.changes("the oldest day")
    }

    /// Hours of months that are old leave the tables, and the files of each month become one.
    pub(super) fn keep_old_hours(
        &mut self,
        policy: &SealPolicy,
        work: &mut SealWork,
        go_on: &Interrupt<'_>,
    ) -> Result<(), StoreError> {
        let until = policy.closed_until.saturating_sub(HOURS_AGE).unwrap_or(Timestamp::MIN);
        let until = until.as_microsecond();
        let month = first_of(date_of(until).first_of_month()).unwrap_or(until);
        for day in self.sqlite.ask(|connection| hour_files::old_days(connection, month))? {
            if !go_on() {
                return Ok(());
            }
            let kept = self.keep_hours(day, go_on);
            work.hours += work.unless_damaged(kept)?.unwrap_or(0);
        }
        let mut damaged = BTreeSet::new();
        while go_on() {
            let files = self.sqlite.ask(hour_files::all)?;
            let due = hour_files::due(&files, until, |month| damaged.contains(&month));
            let Some(of_month) = due else { break };
            let gateway = &self.gateway;
            let merged = self
                .sqlite
                .ask_hours(|_, _, files| hour_files::merge(files, gateway, &of_month, go_on));
            let Some(merged) = work.unless_damaged(merged)? else {
                damaged.extend(of_month.first().map(|file| file.month));
                continue;
            };
            let Some(merged) = merged.filter(|_| go_on()) else { break };
            self.sqlite.change(|it| hour_files::replace(it, &of_month, &merged))?;
            work.merged_hours += of_month.len() as u64;
        }
        Ok(())
    }

    /// Where the room is limited, the hours of the oldest day are in a file before the day has to go: there
    /// may be no room for the file then. What comes later for them is little.
    pub(super) fn keep_next_hours(
        &mut self,
        policy: &SealPolicy,
        work: &mut SealWork,
        go_on: &Interrupt<'_>,
    ) -> Result<(), StoreError> {
        let files = self.oldest_files()?;
        let Some(day) = files.first().filter(|first| first.is_final).map(|first| first.day) else {
            return Ok(());
        };
        if policy.left.is_none() || self.sqlite.ask(|it| hour_files::has_day(it, day))? {
            return Ok(());
        }
        let kept = self.keep_hours(day, go_on);
        work.hours += work.unless_damaged(kept)?.unwrap_or(0);
        Ok(())
    }

    /// Removes files of hours that nobody needs. The names of files whose hours are nowhere else.
    pub(super) fn tidy_hours(&mut self) -> Result<Vec<String>, StoreError> {
        let (useless, unknown) =
            self.sqlite.ask_hours(|it, _, files| hour_files::leftovers(it, files))?;
        if !useless.is_empty() {
            self.remove_hour_files(&useless)?;
        }
        Ok(unknown)
    }

    /// The hours of a day that are in the table leave it for a file. How many rows.
    fn keep_hours(&mut self, day: i64, go_on: &Interrupt<'_>) -> Result<u64, StoreError> {
        for _ in 0..TRIES_MAX {
            let gateway = &self.gateway;
            let part = self.sqlite.ask_hours(|connection, days, files| {
                let sealing = HourSealing { gateway, day };
                hour_files::seal(connection, days, files, sealing, go_on)
            })?;
            let Some(part) = part.filter(|_| go_on()) else { return Ok(0) };
            if self.sqlite.change(|connection| hour_files::leave(connection, &part))? {
                // Who reads what was before keeps the log long until later.
                let _ = self.sqlite.shorten_log(LOG_BYTES_MAX);
                return Ok(part.file.rows);
            }
            self.remove_hour_files(&[part.file.name])?;
        }
        self.changes(&format!("the hours of {}", date_of(day)))
    }

    /// In a transaction, so that nobody who copies the store misses them.
    fn remove_hour_files(&mut self, names: &[String]) -> Result<(), StoreError> {
        let dir = self.sqlite.hour_files.dir().to_owned();
        let removed = self
            .sqlite
            .change(|_| Ok(names.iter().try_for_each(|name| days::remove_file(&dir, name))))?;
        removed.map_err(|source| StoreError::Unavailable {
            store: dir.display().to_string(),
            source: source.into(),
        })
    }

    fn oldest_files(&self) -> Result<Vec<LiveFile>, StoreError> {
        let mut files = self.sqlite.ask(days::all)?;
        files.retain(|file| !self.kept_back.contains_key(&file.day));
        let oldest = files.first().map(|file| file.day);
        files.retain(|file| Some(file.day) == oldest);
        Ok(files)
    }

    fn files_of(&self, day: i64) -> Result<Vec<LiveFile>, StoreError> {
        let mut files = self.sqlite.ask(days::all)?;
        files.retain(|file| file.day == day);
        Ok(files)
    }

    /// What is noted of a day whose files go.
    fn gone_row(
        &mut self,
        files: &[LiveFile],
        sessions: Option<&LiveSessions>,
        (now, cause): (Timestamp, GoneCause),
    ) -> Result<GoneRow, StoreError> {
        let mut ledgers = BTreeMap::<LedgerId, u64>::new();
        self.sqlite.ask_all(|_, days| {
            for file in files {
                for range in &days.open(file)?.footer().ledgers {
                    let last = ledgers.entry(range.ledger).or_default();
                    *last = range.last.max(*last);
                }
            }
            Ok(())
        })?;
        let described = |name: &str, bytes, sha256: &[u8; 32]| FileOf {
            name: name.to_owned(),
            bytes,
            sha256: hex(sha256),
        };
        let of_requests = files.iter().map(|it| described(&it.name, it.bytes, &it.sha256));
        let of_sessions = sessions.map(|it| described(&it.name, it.bytes, &it.sha256));
        Ok(GoneRow {
            day: files.first().map_or(0, |file| file.day),
            requests: files.iter().map(|file| file.requests).sum(),
            times: (
                files.iter().map(|file| file.first).min().unwrap_or(i64::MAX),
                files.iter().map(|file| file.last).max().unwrap_or(i64::MIN),
            ),
            files: of_requests.chain(of_sessions).collect(),
            ledgers,
            gone_at: now.as_microsecond(),
            cause,
        })
    }

    fn changes<T>(&self, what: &str) -> Result<T, StoreError> {
        Err(StoreError::Unavailable {
            store: self.sqlite.path.display().to_string(),
            source: format!("{what} changes all the time").into(),
        })
    }
}
