//! `verify` of a ledger whose days lose their details meanwhile.

use super::*;
use crate::tests::removal::{journal_in, serve_record};
use crate::verify::{Findings, VerifyError, verify};

const ENTRIES: &str = "journal entries read";
const RECORDS: &str = "records of the store read";

/// Five days, each in a file, and what fed them.
fn in_files(dir: &Path, feed: impl FnOnce(&mut Store)) -> (Store, Sealer) {
    let mut store = Store::open(dir).unwrap();
    feed(&mut store);
    let mut sealer = sealer(dir);
    seal(&mut sealer, 9);
    seal(&mut sealer, 9);
    (store, sealer)
}

/// With the journal that the requests came from.
fn with_journal(dir: &Path) -> (Store, Sealer) {
    let journal = journal_in(dir);
    (0..RIDES).for_each(|number| serve_record(&journal, ride(number)));
    journal.close().unwrap();
    in_files(dir, |store| {
        store.catch_up(&mut crate::feeds(dir)).unwrap();
    })
}

/// What `verify` says while `step` is called for each entry and record.
fn told(
    dir: &Path,
    store: &mut Store,
    step: &mut dyn FnMut(&'static str),
) -> Result<String, VerifyError> {
    let mut findings = Findings::default();
    verify(dir, store, &mut |what| step(what), &mut findings)?;
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    Ok(String::from_utf8(report).unwrap())
}

#[test]
fn a_day_that_goes_at_any_moment_is_no_fault_of_what_is_left() {
    let entries = 2 * RIDES as usize;
    let moments = [(ENTRIES, 1), (ENTRIES, 50), (ENTRIES, entries), (RECORDS, 1), (RECORDS, 98)];
    for (kind, number) in moments {
        let dir = tempfile::tempdir().unwrap();
        let (mut store, mut sealer) = with_journal(dir.path());
        let mut seen = 0;
        let report = told(dir.path(), &mut store, &mut |what| {
            seen += usize::from(what == kind);
            if what == kind && seen == number {
                assert!(remove(&mut sealer).is_some());
            }
        });
        let report = report.unwrap();
        let moment = format!("{kind} {number}: {report}");
        assert!(report.ends_with("Nothing is wrong.\n"), "{moment}");
        assert!(report.contains("note: details of requests went while"), "{moment}");
        assert!(report.contains("2026-11-01 by digest: 20 records"), "{moment}");
        // All that was said before is said anew.
        assert_eq!(report.matches("98 posts").count(), 1, "{moment}");
        assert_eq!(
            report.matches("store: 78 records of pod-7f9c/0, each as").count(),
            1,
            "{moment}"
        );
    }
}

#[test]
fn a_file_that_goes_before_it_is_opened_is_no_fault() {
    let dir = tempfile::tempdir().unwrap();
    // More than all pages that are read ahead.
    let first = (0..2_700_u32).map(record);
    let later = (20..RIDES).map(|number| Record { id: record(5_000 + number).id, ..ride(number) });
    let requests = journal(first.chain(later));
    let (mut store, mut sealer) = in_files(dir.path(), |store| {
        catch_up(store, &requests);
    });
    let mut goes = true;
    let report = told(dir.path(), &mut store, &mut |what| {
        if std::mem::take(&mut goes) {
            assert_eq!(what, RECORDS);
            (0..3).for_each(|_| assert!(remove(&mut sealer).is_some()));
            seal(&mut sealer, 9);
        }
    });
    let report = report.unwrap();
    assert!(report.ends_with("Nothing is wrong.\n"), "{report}");
    assert!(report.contains("2026-11-01 to 2026-11-03 by digest"), "{report}");
}

#[test]
fn a_ledger_whose_days_go_whenever_it_is_read_is_not_called_sound() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut sealer) = with_journal(dir.path());
    let (mut days, mut before) = (0, RECORDS);
    let refused = told(dir.path(), &mut store, &mut |what| {
        if what == ENTRIES && before == RECORDS {
            days += usize::from(remove(&mut sealer).is_some());
        }
        before = what;
    });
    let error = refused.unwrap_err();
    assert!(matches!(error, VerifyError::DetailsGo), "{error}");
    assert_eq!(days, 5);
    // Afterwards it is.
    let report = told(dir.path(), &mut store, &mut |_| {}).unwrap();
    assert!(report.ends_with("Nothing is wrong.\n"), "{report}");
}

#[test]
fn what_is_wrong_is_told_once_also_if_a_day_goes_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut sealer) = with_journal(dir.path());
    connect(&dir).execute("UPDATE hours SET requests = requests + 1", ()).unwrap();
    let mut goes = true;
    let report = told(dir.path(), &mut store, &mut |_| {
        if std::mem::take(&mut goes) {
            assert!(remove(&mut sealer).is_some());
        }
    });
    let report = report.unwrap();
    let hour = ride(30).started_at.strftime("%Y-%m-%dT%H:00:00Z").to_string();
    assert_eq!(report.matches(&format!("wrong: the store's hour {hour}")).count(), 1, "{report}");
}
