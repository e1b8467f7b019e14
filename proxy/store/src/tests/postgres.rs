//! Tests of what only PostgreSQL does. Most stores are behind PgBouncer, which gives each transaction
//! another session: what works there works on a connection of its own too.

mod keys;

use std::cell::RefCell;
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_config::PostgresUrl;
use taximeter_tests::postgres::{Server, shared};

use super::*;

thread_local! {
    /// Where the stores of this thread's test are; in SQLite when `None`.
    static SERVER: RefCell<Option<Arc<Server>>> = const { RefCell::new(None) };
}

/// A new store of its own, where the test is to have its stores on PostgreSQL.
pub(super) fn open_if_asked() -> Option<Store> {
    let server = SERVER.with_borrow(Clone::clone)?;
    Some(Database::of(server).store())
}

/// Runs a test with its stores on PostgreSQL.
pub(super) fn on_postgres(test: fn()) {
    SERVER.set(Some(shared().unwrap()));
    test();
}

/// A database of its own.
pub(super) struct Database {
    pub(super) server: Arc<Server>,
    pub(super) name: String,
    pub(super) url: PostgresUrl,
}

impl Database {
    pub(super) fn new() -> Self {
        Self::of(shared().unwrap())
    }

    fn of(server: Arc<Server>) -> Self {
        let name = server.database().unwrap();
        let url = server.pooled_url(&name).unwrap().parse().unwrap();
        Self { server, name, url }
    }

    /// With connections of its own.
    pub(super) fn without_pool(server: Arc<Server>) -> Self {
        let name = server.database().unwrap();
        Self::named(server, name)
    }

    /// The same content in another database, without a pool. Nobody may be connected to `model`.
    pub(super) fn copy_of(model: &Self) -> Self {
        Self::named(model.server.clone(), model.server.copy_of(&model.name).unwrap())
    }

    fn named(server: Arc<Server>, name: String) -> Self {
        let url = server.url(&name).parse().unwrap();
        Self { server, name, url }
    }

    fn store(&self) -> Store {
        self.store_of("first")
    }

    pub(super) fn store_of(&self, gateway: &str) -> Store {
        Store::connect(&self.url, gateway).unwrap()
    }

    pub(super) fn ask(&self, statements: &str) -> String {
        let answer =
            self.server.ask(&self.name, &format!("SET search_path=taximeter;{statements}"));
        answer.unwrap().trim().to_owned()
    }
}

#[test]
fn two_gateways_may_feed_and_ask_at_the_same_time() {
    let database = Database::new();
    let (mut first, mut second) = (database.store_of("first"), database.store_of("second"));
    let entries = journal([record(1), record(2)]);
    catch_up(&mut first, &entries[..1]);
    assert_eq!(catch_up(&mut second, &entries[..1]), fed(1, 0, 1));
    assert_eq!(catch_up(&mut second, &entries).records, 1);
    assert_eq!(catch_up(&mut first, &entries), fed(1, 0, 2));
    assert_eq!(bill(&mut first, "tenant"), bill(&mut second, "tenant"));
}

#[test]
fn what_the_journal_no_longer_has_comes_in_the_order_of_entries() {
    behind::pages_are_as_the_journals(&mut Database::new().store(), |_, _| {});
}

#[test]
fn what_others_feed_meanwhile_is_not_there_until_the_moment_is_over() {
    let database = Database::new();
    hours::stays_as_it_is(&mut database.store_of("first"), &mut database.store_of("second"));
}

