//! The record of a request.

use std::time::Duration;

use super::cost::{self, CostKeys, CostNumbersRead, CostReader};
use super::dimensions;
use super::entries::{self, Call, CallRead, Caller, CallerRead, text};
use super::keys::{member_key as key, string};
use super::member::{
    DecodeError, Members, Writer, number, put, put_successor, successor, time, time_of, unzigzag,
    zigzag,
};
use super::numbered::Numbered as _;
use super::parts::Parts;
use super::strings::Strings;
use super::texts::{read_text, texts};
use super::tools;
use super::usage;
use crate::gaps::{GAP_BUCKETS, Gaps};
use crate::id::RequestId;
use crate::record::{Counted, End, Record, RecordError, RecordTiming, RecordUsage};
use crate::stages::{Stage, Stages};

/// Keys inside the string of an origin.
mod origin {
    pub(super) const GATEWAY: u64 = 1;
    pub(super) const RESOURCE: u64 = 2;
}

/// Keys inside the string of an outcome.
mod outcome {
    pub(super) const STATUS: u64 = 1;
    pub(super) const END: u64 = 2;
    pub(super) const ERROR_TYPE: u64 = 3;
    pub(super) const PROVIDER_STATUS: u64 = 4;
    pub(super) const PROVIDER_TYPE: u64 = 5;
    pub(super) const PROVIDER_CODE: u64 = 6;
    pub(super) const FINISH_REASON: u64 = 7;
    pub(super) const HAS_ERROR: u64 = 8;
}

/// Numbers of a timing before those of its stages.
const TIMES: usize = 7;

pub(super) fn post(record: &Record, out: &mut Writer<'_>) {
    out.id(record.id);
    out.string(string::TENANT, record.tenant.as_str());
    Caller { key_id: record.key_id.as_deref(), identity: record.identity, labels: &record.labels }
        .write(out);
    Call {
        operation: &record.operation,
        route: &record.route,
        stream: record.stream,
        upstream: &record.upstream,
        provider: &record.provider,
        context: false,
        background: false,
    }
    .write(out);
    out.maybe_string(string::REQUEST_MODEL, record.request_model.as_deref());
    out.maybe_string(string::RESPONSE_MODEL, record.response_model.as_deref());
    out.maybe_string(string::SERVICE_TIER, record.service_tier.as_deref());
    out.group(string::ORIGIN, |out| {
        out.bytes(origin::GATEWAY, record.gateway.as_bytes());
        texts(origin::RESOURCE, &record.resource, out);
    });
    out.group(string::OUTCOME, |out| write_outcome(record, out));
    usage::sources(string::SOURCES, &record.usage, out);
    if let Some(owed) = record.owed() {
        cost::strings(CostKeys::COST, owed, out);
    }
    record.cost_unknown.iter().for_each(|reason| cost::unknown_cost(reason, out));
    out.end_strings();
    dimensions::write(record.dimensions.as_deref(), out);
    tools::write(&record.tools, out);
    out.time(key::STARTED_AT, record.started_at, time_of(record.id));
    let duration = micros(record.timing.duration);
    out.number(key::DURATION, duration);
    out.unless_zero(key::ENDED_AT, zigzag(drift(record, duration)));
    entries::request_id(record.id, &record.request_id, out);
    out.maybe_text(key::RESPONSE_ID, record.response_id.as_deref());
    if record.attempt != 1 {
        out.number(key::ATTEMPT, record.attempt.into());
    }
    usage::quantities(&record.usage, out);
    timing(&record.timing, out);
    if let Some(owed) = record.owed() {
        cost::members(CostKeys::COST, owed, out);
    }
    out.maybe_text(key::REPORTED_COST, record.reported_cost.as_deref());
}

/// Microseconds from where a request should end, by its start and duration, to where it ended by
/// the wall clock.
fn drift(record: &Record, duration: u64) -> i64 {
    let duration = i64::try_from(duration).unwrap_or(i64::MAX);
    let end = record.started_at.as_microsecond().wrapping_add(duration);
    record.ended_at.as_microsecond().wrapping_sub(end)
}

/// The end of a request, from its start, its duration and the drift of the wall clock.
pub(super) fn ended_at(
    started_at: jiff::Timestamp,
    duration: u64,
    drift: u64,
) -> Result<jiff::Timestamp, DecodeError> {
    let duration = i64::try_from(duration).unwrap_or(i64::MAX);
    time(duration.wrapping_add(unzigzag(drift)), started_at.as_microsecond())
}

