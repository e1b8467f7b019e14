//! The key of a request is the id of its ledger and the number of its entry.

use std::collections::{BTreeMap, BTreeSet};

use taximeter_ledger::LedgerId;

use super::*;
use crate::tests::convert::TABLES_WITH_FORMS;
use crate::verify::{Findings, verify};

/// What happens to a journal, and to the store that it feeds.
#[derive(Debug, Clone)]
struct Happening {
    /// The last entries that the journal loses.
    lost: usize,
    /// Whether it goes on as another ledger.
    is_copied: bool,
    /// Other requests that it gets.
    new: u32,
    is_fed: bool,
    is_sealed: bool,
    is_rebuilt: bool,
}

fn happening() -> impl Strategy<Value = Happening> {
    let rarely = || prop::bool::weighted(0.2);
    (0..12_usize, rarely(), 0..50_u32, prop::bool::weighted(0.8), rarely(), rarely()).prop_map(
        |(lost, is_copied, new, is_fed, is_sealed, is_rebuilt)| {
            let (lost, new) = (lost.saturating_sub(5) * 4, new.saturating_sub(10));
            Happening { lost, is_copied, new, is_fed, is_sealed, is_rebuilt }
        },
    )
}

/// Each request of the tables: its ledger, its entry and its number. No two have one key.
fn keys(dir: &TempDir) -> BTreeMap<RequestId, (LedgerId, u64)> {
    let connection = connect(dir);
    let question = "
        SELECT id, seq, (SELECT max(first) FROM ledgers WHERE first <= requests.number) AS first,
            (SELECT ledger FROM ledgers WHERE first <= requests.number ORDER BY first DESC LIMIT 1)
        FROM requests ORDER BY number";
    let mut query = connection.prepare(question).unwrap();
    let mut rows = query.query(()).unwrap();
    let (mut keys, mut before) = (BTreeMap::new(), (0, 0));
    while let Some(row) = rows.next().unwrap() {
        let uuid = |column| Uuid::from_slice(&row.get::<_, Vec<u8>>(column).unwrap()).unwrap();
        let seq = row.get::<_, i64>(1).unwrap();
        let place = (row.get::<_, i64>(2).unwrap(), seq);
        assert!(before < place, "{place:?} is not behind {before:?}");
        before = place;
        keys.insert(RequestId(uuid(0)), (LedgerId(uuid(3)), seq.cast_unsigned()));
    }
    keys
}

