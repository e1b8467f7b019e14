//! Reservations, progress and voids, and the strings that they share with records.

use std::collections::BTreeMap;

use super::dimensions;
use super::keys::{member_key as key, string};
use super::member::{DecodeError, Members, Value, Writer, time_of, uuid_of};
use super::numbered::Numbered as _;
use super::parts::Parts;
use super::texts::{read_text, texts};
use super::usage;
use crate::entry::{Progress, Reserve, Void, VoidReason};
use crate::id::{RequestId, TenantId};
use crate::record::{Identity, RecordUsage};

/// Keys inside the string of a caller.
mod caller {
    pub(super) const KEY_ID: u64 = 1;
    pub(super) const IDENTITY: u64 = 2;
    pub(super) const LABEL: u64 = 3;
}

/// Keys inside the string of a call.
mod call {
    pub(super) const OPERATION: u64 = 1;
    pub(super) const ROUTE: u64 = 2;
    pub(super) const STREAM: u64 = 3;
    pub(super) const UPSTREAM: u64 = 4;
    pub(super) const PROVIDER: u64 = 5;
    pub(super) const CONTEXT: u64 = 6;
    pub(super) const BACKGROUND: u64 = 7;
}

/// Who makes a request.
pub(super) struct Caller<'a> {
    pub(super) key_id: Option<&'a str>,
    pub(super) identity: Identity,
    pub(super) labels: &'a BTreeMap<String, String>,
}

/// What a request asks for, and of whom.
pub(super) struct Call<'a> {
    pub(super) operation: &'a str,
    pub(super) route: &'a str,
    pub(super) stream: bool,
    pub(super) upstream: &'a str,
    pub(super) provider: &'a str,
    pub(super) context: bool,
    pub(super) background: bool,
}

impl Caller<'_> {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.group(string::CALLER, |out| {
            out.maybe_text(caller::KEY_ID, self.key_id);
            out.number(caller::IDENTITY, self.identity.number());
            texts(caller::LABEL, self.labels, out);
        });
    }
}

impl Call<'_> {
    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.group(string::CALL, |out| {
            out.bytes(call::OPERATION, self.operation.as_bytes());
            out.bytes(call::ROUTE, self.route.as_bytes());
            out.unless_zero(call::STREAM, self.stream.into());
            out.bytes(call::UPSTREAM, self.upstream.as_bytes());
            out.bytes(call::PROVIDER, self.provider.as_bytes());
            out.unless_zero(call::CONTEXT, self.context.into());
            out.unless_zero(call::BACKGROUND, self.background.into());
        });
    }
}

/// What is read of a caller.
#[derive(Debug)]
pub(super) struct CallerRead {
    pub(super) key_id: Option<String>,
    pub(super) identity: Identity,
    pub(super) labels: BTreeMap<String, String>,
}

impl CallerRead {
    pub(super) fn read(group: &[u8]) -> Result<Self, DecodeError> {
        let mut found = Self { key_id: None, identity: Identity::Unknown, labels: BTreeMap::new() };
        let mut members = Members::new(group);
        while let Some((key, value)) = members.next()? {
            match key {
                caller::KEY_ID => found.key_id = Some(value.owned()?),
                caller::IDENTITY => found.identity = Identity::of(value.number())?,
                caller::LABEL => found.labels.extend([read_text(value)?]),
                _ => {}
            }
        }
        Ok(found)
    }
}

/// What is read of a call.
#[derive(Debug, Default)]
pub(super) struct CallRead<'a> {
    pub(super) operation: &'a str,
    pub(super) route: &'a str,
    pub(super) stream: bool,
    pub(super) upstream: &'a str,
    pub(super) provider: &'a str,
    pub(super) context: bool,
    pub(super) background: bool,
}

