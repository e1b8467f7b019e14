//! How far in time the journals are that feed the store.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use taximeter_billing::{GatewayProgress, SettledUntil};
use taximeter_database::batch::Reach;
use taximeter_journal::REQUESTS;

use super::ask::unreadable;

const SET: &str = "
    INSERT INTO reached VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (journal) DO UPDATE SET
        heard = excluded.heard,
        said_at = coalesce(excluded.said_at, said_at),
        settled_until = coalesce(excluded.settled_until, settled_until),
        request_seconds = coalesce(excluded.request_seconds, request_seconds)";
const REACHED: &str = "
    SELECT heard, said_at, settled_until, request_seconds FROM reached WHERE journal = ?1";
/// Of a store that was fed before it had that table.
const NEWEST: &str = "
    SELECT started_at, NULL, NULL, NULL FROM requests
    WHERE EXISTS (SELECT 1 FROM cursors WHERE journal = ?1)
    ORDER BY started_at DESC
    LIMIT 1";

/// Notes how far a batch of `journal` reaches. Needs an open transaction.
pub(super) fn set(connection: &Connection, journal: &str, reach: &Reach) -> rusqlite::Result<()> {
    let Reach { heard: Some(heard), settled } = reach else { return Ok(()) };
    connection.prepare_cached(SET)?.execute(params![
        journal,
        heard.as_microsecond(),
        settled.map(|said| said.at.as_microsecond()),
        settled.map(|said| said.until.as_microsecond()),
        settled.map(|said| said.request_max.as_secs()),
    ])?;
    Ok(())
}

/// How far the journal of requests is, without the name of its gateway. `None` if none feeds the
/// store.
pub(super) fn progress(connection: &Connection) -> rusqlite::Result<Option<GatewayProgress>> {
    match connection.query_row(REACHED, [REQUESTS], read).optional()? {
        None => connection.query_row(NEWEST, [REQUESTS], read).optional(),
        found => Ok(found),
    }
}

/// The same with its name. The gateway is the one of the directory with the database at `path`.
pub(super) fn named(found: GatewayProgress, path: &Path) -> GatewayProgress {
    let dir = path.parent().unwrap_or(path);
    let name = taximeter_journal::gateway(dir).ok().flatten();
    let gateway = name.unwrap_or_else(|| format!("the gateway of {}", dir.display()));
    GatewayProgress { gateway, is_running: taximeter_journal::is_written(dir), ..found }
}

fn read(row: &Row<'_>) -> rusqlite::Result<GatewayProgress> {
    let time = |index: usize| {
        let micros = row.get::<_, Option<i64>>(index)?;
        let time = micros.map(Timestamp::from_microsecond).transpose();
        time.map_err(|error| unreadable(index, error))
    };
    let seconds: Option<i64> = row.get(3)?;
    let said = time(1)?.zip(time(2)?).zip(seconds);
    Ok(GatewayProgress {
        gateway: String::new(),
        heard: time(0)?.unwrap_or_default(),
        settled: said.map(|((at, until), seconds)| {
            let request_max = SignedDuration::from_secs(seconds);
            SettledUntil { at, until, request_max }
        }),
        is_running: false,
    })
}