fn assert_sound(dir: &TempDir, store: &mut Store) {
    let mut findings = Findings::default();
    verify(dir.path(), store, &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    assert_eq!(findings.wrong(), 0, "{}", String::from_utf8_lossy(&report));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_journal_loses_each_request_is_there_once_and_is_followed_once(
        happenings in prop::collection::vec(happening(), 1..10),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let (mut journaled, mut ledger, mut next) = (Vec::new(), LedgerId::default(), 0);
        // Where requests that were fed have their entries, and what a follower has seen.
        let mut fed = BTreeMap::<RequestId, BTreeSet<(LedgerId, u64)>>::new();
        let (mut seen, mut after) = (Vec::new(), 0);
        for happening in happenings {
            journaled.truncate(journaled.len().saturating_sub(happening.lost));
            if happening.is_copied {
                ledger = LedgerId(Uuid::from_u128(ledger.0.as_u128() + 1));
            }
            journaled.extend((next..next + happening.new).map(|number| (ledger, ride(number))));
            next += happening.new;
            let mut entries = journal(journaled.iter().map(|(_, record)| record.clone()));
            for (entry, (ledger, record)) in entries.iter_mut().zip(&journaled) {
                entry.ledger = *ledger;
                if happening.is_fed || happening.is_rebuilt {
                    fed.entry(record.id).or_default().insert((*ledger, entry.seq));
                }
            }
            if happening.is_fed {
                catch_up(&mut store, &entries);
            }
            if happening.is_rebuilt {
                // The requests get other numbers: who follows begins anew.
                store.rebuild(&mut [feed(&entries)]).unwrap();
                (after, seen) = (store.newest().unwrap(), fed.keys().copied().collect());
            }
            let before = after;
            let take = |record: &Record| {
                seen.push(record.id);
                Ok::<_, StoreError>(())
            };
            store.records_after(&Filter::default(), &mut after, take).unwrap();
            assert!(after >= before);
            if happening.is_sealed {
                seal(&mut sealer(dir.path()).with_rows_max(9), &closed(i64::from(next / 10)));
            }
            for (id, key) in keys(&dir) {
                prop_assert!(fed[&id].contains(&key), "{} is at {:?}", id, key);
            }
        }
        let known = fed.keys().copied().collect::<Vec<_>>();
        let mut stored: Vec<_> =
            records(&mut store, &Filter::default(), None).iter().map(|it| it.id).collect();
        stored.sort();
        prop_assert_eq!(&stored, &known);
        seen.sort();
        prop_assert_eq!(&seen, &known);
        assert_sound(&dir, &mut store);
    }
}

#[test]
fn a_number_that_is_taken_is_an_error_and_loses_no_request() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..20).map(ride));
    catch_up(&mut store, &entries[..10]);
    seal(&mut sealer(dir.path()), &closed(30));
    // Somebody has put a trigger there that takes the number of the next request.
    let taken = "
        CREATE TRIGGER taken BEFORE INSERT ON requests WHEN NEW.number = 11 BEGIN
            INSERT INTO requests VALUES (11, 1, zeroblob(16), 1, 1, x'');
        END";
    connect(&dir).execute_batch(taken).unwrap();
    let error = store.catch_up(&mut [feed(&entries)]).unwrap_err();
    assert!(error.to_string().contains("requests.number"), "{error}");
    assert_eq!(store.newest().unwrap(), 10);
    connect(&dir).execute_batch("DROP TRIGGER taken").unwrap();
    assert_eq!(catch_up(&mut store, &entries).records, 10);
    assert_eq!(records(&mut store, &Filter::default(), None).len(), 20);
}

#[test]
fn the_keys_can_be_read_in_a_view() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..3).map(ride)));
    catch_up(&mut store, &journal([0, 4].map(ride)));
    let question = "SELECT ledger || ' ' || seq || ' ' || id FROM request_keys ORDER BY number";
    let connection = connect(&dir);
    let mut query = connection.prepare(question).unwrap();
    let found = query.query_map((), |row| row.get(0)).unwrap();
    let found = found.collect::<rusqlite::Result<Vec<String>>>().unwrap();
    let key = |(number, seq)| format!("{} {seq} {}", LedgerId::default(), ride(number).id);
    assert_eq!(found, [(0, 1), (1, 2), (2, 3), (4, 2)].map(key));
}

#[test]
fn rows_that_say_which_ledger_it_was_go_with_their_last_request() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    for first in 0..5_u32 {
        catch_up(&mut store, &journal((first * 4..first * 4 + 4).map(ride)));
        seal(&mut sealer(dir.path()), &closed(30));
        assert_eq!(store.newest().unwrap(), i64::from(first * 4 + 4));
    }
    let count = "SELECT count(*) FROM ledgers";
    assert_eq!(connect(&dir).query_row(count, (), |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[test]
fn a_converted_store_of_which_all_requests_are_in_files_is_not_empty() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..20).map(ride));
    catch_up(&mut store, &entries);
    seal(&mut sealer(dir.path()), &closed(30));
    let before = records(&mut store, &Filter::default(), None);
    drop(store);
    let connection = connect(&dir);
    connection.execute_batch(TABLES_WITH_FORMS).unwrap();
    let hidden = "INSERT INTO requests VALUES (20, ?1, x'', 0, 0, x'')";
    connection.execute(hidden, [i64::MIN]).unwrap();
    connection.pragma_update(None, "user_version", 5).unwrap();
    drop(connection);
    assert!(Sqlite::convert(dir.path()).unwrap().is_some());
    let mut store = Store::open(dir.path()).unwrap();
    assert!(!store.is_empty().unwrap());
    assert_eq!(records(&mut store, &Filter::default(), None), before);
    assert_eq!(catch_up(&mut store, &journal((0..21).map(ride))).records, 1);
    assert_eq!(requests_in_tables(&dir), 1);
}
