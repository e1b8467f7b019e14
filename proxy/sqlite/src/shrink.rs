//! Gives back the room of free pages, which a database keeps for later rows otherwise.

use rusqlite::Connection;

/// Of so many pages, one may be free.
const FREE_OF: i64 = 10;

/// Makes the file as short as what is in it, where more than a tenth of its pages is free. Others may
/// read meanwhile, and a crash leaves it as it was. Not inside of a transaction.
///
/// It takes the room of the content twice for a while, once in the folder for temporary files. Where
/// that is not there, or where somebody writes, the file stays as it is: nothing but room is lost.
pub(super) fn shrink(connection: &Connection) {
    if !is_loose(connection).unwrap_or_default() {
        return;
    }
    let _ = connection.execute_batch("VACUUM");
    // The file gets shorter when all of the log is in it.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

fn is_loose(connection: &Connection) -> rusqlite::Result<bool> {
    Ok(number(connection, "freelist_count")? > number(connection, "page_count")? / FREE_OF)
}

/// The bytes of free pages.
pub(super) fn free_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let pages = number(connection, "freelist_count")?;
    let bytes = pages.saturating_mul(number(connection, "page_size")?);
    Ok(u64::try_from(bytes).unwrap_or_default())
}

fn number(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
