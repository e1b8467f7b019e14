//! How far in time the journals are that feed the store.

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::{GatewayProgress, SettledUntil};
use taximeter_database::batch::Reach;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::Link;
use super::schema;

const SET: &str = "
    INSERT INTO taximeter.reached AS known VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (gateway) DO UPDATE SET
        heard = excluded.heard,
        said_at = coalesce(excluded.said_at, known.said_at),
        settled_until = coalesce(excluded.settled_until, known.settled_until),
        request_seconds = coalesce(excluded.request_seconds, known.request_seconds)";
/// A gateway that fed the store before it had that table is as far as the newest request at most.
const REACHED: &str = "
    SELECT cursors.gateway,
        coalesce(heard, (SELECT max(started_at) FROM taximeter.requests)),
        said_at, settled_until, request_seconds
    FROM taximeter.cursors LEFT JOIN taximeter.reached ON reached.gateway = cursors.gateway
    WHERE journal = 'journal'
    ORDER BY cursors.gateway";
const UNREACHED: &str = "
    SELECT gateway, (SELECT max(started_at) FROM taximeter.requests),
        NULL::bigint, NULL::bigint, NULL::bigint
    FROM taximeter.cursors
    WHERE journal = 'journal'
    ORDER BY gateway";

/// Notes how far a batch of the journal of `gateway` reaches. Needs an open change.
pub(super) fn set(link: &Link, gateway: &str, reach: &Reach) -> Result<(), Fault> {
    let Reach { heard: Some(heard), settled } = reach else { return Ok(()) };
    let heard = heard.as_microsecond();
    let at = settled.map(|said| said.at.as_microsecond());
    let until = settled.map(|said| said.until.as_microsecond());
    let seconds = settled.map(|said| said.request_max.as_secs());
    let given = [
        (&gateway as _, Type::TEXT),
        (&heard as _, Type::INT8),
        (&at as _, Type::INT8),
        (&until as _, Type::INT8),
        (&seconds as _, Type::INT8),
    ];
    link.query(SET, &given).map(|_| ())
}

/// How far each gateway is.
pub(super) fn progress(link: &Link) -> Result<Vec<GatewayProgress>, Fault> {
    let question = if schema::has_later(link)? { REACHED } else { UNREACHED };
    let mut found = Vec::new();
    for row in link.query(question, &[])? {
        // One whose journal has nothing for the store yet.
        let Some(heard) = time(&row, 1)? else { continue };
        let said = time(&row, 2)?.zip(time(&row, 3)?).zip(row.try_get::<_, Option<i64>>(4)?);
        found.push(GatewayProgress {
            gateway: row.try_get(0)?,
            heard,
            settled: said.map(|((at, until), seconds)| {
                let request_max = SignedDuration::from_secs(seconds);
                SettledUntil { at, until, request_max }
            }),
            is_running: false,
        });
    }
    Ok(found)
}

fn time(row: &Row, column: usize) -> Result<Option<Timestamp>, Fault> {
    let micros: Option<i64> = row.try_get(column)?;
    micros.map(Timestamp::from_microsecond).transpose().map_err(Fault::unreadable)
}