#[test]
fn one_corrects_at_a_time_and_none_before_all_is_here_that_another_may_have_written() {
    let database = Database::new();
    let (mut first, mut second) = (database.store_of("first"), database.store_of("second"));
    let now = Timestamp::UNIX_EPOCH;
    first.begin_correcting(now, None).unwrap();
    let error = second.begin_correcting(now, None).unwrap_err();
    assert!(matches!(error, StoreError::Correcting { .. }), "{error}");
    first.end_correcting().unwrap();
    second.begin_correcting(now, None).unwrap();
    second.end_correcting().unwrap();

    first.begin_correcting(now, None).unwrap();
    drop(first);
    let mut refused = || {
        // The server learns of the end in its own time.
        loop {
            match second.begin_correcting(now, None).unwrap_err() {
                StoreError::Correcting { .. } => std::thread::yield_now(),
                error => break error,
            }
        }
    };
    let error = refused();
    assert!(error.to_string().contains("at 1970-01-01T00:00:00Z"), "{error}");
    assert!(error.to_string().contains("--lost 'first'"), "{error}");
    let mut first = database.store_of("first");
    // Who was refused has not taken the place of anybody.
    first.begin_correcting(now, None).unwrap();
    drop(first);
    refused();
    second.begin_correcting(now, Some("first")).unwrap();
    second.end_correcting().unwrap();
    database.store_of("first").begin_correcting(now, None).unwrap();
}

#[test]
fn what_a_database_makes_up_is_damage_and_in_no_bill() {
    let hours = |store: &mut Store| store.hours(november(), None, |_, _| Ok::<_, StoreError>(()));
    let records = |store: &mut Store| {
        let newest = store.newest()?;
        store.records(&Filter::default(), newest, None, |_| Ok::<_, StoreError>(()))
    };
    let database = Database::new();
    let mut store = database.store();
    catch_up(&mut store, &journal([record(1), record(2)]));
    assert!(hours(&mut store).is_ok() && records(&mut store).is_ok());
    for lie in [
        "UPDATE requests SET payload = '\\x00'",
        "UPDATE hours SET cost = 'NaN'",
        "UPDATE hours SET cost = 1e40",
        "UPDATE hours SET quantities = '{\"1\":\"much\"}'",
        "UPDATE combinations SET dimensions = '[]'",
        "DELETE FROM lines",
        "DELETE FROM combinations",
    ] {
        let database = Database::new();
        let mut store = database.store();
        catch_up(&mut store, &journal([record(1), record(2)]));
        database.ask(lie);
        let error = hours(&mut store).and_then(|()| records(&mut store)).unwrap_err();
        assert!(matches!(error, StoreError::DamagedDatabase { .. }), "{lie}: {error}");
        assert!(error.to_string().contains(&database.name), "{lie}: {error}");
    }
}

#[test]
fn what_is_missing_is_named_and_nothing_is_called_damaged() {
    for (loss, missing) in [
        ("DROP TABLE hours", "relation \"taximeter.hours\" does not exist"),
        ("ALTER TABLE hours RENAME cost TO price", "column \"cost\" does not exist"),
        ("DROP SCHEMA taximeter CASCADE", "relation \"taximeter.lines\" does not exist"),
    ] {
        let database = Database::new();
        let mut store = database.store();
        catch_up(&mut store, &journal([record(1)]));
        database.ask(loss);
        let asked = store.hours(november(), None, |_, _| Ok::<_, StoreError>(()));
        let error = asked.unwrap_err();
        assert!(matches!(error, StoreError::Incomplete { .. }), "{loss}: {error}");
        let text = error.to_string();
        assert!(text.contains(missing) && text.contains(&database.name), "{loss}: {text}");
        assert!(!text.contains("damaged"), "{loss}: {text}");
    }
}

#[test]
fn the_database_of_another_version_is_left_alone() {
    let database = Database::new();
    database.store();
    for version in [1, 5] {
        database.ask(&format!("UPDATE format SET version = {version}"));
        let error = Store::connect(&database.url, "first").unwrap_err();
        assert!(error.to_string().contains(&database.name), "{error}");
        let StoreError::Format { found, known: 4, .. } = error else { panic!("{error}") };
        assert_eq!(found, version);
    }
}

#[test]
fn a_gateway_that_runs_does_not_write_what_a_later_version_has_made() {
    let database = Database::new();
    let mut store = database.store();
    database.ask("UPDATE format SET version = 99");
    let error = store.catch_up(&mut [feed(&journal([record(1)]))]).unwrap_err();
    assert!(matches!(error, StoreError::Format { found: 99, known: 4, .. }), "{error}");
    assert_eq!(database.ask("SELECT count(*) FROM requests"), "0");
}

