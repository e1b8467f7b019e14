//! Writes records into one folder per tenant and hour.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use jiff::Timestamp;
use taximeter_billing::export::{
    ExportError, ExportTotals, Layout, ManifestFile, RecordRows, RecordsParquet, partition,
};
use taximeter_billing::hour_of;
use taximeter_ledger::{LedgerId, Record, RecordDecoder};
use taximeter_store::Written;

use crate::decoded::decoded;
use crate::destination::{Destination, DestinationFault, Draft};

/// What each folder's file is called: a second export of the same hour takes the first one's place.
const FILE: &str = "part-0.parquet";
/// Bytes of records held by all files that are open, before they are written.
const HELD_BYTES_MAX: usize = 128 << 20;

/// The files of one hour while they are written; records come in the order of admission.
pub(super) struct Partitions<'a> {
    destination: &'a Destination,
    layout: Layout,
    hour: Option<Timestamp>,
    open: BTreeMap<String, Part>,
    held: usize,
    files: Vec<ManifestFile>,
    totals: ExportTotals,
}

struct Part {
    writer: RecordsParquet<Draft>,
    /// Those of them that are held.
    held: RecordRows,
    rows: u64,
}

/// Why a record is in no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartFault {
    #[error(transparent)]
    Write(#[from] ExportError),
    #[error(transparent)]
    Destination(#[from] DestinationFault),
}

impl<'a> Partitions<'a> {
    /// Tenants with folders of their own, and so files open at once; of more, each is a column.
    pub(super) const TENANTS_MAX: u64 = 256;

    /// No file yet, of so many tenants.
    pub(super) fn new(destination: &'a Destination, tenants: u64) -> Self {
        let layout =
            if tenants > Self::TENANTS_MAX { Layout::DateFirst } else { Layout::TenantFirst };
        let (open, files, totals) = (BTreeMap::new(), Vec::new(), ExportTotals::default());
        Self { destination, layout, hour: None, open, held: 0, files, totals }
    }

    /// Writes all of them; the files, in the order of time and, within an hour, of their tenants, and
    /// what they add up to.
    pub(super) fn write(
        mut self,
        pages: Receiver<Written>,
    ) -> Result<(Vec<ManifestFile>, ExportTotals), PartFault> {
        let mut decoder = RecordDecoder::default();
        for page in pages {
            for (place, payload) in page.iter() {
                self.add(place.ledger, decoded(&mut decoder, place.seq, payload)?)?;
            }
        }
        self.end_hour()?;
        Ok((self.files, self.totals))
    }

    fn add(&mut self, ledger: LedgerId, record: &Record) -> Result<(), PartFault> {
        let hour = hour_of(record.started_at);
        if self.hour != Some(hour) {
            self.end_hour()?;
            self.hour = Some(hour);
        }
        let tenant = match self.layout {
            Layout::TenantFirst => record.tenant.as_str(),
            Layout::DateFirst => "",
        };
        let part = match self.open.get_mut(tenant) {
            Some(part) => part,
            None => {
                let writer = RecordsParquet::new(self.destination.draft()?)?;
                let part = Part { writer, held: RecordRows::new(), rows: 0 };
                self.open.entry(tenant.to_owned()).or_insert(part)
            }
        };
        let before = part.held.bytes();
        part.held.add(ledger, record)?;
        part.rows += 1;
        self.held = (self.held + part.held.bytes()).saturating_sub(before);
        if self.held > HELD_BYTES_MAX {
            for part in self.open.values_mut() {
                self.totals.add_requests(&part.held.take_totals())?;
                part.writer.add(&mut part.held)?;
                // What encodes many files at once would need more memory than what they hold.
                part.writer.end_group()?;
            }
            self.held = 0;
        }
        Ok(())
    }

    fn end_hour(&mut self) -> Result<(), PartFault> {
        let Some(hour) = self.hour.take() else { return Ok(()) };
        for (tenant, Part { mut writer, mut held, rows }) in std::mem::take(&mut self.open) {
            self.totals.add_requests(&held.take_totals())?;
            writer.add(&mut held)?;
            let path = format!("{}/{FILE}", partition(self.layout, &tenant, hour));
            let published = self.destination.publish(writer.finish()?, &path)?;
            let (bytes, sha256) = (published.bytes, published.sha256);
            self.files.push(ManifestFile { path, rows, bytes, sha256 });
        }
        self.held = 0;
        Ok(())
    }
}
