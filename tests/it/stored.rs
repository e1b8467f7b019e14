//! Changes the SQLite store behind the gateway's back.

use std::path::Path;

use taximeter_ledger::{EncodedEntry, Entry, Payload, Record};

/// Changes the first record of the store.
pub(crate) fn change_first(folder: &Path, change: impl FnOnce(&mut Record)) {
    let store = rusqlite::Connection::open(folder.join("data/store.sqlite")).expect("open");
    let question = "SELECT requests.number, tenant, id, strings, members
        FROM requests JOIN forms ON forms.number = form ORDER BY seq LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| {
        let (id, strings, members): (Vec<u8>, Vec<u8>, Vec<u8>) =
            (row.get(2)?, row.get(3)?, row.get(4)?);
        let payload = [id, strings, members, b".".to_vec()].concat();
        Ok((row.get(0)?, row.get(1)?, payload))
    };
    let (number, tenant, payload): (i64, String, _) =
        store.query_row(question, [], read).expect("a request");
    let mut record = Record::decode(0, &payload).expect("a record");
    change(&mut record);
    let mut payload = Vec::new();
    EncodedEntry::new(&Entry::Post(Box::new(record)), &mut payload).expect("an entry");
    let payload = Payload::from(&*payload);
    let post = payload.post().expect("a post");
    let form =
        store.execute("INSERT INTO forms VALUES (NULL, 0, ?1, ?2)", (tenant, &**post.strings));
    assert_eq!(form, Ok(1));
    let changed = store.execute(
        "UPDATE requests SET form = ?1, members = ?2 WHERE number = ?3",
        (store.last_insert_rowid(), post.members, number),
    );
    assert_eq!(changed, Ok(1));
}

/// Changes the store.
pub(crate) fn meddle(folder: &Path, statement: &str) {
    let store = rusqlite::Connection::open(folder.join("data/store.sqlite")).expect("open");
    assert_ne!(store.execute(statement, []).expect(statement), 0, "{statement}");
}
