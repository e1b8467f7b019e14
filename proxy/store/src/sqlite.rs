//! The store in SQLite, in the data directory. It needs no server and serves one machine.

mod add;
mod ask;
mod convert;
mod files;
mod handle;
mod hold;
mod hours;
mod known;
mod log;
mod reached;
mod reading;
mod rebuild;
mod refusals;
mod schema;
mod shrink;
mod statements;

use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::export::Entries;
use taximeter_billing::{GatewayProgress, Hour, HourKey, Period};
use taximeter_ledger::{Correction, Position, Record, RefusalCount};

use super::batch::{Added, Batch};
use super::database::{AdmissionKey, Database, Filter, Rebuilt, Refill, Written};
use super::error::StoreError;
use super::granularity::Granularity;
use super::post::Post;

use self::handle::Adding;
use self::known::Known;

pub(super) use self::handle::Sqlite;
pub use self::hold::Held;
#[cfg(test)]
pub(super) use self::log::{LOG_BYTES_MAX, LOG_KEPT_BYTES_MAX};

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
        let add = |connection: &Connection| {
            let added = add::batch(connection, &mut known, batch, &mut adding.hours)?;
            if adding.hours.len() > SUMS_MAX {
                hours::add(connection, &mut known, std::mem::take(&mut adding.hours))?;
            }
            Ok(added)
        };
        match self.change(add) {
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
            hours::add(connection, &mut known, hours)?;
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
            .and_then(|()| refill(self))
            .and_then(|()| self.change(rebuild::keep));
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
        done
    }

    /// Who writes corrections has the directory's journal of them, and has fed all of it.
    fn begin_correcting(&mut self, _now: Timestamp, _lost: Option<&str>) -> Result<(), StoreError> {
        Ok(())
    }

    fn end_correcting(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn hold(&mut self) -> Result<(), StoreError> {
        self.ask(|connection| connection.execute_batch("BEGIN"))
    }

    fn release(&mut self) -> Result<(), StoreError> {
        // Some faults have ended it already.
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.ask(|connection| connection.execute_batch("COMMIT"))
    }

    fn newest(&mut self) -> Result<i64, StoreError> {
        self.ask(ask::newest)
    }

    fn hours(
        &mut self,
        hours: Period,
        tenant: Option<&str>,
        granularity: Granularity<'_>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| hours::visit(connection, hours, tenant, granularity, visit))
    }

    fn posts(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| ask::posts(connection, period, tenant, visit))
    }

    fn written(
        &mut self,
        filter: &Filter,
        newest: i64,
        start: &AdmissionKey,
        limit: u32,
        page: &mut Written,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|connection| ask::written(connection, filter, newest, (start, limit), page))
    }

    fn corrections(
        &mut self,
        period: Period,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(&Post<'_>, &Correction) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.ask(|connection| ask::corrections(connection, period, tenant, visit))
    }

    fn entries(&mut self, period: Period, tenant: Option<&str>) -> Result<Entries, StoreError> {
        self.ask(|connection| ask::entries(connection, period, tenant))
    }

    fn tenants(&mut self, period: Period, tenant: Option<&str>) -> Result<u64, StoreError> {
        self.ask(|connection| ask::tenants(connection, period, tenant))
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
        self.ask(|connection| ask::admitted(connection, filter, newest, start, limit))
    }

    fn admitted_before(
        &mut self,
        filter: &Filter,
        newest: i64,
        end: &AdmissionKey,
        limit: u32,
    ) -> Result<Vec<(AdmissionKey, Record)>, StoreError> {
        self.ask(|connection| ask::admitted_before(connection, filter, newest, end, limit))
    }

    fn key_of_last(
        &mut self,
        filter: &Filter,
        newest: i64,
        count: u32,
    ) -> Result<Option<AdmissionKey>, StoreError> {
        self.ask(|connection| ask::key_of_last(connection, filter, newest, count))
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
