//! Requests into one file of Parquet: entries are taken apart in lanes, between the thread that reads
//! the store and the one that encodes rows.

use std::io::Write;
use std::sync::mpsc::Receiver;
use std::thread;

use taximeter_billing::export::{ExportError, RecordRow, RecordRows, RecordsParquet, Tally};

use super::beside::written_beside;
use super::job::{ExportFault, Job};
use crate::edge::lanes::Lanes;
use crate::edge::store::{Store, Written};

/// Writes what the store has of a period to `out`, which comes back; adds it to `tally`, and calls
/// `step` for each row.
///
/// Errors: as [`ExportFault`] says.
pub(super) fn parquet<W: Write + Send>(
    store: &mut Store,
    job: &Job,
    out: W,
    tally: &mut Tally,
    step: &mut dyn FnMut(),
) -> Result<W, ExportFault> {
    let writer = RecordsParquet::new(out)?;
    let newest = store.newest()?;
    let work = take_apart;
    written_beside(
        move |rows| write(writer, rows),
        |hand_on| {
            let mut hand_on = |rows: Result<RecordRows, ExportError>| {
                let mut rows = rows?;
                tally.add_requests(&rows.take_tally())?;
                (0..rows.len()).for_each(|_| step());
                hand_on(rows)
            };
            thread::scope(|scope| {
                let mut lanes = Lanes::new(scope, &work);
                store.pages(&job.filter(), newest, |page| {
                    lanes.push(page).map_or(Ok(()), &mut hand_on)
                })?;
                lanes.try_for_each(hand_on)
            })
        },
    )
}

fn take_apart(page: Vec<Written>) -> Result<RecordRows, ExportError> {
    let (mut rows, mut anew) = (RecordRows::new(), Vec::new());
    for Written { seq, record } in &page {
        rows.add(&RecordRow::read(*seq, record, &mut anew)?)?;
    }
    Ok(rows)
}

fn write<W: Write + Send>(
    mut writer: RecordsParquet<W>,
    rows: Receiver<RecordRows>,
) -> Result<W, ExportError> {
    rows.into_iter().try_for_each(|mut rows| writer.add(&mut rows))?;
    writer.finish()
}