#[test]
fn many_that_open_an_empty_database_make_one_store() {
    let database = Database::new();
    std::thread::scope(|gateways| {
        for number in 0..4 {
            let database = &database;
            gateways.spawn(move || {
                let mut store = database.store_of(&format!("gateway {number}"));
                catch_up(&mut store, &journal((0..200).map(|n| record(n + 100 * number))));
            });
        }
    });
    assert_eq!(bill(&mut database.store(), "tenant").total.requests, 500);
    assert_eq!(database.ask("SELECT * FROM format"), "4");
}

/// A trigger that does `body` when a change sets its cursor, which is the last of it.
fn on_cursor(database: &Database, body: &str) {
    database.ask(&format!(
        "CREATE FUNCTION obstacle() RETURNS trigger LANGUAGE plpgsql
            SET search_path = taximeter AS
            $$ BEGIN {body}; RETURN NEW; END $$;
         CREATE TRIGGER obstacle BEFORE INSERT OR UPDATE ON cursors
            FOR EACH ROW EXECUTE FUNCTION obstacle()"
    ));
}

#[test]
fn what_the_server_undid_is_tried_again_a_bounded_number_of_times() {
    let database = Database::new();
    let mut store = database.store();
    database.ask("CREATE SEQUENCE tries");
    // A sequence is not undone.
    let fails = |until: u32| {
        format!(
            "IF nextval('tries') <= {until} THEN
                RAISE EXCEPTION 'no' USING ERRCODE = 'serialization_failure'; END IF"
        )
    };
    on_cursor(&database, &fails(3));
    assert_eq!(catch_up(&mut store, &journal([record(1)])), fed(1, 1, 1));
    assert_eq!(database.ask("SELECT last_value FROM tries"), "4");

    database.ask("DROP FUNCTION obstacle CASCADE");
    on_cursor(&database, &fails(1000));
    let entries = journal([record(1), record(2)]);
    let error = store.catch_up(&mut [feed(&entries)]).unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert_eq!(database.ask("SELECT last_value FROM tries"), "12");

    database.ask("DROP FUNCTION obstacle CASCADE");
    assert_eq!(catch_up(&mut store, &entries), fed(1, 1, 2));
    assert_eq!(bill(&mut store, "tenant").total.requests, 2);
}

#[test]
fn a_deadlock_with_someone_else_is_tried_again() {
    let database = Database::new();
    let mut store = database.store();
    let entries = journal([record(1), record(2)]);
    catch_up(&mut store, &entries[..1]);
    // Takes the table, then waits for the lock of changes while a change waits for the table; and
    // is the more patient of the two.
    let lock = 0x7461_7869_6d65_7465_i64;
    let other = format!(
        "SET deadlock_timeout = '20s'; SET search_path = taximeter; BEGIN;
         LOCK TABLE requests IN EXCLUSIVE MODE;
         DO $$ BEGIN LOOP
            EXIT WHEN EXISTS (SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
                WHERE datname = current_database() AND locktype = 'advisory' AND granted);
            PERFORM pg_sleep(0.01); END LOOP; END $$;
         SELECT pg_advisory_xact_lock({lock}); COMMIT"
    );
    let mut other = database.server.psql(&database.name, &other).spawn().unwrap();
    let is_locked = "SELECT count(*) FROM pg_locks WHERE mode = 'ExclusiveLock' AND granted
        AND relation = 'requests'::regclass";
    while database.ask(is_locked) == "0" {
        assert!(other.try_wait().unwrap().is_none(), "it ended too soon");
    }
    assert_eq!(catch_up(&mut store, &entries), fed(1, 1, 2));
    assert!(other.wait().unwrap().success());
    assert_eq!(bill(&mut store, "tenant").total.requests, 2);
}

