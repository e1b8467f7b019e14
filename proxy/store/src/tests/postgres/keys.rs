//! No two requests of a ledger have one key, in whichever order their entries come.

use super::*;

/// How many keys there are, and how many requests with one.
fn keys(database: &Database) -> String {
    database.ask(
        "SELECT count(DISTINCT (ledger, series, seq)), count(*) FROM requests WHERE series > 0",
    )
}

#[test]
fn a_sequence_number_that_comes_again_with_another_request_is_a_further_key() {
    let database = Database::new();
    let mut store = database.store();
    catch_up(&mut store, &journal((0..20).map(record)));
    // The journal has lost its tail and goes on with others, then with one that is known.
    let regrown = (0..10).chain(30..45).chain([15]).chain(50..55);
    assert_eq!(catch_up(&mut store, &journal(regrown.map(record))).records, 20);
    assert_eq!(records(&mut store, &Filter::default(), None).len(), 40);
    assert_eq!(keys(&database), "40|40");
    assert_eq!(database.ask("SELECT series, seq FROM ledgers"), "2|31");
    let twice =
        "INSERT INTO requests SELECT number, started_at + 1, id, ended_at, tenant, upstream,
        model, input_tokens, output_tokens, ledger, seq, gateway, billed, payload, series
        FROM requests WHERE seq = 7 AND series = 1";
    let refused =
        database.server.ask(&database.name, &format!("SET search_path=taximeter;{twice}"));
    assert!(refused.unwrap_err().to_string().contains("duplicate key"));
    let rebuilt = store.rebuild(&mut [feed(&journal((30..45).map(record)))]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 25, kept_corrections: 0, ..Rebuilt::default() });
    assert_eq!(keys(&database), "40|40");
}

#[test]
fn a_database_from_before_there_were_series_gets_them() {
    let database = Database::new();
    catch_up(&mut database.store(), &journal((0..10).map(record)));
    database.ask("DROP TABLE ledgers, sessions; ALTER TABLE requests DROP COLUMN series");
    let mut store = database.store();
    assert_eq!(catch_up(&mut store, &journal((0..15).map(record))).records, 5);
    let count = "SELECT series, count(*) FROM requests GROUP BY series ORDER BY series";
    assert_eq!(database.ask(count), "0|10\n1|5");
    assert_eq!(catch_up(&mut store, &journal((0..9).chain(20..30).map(record))).records, 10);
    assert_eq!(database.ask(count), "0|10\n1|5\n2|10");
}
