//! The access log line of a request that has ended.

use serde_json::Value;
use taximeter_ledger::{Record, RecordCost, RecordUsage};

use crate::attributes::method_label;
use crate::ended::{Attempt, Ended};
use crate::event::Event;
use crate::line::Field;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;
use crate::trace::Found;

/// A request has ended and gets an access log line. Other events count it.
pub struct RequestEnded<'a> {
    /// The request that ended.
    pub ended: &'a Ended<'a>,
    /// Its trace, where it has one.
    pub trace: Option<Found>,
}

impl Event for RequestEnded<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        to.tell_of(self.trace, LogEvent::Request, fields(self.ended));
    }
}

/// What is known; what is not is left out.
fn fields(ended: &Ended<'_>) -> Vec<Field> {
    let record = ended.attempt.and_then(|attempt| attempt.record());
    let path = ended.route.is_none().then_some(ended.path);
    let mut fields = vec![
        ("id", ended.request.to_string().into()),
        ("request_id", ended.request_id.into()),
        ("peer", ended.client.to_string().into()),
        ("method", method_label(ended.method).into()),
    ];
    fields.extend(given("tenant", ended.tenant));
    fields.extend(given("route", ended.route));
    fields.extend(given("path", path));
    fields.extend(given("status", ended.status));
    fields.extend(given("end", record.map(|record| record.end.as_str())));
    fields.extend(given("code", ended.code));
    fields.extend(given("error_type", ended.error));
    if let Some(attempt) = &ended.attempt {
        served(attempt, &mut fields);
    }
    match record {
        Some(record) => settled(record, &mut fields),
        None => {
            let duration = ended.ended_at.saturating_duration_since(ended.started);
            fields.push(("duration_seconds", duration.as_secs_f64().into()));
        }
    }
    fields
}

fn served(attempt: &Attempt<'_>, fields: &mut Vec<Field>) {
    fields.push(("operation", attempt.operation.into()));
    fields.push(("provider", attempt.provider.into()));
    fields.push(("upstream", attempt.upstream.into()));
    fields.extend(given("model", attempt.request_model));
    fields.extend(given("session", attempt.said.and_then(|said| said.session.as_deref())));
    fields.extend(given("agent", attempt.said.and_then(|said| said.agent.as_deref())));
}

fn settled(record: &Record, fields: &mut Vec<Field>) {
    let Record { usage, timing, .. } = record;
    fields.extend(given("response_model", record.response_model.as_deref()));
    fields.push(("stream", record.stream.into()));
    used(usage, record.owed(), fields);
    fields.push(("duration_seconds", timing.duration.into()));
    fields.push(("gateway_seconds", timing.gateway.into()));
    fields.extend(given("time_to_first_chunk_seconds", timing.time_to_first_chunk));
    fields.extend(given("time_to_first_token_seconds", timing.time_to_first_token));
}

/// What a request has used, and its cost or the known part of it.
pub(super) fn used(usage: &RecordUsage, cost: Option<&RecordCost>, fields: &mut Vec<Field>) {
    for (name, tokens) in [
        ("input_tokens", usage.input_tokens),
        ("cache_read_input_tokens", usage.cache_read_input_tokens),
        ("cache_write_input_tokens", usage.cache_write_input_tokens),
        ("output_tokens", usage.output_tokens),
        ("reasoning_output_tokens", usage.reasoning_output_tokens),
    ] {
        fields.extend(given(name, tokens));
    }
    fields.push(("source", usage.source.as_str().into()));
    if !usage.flags.is_empty() {
        fields.push(("flags", serde_json::to_value(&usage.flags).unwrap_or_default()));
    }
    if let Some(cost) = cost {
        // A decimal number is exact as text, and as nothing else.
        let name = if cost.at_least { "cost_known" } else { "cost" };
        fields.push((name, cost.amount.normalize().to_string().into()));
        fields.push(("currency", cost.currency.as_str().into()));
    }
}

pub(super) fn given(name: &'static str, value: Option<impl Into<Value>>) -> Option<Field> {
    value.map(|value| (name, value.into()))
}
