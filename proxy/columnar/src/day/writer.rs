//! Writes a file.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use parquet::file::metadata::KeyValue;
use rust_decimal::Decimal;
use sha2::{Digest as _, Sha256};
use taximeter_ledger::{LedgerId, Record, RequestId, TenantId};

use super::blocks::BLOCK_BYTES;
use super::footer::{
    CHECK_KEY, CHECK_LENGTH, FOOTER_KEY, FORMAT, Footer, LedgerRange, check_position, check_text,
    hex,
};
use crate::error::WriteError;
use crate::place::Place;
use crate::record::{Form, Kept, fields, keep};
use crate::table::{Layout, ParquetWriter, ROWS_MAX, Rows};

/// Bytes of rows that are gathered at most before they are encoded, but for one row.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Writes the records of a day, in the order of tenant and id.
pub struct DayWriter<W: Write + Send> {
    writer: ParquetWriter<Output<W>>,
    rows: Rows,
    /// Rows that are encoded at once.
    rows_max: usize,
    footer: Footer,
    ledgers: BTreeMap<LedgerId, LedgerRange>,
    costs: BTreeMap<String, Option<Decimal>>,
    content: Sha256,
    of_group: Sha256,
    last: Option<(TenantId, RequestId)>,
    scratch: Vec<u8>,
}

/// A file that is written whole.
#[derive(Debug)]
pub struct Sealed<W> {
    /// The output.
    pub out: W,
    /// What the file says about its rows.
    pub footer: Footer,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of all its bytes.
    pub sha256: [u8; 32],
}

