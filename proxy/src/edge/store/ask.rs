//! Questions to the store.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{OptionalExtension, Params, Row, Statement, params};
use rust_decimal::Decimal;
use taximeter_billing::{BillRow, Period};
use taximeter_ledger::Record;
use taximeter_pricing::Source;

use super::{Filter, Store, StoreError, schema};

/// Most records held at once while they are read; a slow reader does not hold the store's tidying
/// up for longer.
const PAGE_RECORDS_MAX: u32 = 512;

impl Store {
    /// Whether no request is in it.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(crate) fn is_empty(&self) -> Result<bool, StoreError> {
        self.one(schema::IS_EMPTY, [], |row| row.get(0)).map(|empty| empty.unwrap_or(true))
    }

    /// Shows `visit` each request that was admitted in `period`, of one tenant or of all, in order
    /// of admission.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn bill_rows<E: From<StoreError>>(
        &self,
        period: Period,
        tenant: Option<&str>,
        mut visit: impl FnMut(&BillRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let fault = |error| self.fault(error);
        let (from, to) = (period.from().as_microsecond(), period.to().as_microsecond());
        let mut query = self.connection.prepare_cached(schema::BILL_ROWS).map_err(fault)?;
        let mut rows = query.query(params![from, to, tenant]).map_err(fault)?;
        while let Some(row) = rows.next().map_err(fault)? {
            let labels = labels(row).map_err(fault)?;
            visit(&bill_row(row, &labels).map_err(fault)?)?;
        }
        Ok(())
    }

    /// The number of the newest record: each one that is fed later has a higher one.
    ///
    /// Errors: `Damaged`, `Unavailable`.
    pub(crate) fn newest(&self) -> Result<i64, StoreError> {
        self.one(schema::NEWEST, [], |row| row.get(0)).map(Option::unwrap_or_default)
    }

    /// Shows `visit` each record with a number up to `newest`, in order of admission; of more than
    /// `limit`, the last ones.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn records<E: From<StoreError>>(
        &self,
        filter: &Filter,
        newest: i64,
        limit: Option<u32>,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let fault = |error| self.fault(error);
        let Some((mut at, mut id)) = self.first_record(filter, newest, limit)? else {
            return Ok(());
        };
        let mut query = self.connection.prepare_cached(schema::RECORDS).map_err(fault)?;
        loop {
            let asked = params![at, id, filter.before(), filter.tenant, newest, PAGE_RECORDS_MAX];
            let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, record(row, 2, 3)?));
            let records: Vec<(i64, Vec<u8>, Record)> =
                page(&mut query, asked, read).map_err(fault)?;
            for (.., record) in &records {
                visit(record)?;
            }
            let Some((last_at, last_id, _)) = records.into_iter().next_back() else {
                return Ok(());
            };
            (at, id) = (last_at, last_id);
            // Nothing lies between an id and the same with a zero byte behind it.
            id.push(0);
        }
    }

    /// Shows `visit` each record with a number above `after`, in order of arrival; answers with the
    /// number of the newest one, whether it was asked for or not.
    ///
    /// Errors: `visit`'s own; `Damaged`, `Unavailable`.
    pub(crate) fn records_after<E: From<StoreError>>(
        &self,
        filter: &Filter,
        mut after: i64,
        mut visit: impl FnMut(&Record) -> Result<(), E>,
    ) -> Result<i64, E> {
        let fault = |error| self.fault(error);
        let newest = self.newest()?;
        let (since, before, tenant) = (filter.since(), filter.before(), &filter.tenant);
        let mut query = self.connection.prepare_cached(schema::AFTER).map_err(fault)?;
        loop {
            let asked = params![after, newest, since, before, tenant, PAGE_RECORDS_MAX];
            let read = |row: &Row<'_>| Ok((row.get(0)?, record(row, 1, 2)?));
            let records: Vec<(i64, Record)> = page(&mut query, asked, read).map_err(fault)?;
            let Some((last, _)) = records.last() else { return Ok(newest) };
            after = *last;
            for (_, record) in &records {
                visit(record)?;
            }
        }
    }

    /// Where the records that are asked for begin: an admission and an id.
    fn first_record(
        &self,
        filter: &Filter,
        newest: i64,
        limit: Option<u32>,
    ) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
        let all = (filter.since(), Vec::new());
        let Some(limit) = limit else { return Ok(Some(all)) };
        let Some(offset) = limit.checked_sub(1) else { return Ok(None) };
        let asked = params![filter.since(), filter.before(), filter.tenant, newest, offset];
        let found = self.one(schema::FIRST_OF_LAST, asked, |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Some(found.unwrap_or(all)))
    }

    fn one<T>(
        &self,
        question: &str,
        asked: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let answer = self.connection.query_row(question, asked, read).optional();
        answer.map_err(|error| self.fault(error))
    }
}

