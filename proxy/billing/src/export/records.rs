//! Requests as typed columns of a Parquet file, from the entries that they were written as.
//!
//! Most of an entry goes into its column as it stands: nothing is made of a request but its row.

mod members;

use std::borrow::Cow;
use std::io::Write;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use taximeter_ledger::{Members, Record, Stage};

use self::members::{MEMBERS, Member, Reading, Within, column, find_column};
use super::columns::{Field, FieldKind, ParquetWriter, ROWS_MAX, Row, Rows};
use super::error::ExportError;
use super::manifest::Tally;

const GATEWAY: usize = column(&MEMBERS, b"gateway");
const STARTED_AT: usize = column(&MEMBERS, b"started_at");
const TENANT: usize = column(&MEMBERS, b"tenant");
const CURRENCY: usize = column(&MEMBERS, b"currency");
const AMOUNT: usize = column(&MEMBERS, b"cost");
const LIST_AMOUNT: usize = column(&MEMBERS, b"list_cost");

/// One request, as its entry has it: what goes into each column, borrowed.
pub struct RecordRow<'a> {
    seq: u64,
    /// Whether anything in it is escaped.
    is_escaped: bool,
    values: [Option<&'a [u8]>; MEMBERS.len()],
}

impl<'a> RecordRow<'a> {
    /// Takes entry `seq` apart. One that is laid out otherwise than entries are is laid out in `anew`
    /// first.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`]: it is no record.
    pub fn read(seq: u64, entry: &'a str, anew: &'a mut Vec<u8>) -> Result<Self, ExportError> {
        if let Some(row) = Self::find(seq, entry.as_bytes()) {
            return Ok(row);
        }
        let unreadable = |what| ExportError::Unreadable { seq, what };
        let record: Record =
            serde_json::from_str(entry).map_err(|error| unreadable(error.to_string()))?;
        *anew = record.to_entry()?;
        Self::find(seq, anew).ok_or_else(|| unreadable("it is no object".to_owned()))
    }

    /// Who pays.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`].
    pub fn tenant(&self) -> Result<Cow<'a, str>, ExportError> {
        self.required(TENANT, |value| self.text(value))
    }

    /// Admission.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`].
    pub fn started_at(&self) -> Result<Timestamp, ExportError> {
        self.required(STARTED_AT, time)
    }

    fn find(seq: u64, entry: &'a [u8]) -> Option<Self> {
        let mut members = Members::of(entry);
        let is_escaped = members.is_escaped();
        let mut row = Self { seq, is_escaped, values: [None; MEMBERS.len()] };
        row.find_within(Within::Record, &mut members, &mut 0)?;
        members.is_at_end().then_some(row)
    }

    /// Those of one object; the next is likely the one of column `next`.
    fn find_within(
        &mut self,
        within: Within,
        members: &mut Members<'a>,
        next: &mut usize,
    ) -> Option<()> {
        members.enter()?;
        loop {
            let likely = MEMBERS.get(*next).filter(|member| member.within == within);
            if likely.is_some_and(|member| members.is_named(member.name.as_bytes())) {
                self.keep(*next, members.value()?)?;
                *next += 1;
                continue;
            }
            let Some(name) = members.name()? else { return Some(()) };
            if let Some(inner) = within.inner(name).filter(|_| members.is_object()) {
                self.find_within(inner, members, next)?;
                continue;
            }
            let value = members.value()?;
            if let Some(column) = find_column(within, name, *next) {
                self.keep(column, value)?;
                *next = column + 1;
            }
        }
    }

    /// What a column is made of, which comes once.
    fn keep(&mut self, column: usize, value: &'a [u8]) -> Option<()> {
        let slot = self.values.get_mut(column)?;
        if slot.is_some() {
            return None;
        }
        // Older entries say what is absent.
        *slot = Some(value).filter(|value| !matches!(*value, b"null" | b"{}" | b"[]"));
        Some(())
    }

    /// A text, without its quotes.
    fn text<'b>(&self, value: &'b [u8]) -> Option<Cow<'b, str>> {
        match self.plain(value)? {
            Cow::Borrowed(text) => str::from_utf8(text).ok().map(Cow::Borrowed),
            Cow::Owned(text) => String::from_utf8(text).ok().map(Cow::Owned),
        }
    }

    /// The same as bytes: all of the entry is text, and so is what stands between quotes.
    fn plain<'b>(&self, value: &'b [u8]) -> Option<Cow<'b, [u8]>> {
        let inside = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if !self.is_escaped {
            return Some(Cow::Borrowed(inside));
        }
        let text: String = serde_json::from_slice(value).ok()?;
        Some(Cow::Owned(text.into_bytes()))
    }

    /// What a column that every request has holds.
    fn required<T>(
        &self,
        column: usize,
        read: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, ExportError> {
        let value = self.values.get(column).copied().flatten();
        value.and_then(read).ok_or_else(|| self.unreadable(column))
    }

    fn unreadable(&self, column: usize) -> ExportError {
        let name = MEMBERS.get(column).map(|member| member.field.name).unwrap_or_default();
        ExportError::Unreadable { seq: self.seq, what: format!("its `{name}` is missing or wrong") }
    }

    fn add_to(&self, tally: &mut Tally) -> Result<(), ExportError> {
        let gateway = self.required(GATEWAY, |value| self.text(value))?;
        let cost = match self.values.get(CURRENCY) {
            Some(Some(_)) => Some((
                self.required(CURRENCY, |value| self.text(value))?,
                self.required(AMOUNT, parsed)?,
                self.required(LIST_AMOUNT, parsed)?,
            )),
            _ => None,
        };
        let cost = cost.as_ref().map(|(currency, amount, list)| (&**currency, *amount, *list));
        tally.add_one(&gateway, self.seq, cost, 1)
    }

    fn fill(
        &self,
        row: &mut Row<'_>,
        column: usize,
        member: &Member,
        value: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        let unreadable = || self.unreadable(column);
        let value = match (member.reading, value) {
            (Reading::Entry, _) => {
                let too_large = |_| ExportError::TooLarge { what: "the number of an entry" };
                row.int64(i64::try_from(self.seq).map_err(too_large)?);
                return Ok(());
            }
            (_, None) if member.field.nullable => {
                row.null();
                return Ok(());
            }
            (_, None) => return Err(unreadable()),
            (Reading::Stages, Some(micros)) if micros.starts_with(b"[") => {
                row.text(&seconds(micros).ok_or_else(unreadable)?);
                return Ok(());
            }
            (Reading::Stages | Reading::Value, Some(value)) => value,
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
            FieldKind::Decimal { .. } => row.decimal(parsed(value).ok_or_else(unreadable)?)?,
        }
        Ok(())
    }
}

