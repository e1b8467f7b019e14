//! Writes requests into one Parquet file. One thread reads the store, several take entries apart,
//! and one encodes the rows.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use taximeter_billing::export::{ExportError, ExportTotals, RecordRows, RecordsParquet};
use taximeter_ledger::RecordDecoder;
use taximeter_store::{Store, Written};
use taximeter_system::lanes::Lanes;

use crate::beside::written_beside;
use crate::decoded::decoded;
use crate::job::{ExportFault, Job, Output};

/// Writes what the store has of a period to `out`; adds it to `totals`, and calls `step` for each row.
///
/// Errors: as [`ExportFault`] says.
pub(super) fn parquet(
    store: &mut Store,
    job: &Job,
    out: &mut Output<'_>,
    totals: &mut ExportTotals,
    step: &mut dyn FnMut(),
) -> Result<(), ExportFault> {
    let writer = RecordsParquet::new(out)?;
    let newest = store.newest()?;
    let work = |decoder: &mut _, (page, rows)| (take_apart(decoder, &page, rows), page);
    let (to_spare, spare) = channel::<RecordRows>();
    written_beside(
        move |rows| write(writer, rows, &to_spare),
        |hand_on| {
            let mut hand_on = |(rows, page): (Result<RecordRows, ExportError>, Written)| {
                let mut rows = rows?;
                totals.add_requests(&rows.take_totals())?;
                (0..rows.len()).for_each(|_| step());
                hand_on(rows)?;
                Ok::<_, ExportFault>(page)
            };
            thread::scope(|scope| {
                let mut lanes = Lanes::new(scope, &work);
                store.pages(&job.filter(), newest, |page| {
                    let rows = spare.try_recv().unwrap_or_default();
                    lanes.push((page, rows)).map_or_else(|| Ok(Written::default()), &mut hand_on)
                })?;
                lanes.try_for_each(|done| hand_on(done).map(drop))
            })
        },
    )
}

/// A page, in rows that were empty.
fn take_apart(
    decoder: &mut RecordDecoder,
    page: &Written,
    mut rows: RecordRows,
) -> Result<RecordRows, ExportError> {
    for (place, payload) in page.iter() {
        rows.add(place.ledger, decoded(decoder, place.seq, payload)?)?;
    }
    Ok(rows)
}

/// Writes rows; those that are empty then come back by `spare`.
fn write(
    mut writer: RecordsParquet<&mut Output<'_>>,
    rows: Receiver<RecordRows>,
    spare: &Sender<RecordRows>,
) -> Result<(), ExportError> {
    for mut rows in rows {
        writer.add(&mut rows)?;
        // Nobody wants them once all pages are read.
        let _ = spare.send(rows);
    }
    writer.finish()?;
    Ok(())
}
