//! Requests that have left the tables for files: one or several for each UTC day of admission, in the
//! folder `days` of the data directory.
//!
//! The table `days` says which files count. Requests leave their table in the transaction in which the
//! file that has them is named, so that each request is in one place at any moment. Who asks sees the
//! tables and the list as of one moment.

mod adopt;
mod behind;
mod check;
mod count;
mod folder;
mod held;
mod known;
mod list;
mod merge;
mod open;
mod page;
mod read_ahead;
mod seal;
mod selection;
mod session_files;
mod session_posts;
mod tidy;
mod window;

use rusqlite::Connection;

use super::ledgers;

pub(super) use self::adopt::found_files;
pub(super) use self::behind::{behind, first_entry, lacked};
pub(super) use self::check::check;
pub(super) use self::count::{corrections, count_corrections, entries, key_of_last, tenants};
pub(super) use self::folder::{
    FOLDER, NewFile, UNFINISHED, day_names, lock, names, remove as remove_file, sessions_name,
};
pub(super) use self::known::{find, sealed};
pub(super) use self::list::{LiveFile, add, all, are_there, names_of, remove as unlist};
pub(super) use self::merge::{merge, replace};
pub(super) use self::open::{Days, FileFault, found, lifted};
pub(super) use self::page::{admitted, admitted_before, posts, written};
pub(super) use self::seal::{Interrupt, PART_ROWS_MAX, Sealing, leave, seal};
pub(super) use self::session_files::{
    LiveSessions, SessionCovers, adopt_sessions, all_sessions, check_file_of_sessions,
    forget_damaged_sessions, name_sessions, open_sessions, session_names, sessions_described,
    sessions_of, unname_sessions,
};
pub(super) use self::session_posts::session_posts;
pub(super) use self::tidy::{leftovers, remove};

/// A store that has all of its requests in files does not look empty. Needs an open transaction.
pub(super) fn keep_first_number(connection: &Connection, days: &Days) -> rusqlite::Result<()> {
    if days.files().is_empty() { Ok(()) } else { ledgers::keep_numbers(connection, 1) }
}
