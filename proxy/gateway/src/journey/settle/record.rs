//! Makes the record at the end: usage, times, and the price that was in force at admission.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{
    Charge, End, Gaps, Record, RecordCost, RecordError, RecordTiming, RecordUsage, RequestKind,
    Stages,
};
use taximeter_meter::{Ending, Measurement, ProviderError, StreamEnd, Timing};
use taximeter_pricing::{Condition, Flag, Query, Source, Usage};
use taximeter_system::clock;

use super::count::Count;
use super::in_flight::InFlight;
use super::region;
use super::usage::{self, TokenParts};
use crate::journey::identify::Route;
use crate::tariffs::PriceScope;

/// A wall clock and the monotonic one may be this far apart behind a request, and a part of its
/// duration more: they are not read at once, and a wall clock is slewed by at most so much.
const CLOCKS_APART_MAX: SignedDuration = SignedDuration::from_secs(1);
const CLOCK_SLEW: i32 = 1000;

/// What a client may be told of its own request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// `x-taximeter-tokens`.
    pub tokens: Option<String>,
    /// `x-taximeter-cost`.
    pub cost: Option<String>,
    /// The same as an SSE comment, when it was asked for.
    pub comment: Option<Bytes>,
}

impl Receipt {
    pub(super) fn of(record: &Record, comment: bool) -> Self {
        let usage = &record.usage;
        let tokens = match (usage.input_tokens, usage.output_tokens) {
            (None, None) => None,
            (input, output) => Some(format!(
                "input={};output={};cache_read={}",
                shown(input),
                shown(output),
                usage.cache_read_input_tokens.unwrap_or(0)
            )),
        };
        let amount = |cost: &RecordCost| format!("{} {}", cost.amount.normalize(), cost.currency);
        let cost = record.cost.as_ref().map(amount);
        let known = record.cost_known.as_ref().map(amount);
        let comment = comment.then(|| {
            let mut summary = serde_json::json!({
                "id": record.id, "usage": usage, "cost": cost, "source": usage.source,
            });
            if let (Some(known), Some(members)) = (&known, summary.as_object_mut()) {
                members.insert("cost_known".to_owned(), known.as_str().into());
            }
            Bytes::from(format!(": taximeter {summary}\n\n"))
        });
        let at_least = || known.map(|known| format!("at least {known}"));
        Self { tokens, cost: cost.or_else(at_least), comment }
    }
}

fn shown(tokens: Option<u64>) -> String {
    tokens.map_or_else(|| "unknown".to_owned(), |tokens| tokens.to_string())
}

/// Whether what came can be counted: of an answer that was nothing we could read, or that has not
/// begun, the output is unknown rather than zero.
pub(super) fn is_understood(in_flight: &InFlight, measurement: &Measurement) -> bool {
    let is_to_come = measurement.is_pending && measurement.output_text_bytes == 0;
    if is_to_come || measurement.has_unread_output {
        return false;
    }
    let said_something = measurement.response_id.is_some()
        || measurement.response_model.is_some()
        || measurement.output_text_bytes > 0
        || !measurement.finish_reasons.is_empty();
    let nothing_came = matches!(in_flight.status(), None | Some(204 | 205))
        || measurement.ending != Ending::Complete;
    said_something || nothing_came
}

/// How a request ended, in the words of its record.
pub(super) struct Outcome {
    /// What the client was told.
    pub(super) status: Option<u16>,
    pub(super) end: End,
    pub(super) error_type: Option<String>,
}

/// The record of a request that ends now.
pub(super) fn record(in_flight: &InFlight, measurement: &Measurement, count: &Count) -> Record {
    let status = in_flight.status();
    let end = end(measurement.ending, status);
    let error_type = error_type(end, status, measurement);
    let outcome = Outcome { status, end, error_type };
    let (usage, for_price) = used(in_flight, measurement, count);
    if usage.source == Source::None {
        return unused(in_flight, measurement, outcome);
    }
    let provider = in_flight.gateway.provider(in_flight.asked.upstream);
    let charge = charge(in_flight, provider, measurement, &for_price);
    written(in_flight, measurement, outcome, usage, charge)
}

/// The record of a request that ends now and has used nothing: whatever its model and its upstream
/// are, it is known to cost nothing.
pub(super) fn unused(in_flight: &InFlight, measurement: &Measurement, outcome: Outcome) -> Record {
    let usage = RecordUsage { source: Source::None, ..RecordUsage::default() };
    let cost = Some(in_flight.gateway.tariffs.no_cost());
    let charge = Charge { cost, unknown: Vec::new() };
    written(in_flight, measurement, outcome, usage, charge)
}

