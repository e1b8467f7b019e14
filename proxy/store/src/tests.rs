//! Tests of the store.

/// Each of these tests of a file once more, with its stores on PostgreSQL.
macro_rules! on_postgres {
    ($($test:ident,)+) => {
        mod on_postgres {
            $(#[test]
            fn $test() {
                crate::tests::postgres::on_postgres(super::$test);
            })+
        }
    };
}

mod audit;
mod behind;
mod clock;
mod closing;
mod convert;
mod hours;
mod models;
mod pages;
mod postgres;
mod reading;
mod rebuild;
mod refusals;
mod removal;
mod retiring;
mod room;
mod sealing;
mod statements;

use std::fs;

use proptest::prelude::*;
use taximeter_billing::{Bill, BilledRequest, Biller, Hour, HourKey, Period, Zone};
use taximeter_database::database::Rebuilt;
use taximeter_ledger::{Entry, Fault, FramedEntry, Record};
use tempfile::TempDir;

use super::rejected::set_aside;
use super::samples::{feed, feed_as, journal, record, segment, void};
use super::*;

fn open() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = postgres::open_if_asked().unwrap_or_else(|| Store::open(dir.path()).unwrap());
    (dir, store)
}

fn connect(dir: &TempDir) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.path().join("store.sqlite")).unwrap()
}

/// What it did; how much of it is in files of days is told by who asks.
fn catch_up(store: &mut Store, entries: &[FramedEntry]) -> Fed {
    caught_up(store, &mut [feed(entries)])
}

fn caught_up(store: &mut Store, feeds: &mut [Feed<'_>]) -> Fed {
    Fed { sealed: None, ..store.catch_up(feeds).unwrap() }
}

fn fed(entries: u64, records: u64, stored: u64) -> Fed {
    Fed {
        entries,
        records,
        stored,
        corrections: 0,
        stored_corrections: 0,
        sealed: None,
        free_bytes: 0,
    }
}

fn records(store: &mut Store, filter: &Filter, limit: Option<u32>) -> Vec<Record> {
    let mut found = Vec::new();
    let take = |record: &Record| {
        found.push(record.clone());
        Ok::<_, StoreError>(())
    };
    let newest = store.newest().unwrap();
    store.records(filter, newest, limit, take).unwrap();
    found
}

fn request_ids(store: &mut Store, filter: &Filter, limit: Option<u32>) -> Vec<String> {
    records(store, filter, limit).into_iter().map(|record| record.request_id).collect()
}

fn november() -> Period {
    Period::month("2026-11").unwrap()
}

fn bill(store: &mut Store, by: &str) -> Bill {
    let mut biller = Biller::new(november(), Zone::UTC, by.parse().unwrap());
    let add = |key: &HourKey, hour: &Hour| {
        biller.add_hour(key, hour).unwrap();
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, add).unwrap();
    biller.finish()
}

#[test]
fn a_record_comes_back_whole_with_its_sequence_number() {
    let (_dir, mut store) = open();
    let mut bare = record(2);
    (bare.cost, bare.key_id, bare.request_model, bare.response_model) = (None, None, None, None);
    bare.labels.clear();
    bare.usage = Default::default();
    let entries = segment(
        7,
        [void(1), Entry::Post(Box::new(record(1))), Entry::Post(Box::new(bare.clone()))],
    );
    assert_eq!(catch_up(&mut store, &entries), fed(3, 2, 9));
    let expected = [Record { seq: 8, ..record(1) }, Record { seq: 9, ..bare }];
    assert_eq!(records(&mut store, &Filter::default(), None), expected);
}

#[test]
fn a_bill_from_the_store_equals_one_from_the_records() {
    let (_dir, mut store) = open();
    let mut odd = record(3);
    odd.cost = None;
    odd.usage = Default::default();
    odd.usage.output_tokens = Some(u64::MAX - 20);
    odd.labels.clear();
    odd.response_model = None;
    let all = [record(1), record(2), odd];
    for by in ["tenant,model", "label:team,provider,upstream,operation,route,key,hour"] {
        catch_up(&mut store, &journal(all.clone()));
        let mut biller = Biller::new(november(), Zone::UTC, by.parse().unwrap());
        for record in &all {
            let row = BilledRequest::from(record);
            biller.add_hour(&HourKey::of(&row), &Hour::of(&row)).unwrap();
        }
        assert_eq!(bill(&mut store, by), biller.finish());
    }
}

#[test]
fn what_is_fed_again_counts_once() {
    let (_dir, mut store) = open();
    let entries = journal([record(1), record(2)]);
    assert_eq!(catch_up(&mut store, &entries).records, 2);
    assert_eq!(catch_up(&mut store, &entries).records, 0);
    let reposted = segment(3, [Entry::Post(Box::new(record(1)))]);
    assert_eq!(catch_up(&mut store, &reposted).records, 0);
    assert_eq!(bill(&mut store, "tenant").total.requests, 2);
}

#[test]
fn of_requests_that_are_added_together_those_that_are_here_already_are_left_out() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &segment(1, [5, 6, 30].map(|it| Entry::Post(Box::new(record(it))))));
    // Another journal: its first entry is another one.
    let entries = journal((1..=50).map(record));
    assert_eq!(catch_up(&mut store, &entries), fed(50, 47, 50));
    assert_eq!(bill(&mut store, "tenant").total.requests, 50);
    assert_eq!(records(&mut store, &Filter::default(), None).len(), 50);
}

