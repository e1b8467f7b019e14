//! Runs one export, from the store to its destination.

use std::io::{self, Write};

use taximeter_billing::export::{ExportTotals, Manifest, ManifestFile};
use taximeter_billing::hour_of;
use taximeter_store::{Store, StoreError, Written};

use crate::beside::written_beside;
use crate::content::Content;
use crate::destination::{Destination, Draft, Published};
use crate::job::{ExportFault, Job};
use crate::partitions::Partitions;
use crate::stream::stream;

/// Writes an export to `destination`, with its manifest last. With `file` it writes one file of that
/// name. Without it, records in Parquet go into a folder per tenant and hour, and other formats
/// into a file that is named after the period.
///
/// Errors: as [`ExportFault`] says. Without a manifest there is no export.
pub fn export(
    store: &mut Store,
    job: &Job,
    destination: &Destination,
    file: Option<&str>,
    step: &mut dyn FnMut(),
) -> Result<Manifest, ExportFault> {
    let name = file.map_or_else(|| job.file_name(), str::to_owned);
    // Requests that end meanwhile would be in one part of it and not in the other.
    let manifest = store.at_one_moment(|store| {
        let mut manifest = manifest(store, job)?;
        if file.is_none() && matches!(job.content, Content::Parquet) {
            partitioned(store, job, destination, &mut manifest, step)?;
        } else {
            let mut draft = destination.draft()?;
            let totals = stream(store, job, &mut draft, step)?;
            let Published { bytes, sha256 } = destination.publish(draft, &name)?;
            let rows = totals.rows;
            manifest.files.push(ManifestFile { path: name.clone(), rows, bytes, sha256 });
            manifest.totals = totals;
        }
        complete(store, job, &mut manifest.totals)?;
        Ok::<_, ExportFault>(manifest)
    })?;
    let mut draft = destination.draft()?;
    write(&mut draft, &manifest.to_json()?)?;
    destination.publish(draft, &format!("{name}.manifest.json"))?;
    Ok(manifest)
}

/// What the rows themselves do not tell: of charges, which entries of the journals they are made of;
/// of records, what is owed beside them.
fn complete(store: &mut Store, job: &Job, totals: &mut ExportTotals) -> Result<(), ExportFault> {
    match &job.content {
        // Nobody knows the entries of single requests that are gone.
        Content::Focus { .. } if store.need_details(job.period.from()).is_err() => {}
        Content::Focus { .. } => {
            let entries = store.entries(job.period, job.tenant.as_deref())?;
            (totals.sequences, totals.corrections) = (entries.sequences, entries.corrections);
        }
        Content::Records(format) if format.has_items() => {}
        Content::Records(_) | Content::Parquet => add_bill_total(store, job, totals)?,
    }
    Ok(())
}

/// What is owed for the period of records: what they cost, unless something changes that.
fn add_bill_total(
    store: &mut Store,
    job: &Job,
    totals: &mut ExportTotals,
) -> Result<(), ExportFault> {
    let mut is_corrected = false;
    store.corrections(job.period, job.tenant.as_deref(), |_, _| {
        is_corrected = true;
        Ok::<_, StoreError>(())
    })?;
    if !is_corrected && job.terms.add_nothing() {
        return Ok(totals.add_bill_sums()?);
    }
    let credits = job.terms.sums(store, job.scope(), None, |key, hour| {
        if let (Some(currency), Some(cost)) = (&key.currency, hour.sums.cost) {
            totals.add_bill_cost(currency, cost)?;
        }
        Ok::<_, ExportFault>(())
    })?;
    for credit in &credits {
        totals.add_bill_cost(&credit.currency, -credit.amount)?;
    }
    Ok(())
}

fn manifest(store: &mut Store, job: &Job) -> Result<Manifest, StoreError> {
    let (name, status) = (job.content.name(), store.status(job.period, job.now)?);
    let mut manifest = Manifest::new(name, job.period, job.tenant.as_deref(), status);
    if let Content::Focus { version, .. } = &job.content {
        manifest.format_version = Some(version.as_str());
    }
    Ok(manifest)
}

fn write(draft: &mut Draft, bytes: &[u8]) -> Result<(), ExportFault> {
    draft.write_all(bytes).map_err(|error: io::Error| ExportFault::Write(error.into()))
}

/// Records in a folder for each tenant and hour.
fn partitioned(
    store: &mut Store,
    job: &Job,
    destination: &Destination,
    manifest: &mut Manifest,
    step: &mut dyn FnMut(),
) -> Result<(), ExportFault> {
    let period = job.period;
    if [period.from(), period.to()].iter().any(|end| hour_of(*end) != *end) {
        return Err(ExportFault::HalfHour(period));
    }
    store.need_details(period.from())?;
    let tenants = store.tenants(period, job.tenant.as_deref())?;
    let partitions = Partitions::new(destination, tenants);
    let newest = store.newest()?;
    (manifest.files, manifest.totals) = written_beside(
        move |pages| partitions.write(pages),
        |hand_on| {
            store.pages(&job.filter(), newest, |page| {
                page.iter().for_each(|_| step());
                hand_on(page).map(|()| Written::default())
            })
        },
    )?;
    Ok(())
}
