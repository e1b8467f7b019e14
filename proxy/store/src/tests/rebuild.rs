//! Tests of stores that are rebuilt, and of stores in an earlier format.

use taximeter_ledger::TenantId;

use super::hours::{changed, correction, entries as correction_entries};
use super::*;

fn bill_of_all(entries: &[FramedEntry]) -> Bill {
    let (_dir, mut store) = open();
    catch_up(&mut store, entries);
    bill(&mut store, "tenant,model,hour")
}

#[test]
fn what_the_journal_no_longer_has_survives_a_rebuild() {
    let (_dir, mut store) = open();
    let entries = journal((0..1200).map(record));
    catch_up(&mut store, &entries);
    let rebuilt = store.rebuild(&mut [feed(&entries[700..])]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 700, kept_corrections: 0, ..Rebuilt::default() });
    assert_eq!(bill(&mut store, "tenant,model,hour"), bill_of_all(&entries));
    assert_eq!(catch_up(&mut store, &entries), fed(0, 0, 1200));
}

#[test]
fn corrections_survive_a_rebuild_as_well() {
    let (_dir, mut store) = open();
    let (posts, ride) = (journal((0..10).map(record)), record(3));
    let changes = correction_entries(&[correction(1, &ride, ride.cost.as_ref(), 3)]);
    store.catch_up(&mut [feed(&posts), changed(&changes)]).unwrap();
    let before = bill(&mut store, "tenant,model,hour");
    assert_ne!(before, bill_of_all(&posts));
    let rebuilt = store.rebuild(&mut [feed(&posts)]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 0, kept_corrections: 1, ..Rebuilt::default() });
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
    let rebuilt = store.rebuild(&mut [changed(&changes)]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 10, kept_corrections: 0, ..Rebuilt::default() });
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
}

#[test]
fn hours_that_were_meddled_with_are_right_after_a_rebuild() {
    let (dir, mut store) = open();
    let entries = journal((0..10).map(record));
    catch_up(&mut store, &entries);
    connect(&dir).execute("UPDATE hours SET cost = '0', requests = 1", ()).unwrap();
    assert_ne!(bill(&mut store, "tenant,model,hour"), bill_of_all(&entries));
    store.rebuild(&mut [feed(&entries)]).unwrap();
    assert_eq!(bill(&mut store, "tenant,model,hour"), bill_of_all(&entries));
}

#[test]
fn a_rebuild_that_fails_leaves_the_store_as_it_was() {
    let (_dir, mut store) = open();
    let entries = journal((0..10).map(record));
    catch_up(&mut store, &entries);
    let torn = Feed::new("journal", |_| Err("the disk is gone".into()));
    let error = store.rebuild(&mut [torn]).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the journal: the disk is gone");
    assert_eq!(bill(&mut store, "tenant,model,hour"), bill_of_all(&entries));
    assert_eq!(catch_up(&mut store, &entries), fed(0, 0, 10));
}

#[test]
fn others_see_the_store_as_it_was_until_it_is_rebuilt() {
    let (dir, mut store) = open();
    let mut asking = Store::open(dir.path()).unwrap();
    let entries = journal((0..10).map(record));
    catch_up(&mut store, &entries);
    let mut seen = None;
    let watched = Feed::new("journal", |_| {
        seen = Some(bill(&mut asking, "tenant,model,hour"));
        Ok(Box::new(entries.clone().into_iter().map(Ok)))
    });
    store.rebuild(&mut [watched]).unwrap();
    assert_eq!(seen, Some(bill_of_all(&entries)));
}

#[test]
fn who_feeds_goes_on_rightly_after_another_process_has_numbered_all_rows_anew() {
    let dir = tempfile::tempdir().unwrap();
    let [mut feeding, mut rebuilding] = [(); 2].map(|()| Store::open(dir.path()).unwrap());
    let entries = journal((0..40).map(|number| Record {
        tenant: TenantId::new(&format!("tenant-{}", number % 7)).unwrap(),
        ..record(number)
    }));
    for (fed, shown) in [(10, 3), (20, 9), (30, 14)] {
        catch_up(&mut feeding, &entries[..fed]);
        rebuilding.rebuild(&mut [feed(&entries[shown..fed])]).unwrap();
    }
    catch_up(&mut feeding, &entries);
    assert_eq!(bill(&mut feeding, "tenant,model,hour"), bill_of_all(&entries));
    let tenant = |record: &Record| record.tenant.clone();
    let found = records(&mut feeding, &Filter::default(), None);
    let expected = (0..40).map(|number| format!("tenant-{}", number % 7));
    assert!(found.iter().map(tenant).eq(expected.map(|it| TenantId::new(&it).unwrap())));
}

