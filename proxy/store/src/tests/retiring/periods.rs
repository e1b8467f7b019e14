//! Hours of any period and tenant, of which some are in files.

use super::*;

fn hours_of(store: &mut Store, period: Period, tenant: Option<&str>) -> BTreeMap<HourKey, Hour> {
    let mut hours = BTreeMap::<HourKey, Hour>::new();
    let mut last = Timestamp::MIN;
    let add = |key: &HourKey, hour: &Hour| {
        assert!(last <= key.hour, "they come in order of time");
        last = key.hour;
        hours.entry(key.clone()).or_default().add(hour).unwrap();
        Ok::<_, StoreError>(())
    };
    store.hours(period, tenant, add).unwrap();
    hours
}

#[test]
fn hours_of_any_period_and_tenant_are_those_of_a_store_without_files() {
    let late = |number: &u32| number % 6 == 1;
    let order: Vec<_> = (0..RIDES).filter(|it| !late(it)).chain((0..RIDES).filter(late)).collect();
    let history = History::of(&order);
    let early = (0..RIDES).filter(|it| !late(it)).count();
    let (_other, mut twin) = open();
    history.feed_all(&mut twin);
    // Files of days and a part more of each; one file of the month, and rows beside it.
    for (days, gone) in [(9, 3), (90, 0), (90, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        history.feed(&mut store, early, 10);
        let mut sealer = sealer(dir.path());
        seal(&mut sealer, days);
        for _ in 0..gone {
            remove(&mut sealer).unwrap();
        }
        history.feed(&mut store, history.requests.len(), 10);
        seal(&mut sealer, 9);
        for _ in 0..gone {
            remove(&mut sealer).unwrap();
        }
        history.feed_all(&mut store);
        let begin = record(0).started_at;
        for (from, to) in [(0, 120), (5, 6), (23, 25), (30, 100), (71, 73), (100, 500), (-50, 24)] {
            let at = |hours| begin + SignedDuration::from_hours(hours);
            let period = Period::new(at(from), at(to)).unwrap();
            for tenant in [None, Some("acme"), Some("beta"), Some("nobody")] {
                let found = hours_of(&mut store, period, tenant);
                let expected = hours_of(&mut twin, period, tenant);
                let folded = |hours| Bills { hours, ..bills_of_nothing() }.by_tenant();
                assert_eq!(folded(found), folded(expected), "{days} {gone}: {period} {tenant:?}");
            }
        }
    }
}

fn bills_of_nothing() -> Bills {
    let (_dir, mut store) = open();
    bills(&mut store)
}
