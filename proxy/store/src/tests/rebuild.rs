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
    assert_eq!(rebuilt, Rebuilt { kept_records: 700, kept_corrections: 0 });
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
    assert_eq!(rebuilt, Rebuilt { kept_records: 0, kept_corrections: 1 });
    assert_eq!(bill(&mut store, "tenant,model,hour"), before);
    let rebuilt = store.rebuild(&mut [changed(&changes)]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 10, kept_corrections: 0 });
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

on_postgres! {
    what_the_journal_no_longer_has_survives_a_rebuild,
    corrections_survive_a_rebuild_as_well,
    a_rebuild_that_fails_leaves_the_store_as_it_was,
}
