//! Tests of pages of records, in both orders.

use taximeter_ledger::RequestId;
use uuid::{Builder, Uuid};

use super::hours::{changed, correction, entries as correction_entries};
use super::*;

const ORDERS: [Order; 2] = [Order::OldestFirst, Order::NewestFirst];

/// All pages, each the request ids of its records.
fn pages(
    store: &mut Store,
    filter: &Filter,
    order: Order,
    (records_max, looked_at_max): (u32, u32),
    wanted: fn(&Record) -> bool,
) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    let limits = Pages { records_max, looked_at_max };
    loop {
        let page = store.page(filter, (order, cursor), limits, wanted, || false).unwrap();
        pages.push(page.records.into_iter().map(|record| record.request_id).collect());
        let Some(next) = page.next else { return pages };
        assert_eq!(next.to_string().parse::<Cursor>().unwrap().to_string(), next.to_string());
        cursor = Some(next);
        assert!(pages.len() < 2000, "the walk goes in a circle");
    }
}

fn in_order(order: Order, numbers: impl DoubleEndedIterator<Item = u32>) -> Vec<String> {
    let ids = numbers.map(|number| format!("client-{number}"));
    if order == Order::OldestFirst { ids.collect() } else { ids.rev().collect() }
}

#[test]
fn pages_have_every_record_once_in_both_orders() {
    let (_dir, mut store) = open();
    // The first ten were admitted in the same microsecond: their ids decide.
    let admitted_together = |number: u32| Record {
        started_at: if number <= 10 { record(1).started_at } else { record(number).started_at },
        ..record(number)
    };
    catch_up(&mut store, &journal((1..=1200).map(admitted_together)));
    for order in ORDERS {
        for records_max in [3, 511, 512, 513, 600, 1199, 1200, 1201] {
            let all = pages(&mut store, &Filter::default(), order, (records_max, 5000), |_| true);
            assert_eq!(all.concat(), in_order(order, 1..=1200), "{order:?} {records_max}");
            let (last, full) = all.split_last().unwrap();
            assert!(full.iter().all(|page| page.len() == records_max as usize), "{records_max}");
            assert!(!last.is_empty());
        }
        let between = Filter {
            tenant: None,
            from: Some(record(100).started_at),
            to: Some(record(103).started_at),
        };
        let found = pages(&mut store, &between, order, (2, 5000), |_| true);
        assert_eq!(found.concat(), in_order(order, 100..=102), "{order:?}");
        let nobody = Filter { tenant: Some("nobody".to_owned()), ..Filter::default() };
        assert_eq!(pages(&mut store, &nobody, order, (2, 5000), |_| true), [Vec::<String>::new()]);
    }
}

#[test]
fn what_arrives_behind_the_first_page_is_on_none() {
    for order in ORDERS {
        let (_dir, mut store) = open();
        catch_up(&mut store, &journal([2, 4, 6].map(record)));
        let limits = Pages { records_max: 1, looked_at_max: 100 };
        let page = |store: &mut Store, cursor| {
            let page = store.page(&Filter::default(), (order, cursor), limits, |_| true, || false);
            let page = page.unwrap();
            let ids: Vec<_> = page.records.into_iter().map(|record| record.request_id).collect();
            (ids, page.next)
        };
        let (mut seen, mut cursor) = page(&mut store, None);
        catch_up(&mut store, &journal([2, 4, 6, 1, 3, 5, 7].map(record)));
        while let Some(next) = cursor {
            let (ids, next) = page(&mut store, Some(next));
            seen.extend(ids);
            cursor = next;
        }
        assert_eq!(seen, in_order(order, [2, 4, 6].into_iter()));
    }
}

#[test]
fn a_page_ends_where_looking_does_and_the_next_goes_on() {
    let (_dir, mut store) = open();
    catch_up(&mut store, &journal((1..=1200).map(record)));
    for order in ORDERS {
        let rare = |record: &Record| record.request_id == "client-600";
        let found = pages(&mut store, &Filter::default(), order, (10, 100), rare);
        assert_eq!(found.concat(), ["client-600"], "{order:?}");
        assert!(found.len() > 2, "{order:?}: looking ends between records that are not wanted");
        assert!(found.iter().any(Vec::is_empty));
    }
}

#[test]
fn a_record_is_found_by_its_id_with_its_corrections() {
    let (_dir, mut store) = open();
    let made = |number: u8| {
        let record = record(number.into());
        let millis = record.started_at.as_millisecond().cast_unsigned();
        let id = RequestId(Builder::from_unix_timestamp_millis(millis, &[number; 10]).into_uuid());
        Record { id, ..record }
    };
    let (one, two) = (made(1), made(2));
    let corrections =
        [correction(1, &one, None, 5), correction(2, &two, None, 5), correction(3, &one, None, 6)];
    catch_up(&mut store, &journal([one.clone(), two]));
    store.catch_up(&mut [changed(&correction_entries(&corrections))]).unwrap();
    let [first, _, second] = corrections;
    let (found, corrections) = store.record(one.id).unwrap().unwrap();
    assert_eq!((found.request_id.as_str(), corrections), ("client-1", vec![first, second]));
    assert_eq!(store.record(made(3).id).unwrap(), None);
    assert_eq!(store.record(RequestId(Uuid::from_u128(7))).unwrap(), None, "no id of ours");
}

on_postgres! {
    pages_have_every_record_once_in_both_orders,
    what_arrives_behind_the_first_page_is_on_none,
    a_page_ends_where_looking_does_and_the_next_goes_on,
    a_record_is_found_by_its_id_with_its_corrections,
}