#[test]
fn a_server_that_dies_in_the_middle_of_a_change_has_all_or_nothing_of_it() {
    let mut server = Server::start(&[]).unwrap();
    let name = server.database().unwrap();
    let url: PostgresUrl = server.url(&name).parse().unwrap();
    let entries = journal([record(1), record(2), record(3)]);
    let mut store = Store::connect(&url, "first").unwrap();
    catch_up(&mut store, &entries[..1]);
    let ask = |server: &Server, statements: &str| {
        server.ask(&name, &format!("SET search_path = taximeter; {statements}")).unwrap()
    };
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
            SET search_path = taximeter AS
            $$ BEGIN PERFORM pg_sleep(15); RETURN NEW; END $$;
         CREATE TRIGGER slow BEFORE UPDATE ON cursors FOR EACH ROW EXECUTE FUNCTION slow()";
    ask(&server, slow);
    let error = std::thread::scope(|scope| {
        let feeding = scope.spawn(|| store.catch_up(&mut [feed(&entries)]).unwrap_err());
        let asleep = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        while ask(&server, asleep).trim() == "0" {
            assert!(!feeding.is_finished(), "it ended too soon");
        }
        server.crash().unwrap();
        feeding.join().unwrap()
    });
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(Store::connect(&url, "first").is_err());

    server.resume().unwrap();
    ask(&server, "DROP FUNCTION slow CASCADE");
    let mut store = Store::connect(&url, "first").unwrap();
    assert_eq!(bill(&mut store, "tenant").total.requests, 1);
    assert_eq!(catch_up(&mut store, &entries), fed(2, 2, 3));
    assert_eq!(bill(&mut store, "tenant").total.requests, 3);
}

#[test]
fn months_are_tables_of_their_own_to_the_last_microsecond() {
    let database = Database::new();
    let mut store = database.store();
    let times = [
        "2027-12-31T23:59:59.999999Z",
        "2028-01-01T00:00:00Z",
        "2028-02-29T23:59:59.999999Z",
        "2028-03-01T00:00:00Z",
        "2028-04-30T12:00:00Z",
        "1970-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999Z",
    ];
    let records: Vec<_> = (1..)
        .zip(times)
        .map(|(number, time)| {
            let started_at = time.parse().unwrap();
            Record { started_at, ended_at: started_at, ..record(number) }
        })
        .collect();
    catch_up(&mut store, &journal(records.iter().cloned()));
    let count = |month: &str| database.ask(&format!("SELECT count(*) FROM requests_{month}"));
    let counts = ["2027_12", "2028_01", "2028_02", "2028_03", "2028_04", "1970_01", "1969_12"];
    assert_eq!(counts.map(count), ["1"; 7]);
    // The month after is there before anyone needs it.
    assert_eq!(["2028_05", "1970_02"].map(count), ["0"; 2]);
    for time in times {
        let month = Period::month(&time[..7]).unwrap();
        let mut found = 0;
        let add = |_: &HourKey, hour: &Hour| {
            found += hour.sums.requests;
            Ok::<_, StoreError>(())
        };
        store.hours(month, None, add).unwrap();
        assert_eq!(found, 1, "{time}");
    }
    assert_eq!(super::records(&mut store, &Filter::default(), None).len(), times.len());
}

#[test]
fn texts_that_a_column_or_an_index_cannot_hold_are_kept() {
    let (mut odd, mut long) = (record(1), record(2));
    odd.tenant = taximeter_ledger::TenantId("nul\0l".into());
    odd.response_model = Some("m\0".to_owned());
    long.labels = (0..400).map(|n| (format!("label {n}"), format!("{n:0200}"))).collect();
    let database = Database::new();
    let mut store = database.store();
    let entries = journal([odd.clone(), long.clone()]);
    assert_eq!(catch_up(&mut store, &entries).records, 2);
    let expected = [Record { seq: 1, ..odd }, Record { seq: 2, ..long }];
    assert_eq!(records(&mut store, &Filter::default(), None), expected);
    let of_tenant = Filter { tenant: Some("nul\0l".to_owned()), ..Filter::default() };
    assert_eq!(records(&mut store, &of_tenant, None).len(), 1);
    let (_dir, mut sqlite) = open();
    catch_up(&mut sqlite, &entries);
    assert_eq!(bill(&mut store, "tenant,model"), bill(&mut sqlite, "tenant,model"));
}

