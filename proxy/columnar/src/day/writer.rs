//! Writes a file.

use std::collections::BTreeMap;
use std::io::Write;
use std::mem;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use taximeter_ledger::{DecodeError, Place, Record, RecordDecoder, RequestId, TenantId};

use super::footer::{FOOTER_KEY, FORMAT, Footer};
use super::totals::{DayTotals, digest};
use crate::error::WriteError;
use crate::kept::{KeptWriter, Sealed, hex};
use crate::record::{Form, Kept, fields, keep};
use crate::table::{Layout, ROWS_MAX, Rows};

/// Bytes of rows that are gathered at most before they are encoded, but for one row.
const HELD_BYTES_MAX: usize = 1 << 20;

/// Writes the records of a day, in the order of tenant and id.
pub struct DayWriter<W: Write + Send> {
    writer: KeptWriter<W>,
    rows: Rows,
    /// Rows that are encoded at once.
    rows_max: usize,
    footer: Footer,
    totals: DayTotals,
    of_group: Sha256,
    last: Option<(TenantId, RequestId)>,
    decoder: RecordDecoder,
    scratch: Vec<u8>,
}

/// A file of a day that is written whole.
#[derive(Debug)]
pub struct SealedDay<W> {
    /// The file.
    pub file: Sealed<W>,
    /// What the file says about its rows.
    pub footer: Footer,
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
        let writer = KeptWriter::new(out, "record", layout, fields)?;
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
        };
        Ok(Self {
            writer,
            rows,
            rows_max,
            footer,
            totals: DayTotals::default(),
            of_group: Sha256::new(),
            last: None,
            decoder: RecordDecoder::default(),
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
        let mut decoder = mem::take(&mut self.decoder);
        let what = |error: DecodeError| WriteError::Unreadable { seq, what: error.to_string() };
        let record = decoder.decode(seq, payload).map_err(what);
        let added = record.and_then(|record| self.add_record(place, record, payload));
        self.decoder = decoder;
        added
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
        self.totals.add(place, record, payload);
        digest(&mut self.of_group, place, payload);
        self.footer.rows += 1;
        if self.rows.len() >= self.rows_max || self.rows.bytes() >= HELD_BYTES_MAX {
            self.write()?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<SealedDay<W>, WriteError> {
        self.write()?;
        self.writer.end_group()?;
        self.end_group();
        let Self { writer, mut footer, totals, .. } = self;
        totals.tell(&mut footer);
        let file = writer.finish(FOOTER_KEY, serde_json::to_string(&footer)?)?;
        Ok(SealedDay { file, footer })
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
