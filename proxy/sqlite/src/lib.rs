//! The store in SQLite, in the data directory. It needs no server and serves one machine.
//!
//! ```text
//! Sqlite::open(data_dir)?          : Database         the tables, with the files that requests and sums left for
//! Sealer::open(data_dir, …)?       .work(…)           moves what is old from the tables to files
//!                                  .remove_oldest_day(…)
//! Held::begin(data_dir)?           .files()           all of it, which does not change meanwhile
//! ```
//!
//! Begin with `handle.rs` (how it is opened and asked), then `add.rs` (what a batch does). `schema.rs` has
//! the tables.
//!
//! # Files of days
//!
//! Requests leave the tables for Parquet files (`columnar`), some of a UTC day of admission at a time, and
//! the files of a day become one when the day is closed. `sealing` in `database` says when, `sealer.rs` does
//! it, and `days.rs` says how. A table names the files that count. A request leaves in the transaction
//! that names its file, so a crash at any step loses nothing and doubles nothing. Questions read tables
//! and files as of one moment.
//!
//! What sessions of agents add up to on a day that is closed leaves its table for a file beside that of the
//! day (`days/session_files.rs`), and goes with it.
//!
//! Sums per hour of old months leave in the same way (`hour_files.rs`). Each file says which requests and
//! corrections its hours have, so that a store that is built anew does not add them again. Then details may
//! go (`retire.rs`, `gone.rs`): the last entries of such a day stay, so that a journal that is read again
//! does not bring them back.
//!
//! # Backups
//!
//! `taximeter backup` holds the write lock while it copies (`hold.rs`). Meanwhile nothing is fed. So the
//! journal has everything that the store has, or more; no file of the journal is removed, and no page
//! leaves the write-ahead log. Requests are not affected.
//!
//! This crate reads no clock and no journal. `store` feeds it and asks it.

mod add;
mod ask;
mod columns;
mod convert;
mod day_entries;
mod days;
mod digest;
mod files;
mod gone;
mod handle;
mod hold;
mod hour_files;
mod hours;
pub mod keeper;
mod kept_tables;
mod known;
mod ledgers;
mod log;
mod lost;
mod new_hours;
mod old_days;
mod reached;
mod reading;
mod rebuild;
mod refusals;
mod requests;
mod retire;
mod schema;
mod sealer;
mod session_check;
mod session_sealing;
mod sessions;
mod shrink;
mod statements;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::export::Entries;
use taximeter_billing::{GatewayProgress, Hour, HourKey, LostRequests, Period};
use taximeter_database::batch::{Added, Batch};
use taximeter_database::behind::{Behind, EntryPage, Lacked};
use taximeter_database::database::{
    AdmissionKey, Database, Filter, Rebuilt, Refill, SoundDays, SoundHours, Written,
};
use taximeter_database::error::StoreError;
use taximeter_database::gone::GoneDay;
use taximeter_database::granularity::Granularity;
use taximeter_database::post::Post;
use taximeter_database::sessions::{SessionVisitor, WhichSessions};
use taximeter_ledger::{Correction, LedgerId, Position, Record, RefusalCount};

use self::handle::Adding;
use self::known::Known;

/// Name of the folder in a data directory that has files of requests.
pub const DAYS: &str = days::FOLDER;
pub use self::handle::Sqlite;
pub use self::hold::Held;
pub use self::log::{LOG_BYTES_MAX, LOG_KEPT_BYTES_MAX};
pub use self::old_days::DaysForRoom;
pub use self::retire::OldDay;
pub use self::sealer::{SealWork, Sealer};
/// Name of the folder in a data directory that has files of hours.
pub const HOURS: &str = hour_files::FOLDER;

/// Most sums of requests that wait for the end of their transaction: bounds their memory.
const SUMS_MAX: usize = 2048;

impl Database for Sqlite {
    fn cursor(&mut self, journal: &str) -> Result<Option<Position>, StoreError> {
        self.ask(|connection| ask::cursor(connection, journal))
    }

    fn free_bytes(&mut self) -> Result<u64, StoreError> {
        self.ask(shrink::free_bytes)
    }

