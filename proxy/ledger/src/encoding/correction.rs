//! Corrections and completions.

use taximeter_pricing::Source;

use super::cost::{self, CostKeys, CostReader};
use super::entries::{tenant, text};
use super::keys::{member_key as key, string};
use super::member::{DecodeError, Value, Writer, time_of};
use super::numbered::Numbered as _;
use super::parts::Parts;
use super::usage;
use crate::completion::Completion;
use crate::entry::{Completed, Correction};
use crate::record::{RecordError, RecordUsage};

/// Keys inside a completion. The numbers of its usage have the keys that they have in a record.
mod completion {
    pub(super) const RESPONSE_ID: u64 = 40;
    pub(super) const RESPONSE_MODEL: u64 = 41;
    pub(super) const SERVICE_TIER: u64 = 42;
    pub(super) const FINISH_REASON: u64 = 43;
    pub(super) const ERROR: u64 = 44;
    pub(super) const REQUESTS: u64 = 45;
    pub(super) const MODEL: u64 = 46;
    pub(super) const REPORTED_COST: u64 = 47;
}

/// Keys inside an error of a provider.
mod error {
    pub(super) const STATUS: u64 = 1;
    pub(super) const TYPE: u64 = 2;
    pub(super) const CODE: u64 = 3;
}

/// Keys inside what of an earlier completion counts.
mod completed {
    pub(super) const RESPONSE_MODEL: u64 = 1;
    pub(super) const SOURCE: u64 = 2;
}

pub(super) fn correction(correction: &Correction, out: &mut Writer<'_>) {
    out.id(correction.id);
    out.string(string::TENANT, correction.tenant.as_str());
    out.string(string::REASON, &correction.reason);
    if let Some(before) = &correction.before {
        cost::strings(CostKeys::BEFORE, before, out);
    }
    if let Some(after) = &correction.after {
        cost::strings(CostKeys::COST, after, out);
    }
    if let Some(completion) = &correction.completion {
        usage::sources(string::SOURCES, &completion.usage, out);
    }
    out.end_strings();
    out.bytes(key::CORRECTS, correction.corrects.0.as_bytes());
    let base = time_of(correction.corrects);
    out.time(key::STARTED_AT, correction.started_at, base);
    out.time(key::AT, correction.made_at, base);
    if let Some(before) = &correction.before {
        cost::members(CostKeys::BEFORE, before, out);
    }
    if let Some(after) = &correction.after {
        cost::members(CostKeys::COST, after, out);
    }
    if let Some(completion) = &correction.completion {
        out.nested(key::COMPLETION, |out| write_completion(completion, out));
    }
    if let Some(completed) = &correction.completed {
        out.nested(key::COMPLETED, |out| {
            out.maybe_text(completed::RESPONSE_MODEL, completed.response_model.as_deref());
            out.number(completed::SOURCE, completed.source.number());
        });
    }
}

fn write_completion(completion: &Completion, out: &mut Writer<'_>) {
    out.bytes(completion::RESPONSE_ID, completion.response_id.as_bytes());
    out.maybe_text(completion::RESPONSE_MODEL, completion.response_model.as_deref());
    out.maybe_text(completion::SERVICE_TIER, completion.service_tier.as_deref());
    for reason in &completion.finish_reasons {
        out.bytes(completion::FINISH_REASON, reason.as_bytes());
    }
    if let Some(error) = &completion.error {
        out.nested(completion::ERROR, |out| {
            out.maybe_text(error::STATUS, error.status.as_deref());
            out.maybe_text(error::TYPE, error.error_type.as_deref());
            out.maybe_text(error::CODE, error.code.as_deref());
        });
    }
    out.maybe_number(completion::REQUESTS, completion.requests);
    for model in &completion.models {
        usage::write_pass(completion::MODEL, model, out);
    }
    usage::quantities(&completion.usage, out);
    out.maybe_text(completion::REPORTED_COST, completion.reported_cost.as_deref());
}

pub(super) fn read_correction(parts: &Parts<'_>) -> Result<Correction, DecodeError> {
    let Parts { id, mut strings, mut members } = parts.clone();
    let (mut payer, mut reason) = (None, String::new());
    let (mut before, mut after) = (CostReader::default(), CostReader::default());
    let mut used = RecordUsage::default();
    while let Some((key, bytes)) = strings.next()? {
        match key {
            string::TENANT => payer = Some(tenant(bytes)?),
            string::REASON => text(bytes)?.clone_into(&mut reason),
            string::SOURCES => usage::read_sources(bytes, &mut used)?,
            _ => {
                before.string(CostKeys::BEFORE, key, bytes)?;
                after.string(CostKeys::COST, key, bytes)?;
            }
        }
    }
    let (mut corrects, mut started_at, mut made_at) = (None, None, None);
    let (mut completion, mut completed) = (None, None);
    while let Some((key, value)) = members.next()? {
        match key {
            key::CORRECTS => corrects = Some(value.id()?),
            key::STARTED_AT => started_at = Some(value),
            key::AT => made_at = Some(value),
            key::COMPLETION => {
                completion = Some(Box::new(read_completion(value, std::mem::take(&mut used))?));
            }
            key::COMPLETED => completed = Some(read_completed(value)?),
            _ => {
                before.member(CostKeys::BEFORE, key, value);
                after.member(CostKeys::COST, key, value);
            }
        }
    }
    let corrects = corrects.ok_or(DecodeError::Missing("corrects"))?;
    let time = |value: Option<Value<'_>>, name| {
        value.ok_or(DecodeError::Missing(name))?.time(time_of(corrects))
    };
    Ok(Correction {
        id,
        corrects,
        started_at: time(started_at, "started_at")?,
        tenant: payer.ok_or(DecodeError::Missing("tenant"))?,
        made_at: time(made_at, "made_at")?,
        reason,
        before: before.finish()?,
        after: after.finish()?,
        completion,
        completed,
    })
}

fn read_completion(value: Value<'_>, usage: RecordUsage) -> Result<Completion, DecodeError> {
    let mut found = Completion {
        response_id: String::new(),
        response_model: None,
        service_tier: None,
        finish_reasons: Vec::new(),
        error: None,
        requests: None,
        models: Vec::new(),
        usage,
        reported_cost: None,
    };
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            completion::RESPONSE_ID => found.response_id = value.owned()?,
            completion::RESPONSE_MODEL => found.response_model = Some(value.owned()?),
            completion::SERVICE_TIER => found.service_tier = Some(value.owned()?),
            completion::FINISH_REASON => found.finish_reasons.push(value.owned()?),
            completion::ERROR => found.error = Some(read_error(value)?),
            completion::REQUESTS => found.requests = Some(value.number()),
            completion::MODEL => found.models.push(usage::read_pass(value)?),
            completion::REPORTED_COST => found.reported_cost = Some(value.owned()?),
            _ => usage::read_quantity(key, value, &mut found.usage)?,
        }
    }
    Ok(found)
}

fn read_error(value: Value<'_>) -> Result<RecordError, DecodeError> {
    let mut found = RecordError::default();
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            error::STATUS => found.status = Some(value.owned()?),
            error::TYPE => found.error_type = Some(value.owned()?),
            error::CODE => found.code = Some(value.owned()?),
            _ => {}
        }
    }
    Ok(found)
}

fn read_completed(value: Value<'_>) -> Result<Completed, DecodeError> {
    let mut found = Completed { response_model: None, source: Source::Unknown };
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            completed::RESPONSE_MODEL => found.response_model = Some(value.owned()?),
            completed::SOURCE => found.source = Source::of(value.number())?,
            _ => {}
        }
    }
    Ok(found)
}
