//! How long the gateways of the store keep details.

use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::Link;

const SET: &str = "
    INSERT INTO taximeter.keeping VALUES ($1, $2)
    ON CONFLICT (gateway) DO UPDATE SET records_keep_days = excluded.records_keep_days";
const LONGEST: &str = "SELECT max(records_keep_days) FROM taximeter.keeping";

/// Notes for how many days this gateway keeps details: the most days of all gateways.
pub(super) fn longest(link: &Link, gateway: &str, own: u32) -> Result<u32, Fault> {
    let days = i64::from(own);
    link.query(SET, &[(&gateway, Type::TEXT), (&days, Type::INT8)])?;
    let longest: Option<i64> = link.query_one(LONGEST, &[])?.try_get(0)?;
    Ok(longest.and_then(|longest| u32::try_from(longest).ok()).unwrap_or(own).max(own))
}