fn write_outcome(record: &Record, out: &mut Writer<'_>) {
    out.maybe_number(outcome::STATUS, record.status.map(u64::from));
    out.number(outcome::END, record.end.number());
    out.maybe_text(outcome::ERROR_TYPE, record.error_type.as_deref());
    if let Some(error) = &record.error {
        out.number(outcome::HAS_ERROR, 1);
        out.maybe_text(outcome::PROVIDER_STATUS, error.status.as_deref());
        out.maybe_text(outcome::PROVIDER_TYPE, error.error_type.as_deref());
        out.maybe_text(outcome::PROVIDER_CODE, error.code.as_deref());
    }
    for reason in &record.finish_reasons {
        out.bytes(outcome::FINISH_REASON, reason.as_bytes());
    }
}

/// Reads the status and the end of an outcome, and nothing else.
pub(super) fn read_end(bytes: &[u8]) -> Result<(Option<u16>, Option<End>), DecodeError> {
    let (mut status, mut end) = (None, None);
    let mut members = Members::new(bytes);
    while let Some((key, value)) = members.next()? {
        match key {
            outcome::STATUS => {
                let read = u16::try_from(value.number());
                status = Some(read.map_err(|_| DecodeError::OutOfRange)?);
            }
            outcome::END => end = Some(End::of(value.number())?),
            _ => {}
        }
    }
    Ok((status, end))
}

fn timing(timing: &RecordTiming, out: &mut Writer<'_>) {
    let times = [
        timing.time_to_first_chunk.map(micros),
        timing.time_to_first_token.map(micros),
        timing.time_per_output_token.map(micros),
        timing.longest_stall.map(micros),
        Some(micros(timing.gateway)),
        Some(timing.output_chunks),
        timing.stages.map(|_| 0),
    ];
    let stages = timing.stages.unwrap_or_default();
    let stages = stages.micros().iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    out.filled(key::TIMING, |bytes| {
        times.into_iter().for_each(|number| put_successor(number, bytes));
        let of_stages = timing.stages.iter().flat_map(|stages| stages.micros()).take(stages);
        of_stages.for_each(|number| put_successor(*number, bytes));
    });
    if let Some(Gaps(counts)) = &timing.gaps {
        let end = counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        out.filled(key::GAPS, |out| {
            counts.iter().take(end).for_each(|count| put((*count).into(), out));
        });
    }
}

/// Whole microseconds of seconds. What is out of range is the nearest that is not.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as saturates")]
fn micros(seconds: f64) -> u64 {
    (seconds * 1e6).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "285 years are exact")]
pub(super) fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

pub(super) fn read_post(parts: &Parts<'_>) -> Result<Record, DecodeError> {
    let Parts { id, mut strings, members } = parts.clone();
    let mut record = of_strings(&mut strings)?;
    read_members(&mut record, id, members)?;
    Ok(record)
}

/// A record of which nothing but the strings is read. The others are as [`forget_members`] leaves them.
pub(super) fn of_strings(strings: &mut Strings<'_>) -> Result<Record, DecodeError> {
    let mut found = Found::default();
    while let Some((key, bytes)) = strings.next()? {
        found.string(key, bytes)?;
    }
    let CallerRead { key_id, identity, labels } =
        found.caller.ok_or(DecodeError::Missing("identity"))?;
    let (status, end, error_type, error, finish_reasons) = found.outcome.finish()?;
    let (cost_known, cost) = match found.cost.without_numbers() {
        Some(owed) if owed.at_least => (Some(owed), None),
        owed => (None, owed),
    };
    Ok(Record {
        id: RequestId(uuid::Uuid::nil()),
        request_id: String::new(),
        attempt: 1,
        seq: 0,
        gateway: found.gateway,
        started_at: jiff::Timestamp::UNIX_EPOCH,
        ended_at: jiff::Timestamp::UNIX_EPOCH,
        tenant: found.tenant.ok_or(DecodeError::Missing("tenant"))?,
        key_id,
        identity,
        labels,
        dimensions: None,
        operation: found.call.operation.to_owned(),
        route: found.call.route.to_owned(),
        stream: found.call.stream,
        upstream: found.call.upstream.to_owned(),
        provider: found.call.provider.to_owned(),
        request_model: found.request_model,
        response_model: found.response_model,
        response_id: None,
        service_tier: found.service_tier,
        status,
        end,
        error_type,
        error,
        finish_reasons,
        tools: std::collections::BTreeMap::new(),
        usage: found.usage,
        timing: RecordTiming::default(),
        cost,
        cost_known,
        cost_unknown: found.cost_unknown,
        reported_cost: None,
        resource: found.resource,
    })
}

