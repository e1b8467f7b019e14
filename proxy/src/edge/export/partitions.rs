//! Records into a folder for each tenant and hour.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_billing::export::{
    ExportError, Format, Layout, ManifestFile, RecordWriter, partition,
};
use taximeter_billing::hour_of;
use taximeter_ledger::Record;

use super::place::{Draft, Place, PlaceFault};

/// What each folder's file is called: a second export of the same hour takes the first one's place.
const FILE: &str = "part-0.parquet";
/// Bytes of records held by all files that are open, before they are written.
const HELD_BYTES_MAX: usize = 128 << 20;

/// The files of one hour while they are written; records come in the order of admission.
pub(super) struct Partitions<'a> {
    place: &'a Place,
    layout: Layout,
    hour: Option<Timestamp>,
    open: BTreeMap<String, Part>,
    held: usize,
    files: Vec<ManifestFile>,
}

struct Part {
    writer: RecordWriter<Draft>,
    rows: u64,
}

/// Why a record is in no file.
#[derive(Debug, thiserror::Error)]
pub(super) enum PartFault {
    #[error(transparent)]
    Write(#[from] ExportError),
    #[error(transparent)]
    Place(#[from] PlaceFault),
}

impl<'a> Partitions<'a> {
    /// Tenants with folders of their own, and so files open at once; of more, each is a column.
    pub(super) const TENANTS_MAX: usize = 256;

    /// No file yet.
    pub(super) const fn new(place: &'a Place, tenants: usize) -> Self {
        let layout =
            if tenants > Self::TENANTS_MAX { Layout::DateFirst } else { Layout::TenantFirst };
        Self { place, layout, hour: None, open: BTreeMap::new(), held: 0, files: Vec::new() }
    }

    pub(super) fn add(&mut self, record: &Record) -> Result<(), PartFault> {
        let hour = hour_of(record.started_at);
        if self.hour != Some(hour) {
            self.end_hour()?;
            self.hour = Some(hour);
        }
        let tenant = match self.layout {
            Layout::TenantFirst => &*record.tenant.0,
            Layout::DateFirst => "",
        };
        let part = match self.open.get_mut(tenant) {
            Some(part) => part,
            None => {
                let writer = RecordWriter::new(Format::Parquet, self.place.draft()?)?;
                self.open.entry(tenant.to_owned()).or_insert(Part { writer, rows: 0 })
            }
        };
        let before = part.writer.held();
        part.writer.add(record)?;
        part.rows += 1;
        self.held = (self.held + part.writer.held()).saturating_sub(before);
        if self.held > HELD_BYTES_MAX {
            for part in self.open.values_mut() {
                part.writer.write_held()?;
            }
            self.held = 0;
        }
        Ok(())
    }

    /// The files, in the order of time and, within an hour, of their tenants.
    pub(super) fn finish(mut self) -> Result<Vec<ManifestFile>, PartFault> {
        self.end_hour()?;
        Ok(self.files)
    }

    fn end_hour(&mut self) -> Result<(), PartFault> {
        let Some(hour) = self.hour.take() else { return Ok(()) };
        for (tenant, Part { writer, rows }) in std::mem::take(&mut self.open) {
            let path = format!("{}/{FILE}", partition(self.layout, &tenant, hour));
            let published = self.place.publish(writer.finish()?, &path)?;
            let (bytes, sha256) = (published.bytes, published.sha256);
            self.files.push(ManifestFile { path, rows, bytes, sha256 });
        }
        self.held = 0;
        Ok(())
    }
}
