//! How many bytes of memory spans and log lines take while they wait.

use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::Value;

use super::line::Field;

/// What an allocation takes beside its bytes.
const ALLOCATION_BYTES: usize = 16;

/// Of spans.
pub(super) fn spans(spans: &[Span]) -> usize {
    let of = |span: &Span| {
        let own = size_of::<Span>() + texts(&[&span.name, &span.trace_state]);
        let ids = span.trace_id.len() + span.span_id.len() + span.parent_span_id.len();
        let events = span
            .events
            .iter()
            .map(|event| size_of_val(event) + texts(&[&event.name]) + pairs(&event.attributes));
        own + ids + 3 * ALLOCATION_BYTES + pairs(&span.attributes) + events.sum::<usize>()
    };
    spans.iter().map(of).sum()
}

/// Of attributes.
pub(super) fn pairs(pairs: &[KeyValue]) -> usize {
    let of = |pair: &KeyValue| {
        size_of::<KeyValue>() + texts(&[&pair.key]) + pair.value.as_ref().map_or(0, attribute)
    };
    pairs.iter().map(of).sum()
}

/// Of the fields of a line.
pub(super) fn fields(fields: &[Field]) -> usize {
    fields.iter().map(|(_, value)| size_of::<Field>() + json(value)).sum()
}

/// What an attribute's value takes beside itself.
fn attribute(value: &AnyValue) -> usize {
    match &value.value {
        Some(Attribute::StringValue(text)) => texts(&[text]),
        Some(Attribute::BytesValue(bytes)) => bytes.len() + ALLOCATION_BYTES,
        Some(Attribute::ArrayValue(list)) => {
            list.values.iter().map(|value| size_of::<AnyValue>() + attribute(value)).sum()
        }
        Some(Attribute::KvlistValue(list)) => pairs(&list.values),
        _ => 0,
    }
}

/// What a value of JSON takes beside itself.
fn json(value: &Value) -> usize {
    match value {
        Value::String(text) => texts(&[text]),
        Value::Array(list) => list.iter().map(|value| size_of::<Value>() + json(value)).sum(),
        Value::Object(members) => {
            let of = |(name, value): (&String, &Value)| {
                texts(&[name]) + size_of::<String>() + size_of::<Value>() + json(value)
            };
            members.iter().map(of).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn texts(texts: &[&str]) -> usize {
    texts.iter().filter(|text| !text.is_empty()).map(|text| text.len() + ALLOCATION_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::super::message::{int, text, texts};
    use super::*;

    #[test]
    fn every_text_that_is_held_counts() {
        let span = |attributes| Span { attributes, ..Span::default() };
        let bare = spans(&[span(Vec::new())]);
        assert!(bare >= size_of::<Span>());
        let long = "x".repeat(1_000);
        for (pair, least) in [
            (int("key", 7), size_of::<KeyValue>()),
            (text("key", &long), 1_000),
            (texts("key", &["a".repeat(200), "b".repeat(200)]), 400),
        ] {
            assert!(spans(&[span(vec![pair])]) >= bare + least);
        }
        assert_eq!(spans(&[span(Vec::new()), span(Vec::new())]), 2 * bare);
        let nested = serde_json::json!({"a": [long.clone(), {"b": long}]});
        assert!(fields(&[("f", nested)]) >= 2_000);
    }
}
