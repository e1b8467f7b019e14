//! The statements that were issued.

use taximeter_billing::Period;
use tokio_postgres::types::Type;

use super::ask::storable;
use super::fault::Fault;
use super::link::Link;
use super::schema;

const READ: &str = "
    SELECT signed FROM taximeter.statements
    WHERE tenant = $1 AND period_start = $2 AND period_end = $3
    ORDER BY number";
const READ_ALL: &str = "
    SELECT signed FROM taximeter.statements ORDER BY tenant, period_start, period_end, number";
const ADD: &str = "
    INSERT INTO taximeter.statements VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING
    RETURNING number";

pub(super) fn read(link: &Link, tenant: &str, period: Period) -> Result<Vec<String>, Fault> {
    if !schema::has_later(link)? {
        return Ok(Vec::new());
    }
    let (tenant, [from, to]) = (storable(tenant), ends(period));
    let given = [(&tenant as _, Type::TEXT), (&from as _, Type::INT8), (&to as _, Type::INT8)];
    let rows = link.query(READ, &given)?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// All of them.
pub(super) fn read_all(link: &Link) -> Result<Vec<String>, Fault> {
    if !schema::has_later(link)? {
        return Ok(Vec::new());
    }
    let rows = link.query(READ_ALL, &[])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Adds a statement. Whether its number was free.
pub(super) fn add(
    link: &Link,
    tenant: &str,
    period: Period,
    (number, signed): (u32, &str),
) -> Result<bool, Fault> {
    let (tenant, [from, to]) = (storable(tenant), ends(period));
    let number = i32::try_from(number).map_err(Fault::unreadable)?;
    let given = [
        (&tenant as _, Type::TEXT),
        (&from as _, Type::INT8),
        (&to as _, Type::INT8),
        (&number as _, Type::INT4),
        (&signed as _, Type::TEXT),
    ];
    Ok(!link.query(ADD, &given)?.is_empty())
}

fn ends(period: Period) -> [i64; 2] {
    [period.from(), period.to()].map(|end| end.as_microsecond())
}