    fn add(&mut self, batch: &Batch<'_>) -> Result<Added, StoreError> {
        let mut adding = match self.adding.take() {
            Some(adding) => adding,
            None => self.begin_adding()?,
        };
        // They do not come back if nothing was added.
        let mut known = std::mem::take(&mut self.known);
        let mut days = std::mem::take(&mut self.days);
        let add = |connection: &Connection| {
            let known = &mut known;
            let added = add::batch(connection, (known, &mut days), batch, &mut adding.hours)?;
            if adding.hours.count() > SUMS_MAX {
                new_hours::add(connection, known, std::mem::take(&mut adding.hours))?;
            }
            Ok(added)
        };
        let done = self.change(add);
        self.days = days;
        match done {
            Ok(added) => {
                (self.known, self.adding) = (known, Some(adding));
                Ok(added)
            }
            Err(fault) => Err(self.undo(adding.is_own, fault)),
        }
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Some(Adding { hours, is_own }) = self.adding.take() else { return Ok(()) };
        let mut known = std::mem::take(&mut self.known);
        let done = self.change(|connection| {
            new_hours::add(connection, &mut known, hours)?;
            if is_own { connection.execute_batch("COMMIT") } else { Ok(()) }
        });
        match done {
            Ok(()) => {
                self.known = known;
                Ok(())
            }
            Err(fault) => Err(self.undo(is_own, fault)),
        }
    }

    fn rebuild(&mut self, refill: &mut Refill<'_>) -> Result<Rebuilt, StoreError> {
        self.known = Known::default();
        self.ask(|connection| connection.execute_batch("BEGIN IMMEDIATE"))?;
        let rebuilt = self
            .change(rebuild::set_aside)
            .and_then(|()| self.change_with_days(rebuild::add_days))
            .and_then(|sessions| refill(self).map(|()| sessions))
            .and_then(|sessions| Ok((self.change_with_days(rebuild::keep)?, sessions)));
        let done = rebuilt.and_then(|rebuilt| {
            self.ask(|connection| connection.execute_batch("COMMIT")).map(|()| rebuilt)
        });
        // Some faults have undone it already.
        if done.is_err() && !self.connection.is_autocommit() {
            self.ask(|connection| connection.execute_batch("ROLLBACK"))?;
        }
        self.known = Known::default();
        if done.is_ok() {
            shrink::shrink(&self.connection);
        }
        // All of it went through the log at once. Who reads it now keeps it long until later.
        let _ = self.shorten_log(log::LOG_KEPT_BYTES_MAX);
        let (rebuilt, (wrong, without_requests)) = done?;
        let wrong_sessions = sealer::cure_sessions(self, wrong, without_requests)?;
        Ok(Rebuilt { wrong_sessions, ..rebuilt })
    }

    /// Who writes corrections has the directory's journal of them, and has fed all of it.
    fn begin_correcting(&mut self, _now: Timestamp, _lost: Option<&str>) -> Result<(), StoreError> {
        Ok(())
    }

