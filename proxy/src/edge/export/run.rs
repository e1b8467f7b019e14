//! One export, from the store to where it is wanted.

use std::collections::HashSet;
use std::io::{self, Write};

use jiff::Timestamp;
use taximeter_billing::export::{
    ExportError, FocusVersion, FocusWriter, Format, Manifest, ManifestFile, RecordWriter, Tally,
    charges, file_name,
};
use taximeter_billing::{Period, hour_of};
use taximeter_ledger::Record;

use super::partitions::{PartFault, Partitions};
use super::place::{Draft, Place, PlaceFault};
use crate::edge::store::{Filter, Store, StoreError};

/// What is written, and how.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Single requests.
    Records(Format),
    /// Charges by the hour.
    Focus {
        /// Parquet, or else CSV.
        parquet: bool,
        /// Whose names.
        version: FocusVersion,
        /// Who sends the invoices.
        issuer: String,
    },
}

/// One export.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// What is written.
    pub(crate) content: Content,
    /// Of the requests that were admitted in it.
    pub(crate) period: Period,
    /// Of this tenant only.
    pub(crate) tenant: Option<String>,
    /// Decides whether the period is over.
    pub(crate) now: Timestamp,
}

/// Why there is no export, or no whole one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ExportFault {
    /// No store to ask.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A number too large, or who reads it says no.
    #[error(transparent)]
    Write(#[from] ExportError),
    /// Where it goes says no.
    #[error(transparent)]
    Place(#[from] PlaceFault),
    /// Half an hour in a folder of hours would take the place of the whole one.
    #[error(
        "a folder of Parquet files has one folder for each hour, and the period {0} does not begin \
         and end with an hour; choose whole hours, or name a single file (-o FILE.parquet)"
    )]
    HalfHour(Period),
}

impl From<PartFault> for ExportFault {
    fn from(fault: PartFault) -> Self {
        match fault {
            PartFault::Write(fault) => fault.into(),
            PartFault::Place(fault) => fault.into(),
        }
    }
}

impl Content {
    /// Who sends the invoices where nobody says.
    pub(crate) const ISSUER: &'static str = "Taximeter";
    /// The names of all formats.
    pub(crate) const NAMES: [&'static str; 8] =
        ["focus", "focus-parquet", "parquet", "ndjson", "cloudevents", "stripe", "lago", "orb"];

    /// The format of that name; `None` is none of them.
    pub(crate) fn named(name: &str, version: FocusVersion, issuer: &str) -> Option<Self> {
        let focus = |parquet| Self::Focus { parquet, version, issuer: issuer.to_owned() };
        Some(match name {
            "focus" => focus(false),
            "focus-parquet" => focus(true),
            "parquet" => Self::Records(Format::Parquet),
            "ndjson" => Self::Records(Format::Ndjson),
            "cloudevents" => Self::Records(Format::CloudEvents),
            "stripe" => Self::Records(Format::Stripe),
            "lago" => Self::Records(Format::Lago),
            "orb" => Self::Records(Format::Orb),
            _ => return None,
        })
    }

    /// Media type.
    pub(crate) const fn media_type(&self) -> &'static str {
        match self {
            Self::Records(Format::Parquet) | Self::Focus { parquet: true, .. } => {
                "application/vnd.apache.parquet"
            }
            Self::Records(_) => "application/x-ndjson",
            Self::Focus { parquet: false, .. } => "text/csv; charset=utf-8",
        }
    }

    /// The name of the format, as in arguments and manifests.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Records(format) => format.as_str(),
            Self::Focus { parquet: false, .. } => "focus",
            Self::Focus { parquet: true, .. } => "focus-parquet",
        }
    }

    /// How files of it end.
    pub(crate) const fn extension(&self) -> &'static str {
        match self {
            Self::Records(Format::Parquet) => "records.parquet",
            Self::Records(Format::Ndjson) => "records.ndjson",
            Self::Records(Format::CloudEvents) => "cloudevents.ndjson",
            Self::Records(Format::Stripe) => "stripe.ndjson",
            Self::Records(Format::Lago) => "lago.ndjson",
            Self::Records(Format::Orb) => "orb.ndjson",
            Self::Focus { parquet: false, .. } => "focus.csv",
            Self::Focus { parquet: true, .. } => "focus.parquet",
        }
    }
}

impl Job {
    fn filter(&self) -> Filter {
        Filter {
            tenant: self.tenant.clone(),
            from: Some(self.period.from()),
            to: Some(self.period.to()),
        }
    }

    /// What its file is called in a folder: `2026-11.focus.csv`.
    fn file_name(&self) -> String {
        file_name(self.period, self.tenant.as_deref(), self.content.extension())
    }
}