fn written(
    in_flight: &InFlight,
    measurement: &Measurement,
    outcome: Outcome,
    mut usage: RecordUsage,
    charge: Charge,
) -> Record {
    let InFlight { gateway, call, .. } = in_flight;
    let Outcome { status, end, error_type } = outcome;
    let ended_at = clock::wall();
    if clock_was_set(ended_at.duration_since(call.started_at), clock::now() - call.started) {
        usage.flags.push(Flag::Clock);
    }
    let mut record = Record {
        id: call.id,
        request_id: call.request_id.to_string(),
        attempt: in_flight.attempt(),
        seq: 0,
        gateway: gateway.id.clone(),
        started_at: micros(call.started_at),
        ended_at: micros(ended_at),
        tenant: call.caller.tenant.clone(),
        key_id: call.caller.key_id.clone(),
        identity: call.caller.identity,
        labels: call.caller.labels.clone(),
        dimensions: call.dimensions.clone(),
        operation: call.route.operation.as_str().to_owned(),
        route: call.route.template.to_owned(),
        stream: in_flight.is_stream(),
        upstream: gateway.upstream(in_flight.asked.upstream).name.clone(),
        provider: gateway.provider(in_flight.asked.upstream).to_owned(),
        request_model: in_flight.asked.request_model.clone(),
        response_model: measurement.response_model.clone(),
        response_id: measurement.response_id.clone(),
        service_tier: service_tier(in_flight, measurement).map(str::to_owned),
        status,
        end,
        error_type,
        error: measurement.error.as_ref().and_then(named),
        finish_reasons: measurement.finish_reasons.clone(),
        tools: measurement.tools.clone(),
        timing: timing(in_flight, measurement, usage.output_tokens),
        usage,
        cost: None,
        cost_known: None,
        cost_unknown: Vec::new(),
        reported_cost: measurement.reported_cost.clone(),
        resource: gateway.config.resource.clone(),
    };
    record.charge(charge);
    if is_for_compaction(call.route, measurement) {
        let dimensions = record.dimensions.get_or_insert_default();
        dimensions.kind.get_or_insert(RequestKind::Compaction);
    }
    record
}

/// Whether the request was to make the context shorter. A turn in which the provider has done that
/// besides is a turn.
fn is_for_compaction(route: &Route, measurement: &Measurement) -> bool {
    let says_nothing_else = measurement.output_text_bytes == 0 && measurement.tools.is_empty();
    let stopped_behind = measurement.finish_reasons == ["compaction"];
    route.template.ends_with("/compact")
        || measurement.is_compaction && (says_nothing_else || stopped_behind)
}

/// What it has used, for the record, and the same for the price.
pub(super) fn used(
    in_flight: &InFlight,
    measurement: &Measurement,
    count: &Count,
) -> (RecordUsage, Usage) {
    if in_flight.call.route.uses_nothing() || owes_nothing(measurement) {
        let usage = RecordUsage { source: Source::None, ..RecordUsage::default() };
        let for_price = Usage::from(&usage);
        return (usage, for_price);
    }
    let parts = TokenParts::of(in_flight.call.wire());
    let count = count.within(in_flight.asked.context);
    let (mut usage, mut for_price) = usage::usage(parts, measurement, &count);
    let url = &in_flight.gateway.upstream(in_flight.asked.upstream).url;
    if let Some(region) = region::of(&url.host, &url.prefix) {
        for conditions in [&mut usage.conditions, &mut for_price.conditions] {
            conditions.insert(Condition::Region, region.to_owned());
        }
    }
    (usage, for_price)
}

/// Whether the wall clock was set while so much time passed by it and by the monotonic one.
fn clock_was_set(wall: SignedDuration, monotonic: Duration) -> bool {
    let passed = SignedDuration::try_from(monotonic).unwrap_or(SignedDuration::MAX);
    let apart = wall.saturating_sub(passed).abs();
    apart > CLOCKS_APART_MAX.saturating_add(passed / CLOCK_SLEW)
}

/// Wall time with the precision of a record.
pub(super) fn micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

fn timing(
    in_flight: &InFlight,
    measurement: &Measurement,
    output_tokens: Option<u64>,
) -> RecordTiming {
    let timing = &measurement.timing;
    let gateway = in_flight.sent_at().map_or(timing.duration, |at| at - in_flight.call.started);
    RecordTiming {
        time_to_first_chunk: timing.time_to_first_chunk.map(seconds),
        time_to_first_token: timing.time_to_first_token.map(seconds),
        time_per_output_token: output_tokens
            .and_then(|tokens| timing.time_per_output_token(tokens))
            .map(seconds),
        output_chunks: timing.output_chunks,
        longest_stall: timing.longest_stall.map(seconds),
        gaps: timing.longest_stall.map(|_| Gaps(timing.gaps.buckets)),
        duration: seconds(timing.duration),
        gateway: seconds(gateway),
        stages: Some(stages(in_flight, timing)),
    }
}

/// Seconds with the precision of a record: whole microseconds.
fn seconds(duration: Duration) -> f64 {
    Duration::new(duration.as_secs(), duration.subsec_micros() * 1_000).as_secs_f64()
}

/// Where its time went, up to now.
fn stages(in_flight: &InFlight, timing: &Timing) -> Stages {
    let call = &in_flight.call;
    let since = |at: Option<Instant>| at.map(|at| at - call.started);
    let (stage_times, over) = (&call.stage_times, Some(timing.duration));
    let first = timing.time_to_first_token.filter(|_| in_flight.is_stream());
    Stages::ending([
        since(stage_times.identified),
        since(stage_times.read),
        since(stage_times.routed),
        since(stage_times.admitted),
        since(in_flight.sent_at()).or(over),
        first,
        first.and(over),
        over.filter(|_| first.is_none() && in_flight.sent_at().is_some()),
        since(Some(clock::now())),
    ])
}

