//! Requests into one file of Parquet.
//!
//! The store is read on the caller's thread, entries are taken apart in lanes, and rows encoded on one
//! thread more: each of the three takes about as long as the others.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use taximeter_billing::export::{ExportError, RecordRow, RecordRows, RecordsParquet, Tally};

use super::job::{ExportFault, Job};
use crate::edge::lanes::Lanes;
use crate::edge::store::{Store, Written};

/// Pages, or rows of as many, that wait for a thread: it is never idle while another has a long
/// moment.
pub(super) const WAITING_MAX: usize = 8;

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
    let (to_writer, rows) = sync_channel(WAITING_MAX);
    let work = take_apart;
    thread::scope(|scope| {
        let written = scope.spawn(move || write(writer, rows));
        let mut lanes = Lanes::new(scope, &work);
        let mut hand_on = |rows: Result<RecordRows, ExportError>| {
            let mut rows = rows?;
            tally.add_requests(&rows.take_tally())?;
            (0..rows.len()).for_each(|_| step());
            send(&to_writer, rows)
        };
        let mut read = store.pages(&job.filter(), newest, |page| match lanes.push(page) {
            Some(rows) => hand_on(rows),
            None => Ok(()),
        });
        if read.is_ok() {
            read = lanes.try_for_each(hand_on);
        }
        drop(to_writer);
        // Where the writer failed, that is why nobody could go on.
        let out = written.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        read.map(|()| out)
    })
}

/// Gives a thread its next piece.
///
/// Errors: it has ended, and knows why.
pub(super) fn send<T>(to: &SyncSender<T>, piece: T) -> Result<(), ExportFault> {
    let ended = |_| ExportError::Write(io::ErrorKind::BrokenPipe.into()).into();
    to.send(piece).map_err(ended)
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