#[test]
fn catching_up_reads_only_what_is_new() {
    let (_dir, mut store) = open();
    let posts = [record(1), record(2), record(4)].map(|record| Entry::Post(Box::new(record)));
    let [one, two, four] = posts;
    let entries = segment(1, [one, two, void(3), four]);
    assert_eq!(catch_up(&mut store, &entries[..2]).entries, 2);
    assert_eq!(catch_up(&mut store, &entries[..2]), fed(0, 0, 2));
    assert_eq!(catch_up(&mut store, &entries), fed(2, 1, 4));
}

#[test]
fn an_open_reader_goes_on_where_it_stopped() {
    let (_dir, mut store) = open();
    let (write, written) = std::sync::mpsc::channel();
    let mut opened = Some(Box::new(std::iter::from_fn(move || written.try_recv().ok().map(Ok))));
    let read = |_from| Ok(opened.take().expect("the journal is opened only once") as Entries);
    let mut feeds = [Feed::new("journal", read)];
    for (stored, entry) in (1..).zip(journal([record(1), record(2)])) {
        write.send(entry).unwrap();
        assert_eq!(caught_up(&mut store, &mut feeds), fed(1, 1, stored));
    }
    assert_eq!(caught_up(&mut store, &mut feeds), fed(0, 0, 2));
}

#[test]
fn a_journal_that_lost_its_tail_and_grew_again_is_fed_whole() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal([record(1), record(2), record(3)]));
    let shorter = journal([record(1), record(9)]);
    assert_eq!(catch_up(&mut store, &shorter).records, 1);
    let regrown = journal([record(1), record(9), record(10), record(11)]);
    assert_eq!(catch_up(&mut store, &regrown).records, 2);
    let ids = request_ids(&mut store, &Filter::default(), None);
    assert_eq!(ids, ["client-1", "client-2", "client-3", "client-9", "client-10", "client-11"]);
}

#[test]
fn a_journal_without_its_old_segments_goes_on_where_the_store_stopped() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal([record(1), record(2)]));
    let all = journal([record(1), record(2), record(3)]);
    assert_eq!(catch_up(&mut store, &all[2..]).records, 1);
    assert_eq!(bill(&mut store, "tenant").total.requests, 3);
}

#[test]
fn what_comes_before_a_fault_of_the_journal_is_kept() {
    let (_dir, mut store) = open();
    let read = |_from| {
        let entries = journal([record(1), record(2)]).into_iter().map(Ok);
        Ok(Box::new(entries.chain([Err("torn at byte 812".into())])) as Entries)
    };
    let error = store.catch_up(&mut [Feed::new("journal", read)]).unwrap_err();
    assert_eq!(error.to_string(), "cannot read the journal: torn at byte 812");
    assert_eq!(bill(&mut store, "tenant").total.requests, 2);
}

#[test]
fn a_post_that_cannot_be_read_is_a_fault_of_the_journal() {
    let (_dir, mut store) = open();
    let mut entries = journal([record(1), record(2), record(3)]);
    entries[1].payload = b"{\"id\":7}".as_slice().into();
    let error = store.catch_up(&mut [feed(&entries)]).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the journal: entry 2 at byte "), "{error}");
    assert_eq!(request_ids(&mut store, &Filter::default(), None), ["client-1"]);
    let repaired = journal([record(1), record(2), record(3)]);
    assert_eq!(catch_up(&mut store, &repaired), fed(2, 2, 3));
}

