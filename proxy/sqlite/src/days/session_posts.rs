//! The requests of a session, from the tables and from the files.

use std::ops::ControlFlow;

use rusqlite::Connection;
use taximeter_billing::Period;
use taximeter_database::post::Post;
use taximeter_database::sessions::is_of;
use taximeter_ledger::Place;

use super::open::Days;
use super::page::filter_of;
use super::window::row_filter;
use crate::ask::{self, unreadable};

/// A request, by its admission and its id.
type Keyed = (i64, [u8; 16], Place, Vec<u8>);

/// See [`Database::session_posts`](taximeter_database::database::Database::session_posts). All of them are
/// in memory.
pub(crate) fn session_posts(
    connection: &Connection,
    days: &mut Days,
    period: Period,
    (tenant, session): (&str, &str),
    visit: &mut dyn FnMut(&Post<'_>) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut found = Vec::<Keyed>::new();
    let mut add = |post: &Post<'_>| {
        if is_of(post, session) {
            let at = post.view().started_at.as_microsecond();
            found.push((at, post.id().0.into_bytes(), post.place, post.payload.to_vec()));
        }
    };
    ask::posts(connection, period, Some(tenant), &mut |post| {
        add(post);
        ControlFlow::Continue(())
    })?;
    let filter = filter_of(period, Some(tenant));
    let rows_of = row_filter(&filter, filter.since(), filter.before());
    for file in days.between(filter.since(), filter.before()) {
        let opened = days.open(&file)?;
        let scan = opened.scan_session(&rows_of, session);
        let mut scan = scan.map_err(|error| days.fault(&file.name, error))?;
        while let Some(row) = scan.next_row().map_err(|error| days.fault(&file.name, error))? {
            add(&Post::read(row.place, row.payload).map_err(|error| unreadable(2, error))?);
        }
    }
    found.sort_unstable();
    for (.., place, payload) in &found {
        let post = Post::read(*place, payload).map_err(|error| unreadable(2, error))?;
        if visit(&post).is_break() {
            break;
        }
    }
    Ok(())
}
