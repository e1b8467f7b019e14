//! Checkpoints, and the pending requests in them.

use taximeter_pricing::Condition;
use uuid::Uuid;

use super::keys::member_key as key;
use super::member::{DecodeError, Value, Writer, number, put, time_of};
use super::numbered::Numbered as _;
use super::parts::Parts;
use crate::completion::PendingRequest;
use crate::entry::{Checkpoint, Settled};
use crate::id::{RequestId, TenantId};

/// Keys inside a sum of costs.
mod sum {
    pub(super) const CURRENCY: u64 = 1;
    pub(super) const AMOUNT: u64 = 2;
}

/// Keys inside what is settled.
mod settled {
    pub(super) const AT: u64 = 1;
    pub(super) const UNTIL: u64 = 2;
    pub(super) const REQUEST_SECONDS_MAX: u64 = 3;
}

/// Keys inside a pending request.
mod pending {
    pub(super) const ID: u64 = 1;
    pub(super) const STARTED_AT: u64 = 2;
    pub(super) const TENANT: u64 = 3;
    pub(super) const UPSTREAM: u64 = 4;
    pub(super) const RESPONSE_ID: u64 = 5;
    pub(super) const OPERATION: u64 = 6;
    pub(super) const ROUTE: u64 = 7;
    pub(super) const PROVIDER: u64 = 8;
    pub(super) const REQUEST_MODEL: u64 = 9;
    pub(super) const RESPONSE_MODEL: u64 = 10;
    pub(super) const SERVICE_TIER: u64 = 11;
    pub(super) const CONDITION: u64 = 12;
}

pub(super) fn checkpoint(checkpoint: &Checkpoint, out: &mut Writer<'_>) {
    out.id(RequestId(Uuid::nil()));
    out.end_strings();
    out.time(key::AT, checkpoint.at, 0);
    out.unless_zero(key::POSTS, checkpoint.posts);
    out.unless_zero(key::VOIDS, checkpoint.voids);
    out.unless_zero(key::CORRECTIONS, checkpoint.corrections);
    for (currency, amount) in &checkpoint.costs {
        out.nested(key::COST, |out| {
            out.bytes(sum::CURRENCY, currency.as_bytes());
            out.decimal(sum::AMOUNT, amount);
        });
    }
    out.unless_zero(key::UNKNOWN_COSTS, checkpoint.unknown_cost);
    out.maybe_number(key::OLDEST_OPEN, checkpoint.oldest_open);
    for request in &checkpoint.pending {
        out.filled(key::PENDING, |out| write_pending(request, out));
    }
    if let Some(Settled { at, until, request_seconds_max }) = checkpoint.settled {
        out.nested(key::SETTLED, |out| {
            out.time(settled::AT, at, 0);
            out.time(settled::UNTIL, until, 0);
            out.unless_zero(settled::REQUEST_SECONDS_MAX, request_seconds_max);
        });
    }
}

/// Appends a pending request.
fn write_pending(request: &PendingRequest, out: &mut Vec<u8>) {
    let mut out = Writer::new(out);
    out.bytes(pending::ID, request.id.0.as_bytes());
    out.time(pending::STARTED_AT, request.started_at, time_of(request.id));
    for (key, text) in [
        (pending::TENANT, Some(request.tenant.as_str())),
        (pending::UPSTREAM, Some(&request.upstream)),
        (pending::RESPONSE_ID, Some(&request.response_id)),
        (pending::OPERATION, Some(&request.operation)),
        (pending::ROUTE, Some(&request.route)),
        (pending::PROVIDER, Some(&request.provider)),
        (pending::REQUEST_MODEL, request.request_model.as_deref()),
        (pending::RESPONSE_MODEL, request.response_model.as_deref()),
        (pending::SERVICE_TIER, request.service_tier.as_deref()),
    ] {
        out.maybe_text(key, text);
    }
    for (condition, value) in &request.conditions {
        out.filled(pending::CONDITION, |out| {
            put(condition.number(), out);
            out.extend_from_slice(value.as_bytes());
        });
    }
}