/// Writes an export to `out`, which comes back with what it adds up to.
///
/// `step` is called for each row.
/// Errors: as [`ExportFault`] says; what was written before is no export.
pub(crate) fn stream<W: Write + Send>(
    store: &mut Store,
    job: &Job,
    out: W,
    step: &mut dyn FnMut(),
) -> Result<(W, Tally), ExportFault> {
    let mut tally = Tally::default();
    let out = match &job.content {
        Content::Records(format) => {
            let mut writer = RecordWriter::new(*format, out)?;
            each_record(store, job, |record| {
                let rows = writer.add(record)?;
                tally.add_request(record, rows)?;
                step();
                Ok(())
            })?;
            writer.finish()?
        }
        Content::Focus { parquet, version, issuer } => {
            let mut writer = match parquet {
                false => FocusWriter::csv(out, *version, issuer)?,
                true => FocusWriter::parquet(out, *version, issuer)?,
            };
            store.hours(job.period, job.tenant.as_deref(), |key, hour| {
                tally.add_hour(hour);
                for charge in charges(key, hour) {
                    let charge = charge?;
                    writer.add(&charge)?;
                    tally.add_charge(&charge)?;
                    step();
                }
                Ok::<_, ExportFault>(())
            })?;
            writer.finish()?
        }
    };
    Ok((out, tally))
}

/// Writes an export to `place`, its manifest last: as one file called `file`, or, without a name,
/// as the folder wants it: records in Parquet in a folder for each tenant and hour, anything else
/// in a file that is called after its period.
///
/// Errors: as [`ExportFault`] says. Without a manifest there is no export.
pub(crate) fn export(
    store: &mut Store,
    job: &Job,
    place: &Place,
    file: Option<&str>,
    step: &mut dyn FnMut(),
) -> Result<Manifest, ExportFault> {
    let name = file.map_or_else(|| job.file_name(), str::to_owned);
    let mut manifest = manifest(job);
    if file.is_none() && matches!(job.content, Content::Records(Format::Parquet)) {
        partitioned(store, job, place, &mut manifest, step)?;
    } else {
        let (draft, tally) = stream(store, job, place.draft()?, step)?;
        let published = place.publish(draft, &name)?;
        let (bytes, sha256) = (published.bytes, published.sha256);
        manifest.files.push(ManifestFile { path: name.clone(), rows: tally.rows, bytes, sha256 });
        manifest.tally = tally;
    }
    let mut draft = place.draft()?;
    write(&mut draft, &manifest.to_json()?)?;
    place.publish(draft, &format!("{name}.manifest.json"))?;
    Ok(manifest)
}

fn manifest(job: &Job) -> Manifest {
    let name = job.content.name();
    let mut manifest = Manifest::new(name, job.period, job.tenant.as_deref(), job.now);
    if let Content::Focus { version, .. } = &job.content {
        manifest.format_version = Some(version.as_str());
    }
    manifest
}

fn write(draft: &mut Draft, bytes: &[u8]) -> Result<(), ExportFault> {
    draft.write_all(bytes).map_err(|error: io::Error| ExportFault::Write(error.into()))
}

/// Records in a folder for each tenant and hour.
fn partitioned(
    store: &mut Store,
    job: &Job,
    place: &Place,
    manifest: &mut Manifest,
    step: &mut dyn FnMut(),
) -> Result<(), ExportFault> {
    let period = job.period;
    if [period.from(), period.to()].iter().any(|end| hour_of(*end) != *end) {
        return Err(ExportFault::HalfHour(period));
    }
    let mut partitions = Partitions::new(place, tenants(store, job)?);
    let tally = &mut manifest.tally;
    each_record(store, job, |record| {
        partitions.add(record)?;
        tally.add_request(record, 1)?;
        step();
        Ok(())
    })?;
    manifest.files = partitions.finish()?;
    Ok(())
}

/// How many tenants there are; more than partitions are made for count as one more than that.
fn tenants(store: &mut Store, job: &Job) -> Result<usize, ExportFault> {
    let mut tenants = HashSet::new();
    store.hours(job.period, job.tenant.as_deref(), |key, _| {
        if tenants.len() <= Partitions::TENANTS_MAX && !tenants.contains(&key.tenant) {
            tenants.insert(key.tenant.clone());
        }
        Ok::<_, StoreError>(())
    })?;
    Ok(tenants.len())
}

fn each_record(
    store: &mut Store,
    job: &Job,
    visit: impl FnMut(&Record) -> Result<(), ExportFault>,
) -> Result<(), ExportFault> {
    let newest = store.newest()?;
    store.records(&job.filter(), newest, None, visit)
}
