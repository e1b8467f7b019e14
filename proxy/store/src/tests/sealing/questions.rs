//! Every question has the answer of a store that has no files.

use std::ops::ControlFlow;

use taximeter_database::database::AdmissionKey;
use taximeter_database::database::Written;
use taximeter_ledger::Correction;

use super::*;

const RIDES: u32 = 60;

/// Few, so that few requests are too many.
const AHEAD_BYTES_MAX: usize = 8 << 10;

fn open_to_page() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let sqlite = Sqlite::open(dir.path()).unwrap().with_ahead_bytes_max(AHEAD_BYTES_MAX);
    (dir, Store { database: Box::new(sqlite), is_shared: false, read_in: None })
}

fn at(number: u32) -> Timestamp {
    ride(number).started_at
}

/// Some requests and corrections are in files, others in the tables.
fn stores(seed: u32) -> ([TempDir; 2], [Store; 2]) {
    let [(dir, mut sealed), (other, mut twin)] = [open_to_page(), open()];
    let all: Vec<_> =
        (0..RIDES).map(|number| Record { seq: u64::from(number) + 1, ..ride(number) }).collect();
    let entries = journal(all.iter().cloned());
    let changes: Vec<_> = (0..RIDES)
        .filter(|number| (number + seed).is_multiple_of(7))
        .map(|number| {
            let ride = &all[number as usize];
            correction(number + 1, ride, ride.cost.as_ref(), i64::from(number % 5))
        })
        .collect();
    let changes = correction_entries(&changes);
    let mut sealer = sealer(dir.path()).with_rows_max(2 + seed as usize % 5);
    let mut fed = 0;
    for round in 0..4_u32 {
        let to = (fed + 10 + (seed * 7 + round * 13) as usize % 9).min(RIDES as usize);
        catch_up(&mut sealed, &entries[..to]);
        if round % 2 == 1 {
            sealed.catch_up(&mut [feed(&entries[..to]), changed(&changes)]).unwrap();
        }
        let newest = sealer.newest().unwrap() - i64::from(seed % 4);
        sealer.work(&closed(i64::from((seed + 3 * round) % 9)), newest, &|| true).unwrap();
        fed = to;
    }
    for store in [&mut sealed, &mut twin] {
        store.catch_up(&mut [feed(&entries), changed(&changes)]).unwrap();
    }
    ([dir, other], [sealed, twin])
}

/// The answers to each question.
fn answers(store: &mut Store, filter: &Filter, limit: u32) -> Vec<String> {
    let mut answers = Vec::new();
    let tenant = filter.tenant.clone();
    let (from, to) = (filter.from.unwrap_or(at(0)), filter.to.unwrap_or(at(RIDES)));
    let period =
        Period::new(from.min(to), to.max(from) + jiff::SignedDuration::from_secs(1)).unwrap();
    let tenant = tenant.as_deref();
    let database = &mut *store.database;
    let mut posts = Vec::new();
    database
        .posts(period, tenant, &mut |post| {
            posts.push(format!("{:?} {:?}", post.place, post.whole().unwrap()));
            if posts.len() < limit as usize * 3 {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .unwrap();
    answers.push(posts.join("\n"));
    let mut corrections = Vec::new();
    let mut note = |post: &Post<'_>, correction: &Correction| {
        corrections.push(format!("{:?} {correction:?}", post.place));
        ControlFlow::Continue(())
    };
    database.corrections(period, tenant, &mut note).unwrap();
    answers.push(corrections.join("\n"));
    answers.push(format!("{:?}", database.entries(period, tenant).unwrap()));
    answers.push(format!("{:?}", database.tenants(period, tenant).unwrap()));
    let start = AdmissionKey { at: filter.since(), id: Vec::new() };
    let (mut next, mut page) = (Some(start), Written::default());
    while let Some(start) = next {
        next = database.written(filter, i64::MAX, &start, limit, &mut page).unwrap();
        answers.push(format!("{:?} {next:?}", page.iter().collect::<Vec<_>>()));
    }
    let mut end = AdmissionKey { at: filter.before(), id: Vec::new() };
    loop {
        let page = database.admitted_before(filter, i64::MAX, &end, limit).unwrap();
        answers.push(format!("{page:?}"));
        let Some((last, _)) = page.into_iter().next_back() else { break };
        end = last;
    }
    for count in [1, 2, 3, limit, limit * 2, 25, 59, 60, 61] {
        answers.push(format!("{:?}", database.key_of_last(filter, i64::MAX, count).unwrap()));
    }
    answers.push(format!("{:?}", records(store, filter, Some(limit))));
    answers.push(format!("{:?}", bill(store, "tenant,model,hour")));
    answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn a_store_with_files_answers_as_one_without(
        seed in 0..1000_u32,
        limit in 1..9_u32,
        tenant in proptest::option::of(0..4_usize),
        from in proptest::option::of(0..RIDES),
        to in proptest::option::of(0..RIDES),
    ) {
        let ([dir, _other], [mut sealed, mut twin]) = stores(seed);
        let tenant = tenant.map(|tenant| ["acme", "blue", "dock", "none"][tenant].to_owned());
        let filter = Filter { tenant, from: from.map(at), to: to.map(at) };
        let expected = answers(&mut twin, &filter, limit);
        let found = answers(&mut sealed, &filter, limit);
        for (question, (found, expected)) in found.iter().zip(&expected).enumerate() {
            prop_assert_eq!(found, expected, "question {}, {:?}", question, files(dir.path()));
        }
        prop_assert_eq!(found.len(), expected.len());
    }
}

#[test]
fn the_property_meets_stores_with_requests_in_both_places() {
    let both = (0..40).filter(|seed| {
        let ([dir, _other], _) = stores(*seed);
        (1..i64::from(RIDES)).contains(&requests_in_tables(&dir))
            && files(dir.path()).iter().any(|name| name.contains("part"))
    });
    assert!(both.count() > 10);
}
