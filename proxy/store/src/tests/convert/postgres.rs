//! Stores in PostgreSQL.

use std::fmt::Write as _;

use taximeter_config::PostgresUrl;
use taximeter_tests::postgres::{PASSWORD, USER, shared};

use super::cut::cut_after;
use super::*;
use crate::tests::postgres::Database;
use taximeter_postgres::Postgres;

/// All that is there, and its form.
const ALL: &str = "
    SELECT version FROM format;
    SELECT table_name, column_name, data_type, is_nullable
    FROM information_schema.columns WHERE table_schema = 'taximeter' ORDER BY 1, 2;
    SELECT number, started_at, id, ended_at, tenant, upstream, model, input_tokens, output_tokens,
        ledger, seq, gateway, billed, payload
    FROM requests ORDER BY number;
    SELECT number, id, started_at, corrects, made_at, waiting, seq, correction
    FROM corrections ORDER BY number;
    SELECT * FROM combinations ORDER BY number;
    SELECT * FROM lines ORDER BY number;
    SELECT * FROM hours ORDER BY hour, combination, part;
    SELECT * FROM refusals ORDER BY minute, id, reason, tenant, others;
    SELECT * FROM cursors ORDER BY journal;
    SELECT * FROM correctors";

/// A store in an old format; and all that it should have when it is converted.
fn old(format: u32, content: &Content) -> (Database, String) {
    let database = Database::new();
    let all = make_old(&database, format, content);
    (database, all)
}

/// Makes such a store in an empty database.
fn make_old(database: &Database, format: u32, content: &Content) -> String {
    content.fill(&mut database.store_of("first"));
    database.ask("INSERT INTO correctors VALUES ('died', 7)");
    let all = database.ask(ALL);
    assert!(all.starts_with("4\n") && all.ends_with("died|7"), "{all}");
    let mut statements = "
        ALTER TABLE requests ADD COLUMN record text;
        ALTER TABLE corrections RENAME COLUMN correction TO now;
        ALTER TABLE corrections ADD COLUMN correction text;"
        .to_owned();
    for (id, json) in content.records() {
        write!(statements, "UPDATE requests SET record = $a${json}$a$ WHERE id = '{id}';").unwrap();
    }
    for (id, json) in content.corrections() {
        write!(statements, "UPDATE corrections SET correction = $a${json}$a$ WHERE id = '{id}';")
            .unwrap();
    }
    write!(
        statements,
        "ALTER TABLE requests DROP COLUMN ledger, DROP COLUMN series, DROP COLUMN gateway, DROP COLUMN billed,
            DROP COLUMN payload, ALTER COLUMN record SET NOT NULL;
         ALTER TABLE corrections DROP COLUMN now, ALTER COLUMN correction SET NOT NULL;
         UPDATE format SET version = {format}"
    )
    .unwrap();
    if format == 2 {
        statements += "; DROP TABLE refusals";
    }
    database.ask(&statements);
    all
}

/// Converts all, so many rows at a time. How many rows it has converted.
fn convert(url: &PostgresUrl, rows_max: u32) -> Result<Rebuilt, StoreError> {
    let database = Postgres::connect(url, "")?;
    let mut all = Rebuilt::default();
    while let Some(some) = database.convert_some(rows_max)? {
        all.kept_records += some.kept_records;
        all.kept_corrections += some.kept_corrections;
    }
    Ok(all)
}

#[test]
fn a_converted_store_is_the_same_as_a_new_one_with_the_same_content() {
    for format in FORMATS {
        for rows_max in [1, 3, 4096] {
            let content = Content::new(format, 10);
            let (database, all) = old(format, &content);
            assert_eq!(convert(&database.url, rows_max).unwrap(), content.all());
            assert_eq!(database.ask(ALL), all, "of format {format}");
            assert_eq!(convert(&database.url, rows_max).unwrap(), Rebuilt::default());
            // It goes on: nothing is fed again, and what follows is new.
            let mut store = database.store_of("first");
            content.fill(&mut store);
            assert_eq!(database.ask(ALL), all, "of format {format}");
            let next = Record { tenant: TenantId("next".into()), ..record(100) };
            let fed = store.catch_up(&mut [feed_as("other journal", &journal([next]))]).unwrap();
            assert_eq!(fed.records, 1);
            assert_eq!(database.ask("SELECT max(number) FROM requests"), "11");
        }
    }
}

