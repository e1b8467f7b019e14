//! Counts of requests without a record.

use std::borrow::Cow;

use super::entries::text;
use super::keys::{member_key as key, string};
use super::member::{DecodeError, Value, Writer, time_of};
use super::parts::Parts;
use crate::id::TenantId;
use crate::refusals::{RefusalCount, RefusalKind, Refusals};

/// Keys inside a count.
mod count {
    pub(super) const TENANT: u64 = 1;
    pub(super) const OTHERS: u64 = 2;
    pub(super) const REASON: u64 = 3;
    pub(super) const STATUS: u64 = 4;
    pub(super) const ADMITTED: u64 = 5;
    pub(super) const COUNT: u64 = 6;
}

pub(super) fn refusals(refusals: &Refusals, out: &mut Writer<'_>) {
    out.id(refusals.id);
    out.string(string::GATEWAY, &refusals.gateway);
    out.end_strings();
    let base = time_of(refusals.id);
    out.time(key::AT, refusals.at, base);
    out.time(key::MINUTE, refusals.minute, base);
    for RefusalCount { kind, count } in &refusals.counts {
        out.nested(key::REFUSAL, |out| {
            out.maybe_text(count::TENANT, kind.tenant.as_ref().map(TenantId::as_str));
            out.unless_zero(count::OTHERS, kind.others.into());
            out.bytes(count::REASON, kind.reason.as_bytes());
            out.maybe_number(count::STATUS, kind.status.map(u64::from));
            out.unless_zero(count::ADMITTED, kind.admitted.into());
            out.number(count::COUNT, *count);
        });
    }
}

pub(super) fn read_refusals(parts: &Parts<'_>) -> Result<Refusals, DecodeError> {
    let Parts { id, mut strings, mut members } = parts.clone();
    let mut gateway = String::new();
    while let Some((key, bytes)) = strings.next()? {
        if key == string::GATEWAY {
            text(bytes)?.clone_into(&mut gateway);
        }
    }
    let (mut at, mut minute, mut counts) = (None, None, Vec::new());
    while let Some((key, value)) = members.next()? {
        match key {
            key::AT => at = Some(value.time(time_of(id))?),
            key::MINUTE => minute = Some(value.time(time_of(id))?),
            key::REFUSAL => counts.push(read_count(value)?),
            _ => {}
        }
    }
    Ok(Refusals {
        id,
        gateway,
        at: at.ok_or(DecodeError::Missing("at"))?,
        minute: minute.ok_or(DecodeError::Missing("minute"))?,
        counts,
    })
}

fn read_count(value: Value<'_>) -> Result<RefusalCount, DecodeError> {
    let mut kind = RefusalKind {
        tenant: None,
        others: false,
        reason: Cow::Borrowed(""),
        status: None,
        admitted: false,
    };
    let mut count = 0;
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            count::TENANT => kind.tenant = Some(TenantId(value.text()?.into())),
            count::OTHERS => kind.others = value.number() != 0,
            count::REASON => kind.reason = value.owned()?.into(),
            count::STATUS => {
                let status = u16::try_from(value.number());
                kind.status = Some(status.map_err(|_| DecodeError::OutOfRange)?);
            }
            count::ADMITTED => kind.admitted = value.number() != 0,
            count::COUNT => count = value.number(),
            _ => {}
        }
    }
    Ok(RefusalCount { kind, count })
}
