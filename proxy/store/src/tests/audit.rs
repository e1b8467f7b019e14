//! Tests with sums that are not those of the requests and corrections.

use super::hours::{changed, corrections, entries, ride};
use super::*;

/// How many sums are right, and which are not: what of, what is kept and what is due.
fn audit(store: &mut Store) -> (u64, Vec<String>) {
    let (mut right, mut wrong) = (0, Vec::new());
    let visit = |audited: Audited<'_, ()>| {
        if let Audited::Sum(Sum { key, kept, due }) = audited {
            if kept == due {
                right += 1;
            } else {
                wrong.push(format!("{key:?} has {kept:?}, and should have {due:?}"));
            }
        }
    };
    store.audit(|(), _| {}, visit).unwrap();
    (right, wrong)
}

#[test]
fn every_sum_is_of_its_requests_and_corrections_in_whatever_order_they_came() {
    let (_dir, mut store) = open();
    let rides: Vec<_> = (0..200).map(ride).collect();
    let changes = entries(&corrections(&rides));
    let posts = journal(rides);
    store.catch_up(&mut [feed(&posts[..50]), changed(&changes)]).unwrap();
    store.catch_up(&mut [feed(&posts), changed(&changes)]).unwrap();
    let (right, wrong) = audit(&mut store);
    assert_eq!(wrong, [""; 0]);
    let mut sums = 0;
    let count = |_: &HourKey, _: &Hour| {
        sums += 1;
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, count).unwrap();
    assert_eq!(right, sums);
}

#[test]
fn all_that_is_there_is_shown_once() {
    let (_dir, mut store) = open();
    let rides: Vec<_> = (0..1100).map(ride).collect();
    let changes = entries(&corrections(&rides));
    let posts = journal(rides);
    store.catch_up(&mut [feed(&posts), changed(&changes)]).unwrap();
    let (mut seqs, mut corrections) = (Vec::new(), 0);
    let gather = |seqs: &mut Vec<u64>, post: &Post<'_>| seqs.push(post.place.seq);
    let visit = |audited: Audited<'_, Vec<u64>>| match audited {
        Audited::Posts(count, page) => {
            assert_eq!(page.len(), count);
            seqs.extend(page);
        }
        Audited::Unreadable(place, fault) => panic!("{place:?}: {fault}"),
        Audited::Correction(_) | Audited::GoneCorrection(_) => corrections += 1,
        Audited::Sum(_) => {}
        other => panic!("{other:?}"),
    };
    store.audit(gather, visit).unwrap();
    assert_eq!(seqs, Vec::from_iter(1..=1100));
    assert_eq!(corrections, changes.len());
}

#[test]
fn sums_that_were_meddled_with_are_found() {
    let (dir, mut store) = open();
    catch_up(&mut store, &journal((0..100).map(ride)));
    let (right, _) = audit(&mut store);
    let last = "hour = (SELECT max(hour) FROM hours)";
    for (meddle, wrong) in [
        (format!("UPDATE hours SET requests = requests + 1 WHERE {last}"), 1..),
        (format!("UPDATE hours SET cost = '0' WHERE cost IS NOT NULL AND {last}"), 1..),
        ("UPDATE hours SET quantities = '{}' WHERE quantities <> '{}'".to_owned(), 2..),
        (format!("DELETE FROM hours WHERE {last}"), 1..),
        ("UPDATE hours SET hour = hour - 3600000000 * 24".to_owned(), 2..),
    ] {
        let connection = connect(&dir);
        connection.execute_batch("BEGIN").unwrap();
        connection.execute_batch(&meddle).unwrap();
        connection.execute_batch("COMMIT").unwrap();
        let (still, found) = audit(&mut store);
        assert!(wrong.contains(&found.len()), "{meddle}: {found:?}");
        assert!(still < right, "{meddle}");
        store.rebuild(&mut []).unwrap();
        assert_eq!(audit(&mut store), (right, Vec::new()), "{meddle}");
    }
}

#[test]
fn a_store_without_requests_has_no_sums() {
    let (_dir, mut store) = open();
    assert_eq!(audit(&mut store), (0, Vec::new()));
}

on_postgres! {
    every_sum_is_of_its_requests_and_corrections_in_whatever_order_they_came,
    all_that_is_there_is_shown_once,
    a_store_without_requests_has_no_sums,
}
