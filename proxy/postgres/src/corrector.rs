//! Controls who writes corrections in a shared database: one run at a time, and none before
//! everything that other runs wrote has arrived.
//!
//! The lock is one of a transaction, on a connection of its own: it ends with the connection, and a pool
//! that gives each transaction another session keeps it.
//!
//! A correction is written to a journal first, perhaps on another machine. A run may die before the
//! correction arrives here. A run that did not know of it would correct the same request again. So
//! each run sets a mark before its first correction and removes it after its last one.

use jiff::Timestamp;
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::Link;

/// Ours, of all that the database's users agree on: “taxirate” in ASCII.
const LOCK: i64 = 0x7461_7869_7261_7465;

/// Nothing has to happen in the transaction that holds the lock.
const OPEN: &str = "
    BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0";
/// Held to the end of the transaction.
const CLAIM: &str = "SELECT pg_try_advisory_xact_lock($1)";
const LEAVE: &str = "ROLLBACK";
const FORGET: &str = "DELETE FROM taximeter.correctors WHERE gateway = $1";
const UNFINISHED: &str = "
    SELECT gateway, since FROM taximeter.correctors
    WHERE gateway <> $1 ORDER BY since, gateway LIMIT 1";
const MARK: &str = "INSERT INTO taximeter.correctors VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// The right to correct. If it is dropped, it ends when the server sees that the connection has closed.
#[derive(Debug)]
pub(super) struct Claim(Link);

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
/// come any more. `claim` is a new connection to the same database.
pub(super) fn begin(
    link: &Link,
    claim: Link,
    gateway: &str,
    lost: Option<&str>,
    now: Timestamp,
) -> Result<Result<Claim, Obstacle>, Fault> {
    claim.run(OPEN)?;
    if !claim.query_one(CLAIM, &[(&LOCK, Type::INT8)])?.try_get(0)? {
        return Ok(Err(Obstacle::Busy));
    }
    if let Some(lost) = lost {
        link.query(FORGET, &[(&lost, Type::TEXT)])?;
    }
    if let Some(unfinished) = link.query(UNFINISHED, &[(&gateway, Type::TEXT)])?.first() {
        let gateway = unfinished.try_get(0)?;
        let since = Timestamp::from_microsecond(unfinished.try_get(1)?);
        let since = since.map_err(Fault::unreadable)?;
        claim.run(LEAVE)?;
        return Ok(Err(Obstacle::Unfinished { gateway, since }));
    }
    let since = now.as_microsecond();
    link.query(MARK, &[(&gateway, Type::TEXT), (&since, Type::INT8)])?;
    Ok(Ok(Claim(claim)))
}

/// All that `gateway` wrote is here.
pub(super) fn end(link: &Link, claim: Option<&Claim>, gateway: &str) -> Result<(), Fault> {
    link.query(FORGET, &[(&gateway, Type::TEXT)])?;
    claim.map_or(Ok(()), |Claim(link)| link.run(LEAVE))
}