pub(super) fn end(ending: Ending, status: Option<u16>) -> End {
    match ending {
        Ending::Complete if status.is_some_and(|status| status >= 400) => End::UpstreamRefused,
        Ending::Complete => End::Complete,
        Ending::Truncated => End::Truncated,
        Ending::UpstreamError
        | Ending::Cut(StreamEnd::UpstreamReset | StreamEnd::UpstreamProtocol) => End::UpstreamError,
        Ending::Cut(StreamEnd::UpstreamStalled) => End::UpstreamStalled,
        Ending::Cut(StreamEnd::ClientLeft) => End::ClientLeft,
        Ending::Cut(StreamEnd::ClientStalled) => End::ClientStalled,
        Ending::Cut(StreamEnd::Deadline) => End::Deadline,
        Ending::Cut(StreamEnd::Shutdown) => End::Shutdown,
        Ending::Cut(StreamEnd::Internal) => End::Refused,
        Ending::Cut(StreamEnd::Clean) => End::Truncated,
    }
}

pub(super) fn error_type(
    end: End,
    status: Option<u16>,
    measurement: &Measurement,
) -> Option<String> {
    let word = match end {
        End::Complete => return None,
        End::UpstreamRefused => return status.map(|status| status.to_string()),
        End::UpstreamError => {
            let ours = match measurement.ending {
                Ending::Cut(StreamEnd::UpstreamProtocol) => "upstream_protocol",
                _ => "upstream_reset",
            };
            return Some(measurement.error.as_ref().map_or(ours, ProviderError::word).to_owned());
        }
        End::ClientLeft | End::ClientStalled => "client_disconnect",
        End::UpstreamStalled | End::Deadline => "timeout",
        End::Truncated => "truncated",
        End::Shutdown => "shutdown",
        End::BudgetCut => "budget_exceeded",
        End::GatewayDied => "gateway_died",
        End::Refused => "internal",
    };
    Some(word.to_owned())
}

/// The names of an error, if it has any.
pub(super) fn named(error: &ProviderError) -> Option<RecordError> {
    let ProviderError { status, error_type, code } = error.clone();
    let named = RecordError { status, error_type, code };
    (named != RecordError::default()).then_some(named)
}

/// Whether nothing is owed: the engine answered with an error, behind nothing that was generated, and
/// reported no use. The status does not matter.
pub(super) fn owes_nothing(measurement: &Measurement) -> bool {
    measurement.ending == Ending::UpstreamError
        && measurement.output_text_bytes == 0
        && measurement.timing.output_chunks == 0
        && !measurement.has_unread_output
        && measurement.calls.is_empty()
        && measurement.passes.is_empty()
        && !measurement.reports_use()
}

/// The price by the answer's model, as the tenant pays it. Whatever prices it is on the record, so
/// that it can be priced again.
fn charge(
    in_flight: &InFlight,
    provider: &str,
    measurement: &Measurement,
    usage: &Usage,
) -> Charge {
    let query = Query {
        provider: Some(provider),
        response_model: measurement.response_model.as_deref(),
        request_model: in_flight.asked.request_model.as_deref(),
        service_tier: service_tier(in_flight, measurement),
        at: micros(in_flight.call.started_at),
    };
    let (tenant, upstream) = (
        &in_flight.call.caller.tenant.0,
        &in_flight.gateway.upstream(in_flight.asked.upstream).name,
    );
    // The usage is the sum of what it will be.
    if measurement.is_pending {
        return Charge::default();
    }
    in_flight.gateway.tariffs.charge(PriceScope { tenant, upstream }, &query, usage)
}

/// The tier that the answer says, or else the one that was asked for.
fn service_tier<'a>(in_flight: &'a InFlight, measurement: &'a Measurement) -> Option<&'a str> {
    measurement.service_tier.as_deref().or(in_flight.asked.service_tier.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_panic_of_ours_ends_is_nobody_else_s_doing() {
        let ended = end(Ending::Cut(StreamEnd::Internal), Some(200));
        assert_eq!(ended, End::Refused);
        assert!(!ended.is_upstreams_fault());
    }

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_is_slewed() {
        let was_set = |wall: i64, monotonic: u64| {
            clock_was_set(SignedDuration::from_millis(wall), Duration::from_millis(monotonic))
        };
        for (wall, monotonic) in [(0, 0), (1_180, 1_180), (0, 900), (3_603_500, 3_600_000)] {
            assert!(!was_set(wall, monotonic), "{wall} and {monotonic}");
        }
        for (wall, monotonic) in [(-1_800_000, 2_000), (-1, 1_100), (86_402_000, 2_000), (5_000, 0)]
        {
            assert!(was_set(wall, monotonic), "{wall} and {monotonic}");
        }
    }
}
