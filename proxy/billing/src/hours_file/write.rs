//! Writes a file of hours.

use std::collections::BTreeMap;
use std::io::Write;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use taximeter_collections::Gather as _;
use taximeter_columnar::{KeptWriter, Layout, ROWS_MAX, RowWriter, Rows, Sealed, WriteError, hex};

use super::columns::{ExactSums, FIELDS, FOOTER_KEY, FORMAT, canonical, discount, fits, has_room};
use super::cover::HoursCover;
use crate::hours::{Hour, HourKey, LineKey};
use crate::sums::add_exactly;

/// What a file of hours says about its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HoursFooter {
    /// The format of the file.
    pub format: u32,
    /// The gateway whose store the file belongs to.
    pub gateway: String,
    /// The first hour.
    pub first: Option<Timestamp>,
    /// The last hour.
    pub last: Option<Timestamp>,
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the rows in order: the length of the JSON of each in 4 bytes, little-endian, and
    /// the JSON.
    pub sha256: String,
    /// The sum of the costs by currency. A currency is missing if its sum has more digits than are
    /// kept exactly.
    pub costs: BTreeMap<String, Decimal>,
    /// What the hours are made of, by day.
    pub covers: Vec<HoursCover>,
    /// Names of the files that this one replaces.
    pub replaces: Vec<String>,
}

/// A file of hours that is written whole.
#[derive(Debug)]
pub struct SealedHours<W> {
    /// The file.
    pub file: Sealed<W>,
    /// What the file says about its rows.
    pub footer: HoursFooter,
}

/// Writes hours, in the order of their keys.
pub struct HoursWriter<W: Write + Send> {
    writer: KeptWriter<W>,
    rows: Rows,
    footer: HoursFooter,
    seen: Seen,
}

/// What the rows of a file add up to.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) first: Option<Timestamp>,
    pub(super) rows: u64,
    pub(super) last: Option<HourKey>,
    content: Sha256,
    costs: BTreeMap<String, Option<Decimal>>,
}

impl Seen {
    pub(super) fn add(&mut self, key: &HourKey, hour: &Hour) -> serde_json::Result<()> {
        let json = canonical(key, hour)?;
        self.content.update(u32::try_from(json.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.content.update(json);
        if let Some((currency, cost)) = key.currency.as_ref().zip(hour.sums.cost) {
            let sum = self.costs.entry(currency.clone()).or_insert(Some(Decimal::ZERO));
            *sum = sum.and_then(|sum| add_exactly(sum, cost)).map(|sum| sum.normalize());
        }
        self.first = self.first.or(Some(key.hour));
        self.rows += 1;
        self.last = Some(key.clone());
        Ok(())
    }

    /// What the footer of a file with these rows says.
    pub(super) fn footer(self, footer: HoursFooter) -> HoursFooter {
        let costs = self.costs.into_iter();
        HoursFooter {
            first: self.first,
            last: self.last.map(|key| key.hour),
            rows: self.rows,
            sha256: hex(&self.content.finalize()),
            costs: costs.filter_map(|(currency, sum)| Some((currency, sum?))).gather(),
            ..footer
        }
    }
}

impl<W: Write + Send> HoursWriter<W> {
    /// A file without rows. `covers` says what the hours will be made of. `replaces` has the names of files
    /// that it replaces.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(
        out: W,
        gateway: &str,
        covers: Vec<HoursCover>,
        replaces: Vec<String>,
    ) -> Result<Self, WriteError> {
        let fields = FIELDS.into_iter();
        let footer = HoursFooter {
            format: FORMAT,
            gateway: gateway.to_owned(),
            first: None,
            last: None,
            rows: 0,
            sha256: String::new(),
            costs: BTreeMap::new(),
            covers,
            replaces,
        };
        let rows = Rows::new(fields.clone());
        let writer = KeptWriter::new(out, "hour", &Layout::HOURS, fields)?;
        Ok(Self { writer, rows, footer, seen: Seen::default() })
    }

    /// Adds an hour. Several can have the same key.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] if its key is before the last one. The output cannot be written.
    pub fn add(&mut self, key: &HourKey, hour: &Hour) -> Result<(), WriteError> {
        if self.seen.last.as_ref().is_some_and(|last| last > key) {
            let what = format!("the hour {} of {} comes too late", key.hour, key.tenant);
            return Err(WriteError::Misplaced { seq: self.seen.rows, what });
        }
        self.seen.add(key, hour)?;
        fill(&mut self.rows.row(), key, hour)?;
        if self.rows.len() >= ROWS_MAX {
            self.writer.add(&mut self.rows)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<SealedHours<W>, WriteError> {
        self.writer.add(&mut self.rows)?;
        let footer = self.seen.footer(self.footer);
        let file = self.writer.finish(FOOTER_KEY, serde_json::to_string(&footer)?)?;
        Ok(SealedHours { file, footer })
    }
}

/// Fills all cells of a row, in the order of [`FIELDS`].
fn fill(row: &mut RowWriter<'_>, key: &HourKey, hour: &Hour) -> Result<(), WriteError> {
    row.time(key.hour);
    row.text(key.tenant.as_bytes());
    text(row, key.model.as_deref());
    for name in [&key.provider, &key.upstream, &key.operation, &key.route] {
        row.text(name.as_bytes());
    }
    text(row, key.key_id.as_deref());
    if key.labels.is_empty() {
        row.null()
    } else {
        row.text(&serde_json::to_vec(&key.labels)?)
    }
    text(row, key.currency.as_deref());
    row.bool(key.correction);
    row.bool(key.late);
    let sums = &hour.sums;
    row.int64(signed(sums.requests));
    for tokens in [
        sums.input_tokens,
        sums.cache_read_input_tokens,
        sums.output_tokens,
        sums.reasoning_output_tokens,
    ] {
        match tokens {
            Some(tokens) => row.int64(signed(tokens)),
            None => row.null(),
        }
    }
    for amount in [sums.cost, discount(sums)] {
        // One with too many digits is in the column `exact` alone.
        match amount.filter(|amount| has_room(*amount)) {
            Some(amount) => row.decimal(amount)?,
            None => row.null(),
        }
    }
    row.int64(sums.unknown_cost_requests);
    row.int64(signed(sums.counted_requests));
    row.int64(sums.unknown_usage_requests);
    if hour.lines.is_empty() {
        row.null();
        row.null();
    } else {
        let keys: Vec<&LineKey> = hour.lines.keys().collect();
        row.text(&serde_json::to_vec(&keys)?);
        let quantities: Vec<_> = hour.lines.values().map(|quantity| quantity.normalize()).collect();
        row.text(&serde_json::to_vec(&quantities)?);
    }
    if fits(sums) {
        row.null();
    } else {
        row.text(&serde_json::to_vec(&ExactSums::from(sums))?);
    }
    Ok(())
}

fn text(row: &mut RowWriter<'_>, text: Option<&str>) {
    match text {
        Some(text) => row.text(text.as_bytes()),
        None => row.null(),
    }
}

/// The same number, or the largest that a column holds.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
