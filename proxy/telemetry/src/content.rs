//! Turns a request and its answer into attributes of a span or an event: it removes secrets and
//! cuts to a limit.
//!
//! This happens when the span or event is sent, so that no request waits for it.

use std::borrow::Cow;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, KeyValueList};
use regex::Regex;
use serde_json::Value;
use taximeter_collections::Gather as _;
use taximeter_config::{Capture, Content};
use taximeter_meter::{Asked, Transcript, Wire};

use super::message::{pair, text};
use super::names::key;

/// The longest request whose messages are captured, in bytes. Longer ones are images or whole
/// libraries.
pub const BODY_BYTES_MAX: u64 = 2 << 20;
/// Kept of an answer beyond what is told of it, so that no secret is cut before it is known for one.
const MARGIN_BYTES: usize = 4 << 10;
/// Content that may wait for the collector, in bytes, as it came; what is beyond it is left out.
const CONTENT_QUEUED_BYTES_MAX: usize = 16 << 20;
/// Content behind which a push ends, in bytes: what the last request adds still fits.
pub(super) const BATCH_CONTENT_BYTES_MAX: usize = 1 << 20;
/// Texts are not cut any shorter than this, in bytes; messages are left out then.
const TEXT_BYTES_MIN: usize = 64;

/// What stands in place of a secret.
const REDACTED: &str = "[redacted]";

/// What is a secret to everybody, by the forms that its issuers give it.
const KNOWN: [&str; 10] = [
    // Private keys, also those that are cut.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)",
    // Keys of OpenAI, Anthropic and others; of Groq, xAI, NVIDIA, Hugging Face, Replicate.
    r"\bsk-[A-Za-z0-9_-]{16,}|\b(?:gsk_|xai-|nvapi-|hf_|r8_)[A-Za-z0-9_-]{20,}",
    // GitHub, GitLab, Slack.
    r"\b(?:gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    // This gateway's own.
    r"\btax-[0-9a-f]{32,}",
    // AWS, Google, Stripe.
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\b[prs]k_(?:live|test)_[A-Za-z0-9]{10,}",
    // JSON web tokens.
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?i:\bbearer +[A-Za-z0-9._~+/=-]{16,})",
    r"(?i:\bbasic +[A-Za-z0-9+/]{16,}={0,2})",
    // Passwords in URLs.
    r"://[^\s/:@]*:[^\s/@]+@",
    // E-mail addresses.
    r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.[A-Za-z]{2,24}",
];

#[expect(clippy::expect_used, reason = "the patterns stand above")]
static KNOWN_SECRETS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&KNOWN.join("|")).expect("patterns that stand above"));

/// The content of a request and its answer, as it came.
#[derive(Debug, Clone)]
pub struct Captured {
    wire: Wire,
    /// `None` where it is too long; empty where nothing is told of it.
    body: Option<Vec<Bytes>>,
    answer: Option<Transcript>,
    /// What was in force when the request came.
    terms: Arc<Content>,
}

impl Captured {
    /// A request whose answer has not come. It has no body if that is too long.
    pub fn new(wire: Wire, body: Option<Vec<Bytes>>, terms: Arc<Content>) -> Self {
        Self { wire, body, answer: None, terms }
    }

    /// An empty transcript, to be filled with the answer while it passes.
    pub fn transcript(&self) -> Transcript {
        Transcript::new(self.wire, self.terms.bytes_max + MARGIN_BYTES)
    }

    /// The same with its answer.
    pub fn answered(&self, answer: Option<&Transcript>) -> Self {
        Self { answer: answer.cloned(), ..self.clone() }
    }

    /// Whether it holds bytes of the request.
    pub fn has_body(&self) -> bool {
        self.body.iter().flatten().any(|piece| !piece.is_empty())
    }

    /// Where it is told.
    pub(super) fn capture(&self) -> Capture {
        self.terms.capture
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        let body = self.body.iter().flatten().map(Bytes::len).sum::<usize>();
        body + self.answer.as_ref().map_or(0, Transcript::bytes)
    }

    /// The same attributes as an event has them: no texts of JSON but what these say.
    pub(super) fn structured(self) -> (Vec<KeyValue>, usize) {
        let (attributes, bytes) = self.attributes();
        (attributes.into_iter().map(opened).collect(), bytes)
    }

    /// The attributes of the span, and their length in bytes.
    pub(super) fn attributes(self) -> (Vec<KeyValue>, usize) {
        let Self { wire, body, answer, terms } = self;
        let mut is_cut = body.is_none() || answer.as_ref().is_some_and(Transcript::is_cut);
        let asked = body.map(|pieces| Asked::read(wire, &pieces.concat())).unwrap_or_default();
        let output = answer.map(Transcript::messages).unwrap_or_default();
        let mut attributes = Vec::new();
        let mut bytes = 0;
        for (key, list, keeps) in [
            (key::GEN_AI_SYSTEM_INSTRUCTIONS, asked.system, Keeps::Each),
            (key::GEN_AI_INPUT_MESSAGES, asked.input, Keeps::Newest),
            (key::GEN_AI_OUTPUT_MESSAGES, output, Keeps::Each),
            (key::GEN_AI_TOOL_DEFINITIONS, asked.tools, Keeps::Each),
        ] {
            if list.is_empty() {
                continue;
            }
            let list = list.into_iter().map(|value| redacted(value, &terms)).collect();
            let (value, cut) = fitting(list, terms.bytes_max, keeps);
            is_cut |= cut;
            bytes += value.as_ref().map_or(0, String::len);
            attributes.extend(value.map(|value| text(key, &value)));
        }
        if is_cut {
            attributes.push(pair(key::CONTENT_CUT, Attribute::BoolValue(true)));
        }
        (attributes, bytes)
    }
}