impl<'a> CallRead<'a> {
    pub(super) fn read(group: &'a [u8]) -> Result<Self, DecodeError> {
        let mut found = Self::default();
        let mut members = Members::new(group);
        while let Some((key, value)) = members.next()? {
            match key {
                call::OPERATION => found.operation = value.text()?,
                call::ROUTE => found.route = value.text()?,
                call::STREAM => found.stream = value.number() != 0,
                call::UPSTREAM => found.upstream = value.text()?,
                call::PROVIDER => found.provider = value.text()?,
                call::CONTEXT => found.context = value.number() != 0,
                call::BACKGROUND => found.background = value.number() != 0,
                _ => {}
            }
        }
        Ok(found)
    }
}

/// The text of a string.
pub(super) fn text(bytes: &[u8]) -> Result<&str, DecodeError> {
    str::from_utf8(bytes).map_err(|_| DecodeError::NotText)
}

/// The tenant that a string names.
pub(super) fn tenant(bytes: &[u8]) -> Result<TenantId, DecodeError> {
    Ok(TenantId(text(bytes)?.into()))
}

/// Writes the client's id of a request: nothing if it is our own id, and 16 bytes if it is a UUID.
pub(super) fn request_id(id: RequestId, request_id: &str, out: &mut Writer<'_>) {
    match uuid_of(request_id) {
        Some(uuid) if uuid == id.0 => {}
        Some(uuid) => out.bytes(key::REQUEST_UUID, uuid.as_bytes()),
        None => out.bytes(key::REQUEST_ID, request_id.as_bytes()),
    }
}

/// Reads a client's id, if the member is one.
pub(super) fn read_request_id(
    key: u64,
    value: Value<'_>,
    found: &mut String,
) -> Result<(), DecodeError> {
    match key {
        key::REQUEST_ID => *found = value.owned()?,
        key::REQUEST_UUID => write_id(value.id()?, found),
        _ => {}
    }
    Ok(())
}

/// Writes an id in place of what `to` has.
pub(super) fn write_id(id: RequestId, to: &mut String) {
    to.clear();
    to.push_str(id.0.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()));
}

pub(super) fn reserve(reserve: &Reserve, out: &mut Writer<'_>) {
    out.id(reserve.id);
    out.string(string::TENANT, reserve.tenant.as_str());
    Caller {
        key_id: reserve.key_id.as_deref(),
        identity: reserve.identity,
        labels: &reserve.labels,
    }
    .write(out);
    Call {
        operation: &reserve.operation,
        route: &reserve.route,
        stream: reserve.stream,
        upstream: &reserve.upstream,
        provider: &reserve.provider,
        context: reserve.context,
        background: reserve.background,
    }
    .write(out);
    out.maybe_string(string::REQUEST_MODEL, reserve.request_model.as_deref());
    out.maybe_string(string::SERVICE_TIER, reserve.service_tier.as_deref());
    out.end_strings();
    dimensions::write(reserve.dimensions.as_deref(), out);
    out.time(key::STARTED_AT, reserve.started_at, time_of(reserve.id));
    request_id(reserve.id, &reserve.request_id, out);
    usage::list(key::TOKENS, &[reserve.input_tokens, reserve.output_tokens], out);
    if let Some(amount) = &reserve.amount {
        out.decimal(key::AMOUNT, amount);
    }
}

