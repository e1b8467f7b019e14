//! Tests of stores that others read, and of stores that are only read.

use std::path::Path;

use taximeter_sqlite::{LOG_BYTES_MAX, LOG_KEPT_BYTES_MAX};

use super::*;

/// Feedings that make a log longer than it may be, many times over.
const FEEDINGS_MAX: u32 = 3000;

fn length(dir: &TempDir, name: &str) -> u64 {
    fs::metadata(dir.path().join(name)).map_or(0, |file| file.len())
}

#[test]
fn a_reader_that_stays_makes_the_log_grow_to_its_limit_and_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let mut entries = journal([record(0)]);
    catch_up(&mut store, &entries);
    let reader = connect(&dir);
    reader.execute_batch("BEGIN; SELECT * FROM requests").unwrap();
    let (mut growing, mut number) = (Vec::new(), 0);
    let refused = loop {
        number += 1;
        assert!(number < FEEDINGS_MAX, "{} bytes", length(&dir, "store.sqlite-wal"));
        growing.push(record(number));
        entries = journal(std::iter::once(record(0)).chain(growing.iter().cloned()));
        if let Err(fault) = store.catch_up(&mut [feed(&entries)]) {
            break fault;
        }
    };
    assert!(matches!(refused, StoreError::Pinned { .. }), "{refused}");
    assert!(refused.to_string().contains("store.sqlite-wal has grown to"), "{refused}");
    let pinned = length(&dir, "store.sqlite-wal");
    assert!(pinned < u64::from(LOG_BYTES_MAX) + (8 << 20), "{pinned} bytes");
    assert!(store.catch_up(&mut [feed(&entries)]).is_err());
    assert_eq!(length(&dir, "store.sqlite-wal"), pinned, "it grows nevertheless");
    assert_eq!(store.newest().unwrap(), i64::from(number));

    reader.execute_batch("COMMIT").unwrap();
    catch_up(&mut store, &entries);
    let after = length(&dir, "store.sqlite-wal");
    assert!(after <= u64::from(LOG_KEPT_BYTES_MAX), "{after} bytes");
    assert_eq!(store.newest().unwrap(), i64::from(number) + 1);
}

#[test]
fn a_log_that_one_change_made_long_is_cut_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let long = |number| Record { request_id: "r".repeat(20 << 10), ..record(number) };
    let entries = journal((0..2000).map(long));
    catch_up(&mut store, &entries);
    store.rebuild(&mut [feed(&entries)]).unwrap();
    let after = length(&dir, "store.sqlite-wal");
    assert!(after <= u64::from(LOG_KEPT_BYTES_MAX), "{after} bytes");
}

/// Nobody can lock a file that is read as it is: a change must not go unnoticed.
#[test]
fn a_store_that_is_changed_while_it_is_read_as_a_file_gives_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let entries = journal([record(1), record(2)]);
    catch_up(&mut Store::open(dir.path()).unwrap(), &entries[..1]);
    let sqlite = Sqlite::open_to_read(dir.path()).unwrap().unwrap();
    let read_in = Some(dir.path().to_owned());
    let mut reader = Store { database: Box::new(sqlite), is_shared: false, read_in };
    assert_eq!(reader.newest().unwrap(), 1);
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &entries);
    for _ in 0..2 {
        let fault = reader.newest().unwrap_err();
        assert!(matches!(fault, StoreError::Unavailable { .. }), "{fault}");
        assert!(fault.to_string().contains("run this again"), "{fault}");
    }
}

#[test]
fn a_store_that_is_read_sees_what_its_gateway_feeds_and_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let entries = journal([record(1), record(2)]);
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &entries[..1]);
    let mut reader = Sqlite::open_to_read(dir.path()).unwrap().unwrap();
    assert_eq!(reader.newest().unwrap(), 1);
    catch_up(&mut store, &entries);
    assert_eq!(reader.newest().unwrap(), 2);
    let fault = reader.add(&taximeter_database::batch::Batch::default()).unwrap_err();
    assert!(fault.to_string().contains("it is opened to be read"), "{fault}");

    let mut copy = Sqlite::copy(Some(reader), dir.path()).unwrap();
    let before = length(&dir, "store.sqlite-wal");
    let more = journal([record(1), record(2), record(3)]);
    let mut copied = Store { database: Box::new(copy), is_shared: false, read_in: None };
    catch_up(&mut copied, &more);
    assert_eq!(request_ids(&mut copied, &Filter::default(), None).len(), 3);
    assert_eq!(length(&dir, "store.sqlite-wal"), before);
    assert_eq!(store.newest().unwrap(), 2);
    copy = Sqlite::copy(None, dir.path()).unwrap();
    assert_eq!(copy.newest().unwrap(), 0);
}

#[test]
fn a_path_may_have_any_characters() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["what? a #1", "50%25", "ü", "a&mode=rwc"] {
        let dir = folder.path().join(name);
        fs::create_dir(&dir).unwrap();
        assert!(Sqlite::open_to_read(&dir).unwrap().is_none());
        let mut store = Store::open(&dir).unwrap();
        catch_up(&mut store, &journal([record(1)]));
        for is_open in [true, false] {
            let mut reader = Sqlite::open_to_read(&dir).unwrap().unwrap();
            assert_eq!(reader.newest().unwrap(), 1, "{name} {is_open}");
            if is_open {
                drop(reader);
                store = Store { database: Box::new(Sqlite::copy(None, &dir).unwrap()), ..store };
            }
        }
        let names = |dir: &Path| fs::read_dir(dir).unwrap().count();
        assert_eq!(names(&dir), 1, "{name}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}