/// What is written in plain signs, with or without quotes.
fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    str::from_utf8(inside.unwrap_or(value)).ok()?.parse().ok()
}

/// A time. As entries have it, which is in UTC, it takes a tenth of what a parser takes that knows all
/// forms.
fn time(value: &[u8]) -> Option<Timestamp> {
    plain_time(value).or_else(|| parsed(value))
}

/// `"2026-11-01T00:00:00.25Z"`.
fn plain_time(value: &[u8]) -> Option<Timestamp> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"Z\"")?;
    let (whole, fraction) = text.split_at_checked("2026-11-01T00:00:00".len())?;
    let [_, _, _, _, b'-', _, _, b'-', _, _, b'T', _, _, b':', _, _, b':', _, _] = whole else {
        return None;
    };
    let part = |part| whole.get(part).and_then(digits);
    let two = |from| part(from..from + 2).and_then(|part| i8::try_from(part).ok());
    let year = i16::try_from(part(0..4)?).ok()?;
    let nanos = match fraction {
        [] => 0,
        [b'.', places @ ..] if places.len() <= 9 => {
            digits(places)? * 10_i32.pow(9 - u32::try_from(places.len()).ok()?)
        }
        _ => return None,
    };
    let at = DateTime::new(year, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?, nanos).ok()?;
    Offset::UTC.to_timestamp(at).ok()
}

/// Up to nine digits.
fn digits(digits: &[u8]) -> Option<i32> {
    let mut number = None;
    for sign in digits {
        let digit = sign.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = Some(number.unwrap_or(0) * 10 + i32::from(digit));
    }
    number
}

/// A count, in digits.
fn count(value: &[u8]) -> Option<Result<i64, ExportError>> {
    let too_large = ExportError::TooLarge { what: "a count" };
    let mut count = 0_i64;
    for sign in value {
        let digit = sign.checked_sub(b'0').filter(|digit| *digit < 10)?;
        match count.checked_mul(10).and_then(|count| count.checked_add(digit.into())) {
            Some(larger) => count = larger,
            None => return Some(Err(too_large)),
        }
    }
    (!value.is_empty()).then_some(Ok(count))
}

/// A number, which has digits at both ends: words of Rust's own are none.
fn number(value: &[u8]) -> Option<f64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let ends = [digits.first()?, digits.last()?];
    ends.iter().all(|end| end.is_ascii_digit()).then(|| parsed(value)).flatten()
}

