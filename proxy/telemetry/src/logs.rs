//! Log lines and captured content on their way to a collector: a bounded queue that is read in
//! batches of OTLP log records.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use serde_json::Value;
use taximeter_config::GenAi;
use tokio::sync::Notify;

use super::content::BATCH_CONTENT_BYTES_MAX;
use super::details::Details;
use super::line::Line;
use super::message::{chosen, nanoseconds, pair, resource, scope};
use super::names::key;
use super::names::log_event::{FIELDS, Level};
use super::queue::{QUEUE_BYTES_MAX, Queue};
use super::resource::{RESOURCE_SCHEMA_URL, schema_url};
use super::weight;
use crate::pusher::{Batch, QueueSource, Source};

/// Lines in one push: far below what collectors take, which is 4 MiB.
const BATCH_LINES_MAX: usize = 512;

/// Log lines on their way to a collector.
pub struct Logs {
    genai: GenAi,
    queue: Arc<Queue<QueuedLog>>,
}

/// What waits.
enum QueuedLog {
    Line(Arc<Line>),
    Details(Box<Details>),
}

impl Logs {
    pub(super) fn new(genai: GenAi) -> Self {
        Self { genai, queue: Arc::new(Queue::new(QUEUE_BYTES_MAX)) }
    }

    /// Puts a line on its way, if it is for collectors.
    pub(super) fn queue(&self, line: &Arc<Line>) {
        if line.event.is_pushed() {
            let bytes = size_of::<Line>() + weight::fields(&line.fields);
            self.queue.push(QueuedLog::Line(line.clone()), 1, bytes);
        }
    }

    /// Puts what was said to an engine on its way.
    pub(super) fn queue_details(&self, details: Details) {
        let bytes = details.bytes();
        self.queue.push(QueuedLog::Details(Box::new(details)), 1, bytes);
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.items()
    }

    /// The queued lines as a source of batches.
    pub fn source(&self, of: &BTreeMap<String, String>) -> impl QueueSource + use<> {
        LinesSource {
            genai: self.genai,
            queue: self.queue.clone(),
            resource: resource(of),
            round: VecDeque::new(),
            making: 0,
        }
    }
}

/// Lines as a source of batches.
struct LinesSource {
    genai: GenAi,
    queue: Arc<Queue<QueuedLog>>,
    resource: Resource,
    /// What is left of the round.
    round: VecDeque<QueuedLog>,
    /// Lines of the batch that is being made.
    making: usize,
}

impl Source for LinesSource {
    fn begin(&mut self) -> usize {
        let (round, lost) = self.queue.take();
        self.round = round;
        lost
    }

    fn next(&mut self) -> Option<Batch> {
        let (mut log_records, mut said) = (Vec::new(), 0);
        while log_records.len() < BATCH_LINES_MAX && said <= BATCH_CONTENT_BYTES_MAX {
            let Some(item) = self.round.pop_front() else { break };
            self.making += 1;
            log_records.push(match item {
                QueuedLog::Line(line) => record(&line, self.genai),
                QueuedLog::Details(details) => {
                    let (record, bytes) = details.record();
                    said += bytes;
                    record
                }
            });
        }
        let items = log_records.len();
        let request = || ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(self.resource.clone()),
                scope_logs: vec![ScopeLogs {
                    scope: Some(scope()),
                    log_records,
                    schema_url: schema_url(self.genai).to_owned(),
                }],
                schema_url: RESOURCE_SCHEMA_URL.to_owned(),
            }],
        };
        let batch = (items > 0).then(|| Batch { body: request().encode_to_vec().into(), items });
        self.making = 0;
        batch
    }

    fn taken(&mut self) {}

    fn abandon(&mut self) -> usize {
        std::mem::take(&mut self.round).len() + std::mem::take(&mut self.making)
    }
}

impl QueueSource for LinesSource {
    fn filling(&self) -> Arc<Notify> {
        self.queue.filling()
    }

    fn note_waiting(&self, items: usize) {
        self.queue.note_in_batches(items);
    }
}

fn record(line: &Line, genai: GenAi) -> LogRecord {
    let row = line.event.row();
    let at = nanoseconds(line.at);
    let attributes = line.fields.iter().flat_map(|(name, value)| {
        keys(name, genai).filter_map(|key| attribute(value).map(|value| pair(&key, value)))
    });
    LogRecord {
        time_unix_nano: at,
        observed_time_unix_nano: at,
        severity_number: severity(row.level).into(),
        severity_text: row.level.as_str().to_owned(),
        body: Some(AnyValue { value: Some(Attribute::StringValue(row.meaning.to_owned())) }),
        attributes: attributes.collect::<Vec<KeyValue>>(),
        trace_id: line.trace.map(|found| found.trace_id.into()).unwrap_or_default(),
        span_id: line.trace.and_then(|found| found.span_id).map(Vec::from).unwrap_or_default(),
        event_name: match line.event.convention() {
            Some(name) => name.to_owned(),
            None => format!("taximeter.{}", row.word),
        },
        ..LogRecord::default()
    }
}

/// What needs somebody stands where syslog's `critical` does.
const fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::Info => SeverityNumber::Info,
        Level::Warn => SeverityNumber::Warn,
        Level::Critical => SeverityNumber::Error2,
    }
}

