//! Stores in SQLite.

use rusqlite::Connection;
use rusqlite::types::Value;

use super::*;

/// Tables with rows in JSON, in place of those of today.
const OLD_TABLES: &str = "
    DROP VIEW request_keys;
    ALTER TABLE requests RENAME TO new_requests;
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,
        started_at INTEGER NOT NULL,
        id BLOB NOT NULL,
        ended_at INTEGER NOT NULL,
        tenant TEXT NOT NULL,
        upstream TEXT NOT NULL,
        model TEXT,
        input_tokens INTEGER,
        output_tokens INTEGER,
        seq INTEGER NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    INSERT INTO requests
        SELECT number, started_at, id, 0, '', '', NULL, NULL, NULL, seq, '' FROM new_requests;
    DROP TABLE new_requests;
    DROP TABLE forms;
    DROP TABLE ledgers;
    CREATE UNIQUE INDEX admission ON requests (started_at, id);
    ALTER TABLE corrections RENAME TO new_corrections;
    DROP INDEX corrected;
    DROP INDEX waiting;
    CREATE TABLE corrections (
        number INTEGER PRIMARY KEY,
        id BLOB NOT NULL UNIQUE,
        started_at INTEGER NOT NULL,
        corrects BLOB NOT NULL,
        made_at INTEGER NOT NULL,
        waiting INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        correction TEXT NOT NULL
    ) STRICT;
    INSERT INTO corrections
        SELECT number, id, started_at, corrects, made_at, waiting, seq, '' FROM new_corrections;
    DROP TABLE new_corrections;
    CREATE INDEX corrected ON corrections (started_at, corrects, made_at);
    CREATE INDEX waiting ON corrections (started_at, corrects) WHERE waiting = 1;";

/// Tables of formats 4 and 5: a form has the id of its ledger, and requests of a batch are in the order
/// of their admission. Here that is the reverse of the order of their entries.
pub(in crate::tests) const TABLES_WITH_FORMS: &str = "
    DROP VIEW request_keys;
    ALTER TABLE forms RENAME TO new_forms;
    DROP INDEX digests;
    CREATE TABLE forms (
        number INTEGER PRIMARY KEY,
        digest INTEGER NOT NULL,
        ledger BLOB NOT NULL,
        tenant TEXT NOT NULL,
        strings BLOB NOT NULL
    ) STRICT;
    INSERT INTO forms
        SELECT number, 7, (SELECT ledger FROM ledgers), tenant, strings FROM new_forms;
    DROP TABLE new_forms;
    DROP TABLE ledgers;
    CREATE INDEX digests ON forms (digest);
    ALTER TABLE requests RENAME TO new_requests;
    DROP INDEX admission;
    CREATE TABLE requests (
        number INTEGER PRIMARY KEY,
        started_at INTEGER NOT NULL,
        id BLOB NOT NULL,
        form INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        members BLOB NOT NULL
    ) STRICT;
    INSERT INTO requests
        SELECT row_number() OVER (ORDER BY (number - 1) / 4096, number DESC),
            started_at, id, form, seq, members
        FROM new_requests;
    DROP TABLE new_requests;
    CREATE UNIQUE INDEX admission ON requests (started_at, id);";

/// All that is there, and its form. A conversion forgets the cursors: the journal is read again.
const ALL: [&str; 7] = [
    "SELECT name, sql FROM sqlite_schema ORDER BY name",
    "SELECT * FROM ledgers ORDER BY first",
    "SELECT requests.number, started_at, id, tenant, strings, seq, members
     FROM requests JOIN forms ON forms.number = form ORDER BY requests.number",
    "SELECT * FROM corrections ORDER BY number",
    "SELECT hour, dimensions, part, requests, input_tokens, cache_read_input_tokens, output_tokens,
        cost, list_cost, unknown_cost_requests, counted_requests, unknown_usage_requests, quantities
     FROM hours JOIN combinations ON combinations.number = combination ORDER BY 1, 2, 3",
    "SELECT * FROM lines ORDER BY number",
    "SELECT * FROM refusals",
];

fn all(connection: &Connection) -> Vec<Vec<Value>> {
    let rows = |question: &str| {
        let mut query = connection.prepare(question).unwrap();
        let columns = query.column_count();
        let row = query.query_map((), |row| (0..columns).map(|n| row.get(n)).collect());
        row.unwrap().collect::<rusqlite::Result<Vec<Vec<Value>>>>().unwrap()
    };
    ALL.iter().flat_map(|question| rows(question)).collect()
}

/// A store in an old format; and all that it should have when it is converted.
fn old(format: u32, content: &Content) -> (TempDir, Vec<Vec<Value>>) {
    let dir = tempfile::tempdir().unwrap();
    content.fill(&mut Store::open(dir.path()).unwrap());
    let connection = connect(&dir);
    let expected = all(&connection);
    connection.execute_batch(OLD_TABLES).unwrap();
    for (id, json) in content.records() {
        let set = "UPDATE requests SET record = ?2 WHERE id = ?1";
        connection.execute(set, (id.as_bytes(), json)).unwrap();
    }
    for (id, json) in content.corrections() {
        let set = "UPDATE corrections SET correction = ?2 WHERE id = ?1";
        connection.execute(set, (id.as_bytes(), json)).unwrap();
    }
    if format == 2 {
        connection.execute_batch("DROP TABLE refusals").unwrap();
    }
    connection.pragma_update(None, "user_version", format).unwrap();
    (dir, expected)
}

