//! Verification: reads the journals whole, and compares the store with them.

mod account;
mod compare;
mod error;
mod findings;
mod refusals;
mod session_sums;
pub mod statement_journals;
mod statements;
mod tally;

use std::path::Path;

use taximeter_billing::LostRequests;
use taximeter_database::database::{SoundDays, SoundHours};
use taximeter_database::error::StoreError;
use taximeter_database::gone::GoneCause;
use taximeter_journal::{CORRECTIONS, Examination};

use self::account::{Account, account};
use self::compare::compare;
use super::Store;
use super::details::GoneDays;
use super::journals::feeds_to_read;

pub use self::error::{Steps, VerifyError};
pub use self::findings::Findings;
pub use self::statement_journals::{fault, journals};

/// How often a ledger is read whose details go meanwhile.
const READS_MAX: usize = 5;

/// Reads both journals whole, feeds the store what it lacks, and compares. Begins anew if requests
/// leave the store meanwhile, because days are too old or need room: that is no fault of either.
///
/// Errors: what cannot be read at all; `DetailsGo` if they leave whenever it is read.
pub fn verify(
    data_dir: &Path,
    store: &mut Store,
    steps: &mut Steps<'_>,
    findings: &mut Findings,
) -> Result<(), VerifyError> {
    for reads in 1..=READS_MAX {
        let gone = GoneDays::of(store)?;
        let mut found = Findings::default();
        match read(data_dir, (store, &gone), steps, &mut found) {
            Err(VerifyError::Store(StoreError::DetailsGone { .. })) => continue,
            done => done?,
        }
        if GoneDays::of(store)? != gone {
            continue;
        }
        if reads > 1 {
            found.note("details of requests went while they were read; what is left is compared");
        }
        findings.add(found);
        return Ok(());
    }
    Err(VerifyError::DetailsGo)
}

/// The same once. `gone` has the days without details.
fn read(
    data_dir: &Path,
    (store, gone): (&mut Store, &GoneDays),
    steps: &mut Steps<'_>,
    findings: &mut Findings,
) -> Result<(), VerifyError> {
    let are_sound = check_files(store, findings)?;
    if let Some(LostRequests { before, requests }) = store.lost()? {
        findings.tell(format!(
            "{requests} requests that ended before {before} are lost: neither the journal nor a file \
             has them; restore the data directory from a backup"
        ));
    }
    tell_gone(store, gone, findings);
    let mut requests = account(data_dir, Account::without(gone.clone()), steps)?;
    requests.tell("journal", data_dir, findings);
    // A journal that is not whole has been told, and cannot be fed.
    if requests.examination.faults.is_empty() {
        store.catch_up(&mut feeds_to_read(data_dir))?;
    }
    let dir = data_dir.join(CORRECTIONS);
    let mut corrections = requests.take_posts(store.is_shared());
    if dir.is_dir() {
        corrections = account(&dir, corrections, steps)?;
        corrections.tell("corrections", &dir, findings);
        // Somebody may have corrected since the store was fed.
        if requests.examination.faults.is_empty() && corrections.examination.faults.is_empty() {
            store.catch_up(&mut feeds_to_read(data_dir))?;
        }
    }
    if !are_sound {
        findings.note(
            "the store is not compared with the journal, because not all of its files can be read",
        );
        return Ok(());
    }
    compare(store, &mut requests, &mut corrections, [data_dir, &dir], steps, findings)?;
    let Examination { first, faults, is_written, .. } = &requests.examination;
    if faults.is_empty() {
        // A running gateway may have counted more since its journal was read.
        let is_whole = first.is_none_or(|first| first == 1) && !is_written && !store.is_shared();
        requests.refusals.compare(store, is_whole, findings)?;
    }
    statements::check_statements(store, findings);
    Ok(())
}

/// Names the days that cannot be compared with their requests.
fn tell_gone(store: &Store, gone: &GoneDays, findings: &mut Findings) {
    for range in gone.ranges() {
        let (Some(first), Some(last)) = (range.first(), range.last()) else { continue };
        let to = if range.len() > 1 { format!(" to {}", last.day) } else { String::new() };
        let records: u64 = range.iter().map(|day| day.requests).sum();
        let what = match first.cause {
            GoneCause::Age => format!("{records} records are older than they are kept"),
            GoneCause::Room => format!("{records} records are gone because there was no room"),
            GoneCause::Lost => "the records are gone".to_owned(),
        };
        // Files of hours have digests; a database has none.
        let how = if store.is_shared() { "without records" } else { "by digest" };
        findings.hear(format!("{}{to} {how}: {what}, and their sums by the hour stay", first.day));
    }
}

/// Reads the files of days and of hours whole. Whether all are as they were written.
fn check_files(store: &mut Store, findings: &mut Findings) -> Result<bool, VerifyError> {
    let mut are_sound = true;
    let sound = store.check_days(&mut |wrong| {
        are_sound = false;
        findings.tell(wrong);
    })?;
    if sound.files > 0 {
        let SoundDays { files, requests } = sound;
        findings.hear(format!("days: {files} files of {requests} records, each as written"));
    }
    let sound = store.check_hours(&mut |wrong| {
        are_sound = false;
        findings.tell(wrong);
    })?;
    if sound.files > 0 {
        let SoundHours { files, rows } = sound;
        findings.hear(format!("hours: {files} files of {rows} sums, each as written"));
    }
    Ok(are_sound)
}