/// An array of microseconds, stage by stage, as seconds by the stages' words.
fn seconds(micros: &[u8]) -> Option<Vec<u8>> {
    let inside = micros.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut json = Vec::with_capacity(micros.len() * 4);
    json.push(b'{');
    let all = Stage::ALL.iter().zip(inside.split(|byte| *byte == b','));
    for (stage, micros) in all.filter(|(_, micros)| *micros != b"null") {
        if json.len() > 1 {
            json.push(b',');
        }
        json.push(b'"');
        json.extend_from_slice(stage.as_str().as_bytes());
        json.extend_from_slice(b"\":");
        write_seconds(micros, &mut json)?;
    }
    json.push(b'}');
    Some(json)
}

/// Whole microseconds as seconds: the same digits, and a point among them.
fn write_seconds(micros: &[u8], json: &mut Vec<u8>) -> Option<()> {
    const PLACES: usize = 6;
    if micros.is_empty() || !micros.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (whole, part) = micros.split_at(micros.len().saturating_sub(PLACES));
    json.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    let significant = part.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    json.push(b'.');
    if significant == 0 {
        json.push(b'0');
        return Some(());
    }
    json.extend(std::iter::repeat_n(b'0', PLACES - part.len()));
    json.extend_from_slice(part.get(..significant)?);
    Some(())
}

/// Some requests as rows, in the order in which they are added.
pub struct RecordRows {
    rows: Rows,
    tally: Tally,
}

impl RecordRows {
    /// How many are to be gathered at most before they are written.
    pub const MAX: usize = ROWS_MAX;

    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self { rows: Rows::new(fields()), tally: Tally::default() }
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`ExportError::Unreadable`], [`ExportError::TooLarge`]; then none of them is to be written.
    pub fn add(&mut self, record: &RecordRow<'_>) -> Result<(), ExportError> {
        record.add_to(&mut self.tally)?;
        let mut row = self.rows.row();
        for (column, (member, value)) in MEMBERS.iter().zip(record.values).enumerate() {
            record.fill(&mut row, column, member, value)?;
        }
        Ok(())
    }

    /// How many.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of what they hold.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    /// What they add up to, since that was last asked.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }
}

impl Default for RecordRows {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes requests to a Parquet file.
pub struct RecordsParquet<W: Write + Send>(ParquetWriter<W>);

impl<W: Write + Send> RecordsParquet<W> {
    /// Nothing written yet.
    ///
    /// # Errors
    /// `out`'s.
    pub fn new(out: W) -> Result<Self, ExportError> {
        ParquetWriter::new(out, "record", fields()).map(Self)
    }

    /// Writes some, of which none is left then.
    ///
    /// # Errors
    /// `out`'s.
    pub fn add(&mut self, rows: &mut RecordRows) -> Result<(), ExportError> {
        self.0.add(&mut rows.rows)
    }

    /// Writes what is held as a group of its own, whatever its size.
    ///
    /// # Errors
    /// `out`'s.
    pub fn end_group(&mut self) -> Result<(), ExportError> {
        self.0.end_group()
    }

    /// Writes what is left; what was written to comes back.
    ///
    /// # Errors
    /// `out`'s.
    pub fn finish(self) -> Result<W, ExportError> {
        self.0.finish()
    }
}

fn fields() -> impl Iterator<Item = Field> {
    MEMBERS.iter().map(|member| member.field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_times_are_what_a_parser_reads() {
        let mut plain = 0;
        for year in ["2024", "2026", "1969", "9999", "0000", "+026", "202x"] {
            for day in ["02-28", "02-29", "12-31", "13-01", "00-10", "1-001", "11/30"] {
                for time in ["00:00:00", "23:59:59", "24:00:00", "12:60:00", "23:59:60", "1:02:003"]
                {
                    for places in
                        ["", ".", ".5", ".000001", ".123456789", ".1234567890", ".1x", ",5"]
                    {
                        for end in ["Z", "z", "", "+01:00", "Z[UTC]"] {
                            let value = format!("\"{year}-{day}T{time}{places}{end}\"");
                            let Some(at) = plain_time(value.as_bytes()) else { continue };
                            assert_eq!(Some(at), parsed(value.as_bytes()), "{value}");
                            plain += 1;
                        }
                    }
                }
            }
        }
        // Of five years, two days each but the end of the last, and one more in leap years; at two
        // times, in four fractions.
        assert_eq!(plain, (5 * 2 - 1 + 2) * 2 * 4);
    }

    #[test]
    fn times_as_entries_have_them_are_plain() {
        for at in ["2026-11-01T00:00:00.25Z", "2026-11-01T00:00:00Z", "-009999-01-02T01:59:59Z"] {
            let at: Timestamp = at.parse().unwrap();
            let value = serde_json::to_vec(&at).unwrap();
            assert_eq!(time(&value), Some(at));
            assert_eq!(plain_time(&value).is_some(), !value.starts_with(b"\"-"));
        }
    }
}
