//! The process ends at any step.

use std::cell::Cell;

use super::*;

#[test]
fn wherever_the_process_ends_each_hour_is_there_once() {
    let history = History::in_order();
    let store_of = || {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        history.feed_all(&mut store);
        // Its requests are in files already, so that each step is one of the hours.
        seal(&mut sealer(dir.path()), 9);
        seal(&mut sealer(dir.path()), 9);
        (dir, store)
    };
    let expected = bills(&mut store_of().1);
    let mut ended = 0;
    // Later ones are of the file of the month: one for each hour.
    for steps in (0_u32..16).chain((16..).step_by(30)) {
        let (dir, mut store) = store_of();
        for run in 0..2 {
            let mut sealer = sealer(dir.path());
            let (left, newest) = (Cell::new(steps), sealer.newest().unwrap());
            let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
            sealer.work(&closed(90), newest, &go_on).unwrap();
            ended += i32::from(left.get() == 0);
            drop(sealer);
            assert_eq!(bills(&mut store), expected, "{steps} steps, run {run}");
            if left.get() > 0 && run == 0 {
                assert!(ended > 20, "{ended}");
                return;
            }
        }
        seal(&mut sealer(dir.path()), 90);
        seal(&mut sealer(dir.path()), 90);
        assert_eq!(bills(&mut store), expected, "{steps} steps, in the end");
        assert_eq!(files(dir.path(), "hours").len(), 1, "{steps} steps");
        assert_eq!(hours_in_table(&dir), 0);
    }
}

#[test]
fn files_of_a_day_that_is_gone_go_although_the_process_ended_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let history = History::in_order();
    history.feed_all(&mut store);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 9);
    seal(&mut sealer, 9);
    let before = bills(&mut store);
    let path = dir.path().join("days/2026-11-01.parquet");
    let bytes = fs::read(&path).unwrap();
    remove(&mut sealer).unwrap();
    fs::write(&path, bytes).unwrap();
    assert_eq!(seal(&mut sealer, 9), SealWork::default());
    assert!(!path.exists());
    assert_eq!(bills(&mut store), before);
}

#[test]
fn a_file_of_hours_that_nobody_names_stays_if_its_hours_are_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    History::in_order().feed_all(&mut store);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 90);
    seal(&mut sealer, 90);
    let name = "2026-11.parquet";
    connect(&dir).execute("DELETE FROM hour_files WHERE name = ?1", [name]).unwrap();
    let work = seal(&mut sealer, 90);
    assert_eq!(work.unknown_hours, [name]);
    assert!(work.fault().unwrap().contains(name));
    assert_eq!(files(dir.path(), "hours"), [name]);
}

#[test]
fn hours_that_change_while_they_are_written_stay_and_are_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let history = History::in_order();
    history.feed(&mut store, RIDES as usize, 0);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 9);
    let (newest, looks) = (sealer.newest().unwrap(), Cell::new(0));
    let go_on = || {
        looks.set(looks.get() + 1);
        // When a file is written and has no name yet.
        let is_unfinished = files(dir.path(), "hours").iter().any(|name| name.ends_with(".tmp"));
        if is_unfinished && looks.get() < 100 {
            looks.set(100);
            history.feed(
                &mut Store::open(dir.path()).unwrap(),
                RIDES as usize,
                history.corrections.len(),
            );
        }
        true
    };
    sealer.work(&closed(90), newest, &go_on).unwrap();
    assert!(looks.get() >= 100);
    assert_eq!(bills(&mut store), history.expected(RIDES as usize, history.corrections.len()));
}
