//! Stores whose database is lost.

use std::io::Read as _;

use super::*;

#[test]
fn a_store_that_is_lost_has_the_hours_of_the_files_again() {
    let history = History::in_order();
    let (all, corrections) = (history.requests.len(), history.corrections.len());
    // How many were there when hours left, and how many days are gone.
    for (requests, changes, gone) in [(all, corrections, 0), (all, 20, 2), (85, 30, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        history.feed(&mut store, requests, changes);
        let mut sealer = sealer(dir.path());
        seal(&mut sealer, 90);
        seal(&mut sealer, 90);
        for _ in 0..gone {
            remove(&mut sealer).unwrap();
        }
        history.feed_all(&mut store);
        let expected = history.expected(all, corrections);
        assert_eq!(bills(&mut store), expected);
        let from = store.details_from().unwrap();
        let kept = records(&mut store, &Filter::default(), None);
        drop((store, sealer));
        lose_database(dir.path());
        let mut store = Store::open(dir.path()).unwrap();
        assert!(!store.is_empty().unwrap());
        history.feed_all(&mut store);
        assert_eq!(bills(&mut store), expected, "{requests} {changes} {gone}");
        assert_eq!(store.details_from().unwrap(), from);
        assert_eq!(records(&mut store, &Filter::default(), None), kept);
        assert!(verified(&dir, &mut store).contains("hours: 1 files of "));
        // It goes on.
        store.rebuild(&mut [feed(&history.requests), changed(&history.corrections)]).unwrap();
        assert_eq!(bills(&mut store), expected);
        store.rebuild(&mut [feed(&history.requests[90..])]).unwrap();
        assert_eq!(bills(&mut store), expected);
    }
}

#[test]
fn a_copy_has_the_files_of_hours() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let history = History::in_order();
    history.feed_all(&mut store);
    seal(&mut sealer(dir.path()), 90);
    let before = bills(&mut store);
    let copy = tempfile::tempdir().unwrap();
    for folder in [DAYS, HOURS] {
        fs::create_dir(copy.path().join(folder)).unwrap();
    }
    let held = HeldStore::begin(dir.path()).unwrap().unwrap();
    for (name, mut file) in held.files().iter().map(|(name, file)| (name, file)) {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        fs::write(copy.path().join(name), bytes).unwrap();
    }
    drop((held, store));
    assert_eq!(files(copy.path(), HOURS), ["2026-11.parquet"]);
    assert_eq!(bills(&mut Store::open(copy.path()).unwrap()), before);
}
