//! One request as a row.

use std::borrow::Cow;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_ledger::Record;

use super::entry_values::EntryValues;
use super::members::{MEMBERS, Member, ValueSource, column};
use super::values::{count, number, parsed, time};
use crate::export::columns::{FieldKind, RowWriter, Rows};
use crate::export::error::ExportError;
use crate::export::manifest::ExportTotals;

const GATEWAY: usize = column(&MEMBERS, b"gateway");
const STARTED_AT: usize = column(&MEMBERS, b"started_at");
const TENANT: usize = column(&MEMBERS, b"tenant");
const CURRENCY: usize = column(&MEMBERS, b"currency");
const AMOUNT: usize = column(&MEMBERS, b"cost");
const LIST_AMOUNT: usize = column(&MEMBERS, b"list_cost");
const CURRENCY_KNOWN: usize = column(&MEMBERS, b"cost_known_currency");
const AMOUNT_KNOWN: usize = column(&MEMBERS, b"cost_known");
const LIST_AMOUNT_KNOWN: usize = column(&MEMBERS, b"list_cost_known");

/// One request: the values of its columns, borrowed from its entry.
pub struct RecordRow<'a> {
    seq: u64,
    values: EntryValues<'a>,
}

/// The cost of the request, or its known part, parsed once.
struct Amounts {
    billed: Option<Decimal>,
    list: Option<Decimal>,
    is_whole: bool,
}

impl<'a> RecordRow<'a> {
    /// Reads entry `seq`. If the entry is not laid out as journals write it, it is written again to
    /// `anew` first.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`] if it is not a record.
    pub fn read(seq: u64, entry: &'a str, anew: &'a mut Vec<u8>) -> Result<Self, ExportError> {
        if let Some(row) = Self::read_compact(seq, entry.as_bytes()) {
            return Ok(row);
        }
        let unreadable = |what| ExportError::Unreadable { seq, what };
        let record: Record =
            serde_json::from_str(entry).map_err(|error| unreadable(error.to_string()))?;
        *anew = record.to_json()?;
        let row = Self::read_compact(seq, anew);
        row.ok_or_else(|| unreadable("it is no object".to_owned()))
    }

    fn read_compact(seq: u64, entry: &'a [u8]) -> Option<Self> {
        EntryValues::read(entry).map(|values| Self { seq, values })
    }

