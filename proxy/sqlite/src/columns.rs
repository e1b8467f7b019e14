//! Reads the columns of rows.

use rusqlite::Row;
use rusqlite::types::Type;
use rust_decimal::Decimal;
use taximeter_ledger::LedgerId;
use uuid::Uuid;

pub(super) fn bytes<'a>(row: &'a Row<'_>, column: usize) -> rusqlite::Result<&'a [u8]> {
    row.get_ref(column)?.as_blob().map_err(|error| unreadable(column, error))
}

/// A sequence number of a journal.
pub(super) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(i64::cast_unsigned)
}

pub(super) fn ledger(row: &Row<'_>, column: usize) -> rusqlite::Result<LedgerId> {
    let id = Uuid::from_slice(bytes(row, column)?).map_err(|error| unreadable(column, error))?;
    Ok(LedgerId(id))
}

/// Tokens, as they are kept: in 64 bits.
pub(super) fn tokens(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<u64>> {
    row.get(column).map(|tokens: Option<i64>| tokens.map(i64::cast_unsigned))
}

/// An exact decimal.
pub(super) fn money(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Decimal>> {
    let text = row.get_ref(column)?.as_str_or_null().map_err(|error| unreadable(column, error))?;
    text.map(Decimal::from_str_exact).transpose().map_err(|error| unreadable(column, error))
}

/// What is in `column` is not what was written.
pub(super) fn unreadable(
    column: usize,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
}