impl Filter {
    fn since(&self) -> i64 {
        self.from.map_or(i64::MIN, Timestamp::as_microsecond)
    }

    fn before(&self) -> i64 {
        self.to.map_or(i64::MAX, Timestamp::as_microsecond)
    }
}

fn page<T>(
    query: &mut Statement<'_>,
    asked: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    query.query_map(asked, read)?.collect()
}

/// A record, from the columns of its number in the journal and its JSON.
fn record(row: &Row<'_>, seq: usize, json: usize) -> rusqlite::Result<Record> {
    let text = row.get_ref(json)?.as_str().map_err(|error| unreadable(json, error))?;
    let record: Record = serde_json::from_str(text).map_err(|error| unreadable(json, error))?;
    let seq: i64 = row.get(seq)?;
    Ok(Record { seq: seq.cast_unsigned(), ..record })
}

/// One row of `schema::BILL_ROWS`.
fn bill_row<'a>(
    row: &'a Row<'_>,
    labels: &'a BTreeMap<String, String>,
) -> rusqlite::Result<BillRow<'a>> {
    let text = |column| row.get_ref(column)?.as_str().map_err(|e| unreadable(column, e));
    let maybe =
        |column| row.get_ref(column)?.as_str_or_null().map_err(|error| unreadable(column, error));
    let tokens = |column| row.get(column).map(|tokens: Option<i64>| tokens.map(i64::cast_unsigned));
    let money = |column| {
        let amount = maybe(column)?.map(Decimal::from_str_exact).transpose();
        amount.map_err(|error| unreadable(column, error))
    };
    let cost = maybe(14)?.zip(money(15)?);
    Ok(BillRow {
        started_at: Timestamp::from_microsecond(row.get(0)?).map_err(|e| unreadable(0, e))?,
        tenant: text(1)?,
        model: maybe(2)?,
        provider: text(3)?,
        upstream: text(4)?,
        operation: text(5)?,
        route: text(6)?,
        key_id: maybe(7)?,
        labels,
        source: source(text(9)?)?,
        input_tokens: tokens(10)?,
        cache_read_input_tokens: tokens(11)?,
        output_tokens: tokens(12)?,
        reasoning_output_tokens: tokens(13)?,
        cost,
        list_cost: money(16)?,
    })
}

fn labels(row: &Row<'_>) -> rusqlite::Result<BTreeMap<String, String>> {
    match row.get_ref(8)?.as_str_or_null().map_err(|error| unreadable(8, error))? {
        Some(json) => serde_json::from_str(json).map_err(|error| unreadable(8, error)),
        None => Ok(BTreeMap::new()),
    }
}

fn source(word: &str) -> rusqlite::Result<Source> {
    match word {
        "reported" => Ok(Source::Reported),
        "counted" => Ok(Source::Counted),
        "unknown" => Ok(Source::Unknown),
        other => Err(unreadable(9, FromSqlError::Other(other.into()))),
    }
}

fn unreadable(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
