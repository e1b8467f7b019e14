//! What is asked of a time without details.

use std::collections::BTreeMap;

use taximeter_ledger::Checkpoint;

use super::*;

/// A store of which the first day is gone, and the begin of the second one.
fn without_a_day(dir: &TempDir) -> (Store, Timestamp) {
    let history = History::in_order();
    let mut store = Store::open(dir.path()).unwrap();
    history.feed_all(&mut store);
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 9);
    remove(&mut sealer).unwrap();
    let from = store.details_from().unwrap().unwrap();
    (store, from)
}

fn assert_gone<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(matches!(error, StoreError::DetailsGone { .. }), "{error}");
    assert!(error.to_string().contains("before 2026-11-02 (UTC) are gone"), "{error}");
}

#[test]
fn single_requests_of_a_gone_day_are_refused_and_others_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, from) = without_a_day(&dir);
    let begin = record(0).started_at;
    let nothing = |_: &Record| Ok::<_, StoreError>(());
    let of = |from, to| Filter { tenant: None, from, to };
    for filter in [of(Some(begin), None), of(Some(begin), Some(from))] {
        assert_gone(store.records(&filter, i64::MAX, None, nothing));
        assert_gone(store.pages(&filter, i64::MAX, Ok::<_, StoreError>));
        let pages = Pages { records_max: 9, looked_at_max: 9 };
        for order in [Order::NewestFirst, Order::OldestFirst] {
            assert_gone(store.page(&filter, (order, None), pages, |_| true, || false));
        }
    }
    let period = Period::new(begin, from).unwrap();
    assert_gone(store.corrections(period, None, |_, _| Ok::<_, StoreError>(())));
    assert_gone(store.runs(period, |_, _| {}));
    assert_gone(store.record(ride(3).id));
    // Half an hour is made of single requests.
    let cut = Period::new(begin + SignedDuration::from_mins(30), from).unwrap();
    assert_gone(store.hours(cut, None, |_, _| Ok::<_, StoreError>(())));
    let behind = Period::new(begin, from + SignedDuration::from_mins(30)).unwrap();
    store.hours(behind, None, |_, _| Ok::<_, StoreError>(())).unwrap();
    for filter in [of(None, None), of(Some(from), None)] {
        let shown = records(&mut store, &filter, None);
        assert!(shown.len() > 70 && shown.iter().all(|it| it.started_at >= from));
    }
}

#[test]
fn a_file_that_went_while_it_was_asked_for_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (_store, from) = without_a_day(&dir);
    let sqlite = Sqlite::open_to_read(dir.path()).unwrap().unwrap();
    let fault = |name: &str| {
        let file = dir.path().join("days").join(name);
        sqlite.gone_meanwhile(StoreError::DayFile { file, source: "it is not there".into() })
    };
    let names = connect(&dir).query_row("SELECT files FROM gone_days", (), |row| {
        let files: String = row.get(0)?;
        Ok(serde_json::from_str::<Vec<serde_json::Value>>(&files).unwrap())
    });
    let name = names.unwrap()[0]["name"].as_str().unwrap().to_owned();
    let gone = fault(&name);
    assert!(matches!(gone, StoreError::DetailsGone { from: at } if at == from), "{gone}");
    assert!(matches!(fault("2026-11-04.parquet"), StoreError::DayFile { .. }));
    assert!(matches!(fault("2027-11-04.parquet"), StoreError::DayFile { .. }));
}

#[test]
fn a_listing_of_one_moment_that_meets_a_file_that_went_meanwhile_says_from_when_on_details_are_there()
 {
    // Who asks it may write the store, may only read it, or has a copy of it.
    for kind in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let mut own = Store::open(dir.path()).unwrap();
        History::in_order().feed_all(&mut own);
        let mut sealer = sealer(dir.path());
        seal(&mut sealer, 9);
        seal(&mut sealer, 9);
        let reader = Sqlite::open_to_read(dir.path()).unwrap();
        let mut store = match kind {
            0 => Store::open(dir.path()).unwrap(),
            1 => Store { database: Box::new(reader.unwrap()), is_shared: false, read_in: None },
            _ => {
                let copy = Sqlite::copy(reader, dir.path()).unwrap();
                Store { database: Box::new(copy), is_shared: false, read_in: None }
            }
        };
        let listed = store.at_one_moment(|store| {
            remove(&mut sealer).unwrap();
            seal(&mut sealer, 9);
            store.records(&Filter::default(), i64::MAX, None, |_| Ok::<_, StoreError>(()))
        });
        assert_gone(listed);
        // A file that is lost is another matter.
        fs::remove_file(dir.path().join("days/2026-11-02.parquet")).unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let lost = store.at_one_moment(|store| {
            store.records(&Filter::default(), i64::MAX, None, |_| Ok::<_, StoreError>(()))
        });
        let lost = lost.unwrap_err();
        assert!(matches!(lost, StoreError::DayFile { .. }), "{kind}: {lost}");
    }
}

