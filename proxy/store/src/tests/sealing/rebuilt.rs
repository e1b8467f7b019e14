//! Stores with files that are built anew, verified and copied.

use std::io::Read as _;

use super::*;
use crate::verify::{Findings, verify};

/// A store of which some days are in files, and what it says.
fn sealed(dir: &TempDir, entries: &[FramedEntry]) -> (Store, Vec<Record>, Bill) {
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, entries);
    let mut sealer = sealer(dir.path()).with_rows_max(3);
    seal(&mut sealer, &closed(3));
    seal(&mut sealer, &closed(3));
    let all = records(&mut store, &Filter::default(), None);
    let bill = bill(&mut store, "tenant,model,hour");
    (store, all, bill)
}

fn assert_same(store: &mut Store, all: &[Record], expected: &Bill) {
    assert_eq!(records(store, &Filter::default(), None), all);
    assert_eq!(&bill(store, "tenant,model,hour"), expected);
}

#[test]
fn a_rebuild_makes_the_hours_of_files_and_journals_and_copies_no_file_back() {
    let dir = tempfile::tempdir().unwrap();
    let entries = journal((0..40).map(ride));
    let (mut store, all, bill) = sealed(&dir, &entries);
    for first in [0, 10, 24, 30] {
        connect(&dir).execute("UPDATE hours SET cost = '0', requests = 1", ()).unwrap();
        let rebuilt = store.rebuild(&mut [feed(&entries[first..])]).unwrap();
        let kept = (first as u64).saturating_sub(24);
        assert_eq!(
            rebuilt,
            Rebuilt { kept_records: kept, kept_corrections: 0, ..Rebuilt::default() },
            "{first}"
        );
        assert_same(&mut store, &all, &bill);
        assert_eq!(requests_in_tables(&dir), 16);
    }
    assert_eq!(catch_up(&mut store, &entries), fed(0, 0, 40));
}

#[test]
fn corrections_of_sealed_requests_survive_a_rebuild() {
    let dir = tempfile::tempdir().unwrap();
    let entries = journal((0..40).map(ride));
    let (mut store, ..) = sealed(&dir, &entries);
    let [early, late] = [5, 35].map(|number| Record { seq: u64::from(number) + 1, ..ride(number) });
    let changes = correction_entries(&[
        correction(1, &early, early.cost.as_ref(), 3),
        correction(2, &late, late.cost.as_ref(), 4),
    ]);
    store.catch_up(&mut [feed(&entries), changed(&changes)]).unwrap();
    let before = bill(&mut store, "tenant,model,hour");
    store.rebuild(&mut [feed(&entries), changed(&changes)]).unwrap();
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
    let rebuilt = store.rebuild(&mut [feed(&entries[30..])]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 6, kept_corrections: 2, ..Rebuilt::default() });
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
}

#[test]
fn a_store_that_is_lost_has_the_requests_of_the_files_again() {
    for (journal_from, is_merged) in [(24, true), (0, true), (24, false)] {
        let dir = tempfile::tempdir().unwrap();
        let entries = journal((0..40).map(ride));
        let (store, all, bill) = sealed(&dir, &entries);
        drop(store);
        if !is_merged {
            // The folder has parts that were replaced, too.
            let name = |number| dir.path().join(format!("days/2026-11-01{number}.parquet"));
            let day = taximeter_columnar::DayFile::open(fs::File::open(name("")).unwrap()).unwrap();
            assert!(day.footer().replaces.iter().any(|it| it == "2026-11-01.part-0001.parquet"));
            fs::copy(name(""), name(".part-0001")).unwrap();
        }
        for name in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
            let _ = fs::remove_file(dir.path().join(name));
        }
        let mut store = Store::open(dir.path()).unwrap();
        assert!(!store.is_empty().unwrap());
        catch_up(&mut store, &entries[journal_from..]);
        assert_same(&mut store, &all, &bill);
        assert_eq!(requests_in_tables(&dir), 16);
        // Sealing goes on.
        seal(&mut sealer(dir.path()), &closed(30));
        seal(&mut sealer(dir.path()), &closed(30));
        assert_same(&mut store, &all, &bill);
        assert_eq!(files(dir.path()).len(), 5);
    }
}