    /// The tenant that pays.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`].
    pub fn tenant(&self) -> Result<Cow<'a, str>, ExportError> {
        self.required(TENANT, |value| self.text(value))
    }

    /// Time of admission.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`].
    pub fn started_at(&self) -> Result<Timestamp, ExportError> {
        self.required(STARTED_AT, time)
    }

    /// A string without its quotes.
    fn text<'b>(&self, value: &'b [u8]) -> Option<Cow<'b, str>> {
        match self.plain(value)? {
            Cow::Borrowed(text) => str::from_utf8(text).ok().map(Cow::Borrowed),
            Cow::Owned(text) => String::from_utf8(text).ok().map(Cow::Owned),
        }
    }

    /// The same as bytes. The whole entry is UTF-8, so a string in it is too.
    fn plain<'b>(&self, value: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let inside = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if !inside.contains(&b'\\') {
            return Some(Cow::Borrowed(inside));
        }
        let text: String = serde_json::from_slice(value).ok()?;
        Some(Cow::Owned(text.into_bytes()))
    }

    /// The value of a column that every request has.
    fn required<T>(
        &self,
        column: usize,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, ExportError> {
        self.value(column).and_then(read).ok_or_else(|| self.unreadable(column))
    }

    fn unreadable(&self, column: usize) -> ExportError {
        let name = MEMBERS.get(column).map(|member| member.field.name).unwrap_or_default();
        ExportError::Unreadable { seq: self.seq, what: format!("its `{name}` is missing or wrong") }
    }

    /// Adds the request to the totals, and as a row.
    pub(super) fn add_to(
        &self,
        totals: &mut ExportTotals,
        rows: &mut Rows,
    ) -> Result<(), ExportError> {
        let amounts = self.amounts()?;
        let gateway = self.required(GATEWAY, |value| self.text(value))?;
        let currency = if amounts.is_whole { CURRENCY } else { CURRENCY_KNOWN };
        let owed = match self.value(currency) {
            Some(_) => Some((
                self.required(currency, |value| self.text(value))?,
                amounts.billed.ok_or_else(|| self.unreadable(AMOUNT))?,
                amounts.list.ok_or_else(|| self.unreadable(LIST_AMOUNT))?,
            )),
            None => None,
        };
        let owed = owed.as_ref().map(|(currency, billed, list)| (&**currency, *billed, *list));
        totals.unknown_cost_requests += i64::from(!amounts.is_whole);
        totals.add_entry(&gateway, self.seq, owed, 1)?;
        let mut row = rows.row();
        for (column, member) in MEMBERS.iter().enumerate() {
            self.fill(&mut row, column, member, self.value(column), &amounts)?;
        }
        Ok(())
    }

    fn amounts(&self) -> Result<Amounts, ExportError> {
        let read = |column| {
            let value: Option<&[u8]> = self.value(column);
            value.map(|value| parsed(value).ok_or_else(|| self.unreadable(column))).transpose()
        };
        let is_whole = self.value(CURRENCY).is_some();
        let (amount, list_amount) =
            if is_whole { (AMOUNT, LIST_AMOUNT) } else { (AMOUNT_KNOWN, LIST_AMOUNT_KNOWN) };
        let billed = read(amount)?;
        // Most tenants pay list prices.
        let is_list = self.value(amount) == self.value(list_amount);
        Ok(Amounts { billed, list: if is_list { billed } else { read(list_amount)? }, is_whole })
    }

    fn value(&self, column: usize) -> Option<&'a [u8]> {
        self.values.get(column)
    }

    fn fill(
        &self,
        row: &mut RowWriter<'_>,
        column: usize,
        member: &Member,
        value: Option<&[u8]>,
        amounts: &Amounts,
    ) -> Result<(), ExportError> {
        let unreadable = || self.unreadable(column);
        let value = match (member.source, value) {
            (ValueSource::Entry, _) => {
                let too_large = |_| ExportError::TooLarge { what: "the number of an entry" };
                row.int64(i64::try_from(self.seq).map_err(too_large)?);
                return Ok(());
            }
            (_, None) if member.field.nullable => {
                row.null();
                return Ok(());
            }
            (_, None) => return Err(unreadable()),
            (ValueSource::Stage, Some(micros)) => {
                let micros = count(micros).ok_or_else(unreadable)??;
                // The float that is nearest to the decimal with six places.
                row.double(micros as f64 / 1e6);
                return Ok(());
            }
            (ValueSource::Value, Some(value)) => value,
        };
        match member.field.kind {
            FieldKind::Text => row.text(&self.plain(value).ok_or_else(unreadable)?),
            FieldKind::Json => row.text(value),
            FieldKind::Time => row.time(time(value).ok_or_else(unreadable)?),
            FieldKind::Int64 => row.int64(count(value).ok_or_else(unreadable)??),
            FieldKind::Int32 => {
                let count = count(value).ok_or_else(unreadable)??;
                row.int32(i32::try_from(count).map_err(|_| unreadable())?);
            }
            FieldKind::Bool => row.bool(match value {
                b"true" => true,
                b"false" => false,
                _ => return Err(unreadable()),
            }),
            FieldKind::Double => row.double(number(value).ok_or_else(unreadable)?),
            FieldKind::Decimal { .. } => {
                let is_billed = column == AMOUNT || column == AMOUNT_KNOWN;
                let amount = if is_billed { amounts.billed } else { amounts.list };
                row.decimal(amount.ok_or_else(unreadable)?)?;
            }
        }
        Ok(())
    }
}