#[test]
fn a_listing_in_pages_shows_no_day_half() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    // More than a page in the first day.
    let first = (0..1200_u32).map(record);
    let second = (0..40_u32).map(|number| Record { id: record(5000 + number).id, ..ride(number) });
    catch_up(&mut store, &journal(first.chain(second)));
    let (dir, mut reader) = (dir.path(), Store::open(dir.path()).unwrap());
    let mut sealer = sealer(dir);
    seal(&mut sealer, 9);
    seal(&mut sealer, 9);
    let whole = records(&mut reader, &Filter::default(), None).len();
    assert_eq!(whole, 1240);
    let mut shown = 0;
    let listed = reader.records(&Filter::default(), i64::MAX, None, |_| {
        shown += 1;
        if shown == 1 {
            remove(&mut sealer).unwrap();
        }
        Ok::<_, StoreError>(())
    });
    assert_gone(listed);
    assert!((1..1200).contains(&shown), "{shown}");
    // What was read before it went is whole.
    let mut sealed = 0;
    let listed = reader.records(&Filter::default(), i64::MAX, None, |_| {
        sealed += 1;
        Ok::<_, StoreError>(())
    });
    assert!(listed.is_ok());
    let first_day = whole - sealed;
    assert!(first_day >= 1200, "{first_day}");
    // A page of the day that went, by the cursor of the page before.
    let pages = Pages { records_max: 3, looked_at_max: 9 };
    let ask = |store: &mut Store, cursor| {
        store.page(&Filter::default(), (Order::OldestFirst, cursor), pages, |_| true, || false)
    };
    let next = ask(&mut reader, None).unwrap().next;
    remove(&mut sealer).unwrap();
    let error = ask(&mut reader, next).unwrap_err();
    assert!(matches!(error, StoreError::DetailsGone { .. }), "{error}");
}

#[test]
fn a_status_names_the_date_if_its_period_begins_before() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, from) = without_a_day(&dir);
    let status = store.status(november(), later()).unwrap();
    assert_eq!(status.details_from, Some(from));
    assert!(status.words(&Zone::UTC).ends_with("; details until 2026-11-02"));
    let behind = Period::new(from, november().to()).unwrap();
    assert_eq!(store.status(behind, later()).unwrap().details_from, None);
}

#[test]
fn a_new_store_says_which_requests_its_journal_has_not_any_more() {
    let checkpoint = |posts, at| {
        let costs = BTreeMap::new();
        Entry::Checkpoint(Box::new(Checkpoint { at, posts, costs, ..Checkpoint::default() }))
    };
    let began = record(0).started_at + SignedDuration::from_hours(48);
    let entries = |posts| {
        let posted = (40..60).map(|number| Entry::Post(Box::new(ride(number))));
        segment(101, std::iter::once(checkpoint(posts, began)).chain(posted))
    };
    let (_dir, mut store) = open();
    catch_up(&mut store, &entries(0));
    assert_eq!(store.lost().unwrap(), None);
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &entries(40));
    let lost = store.lost().unwrap().unwrap();
    assert_eq!((lost.requests, lost.before), (40, began));
    let status = store.status(november(), later()).unwrap();
    assert!(
        status.words(&Zone::UTC).ends_with("40 requests are lost that ended before 2026-11-03")
    );
    assert!(verified(&dir, &mut store).contains("wrong: 40 requests that ended before"));
    // A store that is built of files has them.
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..40).map(ride)));
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, 3);
    seal(&mut sealer, 3);
    remove(&mut sealer).unwrap();
    drop((store, sealer));
    lose_database(dir.path());
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &entries(40));
    assert_eq!(store.lost().unwrap(), None);
    assert_eq!(store.status(november(), later()).unwrap().lost, None);
}