/// The bytes of the database and of its log.
fn lengths(dir: &TempDir) -> (u64, u64) {
    let length = |name: &str| fs::metadata(dir.path().join(name)).map_or(0, |file| file.len());
    (length("store.sqlite"), length("store.sqlite-wal"))
}

/// All of the log is in the database.
fn settle(dir: &TempDir) -> u64 {
    connect(dir).query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    lengths(dir).0
}

#[test]
fn a_rebuild_ends_no_more_than_a_tenth_larger_and_needs_no_room_for_three_stores() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..20_000).map(record));
    catch_up(&mut store, &entries);
    let before = settle(&dir);
    for first in [0, 0, 7_000, 19_000] {
        store.rebuild(&mut [feed(&entries[first..])]).unwrap();
        let (database, log) = lengths(&dir);
        assert!(database + log < before * 5 / 2, "{database} and {log} behind {before}");
        let after = settle(&dir);
        assert!(after <= before + before / 10, "{after} behind {before}, from entry {first}");
        let free = |name: &str| {
            connect(&dir).pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap()
        };
        assert!(free("freelist_count") <= free("page_count") / 10);
    }
    assert_eq!(bill(&mut store, "tenant,model,hour"), bill_of_all(&entries));
    let triggers = "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' OR name LIKE 'old%'";
    assert_eq!(connect(&dir).query_row(triggers, (), |row| row.get::<_, i64>(0)).unwrap(), 0);
}

#[test]
fn a_rebuild_gives_back_room_that_an_earlier_one_left_free_while_others_read_and_feed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..4_000).map(record));
    catch_up(&mut store, &entries);
    let before = settle(&dir);
    connect(&dir)
        .execute_batch(
            "CREATE TABLE filling AS SELECT number, members, members AS more FROM requests;
             DROP TABLE filling",
        )
        .unwrap();
    assert!(settle(&dir) > before * 3 / 2);
    let (mut asking, mut feeding) = (Store::open(dir.path()).unwrap(), store);
    let all = bill(&mut asking, "tenant,model,hour");
    let mut rebuilding = Store::open(dir.path()).unwrap();
    rebuilding.rebuild(&mut [feed(&entries)]).unwrap();
    assert!(settle(&dir) <= before + before / 10);
    assert_eq!(bill(&mut asking, "tenant,model,hour"), all);
    let more = journal((0..4_010).map(record));
    assert_eq!(catch_up(&mut feeding, &more), fed(10, 10, 4_010));
    assert_eq!(bill(&mut asking, "tenant,model,hour"), bill_of_all(&more));
}

#[test]
fn a_rebuild_that_ends_half_way_leaves_the_store_that_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..12_000).map(record));
    catch_up(&mut store, &entries);
    // The rebuild is at its half, and what a kill leaves then is copied.
    let killed = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().to_owned(), killed.path().to_owned());
    let half = entries.clone().into_iter().enumerate().map(move |(at, entry)| {
        if at == 10_000 {
            for name in ["store.sqlite", "store.sqlite-wal"] {
                fs::copy(from.join(name), to.join(name)).unwrap();
            }
        }
        Ok(entry)
    });
    let mut half = Some(Box::new(half) as Entries);
    let feed = Feed::new("journal", move |_| Ok(half.take().unwrap()));
    store.rebuild(&mut [feed]).unwrap();
    let mut left = Store::open(killed.path()).unwrap();
    assert_eq!(bill(&mut left, "tenant,model,hour"), bill_of_all(&entries));
    assert_eq!(catch_up(&mut left, &entries), fed(0, 0, 12_000));
}

on_postgres! {
    what_the_journal_no_longer_has_survives_a_rebuild,
    corrections_survive_a_rebuild_as_well,
    a_rebuild_that_fails_leaves_the_store_as_it_was,
}