fn verified(dir: &TempDir, store: &mut Store) -> String {
    let mut findings = Findings::default();
    verify(dir.path(), store, &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    String::from_utf8(report).unwrap()
}

#[test]
fn verify_reads_the_files_and_names_file_row_group_and_day() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, ..) = sealed(&dir, &journal((0..40).map(ride)));
    let report = verified(&dir, &mut store);
    assert!(report.contains("days: 3 files of 24 records, each as written"), "{report}");
    assert!(report.contains("Nothing is wrong."), "{report}");
    let [path, other] =
        ["2026-11-02", "2026-11-03"].map(|day| dir.path().join(format!("days/{day}.parquet")));
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[100] ^= 1;
    let cases: [(Option<Vec<u8>>, &str); 4] = [
        (Some(flipped), "row group 0: "),
        (Some(whole[..whole.len() - 9].to_vec()), "footer: "),
        (Some(fs::read(other).unwrap()), "of 2026-11-03 and not of 2026-11-02"),
        (None, "the file is gone"),
    ];
    for (bytes, what) in cases {
        match bytes {
            Some(bytes) => fs::write(&path, bytes).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut store = Store::open(dir.path()).unwrap();
        let report = verified(&dir, &mut store);
        assert!(report.contains(what) && report.contains("of 2026-11-02: "), "{report}");
        assert!(report.contains(&path.display().to_string()), "{report}");
        assert!(report.contains("days: 2 files of 16 records"), "{report}");
        assert!(!report.contains("Nothing is wrong."), "{report}");
        let newest = store.newest().unwrap();
        let nothing = |_: &Record| Ok::<_, StoreError>(());
        let error = store.records(&Filter::default(), newest, None, nothing).unwrap_err();
        assert!(error.to_string().contains("2026-11-02.parquet"), "{error}");
    }
}

#[test]
fn the_journal_is_sealed_up_to_the_first_request_in_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let ledger = taximeter_ledger::LedgerId::default();
    assert_eq!(store.sealed_through(ledger).unwrap(), Some(0));
    let mut rides: Vec<_> = (0..40).map(ride).collect();
    rides.swap(3, 30);
    let mut entries: Vec<_> = rides.into_iter().map(|it| Entry::Post(Box::new(it))).collect();
    entries.push(void(99));
    catch_up(&mut store, &segment(1, entries));
    assert_eq!(store.sealed_through(ledger).unwrap(), Some(0));
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, &closed(3));
    assert_eq!(store.sealed_through(ledger).unwrap(), Some(3), "the fourth was admitted later");
    seal(&mut sealer, &closed(30));
    assert_eq!(store.sealed_through(ledger).unwrap(), Some(41));
}

#[test]
fn a_copy_has_the_files_that_count() {
    let dir = tempfile::tempdir().unwrap();
    let (store, all, bill) = sealed(&dir, &journal((0..40).map(ride)));
    fs::write(dir.path().join("days/2026-11-09.part-0001.parquet.tmp"), "unfinished").unwrap();
    let copy = tempfile::tempdir().unwrap();
    fs::create_dir(copy.path().join("days")).unwrap();
    let held = HeldStore::begin(dir.path()).unwrap().unwrap();
    for (name, mut file) in held.files().iter().map(|(name, file)| (name, file)) {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        fs::write(copy.path().join(name), bytes).unwrap();
    }
    drop((held, store));
    assert_eq!(files(copy.path()).len(), 3);
    let mut store = Store::open(copy.path()).unwrap();
    assert_same(&mut store, &all, &bill);
}