/// Removes from a record what its members said. What its strings said stays. `counted` is what these
/// said of the tokens that were counted.
pub(super) fn forget_members(record: &mut Record, counted: Option<Counted>) {
    // All members, so that none is left out.
    let Record {
        id: _,
        request_id,
        attempt,
        seq,
        gateway: _,
        started_at: _,
        ended_at: _,
        tenant: _,
        key_id: _,
        identity: _,
        labels: _,
        dimensions,
        operation: _,
        route: _,
        stream: _,
        upstream: _,
        provider: _,
        request_model: _,
        response_model: _,
        response_id,
        service_tier: _,
        status: _,
        end: _,
        error_type: _,
        error: _,
        finish_reasons: _,
        tools,
        usage,
        timing,
        // Their numbers are read anew each time.
        cost: _,
        cost_known: _,
        cost_unknown: _,
        reported_cost,
        resource: _,
    } = record;
    request_id.clear();
    (*attempt, *seq) = (1, 0);
    (*dimensions, *response_id, *reported_cost) = (None, None, None);
    tools.clear();
    usage::forget_quantities(usage, counted);
    *timing = RecordTiming::default();
}

/// Reads members into a record that has those of its strings.
pub(super) fn read_members(
    record: &mut Record,
    id: RequestId,
    mut members: Members<'_>,
) -> Result<(), DecodeError> {
    let (mut started_at, mut duration, mut drift) = (None, 0, 0);
    let (mut has_own_id, mut numbers) = (true, CostNumbersRead::default());
    while let Some((key, value)) = members.next()? {
        match key {
            key::STARTED_AT => started_at = Some(value.time(time_of(id))?),
            key::DURATION => duration = value.number(),
            key::ENDED_AT => drift = value.number(),
            key::REQUEST_ID | key::REQUEST_UUID => {
                entries::read_request_id(key, value, &mut record.request_id)?;
                has_own_id = false;
            }
            key::RESPONSE_ID => record.response_id = Some(value.owned()?),
            key::ATTEMPT => {
                let attempt = u32::try_from(value.number());
                record.attempt = attempt.map_err(|_| DecodeError::OutOfRange)?;
            }
            key::TIMING => read_timing(value.bytes(), &mut record.timing)?,
            key::GAPS => record.timing.gaps = Some(read_gaps(value.bytes())?),
            key::DIMENSIONS => record.dimensions = dimensions::read(value)?,
            key::TOOLS => record.tools = tools::read(value)?,
            key::REPORTED_COST => record.reported_cost = Some(value.owned()?),
            _ => {
                usage::read_quantity(key, value, &mut record.usage)?;
                numbers.member(CostKeys::COST, key, value);
            }
        }
    }
    record.id = id;
    if has_own_id {
        entries::write_id(id, &mut record.request_id);
    }
    record.started_at = started_at.ok_or(DecodeError::Missing("started_at"))?;
    record.ended_at = ended_at(record.started_at, duration, drift)?;
    record.timing.duration = seconds(duration);
    if let Some(owed) = record.cost.as_mut().or(record.cost_known.as_mut()) {
        numbers.read_into(owed)?;
    }
    Ok(())
}

/// What is read of the strings of a record.
#[derive(Default)]
struct Found<'a> {
    tenant: Option<crate::id::TenantId>,
    caller: Option<CallerRead>,
    call: CallRead<'a>,
    request_model: Option<String>,
    response_model: Option<String>,
    service_tier: Option<String>,
    gateway: String,
    resource: std::collections::BTreeMap<String, String>,
    outcome: OutcomeRead,
    usage: RecordUsage,
    cost: CostReader<'a>,
    cost_unknown: Vec<crate::unknown_cost::UnknownCost>,
}