impl<W: Write + Send> DayWriter<W> {
    /// A file without rows. `replaces` has the names of files that it replaces.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(
        out: W,
        gateway: &str,
        day: Date,
        replaces: Vec<String>,
    ) -> Result<Self, WriteError> {
        Self::laid_out(out, gateway, day, replaces, &Layout::DAY, ROWS_MAX)
    }

    /// The same with another layout, and with so many rows that are encoded at once.
    pub(super) fn laid_out(
        out: W,
        gateway: &str,
        day: Date,
        replaces: Vec<String>,
        layout: &Layout,
        rows_max: usize,
    ) -> Result<Self, WriteError> {
        let fields = fields(Form::Day);
        let rows = Rows::new(fields.clone());
        let writer = ParquetWriter::new(Output::new(out), "record", layout, fields)?;
        let footer = Footer {
            format: FORMAT,
            gateway: gateway.to_owned(),
            day,
            ledgers: Vec::new(),
            rows: 0,
            sha256: String::new(),
            groups: Vec::new(),
            costs: BTreeMap::new(),
            replaces,
            body_bytes: 0,
        };
        Ok(Self {
            writer,
            rows,
            rows_max,
            footer,
            ledgers: BTreeMap::new(),
            costs: BTreeMap::new(),
            content: Sha256::new(),
            of_group: Sha256::new(),
            last: None,
            scratch: Vec::new(),
        })
    }

    /// Adds the post at `place`, which has this complete payload.
    ///
    /// # Errors
    /// [`WriteError::Unreadable`], [`WriteError::Misplaced`] if it belongs to another day or before
    /// the last one; then nothing is added. The output cannot be written.
    pub fn add(&mut self, place: Place, payload: &[u8]) -> Result<(), WriteError> {
        let seq = place.seq;
        let record = Record::decode(seq, payload)
            .map_err(|error| WriteError::Unreadable { seq, what: error.to_string() })?;
        self.add_record(place, &record, payload)
    }

    /// The same for a record that is decoded.
    pub(super) fn add_record(
        &mut self,
        place: Place,
        record: &Record,
        payload: &[u8],
    ) -> Result<(), WriteError> {
        self.belongs(record)?;
        let kept = Kept { ledger: place.ledger, record };
        keep(&mut self.rows, kept, payload, &mut self.scratch)?;
        let key = (record.tenant.clone(), record.id);
        self.last = Some(key);
        digest(&mut self.content, place, payload);
        digest(&mut self.of_group, place, payload);
        let range = self.ledgers.entry(place.ledger).or_insert(LedgerRange {
            ledger: place.ledger,
            first: place.seq,
            last: place.seq,
            rows: 0,
        });
        (range.first, range.last) = (range.first.min(place.seq), range.last.max(place.seq));
        range.rows += 1;
        self.footer.rows += 1;
        add_cost(&mut self.costs, record);
        if self.rows.len() >= self.rows_max || self.rows.bytes() >= HELD_BYTES_MAX {
            self.write()?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<Sealed<W>, WriteError> {
        self.write()?;
        self.writer.end_group()?;
        self.end_group();
        let Self { mut writer, mut footer, ledgers, costs, content, .. } = self;
        let file = writer.inner();
        file.flush()?;
        let (body_bytes, table) = file.inner_mut().end_body();
        footer.ledgers = ledgers.into_values().collect();
        footer.costs =
            costs.into_iter().filter_map(|(currency, sum)| Some((currency, sum?))).collect();
        footer.sha256 = hex(&content.finalize());
        footer.body_bytes = body_bytes;
        file.write_all(&table)?;
        let json = serde_json::to_string(&footer)?;
        for (key, value) in [(FOOTER_KEY, json), (CHECK_KEY, "0".repeat(2 * CHECK_LENGTH))] {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        let output = writer.finish()?;
        let (out, bytes, sha256) = output.seal()?;
        Ok(Sealed { out, footer, bytes, sha256 })
    }

    /// Whether a record may come next.
    fn belongs(&self, record: &Record) -> Result<(), WriteError> {
        let misplaced = |what| Err(WriteError::Misplaced { seq: record.seq, what });
        let day = record.started_at.to_zoned(TimeZone::UTC).date();
        if day != self.footer.day {
            return misplaced(format!("it was admitted on {day} and not on {}", self.footer.day));
        }
        match &self.last {
            Some((tenant, id)) if (tenant.as_str(), *id) >= (record.tenant.as_str(), record.id) => {
                misplaced(format!(
                    "{} of {} is not after {id} of {tenant}",
                    record.id, record.tenant
                ))
            }
            _ => Ok(()),
        }
    }

    /// Encodes the gathered rows.
    fn write(&mut self) -> Result<(), WriteError> {
        let groups = self.writer.groups();
        self.writer.add(&mut self.rows)?;
        if self.writer.groups() > groups {
            self.end_group();
        }
        Ok(())
    }

    /// Notes the digest of the rows of a row group, if it has any.
    fn end_group(&mut self) {
        if self.footer.groups.len() < self.writer.groups() {
            let of_group = std::mem::take(&mut self.of_group);
            self.footer.groups.push(hex(&of_group.finalize()));
        }
    }
}

/// Adds a row to a digest.
pub(super) fn digest(to: &mut Sha256, place: Place, payload: &[u8]) {
    to.update(place.ledger.0.as_bytes());
    to.update(place.seq.to_le_bytes());
    to.update(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.update(payload);
}

/// Adds what a record owes. `None` stands for a sum that cannot be kept exactly.
pub(super) fn add_cost(costs: &mut BTreeMap<String, Option<Decimal>>, record: &Record) {
    let Some(owed) = record.owed() else { return };
    let amount = owed.amount.normalize();
    match costs.get_mut(&owed.currency) {
        Some(sum) => *sum = sum.and_then(|sum| add_exactly(sum, amount)),
        None => drop(costs.insert(owed.currency.clone(), Some(amount))),
    }
}

/// `a` + `b`. `None` if digits would be dropped.
fn add_exactly(a: Decimal, b: Decimal) -> Option<Decimal> {
    let sum = a.checked_add(b)?;
    (sum.scale() >= a.scale().max(b.scale())).then(|| sum.normalize())
}

/// The output: it takes the CRC32C of each piece of the row groups, and holds back what is behind
/// them until its checks can be filled in.
struct Output<W> {
    out: W,
    bytes: u64,
    sha256: Sha256,
    /// Of the last piece, which may not be whole.
    block: u32,
    checks: Vec<u8>,
    tail: Option<Vec<u8>>,
}

impl<W: Write> Output<W> {
    fn new(out: W) -> Self {
        Self { out, bytes: 0, sha256: Sha256::new(), block: 0, checks: Vec::new(), tail: None }
    }

    /// The length of the row groups, and the checks of their pieces. What is written from here on
    /// is held back.
    fn end_body(&mut self) -> (u64, Vec<u8>) {
        if !self.bytes.is_multiple_of(BLOCK_BYTES) {
            self.checks.extend(self.block.to_le_bytes());
        }
        self.tail = Some(Vec::new());
        (self.bytes, std::mem::take(&mut self.checks))
    }

    fn write_body(&mut self, mut bytes: &[u8]) {
        self.sha256.update(bytes);
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.bytes % BLOCK_BYTES;
            let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let (now, rest) = bytes.split_at(room);
            self.block = crc32c::crc32c_append(self.block, now);
            self.bytes += now.len() as u64;
            if self.bytes.is_multiple_of(BLOCK_BYTES) {
                self.checks.extend(self.block.to_le_bytes());
                self.block = 0;
            }
            bytes = rest;
        }
    }

    /// Fills in the checks and writes the rest. The output, its length and its SHA-256.
    fn seal(mut self) -> Result<(W, u64, [u8; 32]), WriteError> {
        let mut tail = self.tail.take().unwrap_or_default();
        let lost = || WriteError::Write(io::Error::other("the footer has no place for its check"));
        let length =
            tail.last_chunk::<8>().and_then(|end| end.first_chunk::<4>()).ok_or_else(lost)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| lost())? + 8;
        let start = tail.len().checked_sub(length).ok_or_else(lost)?;
        let (index, footer) = tail.split_at_mut(start);
        let position = check_position(footer).ok_or_else(lost)?;
        let of_index = check_text(crc32c::crc32c(index));
        patch(footer, position - CHECK_LENGTH, &of_index).ok_or_else(lost)?;
        let of_footer = check_text(crc32c::crc32c(footer));
        patch(footer, position, &of_footer).ok_or_else(lost)?;
        self.out.write_all(&tail)?;
        self.out.flush()?;
        self.sha256.update(&tail);
        Ok((self.out, self.bytes + tail.len() as u64, self.sha256.finalize().into()))
    }
}

fn patch(bytes: &mut [u8], at: usize, text: &str) -> Option<()> {
    bytes.get_mut(at..at + text.len())?.copy_from_slice(text.as_bytes());
    Some(())
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(tail) = &mut self.tail {
            return tail.write(bytes);
        }
        let written = self.out.write(bytes)?;
        self.write_body(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