    fn end_correcting(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn hold(&mut self) -> Result<(), StoreError> {
        self.begin_view()
    }

    fn release(&mut self) -> Result<(), StoreError> {
        self.end_view()
    }

    fn newest(&mut self) -> Result<i64, StoreError> {
        self.ask(ledgers::newest)
    }

    fn sealed_through(
        &mut self,
        journal: &str,
        ledger: LedgerId,
    ) -> Result<Option<u64>, StoreError> {
        self.ask(|connection| {
            let fed = ask::cursor(connection, journal)?.map_or(0, |cursor| cursor.seq);
            let first = ledgers::first_seq(connection, ledger)?;
            Ok(Some(first.map_or(fed, |first| fed.min(first.saturating_sub(1)))))
        })
    }

    fn behind(&mut self, asked: &Behind<'_>, limit: usize) -> Result<EntryPage, StoreError> {
        self.ask_all(|connection, days| days::behind(connection, days, asked, limit))
    }

    fn first_entry(&mut self, ledger: LedgerId) -> Result<Option<u64>, StoreError> {
        self.ask_all(|connection, days| days::first_entry(connection, days, ledger))
    }

    fn lacked(&mut self, ledger: LedgerId, after: u64) -> Result<Lacked, StoreError> {
        self.ask_all(|connection, days| days::lacked(connection, days, ledger, after))
    }

    fn check_days(&mut self, tell: &mut dyn FnMut(String)) -> Result<SoundDays, StoreError> {
        let mut sound = SoundDays::default();
        // No view is kept meanwhile: reading takes long.
        for file in self.ask(days::all)? {
            let days = &self.days;
            if self.ask(|connection| days::check(connection, days, &file, tell))? {
                sound.files += 1;
                sound.requests += file.requests;
            }
        }
        for file in self.ask(days::all_sessions)? {
            let days = &self.days;
            self.ask(|connection| days::check_file_of_sessions(connection, days, &file, tell))?;
        }
        Ok(sound)
    }

    fn details_from(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let from = self.ask(gone::details_from)?;
        Ok(from.and_then(|from| Timestamp::from_microsecond(from).ok()))
    }

    fn lost(&mut self) -> Result<Option<LostRequests>, StoreError> {
        self.ask(lost::lost)
    }

    fn check_whole(&mut self, posts: u64, before: Timestamp) -> Result<(), StoreError> {
        if self.ask(lost::is_due)? {
            self.change(|connection| lost::look(connection, posts, before))?;
        }
        Ok(())
    }

    fn gone_days(&mut self) -> Result<Vec<GoneDay>, StoreError> {
        Ok(self.ask(gone::all)?.into_iter().map(gone::GoneRow::shown).collect())
    }

    fn gone_corrections(&mut self, visit: &mut dyn FnMut(&Correction)) -> Result<(), StoreError> {
        self.ask(|connection| gone::corrections(connection, visit))
    }

    fn check_hours(&mut self, tell: &mut dyn FnMut(String)) -> Result<SoundHours, StoreError> {
        let mut sound = SoundHours::default();
        for file in self.ask(hour_files::all)? {
            let dir = self.hour_files.dir();
            if self.ask(|connection| hour_files::check(connection, dir, &file, tell))? {
                sound.files += 1;
                sound.rows += file.rows;
            }
        }
        Ok(sound)
    }

    fn hours(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask_hours(|connection, _, files| {
            hour_files::visit(connection, files, (hours, tenant), granularity, visit)
        })
    }

    fn sessions(
        &mut self,
        which: WhichSessions<'_>,
        visit: &mut SessionVisitor<'_>,
    ) -> Result<(), StoreError> {
        self.ask_all(|connection, days| sessions::visit(connection, days, which, visit))
    }

    fn session_files(&mut self) -> Result<BTreeMap<i64, String>, StoreError> {
        let files = self.ask(days::all_sessions)?.into_iter();
        Ok(files.map(|file| (file.day, format!("{}/{}", days::FOLDER, file.name))).collect())
    }

    fn session_posts(
        &mut self,
        period: Period,
        session: (&str, &str),
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask_all(|connection, days| {
            days::session_posts(connection, days, period, session, visit)
        })
    }

    fn posts(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask_all(|connection, days| days::posts(connection, days, period, tenant, visit))
    }

    fn written(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
        page: &mut Written,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        let place = (start, limit);
        let next = self.ask(|connection| ask::written(connection, filter, newest, place, page))?;
        if !self.has_days()? {
            return Ok(next);
        }
        self.ask_all(|connection, days| {
            days::written(connection, days, (filter, newest), place, page)
        })
    }

    fn corrections(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask_all(|connection, days| days::corrections(connection, days, period, tenant, visit))
    }

    fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError> {
        self.ask_all(|connection, days| {
            let mut entries = days::entries(connection, days, period, tenant)?;
            entries.corrections = days::count_corrections(connection, days, period, tenant)?;
            Ok(entries)
        })
    }

    fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError> {
        self.ask_all(|connection, days| days::tenants(connection, days, period, tenant))
    }

    fn progress(&mut self) -> Result<Vec<GatewayProgress>, StoreError> {
        let found = self.ask(reached::progress)?;
        Ok(found.map(|found| reached::named(found, &self.path)).into_iter().collect())
    }

    fn statements(&mut self, tenant: &str, period: Period) -> Result<Vec<String>, StoreError> {
        statements::read(&self.path, tenant, period)
    }

    fn all_statements(&mut self) -> Result<Vec<String>, StoreError> {
        statements::read_all(&self.path)
    }

    fn issue(
        &mut self,
        tenant: &str,
        period: Period,
        number: u32,
        signed: &str,
    ) -> Result<bool, StoreError> {
        statements::add(&self.path, (tenant, period, number), signed)
    }

    fn refusals(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        micros: i64,
        visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| refusals::visit(connection, period, tenant, micros, visit))
    }

    fn admitted(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        let page =
            self.ask(|connection| ask::admitted(connection, filter, newest, start, limit))?;
        if !self.has_days()? {
            return Ok(page);
        }
        self.ask_all(|connection, days| {
            days::admitted(connection, days, (filter, newest), start, limit)
        })
    }

    fn admitted_before(
        &mut self,
        filter: &Filter,
        newest: i64,
        end: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        let page =
            self.ask(|connection| ask::admitted_before(connection, filter, newest, end, limit))?;
        if !self.has_days()? {
            return Ok(page);
        }
        self.ask_all(|connection, days| {
            days::admitted_before(connection, days, (filter, newest), end, limit)
        })
    }

    fn key_of_last(
        &mut self,
        filter: &Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask_all(|connection, days| {
            days::key_of_last(connection, days, (filter, newest), count)
        })
    }

    fn arrived(
        &mut self,
        filter: &Filter,
        after: i64,
        newest: i64,
        limit: u32,
    ) -> Result<Vec<(i64, Record)>, StoreError> {
        self.ask(|connection| ask::arrived(connection, filter, after, newest, limit))
    }
}
