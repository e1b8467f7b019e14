//! What sessions add up to by day, as rows.

use std::collections::HashMap;

use taximeter_database::sessions::{NewSessions, SessionVisitor, WhichSessions};
use taximeter_sessions::DaySum;
use tokio_postgres::types::Type;

use super::ask::storable;
use super::fault::Fault;
use super::link::Link;
use super::schema;

const KNOWN: &str = "
    SELECT sessions.day, sessions.tenant, sessions.session, sum
    FROM unnest($1::bigint[], $2::text[], $3::text[]) AS asked (day, tenant, session)
        JOIN taximeter.sessions ON sessions.day = asked.day AND sessions.tenant = asked.tenant
            AND sessions.session = asked.session";
const SET: &str = "
    INSERT INTO taximeter.sessions
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[])
    ON CONFLICT (day, tenant, session) DO UPDATE SET sum = excluded.sum";
/// In the order of bytes, whatever the database's own is.
const SUMS: &str = "
    SELECT tenant, session, sum, day
    FROM taximeter.sessions
    WHERE day >= $1 AND day < $2 AND ($3 IS NULL OR tenant = $3) AND ($4 IS NULL OR session = $4)
    ORDER BY tenant COLLATE \"C\", session COLLATE \"C\", day";

/// Adds to the sums that are here. Needs an open change.
pub(super) fn add(link: &Link, new: NewSessions) -> Result<(), Fault> {
    if new.count() == 0 {
        return Ok(());
    }
    let (mut days, mut tenants, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
    let mut sums = Vec::new();
    for (of, sum) in new.into_sums() {
        days.push(of.day);
        tenants.push(storable(&of.tenant).into_owned());
        sessions.push(storable(&of.session).into_owned());
        sums.push(sum);
    }
    let given = [
        (&days as _, Type::INT8_ARRAY),
        (&tenants as _, Type::TEXT_ARRAY),
        (&sessions as _, Type::TEXT_ARRAY),
    ];
    let mut known: HashMap<(i64, String, String), DaySum> = HashMap::new();
    for row in link.query(KNOWN, &given)? {
        let sum = DaySum::decode(row.try_get(3)?).map_err(Fault::unreadable)?;
        known.insert((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?), sum);
    }
    let keys = days.iter().zip(&tenants).zip(&sessions);
    let whole = keys.zip(&sums).map(|(((day, tenant), session), sum)| {
        match known.remove(&(*day, tenant.clone(), session.clone())) {
            None => sum.encode(),
            Some(mut known) => {
                known.add(sum);
                known.encode()
            }
        }
    });
    let whole: Vec<_> = whole.collect();
    link.query(
        SET,
        &[
            (&days, Type::INT8_ARRAY),
            (&tenants, Type::TEXT_ARRAY),
            (&sessions, Type::TEXT_ARRAY),
            (&whole, Type::BYTEA_ARRAY),
        ],
    )
    .map(|_| ())
}

/// Shows the sums of sessions in the order of tenant and session: one for each of their days.
pub(super) fn visit(
    link: &Link,
    which: WhichSessions<'_>,
    visit: &mut SessionVisitor<'_>,
) -> Result<(), Fault> {
    if !schema::is_there(link, "sessions")? {
        return Ok(());
    }
    let (from, to) = which.days;
    let (tenant, session) = (which.tenant.map(storable), which.session.map(storable));
    let given = [
        (&from as _, Type::INT8),
        (&to as _, Type::INT8),
        (&tenant as _, Type::TEXT),
        (&session as _, Type::TEXT),
    ];
    link.each(SUMS, &given, |row| {
        let sum = DaySum::decode(row.try_get(2)?).map_err(Fault::unreadable)?;
        Ok(visit(row.try_get(3)?, row.try_get(0)?, row.try_get(1)?, sum))
    })
}
