//! What the store has of entries that a journal no longer has.

use taximeter_journal::{CORRECTIONS, REQUESTS};
use taximeter_ledger::{Kind, LedgerId};

use super::hours::{changed, corrections, ride};
use super::*;
use crate::{Behind, EntryPage, Stored, StoredEntry};

/// Requests with entries in between that leave nothing, and what completes some of them.
fn entries() -> (Vec<FramedEntry>, Vec<FramedEntry>) {
    let rides: Vec<_> = (0..150).map(ride).collect();
    let all = corrections(&rides);
    let (completions, later): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|correction| correction.completion.is_some());
    let mut requests = Vec::new();
    for (number, ride) in (0..).zip(rides) {
        requests.extend([void(number), Entry::Post(Box::new(ride.clone()))]);
        let completion = completions.iter().find(|it| it.corrects == ride.id);
        requests.extend(completion.map(|it| Entry::Correction(Box::new(it.clone()))));
    }
    let later = later.into_iter().map(|correction| Entry::Correction(Box::new(correction)));
    (segment(1, requests), segment(1, later))
}

fn expected(framed: &[FramedEntry]) -> Vec<StoredEntry> {
    let stored = |framed: &FramedEntry| {
        let what = match framed.kind {
            Kind::Post => Stored::Request(framed.payload.to_vec()),
            Kind::Correction => Stored::Correction(framed.payload.to_vec()),
            _ => return None,
        };
        Some(StoredEntry { seq: framed.seq, what })
    };
    framed.iter().filter_map(stored).collect()
}

/// All that the store has between two entries, in pages.
fn read(
    store: &mut Store,
    journal: &str,
    (after, until): (u64, u64),
    page: usize,
) -> Vec<StoredEntry> {
    let ledger = LedgerId::default();
    let (mut all, mut at) = (Vec::new(), after);
    while at < until {
        let asked = Behind { journal, ledger, after: at, until };
        let EntryPage { entries, through } = store.behind(&asked, page).unwrap();
        assert!(through > at && through <= until && entries.len() <= page);
        assert!(entries.iter().all(|entry| entry.seq > at && entry.seq <= through));
        all.extend(entries);
        at = through;
    }
    all
}

/// All pages together are what the journals have. `change` may move requests in between.
pub(super) fn pages_are_as_the_journals(
    store: &mut Store,
    mut change: impl FnMut(&mut Store, usize),
) {
    let (requests, later) = entries();
    catch_up(store, &requests);
    store.catch_up(&mut [feed(&[]), changed(&later)]).unwrap();
    let (last, last_later) = (requests.last().unwrap().seq, later.last().unwrap().seq);
    for (step, (range, page)) in
        [((0, last), 1000), ((0, last), 7), ((9, 200), 50), ((last - 1, last), 1)]
            .into_iter()
            .enumerate()
    {
        change(store, step);
        let within = |entry: &StoredEntry| range.0 < entry.seq && entry.seq <= range.1;
        let expected: Vec<_> = expected(&requests).into_iter().filter(within).collect();
        assert_eq!(read(store, REQUESTS, range, page), expected, "{range:?} {page}");
        let mut lacked = expected.iter().filter(|it| matches!(it.what, Stored::Request(_))).count();
        if range.1 < last {
            lacked = self::expected(&requests)
                .iter()
                .filter(|it| it.seq > range.0 && matches!(it.what, Stored::Request(_)))
                .count();
        }
        let found = store.lacked(LedgerId::default(), range.0).unwrap();
        assert_eq!(found.requests, lacked as u64);
    }
    let expected = expected(&later);
    assert_eq!(read(store, CORRECTIONS, (0, last_later), 1000), expected);
    assert_eq!(read(store, CORRECTIONS, (0, last_later), 3), expected);
    let other = LedgerId(uuid::Uuid::from_u128(5));
    let asked = Behind { journal: REQUESTS, ledger: other, after: 0, until: last };
    let of_other = store.behind(&asked, 10).unwrap();
    assert!(of_other.entries.iter().all(|it| matches!(it.what, Stored::Correction(_))));
    let ahead = Behind { until: last + 1, ..asked };
    assert!(matches!(store.behind(&ahead, 10), Err(StoreError::Unavailable { .. })));
}

#[test]
fn what_the_journal_no_longer_has_comes_from_tables_and_files_in_the_order_of_entries() {
    let (dir, mut store) = open();
    pages_are_as_the_journals(&mut store, |_, step| {
        // Nothing is sealed, then a part, then all.
        sealing::seal_through(dir.path(), [0, 0, 1, 40][step]);
    });
}

#[test]
fn a_store_that_was_made_anew_lacks_what_was_there_before_it() {
    let (_dir, mut store) = open();
    let (ledger, entries) = (LedgerId::default(), journal((1..=9).map(record)));
    let gone = |store: &mut Store, after| store.gone_behind(ledger, after, 9).unwrap();
    catch_up(&mut store, &entries);
    assert_eq!((gone(&mut store, (0, false)), gone(&mut store, (3, true))), (None, None));
    let (_dir, mut store) = open();
    catch_up(&mut store, &entries[5..]);
    assert_eq!(gone(&mut store, (3, true)), Some(5));
    assert_eq!(gone(&mut store, (3, false)), None, "nobody knows whether there was anything");
    assert_eq!(gone(&mut store, (6, true)), None);
}
