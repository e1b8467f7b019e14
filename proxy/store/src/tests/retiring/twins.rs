//! Whatever happens to a store, it bills what one without files bills.

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Requests(usize),
    Corrections(usize),
    Seal(i64),
    Remove,
    Rebuild(usize),
    Lose,
    Verify,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1..40_usize).prop_map(Step::Requests),
        3 => (1..20_usize).prop_map(Step::Corrections),
        4 => prop_oneof![1..8_i64, Just(90)].prop_map(Step::Seal),
        3 => Just(Step::Remove),
        1 => (0..40_usize).prop_map(Step::Rebuild),
        1 => Just(Step::Lose),
        1 => Just(Step::Verify),
    ];
    proptest::collection::vec(step, 3..14)
}

/// Nearly in order: each one comes up to so many places too late.
fn order(seed: u64, late: u64) -> Vec<u32> {
    let mut state = seed;
    let mut numbers: Vec<_> = (0..RIDES)
        .map(|number| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (u64::from(number) + (state >> 33) % late, number)
        })
        .collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|(_, number)| number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, max_shrink_iters: 20, ..ProptestConfig::default() })]
    #[test]
    fn a_store_whose_hours_and_days_leave_bills_as_one_that_keeps_all(
        seed in any::<u64>(), late in 1..90_u64, steps in steps(),
    ) {
        let history = History::of(&order(seed, late));
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let (mut requests, mut changes) = (0, 0);
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Requests(count) => requests = (requests + count).min(history.requests.len()),
                // A correction comes behind its request.
                Step::Corrections(count) => changes = (changes + count).min(history.corrections_of(requests)),
                Step::Seal(days) => {
                    let mut sealer = sealer(dir.path());
                    // As if the room were limited, or not.
                    let left = (seed % 2 == 0).then_some(u64::MAX);
                    let newest = sealer.newest().unwrap();
                    sealer.work(&SealPolicy { left, ..closed(*days) }, newest, &|| true).unwrap();
                }
                Step::Remove => drop(remove(&mut sealer(dir.path()))),
                Step::Rebuild(first) => {
                    // The journal has lost its first segments.
                    let rest = &history.requests[(*first).min(requests)..requests];
                    let changes = changed(&history.corrections[..changes]);
                    store.rebuild(&mut [feed(rest), changes]).unwrap();
                }
                Step::Lose => {
                    drop(store);
                    lose_database(dir.path());
                    store = Store::open(dir.path()).unwrap();
                }
                Step::Verify => {
                    let report = verified(&dir, &mut store);
                    let wrong = report.lines().filter(|it| it.contains("store's hour") || it.contains("hours/"));
                    prop_assert_eq!(wrong.count(), 0, "{}", report);
                }
            }
            history.feed(&mut store, requests, changes);
            let (found, expected) = (bills(&mut store), history.expected(requests, changes));
            let place = format!("after {number} of {steps:?}");
            prop_assert_eq!(found.by_tenant(), expected.by_tenant(), "{}", place);
            if !found.has_unknown() {
                prop_assert_eq!(found, expected, "{}", place);
            }
        }
    }
}