#[test]
fn a_post_that_cannot_be_read_is_set_aside_and_the_others_go_on() {
    let (dir, mut store) = open();
    let mut entries = journal([record(1), record(2), record(3)]);
    entries[1].payload = entries[1].payload.to_vec()[..40].into();
    for _ in 0..2 {
        let told = std::sync::Mutex::new(Vec::new());
        let mut feeds = [feed(&entries).setting_aside(|name, framed, fault| {
            told.lock().unwrap().push(set_aside(dir.path(), name, framed, fault)?);
            Ok(())
        })];
        assert_eq!(store.catch_up(&mut feeds).unwrap().stored, 3);
        drop(feeds);
        // Who feeds it again keeps it again, in the same place.
        for path in told.into_inner().unwrap() {
            let kept: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            assert_eq!((&kept["seq"], &kept["kind"]), (&2.into(), &"post".into()));
            let payload = entries[1].payload.to_vec().into_iter().map(|byte| format!("{byte:02x}"));
            assert_eq!(kept["payload_hex"].as_str(), Some(&*payload.collect::<String>()));
            assert!(kept["reason"].as_str().unwrap().contains("entry 2"), "{kept}");
        }
        store.rebuild(&mut [feed(&entries).setting_aside(|_, _, _| Ok(()))]).unwrap();
    }
    assert_eq!(fs::read_dir(dir.path().join("rejected")).unwrap().count(), 1);
    let ids = request_ids(&mut store, &Filter::default(), None);
    assert_eq!(ids, ["client-1", "client-3"]);
}

#[test]
fn an_entry_that_cannot_be_kept_waits_for_the_next_feeding() {
    let (_dir, mut store) = open();
    let mut entries = journal([record(1), record(2), record(3)]);
    entries[1].payload = [0xff].as_slice().into();
    let full = |_: &str, _: &FramedEntry, _: &Fault| Err(std::io::ErrorKind::StorageFull.into());
    let fault = store.catch_up(&mut [feed(&entries).setting_aside(full)]).unwrap_err();
    assert!(matches!(fault, StoreError::Journal(_)), "{fault}");
    assert_eq!(request_ids(&mut store, &Filter::default(), None), ["client-1"]);
    let kept = |_: &str, _: &FramedEntry, _: &Fault| Ok(());
    assert_eq!(caught_up(&mut store, &mut [feed(&entries).setting_aside(kept)]), fed(2, 1, 3));
}

#[test]
fn two_processes_may_feed_and_ask_at_the_same_time() {
    let (dir, mut serving) = open();
    let mut asking = Store::open(dir.path()).unwrap();
    let entries = journal([record(1), record(2)]);
    catch_up(&mut serving, &entries[..1]);
    assert_eq!(catch_up(&mut asking, &entries[..1]), fed(0, 0, 1));
    assert_eq!(catch_up(&mut asking, &entries).records, 1);
    assert_eq!(catch_up(&mut serving, &entries), fed(0, 0, 2));
    assert_eq!(bill(&mut serving, "tenant"), bill(&mut asking, "tenant"));
}

#[test]
fn records_are_filtered_by_tenant_and_admission() {
    let (_dir, mut store) = open();
    let mut other = record(2);
    other.tenant = taximeter_ledger::TenantId("beta".into());
    catch_up(&mut store, &journal([record(3), other, record(1)]));
    let mut only = |filter: Filter| request_ids(&mut store, &filter, None);
    assert_eq!(only(Filter::default()), ["client-1", "client-2", "client-3"]);
    let acme = Filter { tenant: Some("acme".to_owned()), ..Filter::default() };
    assert_eq!(only(acme.clone()), ["client-1", "client-3"]);
    let from = Some(record(2).started_at);
    assert_eq!(only(Filter { from, ..Filter::default() }), ["client-2", "client-3"]);
    assert_eq!(only(Filter { to: from, ..Filter::default() }), ["client-1"]);
    assert_eq!(request_ids(&mut store, &acme, Some(1)), ["client-3"]);
}

#[test]
fn a_limit_keeps_the_latest_in_order() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal((1..=1200).map(record)));
    let mut ids = |limit| request_ids(&mut store, &Filter::default(), limit);
    assert_eq!(ids(Some(0)), Vec::<String>::new());
    assert_eq!(ids(Some(2)), ["client-1199", "client-1200"]);
    assert_eq!(ids(Some(5000)).len(), 1200);
    assert_eq!(ids(None), (1..=1200).map(|number| format!("client-{number}")).collect::<Vec<_>>());
}

