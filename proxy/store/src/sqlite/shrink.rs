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
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok(number("freelist_count")? > number("page_count")? / FREE_OF)
}
