//! Parts that all OTLP messages share.

use std::collections::BTreeMap;

use jiff::Timestamp;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use taximeter_net::visible::is_visible;

use super::resource::{SCOPE, VERSION};

/// Longest text that clients and engines choose, in bytes; what is longer is cut.
const CHOSEN_BYTES_MAX: usize = 256;

/// An attribute that is text.
pub(super) fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

/// An attribute that is several names.
pub(super) fn texts(key: &str, values: &[String]) -> KeyValue {
    list(key, values.iter().map(|name| chosen(name)))
}

/// An attribute that is several texts, the ends of lines in them as they are.
pub(super) fn lines(key: &str, values: &[String]) -> KeyValue {
    list(key, values.iter().map(|text| cleaned(text, |c| matches!(c, '\n' | '\r' | '\t'))))
}

fn list(key: &str, values: impl Iterator<Item = String>) -> KeyValue {
    let value = |text| AnyValue { value: Some(Value::StringValue(text)) };
    pair(key, Value::ArrayValue(ArrayValue { values: values.map(value).collect() }))
}

/// An attribute that is a whole number.
pub(super) fn int(key: &str, value: u64) -> KeyValue {
    pair(key, Value::IntValue(value.try_into().unwrap_or(i64::MAX)))
}

/// An attribute of any kind.
pub(super) fn pair(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

/// A name that a client or an engine has chosen: without what moves a terminal, or reorders or hides
/// what it shows, and not long.
pub(super) fn chosen(text: &str) -> String {
    cleaned(text, |_| false)
}

fn cleaned(text: &str, is_fine: impl Fn(char) -> bool) -> String {
    let clean = |c: char| if is_visible(c) || is_fine(c) { c } else { char::REPLACEMENT_CHARACTER };
    let mut kept = String::with_capacity(text.len().min(CHOSEN_BYTES_MAX));
    for c in text.chars().map(clean) {
        if kept.len() + c.len_utf8() > CHOSEN_BYTES_MAX {
            break;
        }
        kept.push(c);
    }
    kept
}

/// What emits.
pub(super) fn resource(attributes: &BTreeMap<String, String>) -> Resource {
    let attributes = attributes.iter().map(|(key, value)| text(key, value)).collect();
    Resource { attributes, ..Resource::default() }
}

/// What of it records.
pub(super) fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SCOPE.to_owned(),
        version: VERSION.to_owned(),
        ..InstrumentationScope::default()
    }
}

/// Since 1970, as OTLP has it.
pub(super) fn nanoseconds(at: Timestamp) -> u64 {
    at.as_nanosecond().try_into().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_choose_is_cut_and_moves_no_terminal() {
        assert_eq!(chosen("a\nb\u{1b}[2J\u{202e}"), "a\u{fffd}b\u{fffd}[2J\u{fffd}");
        assert!(chosen(&"é".repeat(1000)).len() <= CHOSEN_BYTES_MAX);
    }
}
