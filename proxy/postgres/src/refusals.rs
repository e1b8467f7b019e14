//! The counts of requests that have no record, as rows.

use std::ops::ControlFlow;

use jiff::Timestamp;
use taximeter_billing::Period;
use taximeter_ledger::{RefusalCount, RefusalKind, Refusals, TenantId};
use tokio_postgres::types::Type;

use super::ask::storable;
use super::fault::Fault;
use super::link::Link;

const ADD: &str = "
    INSERT INTO taximeter.refusals
    SELECT $1, $2, * FROM unnest(
        $3::text[], $4::boolean[], $5::text[], $6::integer[], $7::boolean[], $8::bigint[])
    ON CONFLICT (minute, id, tenant, others, reason, status, admitted)
        DO UPDATE SET count = excluded.count";

/// Summed up by parts of the period of equal length.
const COUNTS: &str = "
    SELECT minute / $4 * $4 AS part, tenant, others, reason, status, admitted,
        sum(count)::bigint
    FROM taximeter.refusals
    WHERE minute >= $1 AND minute < $2 AND ($3::text IS NULL OR tenant = $3)
    GROUP BY part, tenant, others, reason, status, admitted
    ORDER BY part";

/// Adds entries, or puts them where they are already. Needs an open change.
pub(super) fn add(link: &Link, entries: &[Refusals]) -> Result<(), Fault> {
    for Refusals { id, minute, counts, .. } in entries {
        let kinds = || counts.iter().map(|count| &count.kind);
        let minute = minute.as_microsecond();
        let tenants: Vec<_> = kinds()
            .map(|kind| storable(kind.tenant.as_ref().map_or("", TenantId::as_str)))
            .collect();
        let others: Vec<_> = kinds().map(|kind| kind.others).collect();
        let reasons: Vec<_> = kinds().map(|kind| storable(&kind.reason)).collect();
        let statuses: Vec<_> = kinds().map(|kind| i32::from(kind.status.unwrap_or(0))).collect();
        let admitted: Vec<_> = kinds().map(|kind| kind.admitted).collect();
        let numbers: Vec<_> = counts.iter().map(|count| count.count.cast_signed()).collect();
        link.query(
            ADD,
            &[
                (&minute, Type::INT8),
                (&id.0, Type::UUID),
                (&tenants, Type::TEXT_ARRAY),
                (&others, Type::BOOL_ARRAY),
                (&reasons, Type::TEXT_ARRAY),
                (&statuses, Type::INT4_ARRAY),
                (&admitted, Type::BOOL_ARRAY),
                (&numbers, Type::INT8_ARRAY),
            ],
        )?;
    }
    Ok(())
}

/// Shows the counts of each part of `period` that is so many microseconds long.
pub(super) fn visit(
    link: &Link,
    period: Period,
    tenant: Option<&str>,
    micros: i64,
    visit: &mut dyn FnMut(Timestamp, RefusalCount) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let (from, to) = (period.from().as_microsecond(), period.to().as_microsecond());
    let given = [
        (&from as _, Type::INT8),
        (&to as _, Type::INT8),
        (&tenant as _, Type::TEXT),
        (&micros as _, Type::INT8),
    ];
    for row in link.query(COUNTS, &given)? {
        let part = Timestamp::from_microsecond(row.try_get(0)?).map_err(Fault::unreadable)?;
        let (tenant, status): (&str, i32) = (row.try_get(1)?, row.try_get(4)?);
        let kind = RefusalKind {
            tenant: (!tenant.is_empty()).then(|| TenantId(tenant.into())),
            others: row.try_get(2)?,
            reason: row.try_get::<_, String>(3)?.into(),
            status: u16::try_from(status).ok().filter(|status| *status > 0),
            admitted: row.try_get(5)?,
        };
        let count = row.try_get(6).map(i64::cast_unsigned)?;
        if visit(part, RefusalCount { kind, count }).is_break() {
            break;
        }
    }
    Ok(())
}
