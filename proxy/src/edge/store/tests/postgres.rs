//! What only PostgreSQL has.

use std::cell::RefCell;
use std::sync::Arc;

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
struct Database {
    server: Arc<Server>,
    name: String,
    url: PostgresUrl,
}

impl Database {
    fn new() -> Self {
        Self::of(shared().unwrap())
    }

    fn of(server: Arc<Server>) -> Self {
        let name = server.database().unwrap();
        let url = server.url(&name).parse().unwrap();
        Self { server, name, url }
    }

    fn store(&self) -> Store {
        self.store_of("first")
    }

    fn store_of(&self, gateway: &str) -> Store {
        Store::connect(&self.url, gateway).unwrap()
    }

    fn ask(&self, statements: &str) -> String {
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
fn the_database_of_a_later_version_is_left_alone() {
    let database = Database::new();
    database.store();
    database.ask("UPDATE format SET version = 99");
    let error = Store::connect(&database.url, "first").unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error}");
    assert!(error.to_string().contains(&database.name), "{error}");
}

#[test]
fn a_gateway_that_runs_does_not_write_what_a_later_version_has_made() {
    let database = Database::new();
    let mut store = database.store();
    database.ask("UPDATE format SET version = 99");
    let error = store.catch_up(&mut [feed(&journal([record(1)]))]).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 99, known: 1, .. }), "{error}");
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
    assert_eq!(database.ask("SELECT * FROM format"), "1");
}