#[test]
fn whoever_follows_sees_each_request_once_while_several_feed() {
    const EACH: u32 = 120;
    let database = Database::new();
    let mut following = database.store_of("asks");
    std::thread::scope(|scope| {
        for gateway in 0..3_u32 {
            let database = &database;
            scope.spawn(move || {
                let mut store = database.store_of(&format!("gateway {gateway}"));
                let entries = journal((0..EACH).map(|n| record(gateway * EACH + n)));
                for end in (7..=entries.len()).step_by(7).chain([entries.len()]) {
                    catch_up(&mut store, &entries[..end]);
                }
            });
        }
        let (mut seen, mut newest) = (std::collections::BTreeMap::new(), 0);
        while seen.len() < 3 * EACH as usize {
            let take = |record: &Record| {
                *seen.entry(record.request_id.clone()).or_insert(0) += 1;
                Ok::<_, StoreError>(())
            };
            following.records_after(&Filter::default(), &mut newest, take).unwrap();
            assert!(
                database.ask("SELECT count(*) FROM requests").parse::<usize>().unwrap()
                    >= seen.len()
            );
        }
        assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    });
}

#[test]
fn a_rebuild_by_one_gateway_keeps_what_others_fed_and_where_they_are() {
    let database = Database::new();
    let (mut first, mut second) = (database.store_of("first"), database.store_of("second"));
    let entries = journal((0..40).map(record));
    let others = journal((100..120).map(record));
    catch_up(&mut first, &entries);
    catch_up(&mut second, &others);
    let before = bill(&mut first, "tenant,model,hour");
    database.ask("UPDATE hours SET cost = 0");
    let mut seen = None;
    let watched = Feed::new("journal", |_| {
        // Others read on meanwhile.
        seen = Some(bill(&mut second, "tenant").total.requests);
        Ok(Box::new(entries.clone().into_iter().map(Ok)))
    });
    let rebuilt = first.rebuild(&mut [watched]).unwrap();
    assert_eq!(rebuilt, Rebuilt { kept_records: 20, kept_corrections: 0, ..Rebuilt::default() });
    assert_eq!(seen, Some(60));
    assert_eq!(bill(&mut first, "tenant,model,hour"), before);
    assert_eq!(catch_up(&mut second, &others), fed(0, 0, 20));
    assert_eq!(catch_up(&mut first, &entries), fed(0, 0, 40));
}

#[test]
fn why_a_database_cannot_be_used_is_told_without_the_password() {
    let server = shared().unwrap();
    server.ask("postgres", "DROP DATABASE IF EXISTS narrow").unwrap();
    let make = "CREATE DATABASE narrow ENCODING 'SQL_ASCII' TEMPLATE template0";
    server.ask("postgres", make).unwrap();
    let port = server.port();
    for (url, told) in [
        (server.url("narrow"), "its encoding is SQL_ASCII"),
        (server.url("nowhere"), "database \"nowhere\" does not exist"),
        (
            format!("postgres://taximeter:hunter2@127.0.0.1:{port}/narrow"),
            "password authentication failed",
        ),
        ("postgres://taximeter:hunter2@127.0.0.1:1/db".to_owned(), "error connecting to server"),
        (
            format!("postgres://taximeter:hunter2@127.0.0.1:{port}/narrow?sslmode=require"),
            "server does not support TLS",
        ),
        (
            "postgres://a:hunter2@h/db?sslmode=verify-full&sslrootcert=/nowhere.pem".to_owned(),
            "sslrootcert /nowhere.pem: ",
        ),
    ] {
        let error = Store::connect(&url.parse().unwrap(), "first").unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(told) && !text.contains("hunter2"), "{text}");
    }
}
