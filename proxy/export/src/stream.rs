//! Writes what the store has of a period into one file.

use std::io;

use taximeter_billing::SplitBy;
use taximeter_billing::export::{
    BillItem, Charge, ExportTotals, FocusVersion, FocusWriter, Format, RecordWriter, charges,
};
use taximeter_ledger::Record;
use taximeter_store::Store;
use taximeter_store::terms::Origin;

use crate::content::Content;
use crate::job::{ExportFault, Job, Output};
use crate::parquet::parquet;

/// Writes an export to `out`, and says what it adds up to.
///
/// `step` is called for each row.
/// A strict export is made twice: first without a byte of output.
/// Errors: as [`ExportFault`] says; what was written before is no export.
pub fn stream(
    store: &mut Store,
    job: &Job,
    out: &mut Output<'_>,
    step: &mut dyn FnMut(),
) -> Result<ExportTotals, ExportFault> {
    if job.strict && job.content.has_events() {
        let totals = written(store, job, &mut io::sink(), &mut || {})?;
        if let Some(outside) = totals.outside_window {
            return Err(ExportFault::OutsideWindow(Box::new(outside)));
        }
    }
    written(store, job, out, step)
}

fn written(
    store: &mut Store,
    job: &Job,
    out: &mut Output<'_>,
    step: &mut dyn FnMut(),
) -> Result<ExportTotals, ExportFault> {
    if !matches!(job.content, Content::Focus { .. }) {
        store.need_details(job.period.from())?;
    }
    let mut totals = ExportTotals::default();
    match &job.content {
        Content::Records(format) if format.has_items() => {
            events(store, job, *format, out, &mut totals, step)?;
        }
        Content::Records(format) => {
            let mut writer = RecordWriter::new(*format, format.window(None), job.now, out)?;
            each_record(store, job, |record| {
                let rows = writer.add(record)?;
                totals.add_request(record, rows)?;
                step();
                Ok(())
            })?;
            writer.finish()?;
        }
        Content::Parquet => parquet(store, job, out, &mut totals, step)?,
        Content::Focus { parquet, version, issuer } => {
            let writer = focus(*parquet, out, (*version, issuer), &job.split_by)?;
            focus_rows(store, job, writer, &mut totals, step)?;
        }
    }
    Ok(totals)
}

/// Shows `visit` each record, in order of admission.
///
/// Errors: `visit`'s own; the store's.
fn each_record(
    store: &mut Store,
    job: &Job,
    visit: impl FnMut(&Record) -> Result<(), ExportFault>,
) -> Result<(), ExportFault> {
    let newest = store.newest()?;
    store.records(&job.filter(), newest, None, visit)
}

fn focus<'a>(
    parquet: bool,
    out: &'a mut Output<'a>,
    (version, issuer): (FocusVersion, &str),
    by: &SplitBy,
) -> Result<FocusWriter<&'a mut Output<'a>>, ExportFault> {
    if parquet {
        Ok(FocusWriter::parquet(out, version, issuer, by)?)
    } else {
        Ok(FocusWriter::csv(out, version, issuer, by)?)
    }
}

/// A row for each charge, then one for each credit.
fn focus_rows(
    store: &mut Store,
    job: &Job,
    mut writer: FocusWriter<&mut Output<'_>>,
    totals: &mut ExportTotals,
    step: &mut dyn FnMut(),
) -> Result<(), ExportFault> {
    let mut add = |charge: &Charge<'_>, totals: &mut ExportTotals| {
        writer.add(charge)?;
        step();
        totals.add_charge(charge)
    };
    let credits = job.terms.hours(store, job.scope(), |_, key, hour| {
        totals.add_hour(hour);
        for charge in charges(key, hour) {
            add(&charge?, totals)?;
        }
        Ok::<_, ExportFault>(())
    })?;
    for credit in &credits {
        add(&Charge::of_credit(credit, job.period), totals)?;
    }
    writer.finish()?;
    Ok(())
}

/// The events of requests that have used something, then those of what the bill has beside them.
fn events(
    store: &mut Store,
    job: &Job,
    format: Format,
    out: &mut Output<'_>,
    totals: &mut ExportTotals,
    step: &mut dyn FnMut(),
) -> Result<(), ExportFault> {
    let mut writer = RecordWriter::new(format, format.window(job.age_max), job.now, out)?;
    each_record(store, job, |record| {
        step();
        if record.used_nothing() {
            return Ok(());
        }
        if job.terms.owes_share(&record.upstream, record.started_at) {
            // What it owes is an item.
            let record = Record { cost: None, ..record.clone() };
            totals.add_request(&record, writer.add(&record)?)?;
            totals.subtract_unknown_cost();
            return Ok(());
        }
        Ok(totals.add_request(record, writer.add(record)?)?)
    })?;
    store.corrections(job.period, job.tenant.as_deref(), |row, correction| {
        if job.terms.owes_share(row.upstream, row.started_at) {
            return Ok(());
        }
        step();
        Ok::<_, ExportFault>(writer.add_correction(row, correction, totals)?)
    })?;
    let mut add = |item: &BillItem<'_>, totals: &mut ExportTotals| {
        step();
        totals.add_item(item, writer.add_item(item)?)
    };
    let credits = job.terms.hours(store, job.scope(), |origin, key, hour| {
        if origin == Origin::Gpus {
            BillItem::of_gpus(key, hour)?.iter().try_for_each(|item| add(item, totals))?;
        }
        Ok::<_, ExportFault>(())
    })?;
    for credit in &credits {
        add(&BillItem::of_credit(credit, job.period)?, totals)?;
    }
    totals.outside_window = writer.outside_window();
    writer.finish()?;
    Ok(())
}