/// What a field is called as an attribute.
fn keys(name: &str, genai: GenAi) -> impl Iterator<Item = String> {
    let known = FIELDS.iter().find(|(known, ..)| *known == name).map(|(_, key, _)| *key);
    let (first, second) = match (known, genai) {
        (Some(key::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS), GenAi::Latest) => {
            (key::GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS.to_owned(), None)
        }
        (Some(older @ key::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS), GenAi::Both) => {
            (older.to_owned(), Some(key::GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS.to_owned()))
        }
        (Some(key), _) => (key.to_owned(), None),
        (None, _) => (format!("{}{name}", key::LOG_FIELD), None),
    };
    std::iter::once(first).chain(second)
}

/// `None` for what is not known.
fn attribute(value: &Value) -> Option<Attribute> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(is) => Attribute::BoolValue(*is),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Attribute::IntValue(whole),
            (None, Some(number)) => Attribute::DoubleValue(number),
            (None, None) => return None,
        },
        Value::String(text) => Attribute::StringValue(chosen(text)),
        Value::Array(values) => {
            let value = |value| AnyValue { value: attribute(value) };
            let values = values.iter().map(value).collect();
            Attribute::ArrayValue(opentelemetry_proto::tonic::common::v1::ArrayValue { values })
        }
        Value::Object(_) => Attribute::StringValue(chosen(&value.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::names::log_event::LogEvent;
    use crate::trace::Found;

    fn line(event: LogEvent, fields: &[(&'static str, Value)]) -> Arc<Line> {
        let trace = Some(Found { trace_id: [1; 16], span_id: Some([2; 8]) });
        let at = Timestamp::from_second(7).unwrap();
        Arc::new(Line::new(at, event, trace, fields.to_vec(), 256))
    }

    fn told(genai: GenAi, fields: &[(&'static str, Value)]) -> Vec<(String, Attribute)> {
        let record = record(&line(LogEvent::Request, fields), genai);
        let value = |pair: KeyValue| pair.value.and_then(|value| value.value).unwrap();
        record.attributes.into_iter().map(|pair| (pair.key.clone(), value(pair))).collect()
    }

    #[test]
    fn a_line_is_a_record_of_its_trace_with_typed_attributes() {
        let line = line(LogEvent::UpstreamRefusedCredential, &[("upstream", "e\n".into())]);
        let record = record(&line, GenAi::V1_41);
        let at = 7_000_000_000;
        assert_eq!((record.time_unix_nano, record.observed_time_unix_nano), (at, at));
        assert_eq!((record.trace_id, record.span_id), (vec![1; 16], vec![2; 8]));
        assert_eq!((record.severity_number, &*record.severity_text), (18, "critical"));
        assert_eq!(record.event_name, "taximeter.upstream_refused_credential");
        let text = |text: &str| Attribute::StringValue(text.to_owned());
        assert_eq!(record.attributes, [pair("taximeter.upstream", text("e\u{fffd}"))]);
        let fields = [
            ("status", 200.into()),
            ("stream", true.into()),
            ("duration_seconds", 0.5.into()),
            ("message", "m".into()),
            ("code", Value::Null),
        ];
        let told = told(GenAi::V1_41, &fields);
        let expected = [
            ("http.response.status_code", Attribute::IntValue(200)),
            ("gen_ai.request.stream", Attribute::BoolValue(true)),
            ("taximeter.request.duration", Attribute::DoubleValue(0.5)),
            ("taximeter.log.message", text("m")),
        ];
        assert_eq!(told, expected.map(|(key, value)| (key.to_owned(), value)));
    }

    #[test]
    fn cache_writes_have_the_name_of_each_generation() {
        let older = "gen_ai.usage.cache_creation.input_tokens";
        let newer = "gen_ai.usage.cache_write.input_tokens";
        for (genai, names) in [
            (GenAi::V1_41, &[older][..]),
            (GenAi::Latest, &[newer]),
            (GenAi::Both, &[older, newer]),
        ] {
            let told = told(genai, &[("cache_write_input_tokens", 3.into())]);
            assert_eq!(told.iter().map(|(key, _)| key).collect::<Vec<_>>(), names);
        }
    }

    #[test]
    fn what_waits_is_bounded_and_the_sender_s_own_words_do_not_go_that_way() {
        let logs = Logs::new(GenAi::V1_41);
        let mut source = logs.source(&BTreeMap::new());
        let fits = QUEUE_BYTES_MAX / size_of::<Line>();
        for _ in 0..fits + 7 {
            logs.queue(&line(LogEvent::OtlpFailed, &[]));
            logs.queue(&line(LogEvent::Draining, &[]));
        }
        assert_eq!(logs.waiting(), fits);
        assert_eq!(source.begin(), 7);
        let first = source.next().unwrap();
        assert_eq!(first.items, BATCH_LINES_MAX);
        let sent = ExportLogsServiceRequest::decode(&*first.body).unwrap();
        let records = &sent.resource_logs[0].scope_logs[0].log_records;
        assert_eq!(records.len(), first.items);
        assert!(records.iter().all(|record| record.event_name == "taximeter.draining"));
        assert_eq!(source.abandon(), fits - BATCH_LINES_MAX);
        assert_eq!((source.next(), source.begin()), (None, 0));
    }
}