/// Content that waits for a collector, counted while it does.
pub(super) struct Waiting {
    total: Arc<AtomicUsize>,
    bytes: usize,
}

impl Waiting {
    /// `None` where too much waits already.
    pub(super) fn of(said: &Captured, total: &Arc<AtomicUsize>) -> Option<Self> {
        let waiting = Self { total: total.clone(), bytes: said.bytes() };
        let before = waiting.total.fetch_add(waiting.bytes, Relaxed);
        (before + waiting.bytes <= CONTENT_QUEUED_BYTES_MAX).then_some(waiting)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}

/// An attribute whose text is JSON, as what that says.
fn opened(mut pair: KeyValue) -> KeyValue {
    if let Some(AnyValue { value: Some(Attribute::StringValue(text)) }) = &pair.value
        && let Ok(value) = serde_json::from_slice(text.as_bytes())
    {
        pair.value = Some(any(value));
    }
    pair
}

fn any(value: Value) -> AnyValue {
    let member = |(key, value)| KeyValue { key, value: Some(any(value)), ..KeyValue::default() };
    let value = match value {
        Value::Null => None,
        Value::Bool(is) => Some(Attribute::BoolValue(is)),
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => Attribute::IntValue(whole),
            None => Attribute::DoubleValue(number.as_f64().unwrap_or_default()),
        }),
        Value::String(text) => Some(Attribute::StringValue(text)),
        Value::Array(list) => {
            Some(Attribute::ArrayValue(ArrayValue { values: list.into_iter().map(any).collect() }))
        }
        Value::Object(members) => Some(Attribute::KvlistValue(KeyValueList {
            values: members.into_iter().map(member).collect(),
        })),
    };
    AnyValue { value }
}

/// Takes out of all texts of `value` what is not to be told.
fn redacted(value: Value, terms: &Content) -> Value {
    match value {
        Value::String(text) => redacted_text(&text, terms).into_owned().into(),
        Value::Array(list) => list.into_iter().map(|value| redacted(value, terms)).collect(),
        Value::Object(members) => {
            let member = |(name, value): (String, Value)| {
                (redacted_text(&name, terms).into_owned(), redacted(value, terms))
            };
            Value::Object(members.into_iter().map(member).gather())
        }
        Value::Number(number) => {
            let digits = number.to_string();
            match redacted_text(&digits, terms) {
                Cow::Owned(left) => left.into(),
                Cow::Borrowed(_) => number.into(),
            }
        }
        Value::Bool(_) | Value::Null => value,
    }
}

fn redacted_text<'a>(text: &'a str, terms: &Content) -> Cow<'a, str> {
    let known = terms.redact_known.then(|| &*KNOWN_SECRETS);
    let mut left = Cow::Borrowed(text);
    for regex in known.into_iter().chain(terms.redact.iter().map(|pattern| pattern.regex())) {
        if let Cow::Owned(changed) = regex.replace_all(&left, REDACTED) {
            left = Cow::Owned(changed);
        }
    }
    left
}

/// What goes first where not all can stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// The oldest: the last words matter most.
    Newest,
    /// The ends of long texts.
    Each,
}

/// A list as JSON of at most so many bytes, if anything of it fits; and whether that is not all.
fn fitting(mut list: Vec<Value>, bytes_max: usize, keeps: Keeps) -> (Option<String>, bool) {
    if length(&list) <= bytes_max {
        return (Some(Value::from(list).to_string()), false);
    }
    let mut longest = bytes_max / 2;
    let mut short = cut(&list, longest);
    if keeps == Keeps::Newest {
        let left_out = short.len() - newest(&short, bytes_max).max(1);
        list.drain(..left_out);
        short.drain(..left_out);
    }
    while length(&short) > bytes_max && longest > TEXT_BYTES_MIN {
        longest /= 2;
        short = cut(&list, longest);
    }
    short.drain(..short.len() - newest(&short, bytes_max));
    ((!short.is_empty()).then(|| Value::from(short).to_string()), true)
}

/// Of a list as JSON, in bytes.
fn length(list: &[Value]) -> usize {
    list.iter().map(|value| value.to_string().len() + 1).sum::<usize>() + 1
}

/// How many of the last ones fit into so many bytes.
fn newest(list: &[Value], bytes_max: usize) -> usize {
    let mut room = bytes_max.saturating_sub(1);
    let fits = |value: &&Value| {
        let left = room.checked_sub(value.to_string().len() + 1);
        room = left.unwrap_or_default();
        left.is_some()
    };
    list.iter().rev().take_while(fits).count()
}

/// The same with all texts cut that are longer than so many bytes, at the end of a character.
fn cut(list: &[Value], longest: usize) -> Vec<Value> {
    list.iter().map(|value| shortened(value, longest)).collect()
}

fn shortened(value: &Value, longest: usize) -> Value {
    match value {
        Value::String(text) if text.len() > longest => {
            let kept = text.get(..text.floor_char_boundary(longest)).unwrap_or_default();
            format!("{kept}…").into()
        }
        Value::Array(list) => cut(list, longest).into(),
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| (name.clone(), shortened(value, longest));
            Value::Object(members.iter().map(member).gather())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