#[test]
fn what_arrives_later_is_found_by_number() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal([record(5)]));
    let mut after = store.newest().unwrap();
    catch_up(&mut store, &journal([record(5), record(2), record(7)]));
    let filter = Filter { to: Some(record(7).started_at), ..Filter::default() };
    let mut found = Vec::new();
    let take = |record: &Record| {
        found.push(record.request_id.clone());
        Ok::<_, StoreError>(())
    };
    store.records_after(&filter, &mut after, take).unwrap();
    assert_eq!((found, after), (vec!["client-2".to_owned()], store.newest().unwrap()));
    let nothing = |_: &Record| Err(StoreError::NoDataDir("".into()));
    store.records_after(&filter, &mut after, nothing).unwrap();
    assert_eq!(after, store.newest().unwrap());
}

#[test]
fn a_look_that_fails_half_way_goes_on_behind_what_it_has_shown() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal((1..=5).map(record)));
    let (mut found, mut after) = (Vec::new(), 0);
    let mut look = |store: &mut Store, most: usize| {
        let take = |record: &Record| {
            if found.len() == most {
                return Err(StoreError::NoDataDir("".into()));
            }
            found.push(record.request_id.clone());
            Ok(())
        };
        store.records_after(&Filter::default(), &mut after, take)
    };
    assert!(look(&mut store, 2).is_err());
    look(&mut store, 9).unwrap();
    assert_eq!(found, (1..=5).map(|number| format!("client-{number}")).collect::<Vec<_>>());
}

#[test]
fn faults_say_where_and_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Store::open(&dir.path().join("nowhere")).unwrap_err();
    assert!(matches!(missing, StoreError::NoDataDir(_)));
    assert!(missing.to_string().contains("--data-dir"), "{missing}");

    std::fs::write(
        dir.path().join("store.sqlite"),
        "this was never a database, only some text".repeat(99),
    )
    .unwrap();
    let damaged = Store::open(dir.path()).unwrap_err();
    assert!(matches!(damaged, StoreError::Damaged { .. }), "{damaged}");
    assert!(damaged.to_string().contains("move it away"), "{damaged}");
}

#[test]
fn the_store_of_another_version_is_left_alone() {
    let refused = |version: u32| {
        let (dir, _) = open();
        connect(&dir).pragma_update(None, "user_version", version).unwrap();
        let error = Store::open(dir.path()).unwrap_err();
        let kept: u32 =
            connect(&dir).pragma_query_value(None, "user_version", |it| it.get(0)).unwrap();
        assert_eq!(kept, version);
        error
    };
    for version in [1, 7] {
        let StoreError::Format { found, known: 6, .. } = refused(version) else {
            panic!("{version}")
        };
        assert_eq!(found, version);
    }
    for version in [2, 3] {
        let error = refused(version).to_string();
        assert!(error.contains("run `taximeter convert --data-dir "), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn feeding_in_any_pieces_and_any_number_of_times_makes_the_same_bill(
        numbers in prop::collection::vec(0_u32..40, 1..40),
        cuts in prop::collection::vec(0_usize..40, 0..4),
    ) {
        let entries = journal(numbers.iter().copied().map(record));
        let (_dir, mut whole) = open();
        catch_up(&mut whole, &entries);
        let (_dir, mut pieces) = open();
        for cut in cuts {
            catch_up(&mut pieces, &entries[..cut.min(entries.len())]);
        }
        catch_up(&mut pieces, &entries);
        prop_assert_eq!(bill(&mut whole, "tenant,model"), bill(&mut pieces, "tenant,model"));
        let mut distinct = numbers;
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(bill(&mut whole, "tenant").total.requests, distinct.len() as u64);
        prop_assert_eq!(
            records(&mut whole, &Filter::default(), None).len(),
            records(&mut pieces, &Filter::default(), None).len()
        );
    }
}

on_postgres! {
    a_record_comes_back_whole_with_its_sequence_number,
    a_bill_from_the_store_equals_one_from_the_records,
    what_is_fed_again_counts_once,
    catching_up_reads_only_what_is_new,
    an_open_reader_goes_on_where_it_stopped,
    a_journal_that_lost_its_tail_and_grew_again_is_fed_whole,
    a_journal_without_its_old_segments_goes_on_where_the_store_stopped,
    what_comes_before_a_fault_of_the_journal_is_kept,
    a_post_that_cannot_be_read_is_a_fault_of_the_journal,
    records_are_filtered_by_tenant_and_admission,
    a_limit_keeps_the_latest_in_order,
    what_arrives_later_is_found_by_number,
    feeding_in_any_pieces_and_any_number_of_times_makes_the_same_bill,
}