pub(super) fn read_reserve(parts: &Parts<'_>) -> Result<Reserve, DecodeError> {
    let Parts { id, mut strings, mut members } = parts.clone();
    let (mut payer, mut caller, mut call) = (None, None, CallRead::default());
    let (mut request_model, mut service_tier) = (None, None);
    while let Some((key, bytes)) = strings.next()? {
        match key {
            string::TENANT => payer = Some(tenant(bytes)?),
            string::CALLER => caller = Some(CallerRead::read(bytes)?),
            string::CALL => call = CallRead::read(bytes)?,
            string::REQUEST_MODEL => request_model = Some(text(bytes)?.to_owned()),
            string::SERVICE_TIER => service_tier = Some(text(bytes)?.to_owned()),
            _ => {}
        }
    }
    let (mut started_at, mut request_id, mut amount) = (None, id.to_string(), None);
    let (mut tokens, mut told) = ([None; 2], None);
    while let Some((key, value)) = members.next()? {
        match key {
            key::STARTED_AT => started_at = Some(value.time(time_of(id))?),
            key::TOKENS => tokens = usage::read_list(value.bytes())?,
            key::AMOUNT => amount = Some(value.decimal()?),
            key::DIMENSIONS => told = dimensions::read(value)?,
            _ => read_request_id(key, value, &mut request_id)?,
        }
    }
    let CallerRead { key_id, identity, labels } = caller.ok_or(DecodeError::Missing("identity"))?;
    let [input_tokens, output_tokens] = tokens;
    Ok(Reserve {
        id,
        request_id,
        started_at: started_at.ok_or(DecodeError::Missing("started_at"))?,
        tenant: payer.ok_or(DecodeError::Missing("tenant"))?,
        key_id,
        identity,
        labels,
        dimensions: told,
        operation: call.operation.to_owned(),
        route: call.route.to_owned(),
        stream: call.stream,
        upstream: call.upstream.to_owned(),
        provider: call.provider.to_owned(),
        request_model,
        service_tier,
        amount,
        input_tokens,
        output_tokens,
        context: call.context,
        background: call.background,
    })
}

pub(super) fn progress(progress: &Progress, out: &mut Writer<'_>) {
    out.id(progress.id);
    out.maybe_string(string::RESPONSE_MODEL, progress.response_model.as_deref());
    out.maybe_string(string::SERVICE_TIER, progress.service_tier.as_deref());
    usage::sources(string::SOURCES, &progress.usage, out);
    out.end_strings();
    out.time(key::AT, progress.at, time_of(progress.id));
    out.maybe_text(key::RESPONSE_ID, progress.response_id.as_deref());
    usage::quantities(&progress.usage, out);
}

pub(super) fn read_progress(parts: &Parts<'_>) -> Result<Progress, DecodeError> {
    let Parts { id, mut strings, mut members } = parts.clone();
    let mut used = RecordUsage::default();
    let (mut response_model, mut service_tier) = (None, None);
    while let Some((key, bytes)) = strings.next()? {
        match key {
            string::RESPONSE_MODEL => response_model = Some(text(bytes)?.to_owned()),
            string::SERVICE_TIER => service_tier = Some(text(bytes)?.to_owned()),
            string::SOURCES => usage::read_sources(bytes, &mut used)?,
            _ => {}
        }
    }
    let (mut at, mut response_id) = (None, None);
    while let Some((key, value)) = members.next()? {
        match key {
            key::AT => at = Some(value.time(time_of(id))?),
            key::RESPONSE_ID => response_id = Some(value.owned()?),
            _ => usage::read_quantity(key, value, &mut used)?,
        }
    }
    let at = at.ok_or(DecodeError::Missing("at"))?;
    Ok(Progress { id, at, response_model, response_id, service_tier, usage: used })
}

pub(super) fn void(void: &Void, out: &mut Writer<'_>) {
    out.id(void.id);
    out.end_strings();
    out.time(key::AT, void.ended_at, time_of(void.id));
    out.number(key::VOID_REASON, void.reason.number());
}

pub(super) fn read_void(parts: &Parts<'_>) -> Result<Void, DecodeError> {
    let Parts { id, mut members, .. } = parts.clone();
    let (mut at, mut reason) = (None, None);
    while let Some((key, value)) = members.next()? {
        match key {
            key::AT => at = Some(value.time(time_of(id))?),
            key::VOID_REASON => reason = Some(VoidReason::of(value.number())?),
            _ => {}
        }
    }
    Ok(Void {
        id,
        reason: reason.ok_or(DecodeError::Missing("reason"))?,
        ended_at: at.ok_or(DecodeError::Missing("ended_at"))?,
    })
}
