//! Checks all that a file says about itself.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use sha2::{Digest as _, Sha256};
use taximeter_ledger::{RequestId, TenantId};

use super::file::DayFile;
use super::footer::Footer;
use super::scan::Row;
use super::totals::{DayTotals, digest};
use crate::error::{Part, ReadError};
use crate::kept::{Bounds, ReadAt, RowFilter, hex};
use crate::record::place_of;

/// What a file should be, as far as the caller knows.
#[derive(Debug, Clone, Default)]
pub struct Expected {
    /// The gateway whose store the file belongs to.
    pub gateway: Option<String>,
    /// The day.
    pub day: Option<Date>,
    /// SHA-256 of all bytes of the file.
    pub sha256: Option<[u8; 32]>,
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub part: Part,
    /// What is wrong.
    pub what: String,
}

/// What a check has seen.
#[derive(Debug, Default)]
pub struct Checked {
    /// What the file says about its rows. `None` if its footer cannot be read.
    pub footer: Option<Footer>,
    /// Number of rows that were read.
    pub rows: u64,
    /// What is wrong. Empty for a sound file.
    pub findings: Vec<Finding>,
}

impl Checked {
    fn find(&mut self, part: Part, what: impl ToString) {
        self.findings.push(Finding { part, what: what.to_string() });
    }

    /// Notes an error. Others than damage end the check.
    fn note(&mut self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Damaged { part, what } => self.find(part, what),
            ReadError::Format { .. } => self.find(Part::Footer, error),
            ReadError::Read(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                self.find(Part::Footer, "the file is cut");
            }
            error @ ReadError::Read(_) => return Err(error),
        }
        Ok(())
    }
}

/// Reads all of a file and compares it with its footer and with `expected`.
///
/// # Errors
/// The file cannot be read. Damage is no error but a finding.
pub fn check<R: ReadAt + 'static>(reader: R, expected: &Expected) -> Result<Checked, ReadError> {
    let mut checked = Checked::default();
    let sha256 = expected.sha256.map(|sha256| Ok((sha256, sha256_of(&reader)?)));
    let is_other = sha256.transpose().map_err(ReadError::Read)?.is_some_and(|(a, b)| a != b);
    let file = match DayFile::open(reader) {
        Ok(file) => file,
        Err(error) => {
            checked.note(error)?;
            return Ok(checked);
        }
    };
    identify(&mut checked, &file, expected);
    file.kept.check_groups(&mut |part, what| checked.find(part, what))?;
    // Damaged groups are told. Their rows are not read.
    if checked.findings.is_empty() {
        rows(&mut checked, &file)?;
    }
    if is_other && checked.findings.is_empty() {
        checked.find(Part::Footer, "the file is whole, but it is not the one that was written");
    }
    checked.footer = Some(file.footer().clone());
    Ok(checked)
}

/// Whether a file is the one that it should be.
fn identify<R: ReadAt + 'static>(checked: &mut Checked, file: &DayFile<R>, expected: &Expected) {
    let footer = file.footer();
    if let Some(gateway) = expected.gateway.as_ref().filter(|it| **it != footer.gateway) {
        let what = format!("the file belongs to gateway {} and not to {gateway}", footer.gateway);
        checked.find(Part::Footer, what);
    }
    if let Some(day) = expected.day.filter(|day| *day != footer.day) {
        checked.find(Part::Footer, format!("the file is of {} and not of {day}", footer.day));
    }
}

/// What was read so far.
#[derive(Default)]
struct Seen {
    totals: DayTotals,
    last: Option<(TenantId, RequestId)>,
}

/// What was read of one row group.
#[derive(Default)]
struct OfGroup {
    content: Sha256,
    what: Option<String>,
}

/// Reads all rows.
fn rows<R: ReadAt + 'static>(checked: &mut Checked, file: &DayFile<R>) -> Result<(), ReadError> {
    let mut seen = Seen::default();
    let mut scan = file.scan(RowFilter::default());
    let mut groups: Vec<OfGroup> = (0..file.kept.groups()).map(|_| OfGroup::default()).collect();
    loop {
        match scan.next_row() {
            Ok(None) => break,
            Err(error) => checked.note(error)?,
            Ok(Some(_)) => {
                let group = scan.group();
                let (Some(row), Some(of)) = (scan.row(), groups.get_mut(group)) else { break };
                checked.rows += 1;
                let what = belongs(&seen, file, group, row)?;
                of.what = of.what.take().or(what);
                digest(&mut of.content, row.place, row.payload);
                seen.totals.add(row.place, row.record, row.payload);
                seen.last = Some((row.record.tenant.clone(), row.record.id));
            }
        }
    }
    for (group, of) in groups.into_iter().enumerate() {
        let is_same = file.footer().groups.get(group) == Some(&hex(&of.content.finalize()));
        let other = (!is_same).then(|| "its rows are not those of its digest".to_owned());
        if let Some(what) = of.what.or(other) {
            checked.find(Part::Group(group), what);
        }
    }
    sums(checked, file.footer(), seen.totals);
    Ok(())
}

/// What is wrong with a row, if anything is.
fn belongs<R: ReadAt + 'static>(
    seen: &Seen,
    file: &DayFile<R>,
    group: usize,
    row: Row<'_>,
) -> Result<Option<String>, ReadError> {
    let record = row.record;
    let id = record.id.0.as_bytes().as_slice();
    let between = |bounds: Bounds<'_>, value: &[u8]| {
        bounds.is_some_and(|(least, most)| least <= value && value <= most)
    };
    let at = record.started_at.as_microsecond();
    let in_times = file.kept.times(group)?.is_some_and(|(least, most)| least <= at && at <= most);
    let day = record.started_at.to_zoned(TimeZone::UTC).date();
    let last = seen.last.as_ref();
    Ok(if last.is_some_and(|(tenant, last)| (tenant, last) >= (&record.tenant, &record.id)) {
        Some(format!("{} of {} is not in order", record.id, record.tenant))
    } else if day != file.footer().day {
        Some(format!("{} was admitted on {day}", record.id))
    } else if !between(file.kept.bounds(group, place_of("id"))?, id)
        || !between(file.kept.bounds(group, place_of("tenant"))?, record.tenant.as_str().as_bytes())
        || !in_times
    {
        Some(format!("{} is not within the smallest and largest values", record.id))
    } else if !file.filter_takes(group, id)? {
        Some(format!("{} is not in the Bloom filter", record.id))
    } else {
        None
    })
}

/// Compares sums with those of the footer.
fn sums(checked: &mut Checked, footer: &Footer, totals: DayTotals) {
    let mut read = footer.clone();
    totals.tell(&mut read);
    for (what, is_same) in [
        ("number of rows", checked.rows == footer.rows),
        ("digest of the rows", read.sha256 == footer.sha256),
        ("ledgers", read.ledgers == footer.ledgers),
        ("costs", read.costs == footer.costs),
    ] {
        if !is_same {
            checked.find(Part::Footer, format!("the {what} are not those of the rows"));
        }
    }
}

fn sha256_of(reader: &impl ReadAt) -> std::io::Result<[u8; 32]> {
    let (mut digest, length) = (Sha256::new(), reader.length()?);
    let mut buffer = vec![0; 64 << 10];
    let mut at = 0;
    while at < length {
        let room = usize::try_from(length - at).unwrap_or(usize::MAX).min(buffer.len());
        let piece = buffer.get_mut(..room).unwrap_or_default();
        reader.read_at(at, piece)?;
        digest.update(&*piece);
        at += room as u64;
    }
    Ok(digest.finalize().into())
}