#[test]
fn a_converted_store_is_the_same_as_a_new_one_with_the_same_content() {
    for format in FORMATS {
        let content = Content::new(format, 1200);
        let (dir, expected) = old(format, &content);
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Older { .. }), "{error}");
        assert_eq!(Sqlite::convert(dir.path()).unwrap(), Some(content.all()));
        assert!(all(&connect(&dir)) == expected, "of format {format}");
        assert_eq!(Sqlite::convert(dir.path()).unwrap(), None);
        // The journal is read again, and all of it is there.
        content.fill(&mut Store::open(dir.path()).unwrap());
        assert!(all(&connect(&dir)) == expected, "of format {format}");
    }
}

#[test]
fn a_conversion_that_fails_in_the_middle_goes_on_there() {
    for (table, number) in [("requests", 1), ("requests", 600), ("corrections", 2)] {
        let content = Content::new(2, 1200);
        let (dir, expected) = old(2, &content);
        let obstacle = format!(
            "CREATE TRIGGER obstacle BEFORE DELETE ON {table} WHEN OLD.number = {number}
             BEGIN SELECT RAISE(ABORT, 'the disk is gone'); END"
        );
        connect(&dir).execute_batch(&obstacle).unwrap();
        let error = Sqlite::convert(dir.path()).unwrap_err();
        assert!(error.to_string().contains("the disk is gone"), "{error}");
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Older { .. }), "{error}");
        connect(&dir).execute_batch("DROP TRIGGER obstacle").unwrap();
        assert!(Sqlite::convert(dir.path()).unwrap().is_some());
        assert!(all(&connect(&dir)) == expected, "{table} {number}");
    }
}

/// A store of formats 4 or 5, with an obstacle; and all that it should have when it is converted.
fn with_forms(format: u32, fails_at: Option<i64>) -> (TempDir, Content, Vec<Vec<Value>>) {
    let content = Content::new(3, 9_000);
    let dir = tempfile::tempdir().unwrap();
    content.fill(&mut Store::open(dir.path()).unwrap());
    let connection = connect(&dir);
    let unreadable = "UPDATE requests SET members = x'00' WHERE number = 4711";
    connection.execute(unreadable, ()).unwrap();
    let expected = all(&connection);
    connection.execute_batch(TABLES_WITH_FORMS).unwrap();
    if format == 4 {
        connection.execute_batch("DROP TABLE days; DROP TABLE reached").unwrap();
    }
    if let Some(number) = fails_at {
        let obstacle = format!(
            "CREATE TRIGGER obstacle BEFORE DELETE ON requests WHEN OLD.number = {number}
             BEGIN SELECT RAISE(ABORT, 'the disk is gone'); END"
        );
        connection.execute_batch(&obstacle).unwrap();
    }
    connection.pragma_update(None, "user_version", format).unwrap();
    (dir, content, expected)
}

#[test]
fn requests_of_a_store_with_ledgers_in_its_forms_move_as_they_are_in_the_order_of_their_keys() {
    for (format, fails_at) in [(4, None), (5, None), (5, Some(1)), (4, Some(8_000))] {
        let (dir, content, expected) = with_forms(format, fails_at);
        let cursors = || {
            let question = "SELECT group_concat(journal || seq || chain) FROM cursors";
            connect(&dir).query_row(question, (), |row| row.get::<_, String>(0)).unwrap()
        };
        let before = cursors();
        let error = Store::open(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Older { .. }), "{error}");
        if fails_at.is_some() {
            let error = Sqlite::convert(dir.path()).unwrap_err();
            assert!(error.to_string().contains("the disk is gone"), "{error}");
            let error = Store::open(dir.path()).unwrap_err();
            assert!(matches!(error, StoreError::Older { .. }), "{error}");
            connect(&dir).execute_batch("DROP TRIGGER obstacle").unwrap();
        }
        assert!(Sqlite::convert(dir.path()).unwrap().is_some());
        assert!(all(&connect(&dir)) == expected, "of format {format}, {fails_at:?}");
        assert_eq!(cursors(), before, "what it has is not read again");
        content.fill(&mut Store::open(dir.path()).unwrap());
        assert!(all(&connect(&dir)) == expected, "of format {format}, {fails_at:?}");
    }
}

#[test]
fn a_store_of_an_unknown_format_is_not_converted() {
    for format in [1, 7] {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::open(dir.path()).unwrap());
        connect(&dir).pragma_update(None, "user_version", format).unwrap();
        let error = Sqlite::convert(dir.path()).unwrap_err();
        assert!(matches!(error, StoreError::Format { .. }), "{error}");
    }
}
