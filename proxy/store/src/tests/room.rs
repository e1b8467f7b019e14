//! What is removed to make room while the store cannot be fed, and before a start.

use std::path::Path;
use std::sync::Arc;

use taximeter_config::Config;
use taximeter_database::database::AtRest;
use taximeter_journal::Retention;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::RoomLimits;
use taximeter_system::clock;

use super::removal::{journal_in, serve};
use super::*;
use crate::Location;
use crate::room::Cleaner;

const REQUESTS: u32 = 60;

/// A directory with a journal of several files, all of which is in the store. It takes more than it
/// may.
fn crowded() -> (tempfile::TempDir, Config) {
    let dir = tempfile::tempdir().unwrap();
    let journal = journal_in(dir.path());
    (0..REQUESTS).for_each(|number| serve(&journal, number));
    journal.close().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    store.catch_up(&mut crate::feeds(dir.path())).unwrap();
    let mut config = Config::zero("http://127.0.0.1:1").unwrap();
    config.data_dir = dir.path().to_owned();
    config.ledger.dir_bytes_max = Some(1);
    (dir, config)
}

fn segments(dir: &Path) -> usize {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains("journal-")).count()
}

fn cleaner(config: &Config) -> Cleaner {
    let at = (clock::now(), clock::wall());
    let retention = Retention::new(&config.data_dir, 400, 0, None, at, Arc::default());
    let budget = Arc::new(DiskBudget::default());
    budget.look(&config.data_dir, &RoomLimits::of(config)).unwrap();
    Cleaner::new(config, Location::of(config, "gateway"), budget, retention)
}

/// What a start removes of the journals.
fn at_start(config: &Config) -> taximeter_journal::Removed {
    let now = ("pod-7f9c/0", clock::wall());
    let made = Cleaner::at_start(config, &Location::of(config, "gateway"), now).unwrap();
    assert!(made.days.is_none());
    made.segments
}

fn failed() -> Result<Fed, StoreError> {
    Err(StoreError::Unavailable { store: "store".to_owned(), source: "it is full".into() })
}

#[test]
fn what_the_store_has_is_told_without_a_file_and_so_are_its_free_pages() {
    let (dir, _config) = crowded();
    let names = || {
        let files = std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name());
        files.collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let AtRest { cursors, free_bytes } = Sqlite::look(dir.path()).unwrap();
    let [Some(last), None] = cursors else { panic!("{cursors:?}") };
    assert!(last.seq >= u64::from(2 * REQUESTS), "{last:?}");
    assert!(free_bytes < 100_000, "{free_bytes}");
    assert_eq!(names(), before);
    // Beside a gateway that has it open, too.
    let mut store = Store::open(dir.path()).unwrap();
    rusqlite::Connection::open(dir.path().join("store.sqlite"))
        .unwrap()
        .execute_batch(
            "CREATE TABLE other (content BLOB);
             INSERT INTO other VALUES (randomblob(1000000));
             DROP TABLE other;",
        )
        .unwrap();
    let looked = Sqlite::look(dir.path()).unwrap();
    assert_eq!(looked.cursors, cursors);
    assert!((990_000..1_200_000).contains(&looked.free_bytes), "{looked:?}");
    let fed = store.catch_up(&mut crate::feeds(dir.path())).unwrap();
    assert_eq!((fed.free_bytes, fed.stored), (looked.free_bytes, last.seq));
    assert_eq!(Sqlite::look(&dir.path().join("nowhere")), None);
}

#[test]
fn room_is_made_of_what_the_store_has_while_it_cannot_be_fed_and_of_nothing_where_it_is_gone() {
    let (dir, config) = crowded();
    let at = (clock::now(), clock::wall());
    let (all, store) = (segments(dir.path()), dir.path().join("store.sqlite"));
    let elsewhere = dir.path().join("moved");
    std::fs::rename(&store, &elsewhere).unwrap();
    let removed = cleaner(&config).fed(&failed(), u64::MAX, at).unwrap();
    assert!(removed.for_room.is_none() && segments(dir.path()) == all);
    std::fs::rename(&elsewhere, &store).unwrap();
    let removed = cleaner(&config).fed(&failed(), u64::MAX, at).unwrap();
    assert_eq!(removed.for_room.map(|made| made.gone.len()), Some(all - 1));
    assert_eq!(segments(dir.path()), 1);
}

#[test]
fn a_start_removes_nothing_because_of_a_store_of_another_journal() {
    let (dir, config) = crowded();
    let (other, _) = crowded();
    let store = |dir: &Path| dir.join("store.sqlite");
    std::fs::copy(store(other.path()), store(dir.path())).unwrap();
    let all = segments(dir.path());
    let removed = at_start(&config);
    assert!(removed.for_room.is_none() && segments(dir.path()) == all);
}

#[test]
fn a_start_makes_room_unless_another_process_writes_the_directory() {
    let (dir, config) = crowded();
    let all = segments(dir.path());
    let journal = journal_in(dir.path());
    let removed = at_start(&config);
    assert!(removed.for_room.is_none());
    journal.close().unwrap();
    drop(journal);
    let roomy = Config { data_dir: config.data_dir.clone(), ..Config::zero("http://e:1").unwrap() };
    let removed = at_start(&roomy);
    assert!(removed.for_room.is_none() && segments(dir.path()) >= all);
    assert!(!dir.path().join("room.state").exists(), "who only looks writes nothing");
    let removed = at_start(&config);
    assert!(removed.for_room.is_some_and(|made| made.gone.len() > 3));
    journal_in(dir.path());
}

#[test]
fn a_start_removes_the_oldest_days_where_no_segment_may_go() {
    let (dir, config) = crowded();
    let sealed = |dir: &Path| {
        super::sealing::seal_through(dir, 30);
        super::sealing::seal_through(dir, 30);
        std::fs::read_dir(dir.join("days")).unwrap().count()
    };
    let mut entries = Vec::new();
    for day in 0..20_i32 {
        let at = record(0).started_at + jiff::SignedDuration::from_hours(24) * day;
        let number = 1000 + day.cast_unsigned();
        entries.push(Record { started_at: at, ended_at: at, ..record(number) });
    }
    let mut store = Store::open(dir.path()).unwrap();
    store.catch_up(&mut [feed_as("other", &journal(entries))]).unwrap();
    let before = bill(&mut store, "tenant,model,hour");
    assert_eq!(sealed(dir.path()), 21, "files and a lock");
    // All that is left of the journal is what a start needs.
    let now = ("pod-7f9c/0", clock::wall());
    let location = Location::of(&config, "gateway");
    let made = Cleaner::at_start(&config, &location, now).unwrap();
    assert_eq!(segments(dir.path()), 1);
    let days = made.days.unwrap().days;
    assert_eq!(days.len(), 20, "all of it is too much");
    let details = Filter { from: Some(days[0].first), ..Filter::default() };
    let listed = store.records(&details, i64::MAX, None, |_| Ok::<_, StoreError>(()));
    assert!(matches!(listed, Err(StoreError::DetailsGone { .. })), "{listed:?}");
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
    // Who has room removes nothing, and so does who shares the directory with another process.
    let made = Cleaner::at_start(&config, &location, now).unwrap();
    assert!(made.days.is_none() && made.segments.for_room.is_none());
}
