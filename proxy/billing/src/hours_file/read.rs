//! Reads a file of hours.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use taximeter_columnar::{
    BATCH_ROWS, Cursor, FileKind, Finding, KeptFile, Misfit, Part, ReadAt, ReadError, RowFilter,
    Value, batches,
};

use super::columns::{COST_SCALE, ExactSums, FIELDS, FOOTER_KEY, FORMAT};
use super::write::{HoursFooter, Seen};
use crate::hours::{Hour, HourKey, LineKey};
use crate::period::Period;
use crate::sums::{Sums, add_exactly};

/// Most texts of lines whose meaning is kept for the next rows that have the same.
const KEPT_MAX: usize = 1024;

/// A file of hours, open for reading.
pub struct HoursFile<R> {
    kept: KeptFile<R>,
    footer: HoursFooter,
}

/// The lines of rows that were read.
type Lines = BTreeMap<Vec<u8>, Arc<[LineKey]>>;

impl<R: ReadAt + 'static> HoursFile<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged. Its format is another one.
    pub fn open(reader: R) -> Result<Self, ReadError> {
        let kind = FileKind {
            key: FOOTER_KEY,
            format: FORMAT,
            columns: FIELDS.map(|field| field.name).to_vec(),
            selected: ["tenant", "hour"],
        };
        let (kept, footer) = KeptFile::open(reader, &kind, |footer: &HoursFooter| footer.rows)?;
        Ok(Self { kept, footer })
    }

    /// What the file says about its rows.
    #[must_use]
    pub const fn footer(&self) -> &HoursFooter {
        &self.footer
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.kept.bytes_of_file()
    }

    /// Shows the hours that begin in `period`, of one tenant or of all, in the order of their keys.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn scan(
        &self,
        period: Option<Period>,
        tenant: Option<&str>,
        visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        let filter = RowFilter {
            tenant: tenant.map(str::to_owned),
            from: period.map(|period| period.from()),
            to: period.map(|period| period.to()),
        };
        let mut lines = Lines::new();
        for group in 0..self.kept.groups() {
            let ranges = self.kept.matching(group, &filter)?;
            if ranges.is_empty() {
                continue;
            }
            let cursors = (0..FIELDS.len()).map(|column| self.kept.cursor(group, column));
            let mut cursors = cursors.collect::<Result<Vec<_>, _>>()?;
            for batch in batches(&ranges) {
                debug_assert!(batch.len() <= BATCH_ROWS);
                for cursor in &mut cursors {
                    cursor.read(batch.start, batch.len())?;
                }
                for _ in batch {
                    let row = row(&mut cursors, &mut lines).map_err(|error| {
                        ReadError::Damaged { part: Part::Group(group), what: error.to_string() }
                    })?;
                    if visit(row.0, row.1).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Reads all of a file and compares it with its footer. What is wrong with it.
///
/// # Errors
/// The file cannot be read. Damage is no error but a finding.
pub fn check_hours<R: ReadAt + 'static>(reader: R) -> Result<Vec<Finding>, ReadError> {
    let mut findings = Vec::new();
    let note = |error| match error {
        ReadError::Damaged { part, what } => Ok(Finding { part, what }),
        ReadError::Format { .. } => Ok(Finding { part: Part::Footer, what: error.to_string() }),
        error => Err(error),
    };
    let file = match HoursFile::open(reader) {
        Ok(file) => file,
        Err(error) => return Ok(vec![note(error)?]),
    };
    file.kept.check_groups(&mut |part, what| findings.push(Finding { part, what }))?;
    if !findings.is_empty() {
        return Ok(findings);
    }
    let (mut seen, mut is_sorted) = (Seen::default(), true);
    let outcome = file.scan(None, None, &mut |key, hour| {
        is_sorted &= seen.last.as_ref().is_none_or(|last| *last <= key);
        match seen.add(&key, &hour) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    if let Err(error) = outcome {
        findings.push(note(error)?);
    } else if !is_sorted || seen.footer(file.footer.clone()) != file.footer {
        let what = "its rows are not those of its digest and its sums".to_owned();
        findings.push(Finding { part: Part::Footer, what });
    }
    Ok(findings)
}

/// The next row, whose values come in the order of [`FIELDS`].
fn row(cursors: &mut [Cursor], known: &mut Lines) -> Result<(HourKey, Hour), Misfit> {
    let mut cursors = cursors.iter_mut();
    let mut next = || cursors.next().and_then(Cursor::next_value);
    let key = HourKey {
        hour: must(next())?.time()?,
        tenant: must(next())?.owned()?,
        model: next().map(Value::owned).transpose()?,
        provider: must(next())?.owned()?,
        upstream: must(next())?.owned()?,
        operation: must(next())?.owned()?,
        route: must(next())?.owned()?,
        key_id: next().map(Value::owned).transpose()?,
        labels: next().map(Value::json).transpose()?.unwrap_or_default(),
        currency: next().map(Value::owned).transpose()?,
        correction: must(next())?.bool()?,
        late: must(next())?.bool()?,
        dimensions: BTreeMap::new(),
    };
    let mut sums = Sums {
        requests: must(next())?.count()?,
        input_tokens: next().map(Value::count).transpose()?,
        cache_read_input_tokens: next().map(Value::count).transpose()?,
        output_tokens: next().map(Value::count).transpose()?,
        reasoning_output_tokens: next().map(Value::count).transpose()?,
        cost: next().map(|it| it.decimal(COST_SCALE)).transpose()?,
        // Until the cost is added, this is the discount.
        list_cost: next().map(|it| it.decimal(COST_SCALE)).transpose()?,
        unknown_cost_requests: must(next())?.int()?,
        counted_requests: must(next())?.count()?,
        unknown_usage_requests: must(next())?.int()?,
    };
    sums.list_cost = sums.list_cost.zip(sums.cost).and_then(|(a, b)| add_exactly(a, b));
    let mut lines = BTreeMap::new();
    if let Some(keys) = next() {
        let keys = lines_of(keys, known)?;
        let quantities: Vec<_> = must(next())?.json()?;
        lines.extend(keys.iter().cloned().zip(quantities));
    } else {
        next();
    }
    let exact = next().map(Value::json::<ExactSums>).transpose()?;
    Ok((key, Hour { sums: exact.map_or(sums, Sums::from), lines }))
}

fn must(value: Option<Value<'_>>) -> Result<Value<'_>, Misfit> {
    value.ok_or(Misfit)
}

/// What a text of lines says. The same combinations come in every hour.
fn lines_of(text: Value<'_>, known: &mut Lines) -> Result<Arc<[LineKey]>, Misfit> {
    let bytes = text.bytes()?;
    if let Some(lines) = known.get(bytes) {
        return Ok(Arc::clone(lines));
    }
    let lines: Arc<[LineKey]> = text.json::<Vec<LineKey>>()?.into();
    if known.len() >= KEPT_MAX {
        known.clear();
    }
    known.insert(bytes.to_vec(), Arc::clone(&lines));
    Ok(lines)
}
