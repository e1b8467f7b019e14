//! Controls who writes corrections in a shared database: one run at a time, and none before
//! everything that other runs wrote has arrived.
//!
//! A correction is written to a journal first, perhaps on another machine. A run may die before the
//! correction arrives here. A run that did not know of it would correct the same request again. So
//! each run sets a mark before its first correction and removes it after its last one.

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::{Given, Link};

/// Ours, of all that the database's users agree on: “taxirate” in ASCII.
const LOCK: i64 = 0x7461_7869_7261_7465;

/// Held to the end of the connection.
const CLAIM: &str = "SELECT pg_try_advisory_lock($1)";
const LEAVE: &str = "SELECT pg_advisory_unlock($1)";
const FORGET: &str = "DELETE FROM correctors WHERE gateway = $1";
const UNFINISHED: &str = "
    SELECT gateway, since FROM correctors WHERE gateway <> $1 ORDER BY since, gateway LIMIT 1";
const MARK: &str = "INSERT INTO correctors VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// What keeps a run from its corrections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// Another run is active.
    Busy,
    /// A run has died, and its corrections may not all be in the database.
    Unfinished {
        /// In whose journal.
        gateway: String,
        /// When it began.
        since: Timestamp,
    },
}

/// Lets `gateway` correct, and nobody else. Of one that is `lost` with its journal, nothing will
/// come any more.
pub(super) fn begin(
    link: &Link,
    gateway: &str,
    lost: Option<&str>,
    now: Timestamp,
) -> Result<Result<(), Obstacle>, Fault> {
    if !link.query_one(CLAIM, &[lock()])?.try_get(0)? {
        return Ok(Err(Obstacle::Busy));
    }
    if let Some(lost) = lost {
        link.query(FORGET, &[(&lost, Type::TEXT)])?;
    }
    if let Some(unfinished) = link.query(UNFINISHED, &[(&gateway, Type::TEXT)])?.first() {
        let gateway = unfinished.try_get(0)?;
        let since = Timestamp::from_microsecond(unfinished.try_get(1)?);
        let since = since.map_err(Fault::unreadable)?;
        link.query(LEAVE, &[lock()])?;
        return Ok(Err(Obstacle::Unfinished { gateway, since }));
    }
    let since = now.as_microsecond();
    link.query(MARK, &[(&gateway, Type::TEXT), (&since, Type::INT8)])?;
    Ok(Ok(()))
}

/// All that `gateway` wrote is here.
pub(super) fn end(link: &Link, gateway: &str) -> Result<(), Fault> {
    link.query(FORGET, &[(&gateway, Type::TEXT)])?;
    link.query(LEAVE, &[lock()]).map(|_| ())
}

fn lock() -> Given<'static> {
    (&LOCK, Type::INT8)
}
