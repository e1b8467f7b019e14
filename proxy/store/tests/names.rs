//! Feeds a journal in which every request has names of its own, as a client can choose them, and
//! measures what this process and the store need for it.
#![cfg(test)]

use std::env;
use std::fs;
use std::iter;

use taximeter_ledger::{Dimensions, Entry};
use taximeter_store::samples::{record, segment};
use taximeter_store::{Audited, Feed, Store};

/// Set to how many requests there are to be.
const REQUESTS_VARIABLE: &str = "TAXIMETER_TEST_NAMES";
const REQUESTS: u32 = 100_000;
/// Requests that are made together.
const MADE: u32 = 500;
/// After so many requests all is warm: caches are full, and batches have been as large as they get.
const WARM: u32 = 20_000;

/// What more requests may add to the memory of the process, in bytes.
const GROWTH_MAX: u64 = 6 << 20;
/// What reading all of it adds: requests are read on several threads, and compared with the sums of some
/// hours.
const AUDIT_MAX: u64 = 48 << 20;
/// What a request takes in the store, in bytes: mostly its names, an hour and a session of its own.
const REQUEST_BYTES_MAX: u64 = 1_500;

/// The most memory that this process has taken so far, in bytes.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("its status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")).expect("its peak");
    1024 * peak.parse::<u64>().expect("a number")
}

/// Requests from entry `from` on, up to `last`. Every name that a client or an engine chooses is one
/// that no other request has.
fn feed(last: u32) -> Feed<'static> {
    let made = |first: u32, last: u32| {
        let entries = (first..=last.min(first + MADE - 1)).map(|number| {
            let mut record = record(number);
            record.request_model = Some(format!("asked/model-{number}"));
            record.response_model = Some(format!("answered/model-{number}"));
            record.service_tier = Some(format!("tier-{number}"));
            record.finish_reasons = vec![format!("reason-{number}")];
            record.dimensions = Dimensions {
                session: Some(format!("5f3f0c3a-4c1e-4d55-9a6b-{number:012}")),
                agent: Some(format!("agent-{number}")),
                ..Dimensions::default()
            }
            .if_any();
            Entry::Post(Box::new(record))
        });
        segment(first.into(), entries)
    };
    Feed::new("journal", move |from| {
        let first = u32::try_from(from.max(1)).expect("few");
        let firsts = iter::successors(Some(first), |first| Some(first + MADE));
        let entries = firsts.take_while(move |first| *first <= last);
        Ok(Box::new(entries.flat_map(move |first| made(first, last)).map(Ok)))
    })
}

#[test]
fn names_that_no_other_request_has_take_room_in_the_store_and_no_memory() {
    let requests = env::var(REQUESTS_VARIABLE).ok().and_then(|it| it.parse().ok());
    let requests = requests.unwrap_or(REQUESTS);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut store = Store::open(folder.path()).expect("a store");
    store.catch_up(&mut [feed(WARM)]).expect("a journal");
    let warm = peak();
    store.catch_up(&mut [feed(requests)]).expect("a journal");
    let fed = peak();

    let (mut posts, mut sums, mut sessions) = (0, 0, 0);
    let visit = |audited: Audited<'_, ()>| match audited {
        Audited::Posts(count, ()) => posts += count,
        Audited::Sum(sum) => {
            assert_eq!(sum.kept, sum.due);
            sums += 1;
        }
        Audited::Session(sum) => {
            assert!(sum.is_right(), "{sum:?}");
            sessions += 1;
        }
        other => panic!("{other:?}"),
    };
    store.audit(|(), _| {}, visit).expect("a store");
    let audited = peak();
    assert_eq!([posts, sums, sessions], [requests as usize; 3]);

    drop(store);
    let length = fs::metadata(folder.path().join("store.sqlite")).expect("a store").len();
    let each = length / u64::from(requests);
    println!(
        "{requests} requests: {each} bytes each, peaks {} {} {} KiB",
        warm >> 10,
        fed >> 10,
        audited >> 10
    );
    assert!(each <= REQUEST_BYTES_MAX, "{each} bytes a request");
    assert!(fed < warm + GROWTH_MAX, "{warm} bytes when warm, {fed} when fed");
    assert!(audited < warm + AUDIT_MAX, "{warm} bytes when warm, {audited} when audited");
}