pub(super) fn read_checkpoint(parts: &Parts<'_>) -> Result<Checkpoint, DecodeError> {
    let mut found = Checkpoint::default();
    let mut at = None;
    let mut members = parts.members;
    while let Some((key, value)) = members.next()? {
        match key {
            key::AT => at = Some(value.time(0)?),
            key::POSTS => found.posts = value.number(),
            key::VOIDS => found.voids = value.number(),
            key::CORRECTIONS => found.corrections = value.number(),
            key::COST => {
                let (mut currency, mut amount) = (String::new(), None);
                let mut members = value.members();
                while let Some((key, value)) = members.next()? {
                    match key {
                        sum::CURRENCY => currency = value.owned()?,
                        sum::AMOUNT => amount = Some(value.decimal()?),
                        _ => {}
                    }
                }
                let amount = amount.ok_or(DecodeError::Missing("amount"))?;
                found.costs.insert(currency, amount);
            }
            key::UNKNOWN_COSTS => found.unknown_cost = value.number(),
            key::OLDEST_OPEN => found.oldest_open = Some(value.number()),
            key::PENDING => found.pending.push(read_pending(value)?),
            key::SETTLED => found.settled = Some(read_settled(value)?),
            _ => {}
        }
    }
    found.at = at.ok_or(DecodeError::Missing("at"))?;
    Ok(found)
}

fn read_settled(value: Value<'_>) -> Result<Settled, DecodeError> {
    let (mut at, mut until, mut request_seconds_max) = (None, None, 0);
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            settled::AT => at = Some(value.time(0)?),
            settled::UNTIL => until = Some(value.time(0)?),
            settled::REQUEST_SECONDS_MAX => request_seconds_max = value.number(),
            _ => {}
        }
    }
    let at = at.ok_or(DecodeError::Missing("at"))?;
    let until = until.ok_or(DecodeError::Missing("until"))?;
    Ok(Settled { at, until, request_seconds_max })
}

fn read_pending(value: Value<'_>) -> Result<PendingRequest, DecodeError> {
    let (mut id, mut started_at) = (None, None);
    let mut found = PendingRequest {
        id: RequestId(Uuid::nil()),
        started_at: jiff::Timestamp::UNIX_EPOCH,
        tenant: TenantId("".into()),
        upstream: String::new(),
        response_id: String::new(),
        operation: String::new(),
        route: String::new(),
        provider: String::new(),
        request_model: None,
        response_model: None,
        service_tier: None,
        conditions: std::collections::BTreeMap::new(),
    };
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            pending::ID => id = Some(value.id()?),
            pending::STARTED_AT => started_at = Some(value),
            pending::TENANT => found.tenant = TenantId(value.text()?.into()),
            pending::UPSTREAM => found.upstream = value.owned()?,
            pending::RESPONSE_ID => found.response_id = value.owned()?,
            pending::OPERATION => found.operation = value.owned()?,
            pending::ROUTE => found.route = value.owned()?,
            pending::PROVIDER => found.provider = value.owned()?,
            pending::REQUEST_MODEL => found.request_model = Some(value.owned()?),
            pending::RESPONSE_MODEL => found.response_model = Some(value.owned()?),
            pending::SERVICE_TIER => found.service_tier = Some(value.owned()?),
            pending::CONDITION => {
                let mut bytes = value.bytes();
                let condition = Condition::of(number(&mut bytes)?);
                let text = str::from_utf8(bytes).map_err(|_| DecodeError::NotText)?;
                found.conditions.extend(condition.ok().map(|it| (it, text.to_owned())));
            }
            _ => {}
        }
    }
    found.id = id.ok_or(DecodeError::Missing("id"))?;
    let started_at = started_at.ok_or(DecodeError::Missing("started_at"))?;
    found.started_at = started_at.time(time_of(found.id))?;
    Ok(found)
}