impl<'a> Found<'a> {
    fn string(&mut self, key: u64, bytes: &'a [u8]) -> Result<(), DecodeError> {
        match key {
            string::TENANT => self.tenant = Some(entries::tenant(bytes)?),
            string::CALLER => self.caller = Some(CallerRead::read(bytes)?),
            string::CALL => self.call = CallRead::read(bytes)?,
            string::REQUEST_MODEL => self.request_model = Some(text(bytes)?.to_owned()),
            string::RESPONSE_MODEL => self.response_model = Some(text(bytes)?.to_owned()),
            string::SERVICE_TIER => self.service_tier = Some(text(bytes)?.to_owned()),
            string::ORIGIN => self.origin(bytes)?,
            string::OUTCOME => self.outcome.read(bytes)?,
            string::SOURCES => usage::read_sources(bytes, &mut self.usage)?,
            string::UNKNOWN_COST => self.cost_unknown.push(cost::read_unknown_cost(bytes)?),
            _ => self.cost.string(CostKeys::COST, key, bytes)?,
        }
        Ok(())
    }

    fn origin(&mut self, group: &[u8]) -> Result<(), DecodeError> {
        let mut members = Members::new(group);
        while let Some((key, value)) = members.next()? {
            match key {
                origin::GATEWAY => self.gateway = value.owned()?,
                origin::RESOURCE => self.resource.extend([read_text(value)?]),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The gateway that an origin names.
pub(super) fn gateway_of(group: &[u8]) -> Result<&str, DecodeError> {
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        if key == origin::GATEWAY {
            return value.text();
        }
    }
    Err(DecodeError::Missing("gateway"))
}

#[derive(Debug, Default)]
struct OutcomeRead {
    status: Option<u16>,
    end: Option<End>,
    error_type: Option<String>,
    error: Option<RecordError>,
    finish_reasons: Vec<String>,
}

type Outcome = (Option<u16>, End, Option<String>, Option<RecordError>, Vec<String>);

impl OutcomeRead {
    fn read(&mut self, group: &[u8]) -> Result<(), DecodeError> {
        let mut members = Members::new(group);
        while let Some((key, value)) = members.next()? {
            match key {
                outcome::STATUS => {
                    let status = u16::try_from(value.number());
                    self.status = Some(status.map_err(|_| DecodeError::OutOfRange)?);
                }
                outcome::END => self.end = Some(End::of(value.number())?),
                outcome::ERROR_TYPE => self.error_type = Some(value.owned()?),
                outcome::HAS_ERROR => {
                    self.error.get_or_insert_default();
                }
                outcome::PROVIDER_STATUS => {
                    self.error.get_or_insert_default().status = Some(value.owned()?);
                }
                outcome::PROVIDER_TYPE => {
                    self.error.get_or_insert_default().error_type = Some(value.owned()?);
                }
                outcome::PROVIDER_CODE => {
                    self.error.get_or_insert_default().code = Some(value.owned()?);
                }
                outcome::FINISH_REASON => self.finish_reasons.push(value.owned()?),
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Outcome, DecodeError> {
        let end = self.end.ok_or(DecodeError::Missing("end"))?;
        Ok((self.status, end, self.error_type, self.error, self.finish_reasons))
    }
}

fn read_timing(mut bytes: &[u8], timing: &mut RecordTiming) -> Result<(), DecodeError> {
    let mut times = [None; TIMES];
    for slot in &mut times {
        if bytes.is_empty() {
            break;
        }
        *slot = successor(&mut bytes)?;
    }
    let [first_chunk, first_token, per_token, stall, gateway, chunks, stages] = times;
    timing.time_to_first_chunk = first_chunk.map(seconds);
    timing.time_to_first_token = first_token.map(seconds);
    timing.time_per_output_token = per_token.map(seconds);
    timing.longest_stall = stall.map(seconds);
    timing.gateway = gateway.map(seconds).unwrap_or_default();
    timing.output_chunks = chunks.unwrap_or_default();
    if stages.is_some() {
        let took: [Option<u64>; Stage::ALL.len()] = usage::read_list(bytes)?;
        timing.stages = Some(Stages::lasting(took.map(|took| took.map(Duration::from_micros))));
    }
    Ok(())
}

fn read_gaps(mut bytes: &[u8]) -> Result<Gaps, DecodeError> {
    let mut counts = [0; GAP_BUCKETS];
    for slot in &mut counts {
        if bytes.is_empty() {
            break;
        }
        *slot = u32::try_from(number(&mut bytes)?).map_err(|_| DecodeError::OutOfRange)?;
    }
    Ok(Gaps(counts))
}