#[test]
fn an_old_store_is_refused_with_the_command_that_converts_it_and_stays_as_it_is() {
    for format in [2, 3, 1_000] {
        let database = Database::new();
        database.store_of("first");
        database.ask(&format!("UPDATE format SET version = {format}"));
        let error = Store::connect(&database.url, "first").unwrap_err();
        assert!(matches!(error, StoreError::OlderDatabase { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&database.name) && text.contains("run `taximeter convert "),
            "{text}"
        );
        assert_eq!(database.ask("SELECT version FROM format"), format.to_string());
    }
}

#[test]
fn a_store_of_an_unknown_format_is_not_converted_and_none_is_made() {
    let database = Database::new();
    assert_eq!(convert(&database.url, 10).unwrap(), Rebuilt::default());
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'taximeter'";
    assert_eq!(database.ask(schemas), "0");
    database.store_of("first");
    for format in [1, 5] {
        database.ask(&format!("UPDATE format SET version = {format}"));
        let error = convert(&database.url, 10).unwrap_err();
        assert!(matches!(error, StoreError::Format { known: 4, .. }), "{error}");
    }
}

#[test]
fn a_conversion_that_is_cut_off_after_any_statement_goes_on() {
    let server = shared().unwrap();
    let content = Content::new(3, 4);
    // Copies are made of it, so no pool may keep a connection to it.
    let model = Database::without_pool(server.clone());
    let all = make_old(&model, 3, &content);
    // Every third one: three runs try all, and one takes less than a minute.
    let first = 1 + usize::try_from(std::process::id() % 3).unwrap();
    for statements in (first..).step_by(3) {
        let database = Database::copy_of(&model);
        let port = cut_after(statements, server.port());
        let password = PASSWORD.replace(':', "%3A").replace('/', "%2F").replace('@', "%40");
        let url = format!(
            "postgres://{USER}:{password}@127.0.0.1:{port}/{}?sslmode=disable",
            database.name
        );
        let whole = convert(&url.parse().unwrap(), 2);
        let rest = convert(&database.url, 2).unwrap();
        assert_eq!(database.ask(ALL), all, "cut off after {statements}");
        if let Ok(whole) = whole {
            assert_eq!((whole, rest), (content.all(), Rebuilt::default()));
            assert!(statements > 60, "{statements}");
            break;
        }
    }
}

#[test]
fn several_conversions_at_the_same_time_convert_each_row_once() {
    let content = Content::new(2, 40);
    let (database, all) = old(2, &content);
    let converted = std::thread::scope(|scope| {
        let runs: Vec<_> =
            (0..3).map(|_| scope.spawn(|| convert(&database.url, 2).unwrap())).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    let records: u64 = converted.iter().map(|run| run.kept_records).sum();
    let corrections: u64 = converted.iter().map(|run| run.kept_corrections).sum();
    assert_eq!(
        Rebuilt { kept_records: records, kept_corrections: corrections, ..Rebuilt::default() },
        content.all()
    );
    assert_eq!(database.ask(ALL), all);
}

#[test]
fn what_was_used_in_a_month_that_somebody_has_dropped_stays_in_the_bill() {
    let content = Content::new(2, 10);
    let (database, _) = old(2, &content);
    let sums = database.ask("SELECT * FROM hours ORDER BY hour, combination, part");
    database
        .ask("DROP TABLE requests_2026_11; ALTER TABLE requests DETACH PARTITION requests_2027_01");
    convert(&database.url, 3).unwrap();
    assert_eq!(database.ask("SELECT * FROM hours ORDER BY hour, combination, part"), sums);
    assert_eq!(bill(&mut database.store_of("first"), "tenant").total.requests, 5);
    assert_eq!(database.ask("SELECT count(*) FROM requests"), "5");
    assert_eq!(database.ask("SELECT count(*) FROM requests_2027_01 WHERE record = ''"), "0");
}

#[test]
fn a_row_that_cannot_be_read_is_told_and_stays() {
    for lie in [
        "UPDATE requests SET record = '{}' WHERE number = 2",
        "UPDATE corrections SET correction = 'no' WHERE number = 2",
    ] {
        let content = Content::new(3, 10);
        let (database, _) = old(3, &content);
        database.ask(lie);
        for _ in 0..2 {
            let error = convert(&database.url, 1).unwrap_err();
            assert!(matches!(error, StoreError::DamagedDatabase { .. }), "{lie}: {error}");
        }
        assert_eq!(database.ask("SELECT version FROM format"), "1000");
    }
}

#[test]
fn a_view_of_what_is_dropped_stops_it_before_anything_is_changed_and_other_views_stay() {
    let content = Content::new(3, 10);
    for (view, told) in [
        ("SELECT record FROM requests", "other objects depend on it"),
        ("SELECT correction FROM corrections", "used by a view"),
    ] {
        let (database, all) = old(3, &content);
        database.ask(&format!("CREATE VIEW of_somebody AS {view}"));
        for _ in 0..2 {
            let error = convert(&database.url, 10).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert_eq!(database.ask("SELECT version FROM format"), "3");
            assert_eq!(database.ask("SELECT count(record) FROM requests"), "10");
        }
        database.ask(
            "DROP VIEW of_somebody;
             CREATE VIEW public.of_others AS SELECT id, tenant, seq, waiting
                FROM requests LEFT JOIN corrections USING (id, seq)",
        );
        convert(&database.url, 10).unwrap();
        assert_eq!(database.ask(ALL), all);
        assert_eq!(database.ask("SELECT count(*) FROM public.of_others"), "10");
    }
}
