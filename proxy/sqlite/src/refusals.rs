//! The counts of requests that have no record, as rows.

use std::ops::ControlFlow;

use jiff::Timestamp;
use rusqlite::{Connection, params};
use taximeter_billing::Period;
use taximeter_ledger::{RefusalCount, RefusalKind, Refusals, TenantId};

use super::ask::unreadable;

const ADD: &str = "INSERT OR REPLACE INTO refusals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// Summed up by parts of the period of equal length.
const COUNTS: &str = "
    SELECT minute / ?4 * ?4 AS part, tenant, others, reason, status, admitted, sum(count)
    FROM refusals
    WHERE minute >= ?1 AND minute < ?2 AND (?3 IS NULL OR tenant = ?3)
    GROUP BY part, tenant, others, reason, status, admitted
    ORDER BY part";

/// Adds entries, or puts them where they are already. Needs an open transaction.
pub(super) fn add(connection: &Connection, entries: &[Refusals]) -> rusqlite::Result<()> {
    for entry in entries {
        let mut add = connection.prepare_cached(ADD)?;
        for RefusalCount { kind, count } in &entry.counts {
            add.execute(params![
                entry.minute.as_microsecond(),
                entry.id.0.as_bytes(),
                kind.tenant.as_ref().map_or("", TenantId::as_str),
                kind.others,
                kind.reason,
                kind.status.unwrap_or(0),
                kind.admitted,
                count.cast_signed(),
            ])?;
        }
    }
    Ok(())
}

/// Shows the counts of each part of `period` that is so many microseconds long.
pub(super) fn visit(
    connection: &Connection,
    period: Period,
    tenant: Option<&str>,
    micros: i64,
    visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let (from, to) = (period.from().as_microsecond(), period.to().as_microsecond());
    let mut query = connection.prepare_cached(COUNTS)?;
    let mut rows = query.query(params![from, to, tenant, micros])?;
    while let Some(row) = rows.next()? {
        let part = Timestamp::from_microsecond(row.get(0)?).map_err(|e| unreadable(0, e))?;
        let tenant: String = row.get(1)?;
        let status: u16 = row.get(4)?;
        let kind = RefusalKind {
            tenant: (!tenant.is_empty()).then(|| TenantId(tenant.into())),
            others: row.get(2)?,
            reason: row.get::<_, String>(3)?.into(),
            status: (status > 0).then_some(status),
            admitted: row.get(5)?,
        };
        let count = row.get(6).map(i64::cast_unsigned)?;
        if visit(part, RefusalCount { kind, count }).is_break() {
            break;
        }
    }
    Ok(())
}
