//! The event of one call of an engine, with what was said in it.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use opentelemetry_proto::tonic::trace::v1::Span;

use super::attributes::{Work, work};
use super::content::{Captured, Waiting};
use super::names::key;
use super::names::log_event::Level;
use super::weight;

/// What OpenTelemetry calls it.
const NAME: &str = "gen_ai.client.inference.operation.details";
/// What it says to people.
const MEANING: &str = "A call of an engine, and what was said in it.";

/// A call of an engine, and what was said in it, where that is captured.
pub(super) struct Details {
    at: u64,
    trace_id: Vec<u8>,
    span_id: Vec<u8>,
    attributes: Vec<KeyValue>,
    said: Option<(Captured, Waiting)>,
}

/// Whether a call of this span is an inference, of which alone there is an event.
pub(super) fn is_due(call: &Span) -> bool {
    let operation = call.attributes.iter().find(|pair| pair.key == key::GEN_AI_OPERATION_NAME);
    let value = operation.and_then(|pair| pair.value.as_ref()?.value.as_ref());
    matches!(value, Some(Attribute::StringValue(word)) if work(word) == Work::Inference)
}

impl Details {
    /// The call that this span tells of.
    pub(super) fn new(call: &Span, said: Option<(Captured, Waiting)>) -> Self {
        Self {
            at: call.end_time_unix_nano,
            trace_id: call.trace_id.clone(),
            span_id: call.span_id.clone(),
            attributes: call.attributes.clone(),
            said,
        }
    }

    /// What it takes in memory beside what was said.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + weight::pairs(&self.attributes)
    }

    /// Its log record, and how many bytes of content that has.
    pub(super) fn record(self) -> (LogRecord, usize) {
        let Self { at, trace_id, span_id, mut attributes, said } = self;
        let content = said.map(|(said, _waiting)| said.structured());
        let (content, bytes) = content.unwrap_or_default();
        attributes.extend(content);
        let record = LogRecord {
            time_unix_nano: at,
            observed_time_unix_nano: at,
            severity_number: SeverityNumber::Info.into(),
            severity_text: Level::Info.as_str().to_owned(),
            body: Some(AnyValue { value: Some(Attribute::StringValue(MEANING.to_owned())) }),
            attributes,
            trace_id,
            span_id,
            event_name: NAME.to_owned(),
            ..LogRecord::default()
        };
        (record, bytes)
    }
}
