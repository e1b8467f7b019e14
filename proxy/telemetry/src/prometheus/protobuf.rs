//! Prometheus' protobuf format, the only one that has native histograms.
//!
//! Source: prometheus/client_model, `io/prometheus/client/metrics.proto`, with the members that are
//! used here.

use prost::Message as _;
use taximeter_meter::ExponentialHistogram;

use crate::exemplar;
use crate::instruments::{Distribution, Value};
use crate::names::{InstrumentKind, Spec, escaped};
use crate::trace::Found;

/// Samples of one name. A name may come in several messages, so that none grows with the series.
#[derive(Clone, PartialEq, prost::Message)]
struct MetricFamily {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(enumeration = "MetricType", tag = "3")]
    kind: i32,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, tag = "5")]
    unit: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Enumeration)]
#[repr(i32)]
enum MetricType {
    Counter = 0,
    Gauge = 1,
    Histogram = 4,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<NumberMessage>,
    #[prost(message, optional, tag = "3")]
    counter: Option<NumberMessage>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<HistogramMessage>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `Gauge`, and `Counter`.
#[derive(Clone, PartialEq, prost::Message)]
struct NumberMessage {
    #[prost(double, tag = "1")]
    value: f64,
}

/// With the buckets of the conventions, and native ones.
#[derive(Clone, PartialEq, prost::Message)]
struct HistogramMessage {
    #[prost(uint64, tag = "1")]
    sample_count: u64,
    #[prost(double, tag = "2")]
    sample_sum: f64,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, tag = "5")]
    schema: i32,
    #[prost(double, tag = "6")]
    zero_threshold: f64,
    #[prost(uint64, tag = "7")]
    zero_count: u64,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<BucketSpan>,
    /// Each count less the one before.
    #[prost(sint64, repeated, tag = "13")]
    positive_delta: Vec<i64>,
}

/// One of the conventions' buckets.
#[derive(Clone, PartialEq, prost::Message)]
struct Bucket {
    #[prost(uint64, tag = "1")]
    cumulative_count: u64,
    #[prost(double, tag = "2")]
    upper_bound: f64,
    #[prost(message, optional, tag = "3")]
    exemplar: Option<ExemplarMessage>,
}

/// Native buckets that follow each other.
#[derive(Clone, PartialEq, prost::Message)]
struct BucketSpan {
    /// Buckets left out before it; of the first, its number.
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint32, tag = "2")]
    length: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ExemplarMessage {
    #[prost(message, repeated, tag = "1")]
    label: Vec<LabelPair>,
    #[prost(double, tag = "2")]
    value: f64,
    #[prost(message, optional, tag = "3")]
    timestamp: Option<Timestamp>,
}

/// `google.protobuf.Timestamp`
#[derive(Clone, PartialEq, prost::Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// Some series of one family.
pub(super) struct Message(MetricFamily);

impl Message {
    /// None yet.
    pub(super) fn of(spec: &Spec) -> Self {
        let total = if spec.kind == InstrumentKind::Counter { "_total" } else { "" };
        let kind = match spec.kind {
            InstrumentKind::Counter => MetricType::Counter,
            InstrumentKind::UpDownCounter | InstrumentKind::Gauge => MetricType::Gauge,
            InstrumentKind::Histogram(_) => MetricType::Histogram,
        };
        Self(MetricFamily {
            name: spec.prometheus() + total,
            help: spec.help.to_owned(),
            kind: kind.into(),
            metric: Vec::new(),
            unit: spec.unit_word().to_owned(),
        })
    }

    /// Adds a series with these labels and this value, native buckets and all.
    pub(super) fn add<'a>(
        &mut self,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
        value: Value,
    ) {
        let mut metric = Metric { label: pairs(labels), ..Metric::default() };
        let number = match value {
            #[expect(clippy::cast_precision_loss, reason = "the format's numbers are floats")]
            Value::Count(count) => Some(count as f64),
            Value::Number(number) => Some(number),
            Value::Distribution(mut read) => {
                let native = read.native.take().unwrap_or_default();
                metric.histogram = Some(histogram(&read, native));
                None
            }
        };
        let number = number.map(|value| NumberMessage { value });
        match MetricType::try_from(self.0.kind) {
            Ok(MetricType::Counter) => metric.counter = number,
            _ => metric.gauge = number,
        }
        self.0.metric.push(metric);
    }

    /// Writes it behind its length.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        // Memory takes all of it.
        let _ = self.0.encode_length_delimited(out);
    }
}

/// Writes the resource, as a family of its own.
pub(super) fn write_target<'a>(
    out: &mut Vec<u8>,
    resource: impl Iterator<Item = (&'a str, &'a str)>,
) {
    let gauge = Some(NumberMessage { value: 1.0 });
    let metric = Metric { label: pairs(resource), gauge, ..Metric::default() };
    let target = MetricFamily {
        name: "target_info".to_owned(),
        help: "What emits.".to_owned(),
        kind: MetricType::Gauge.into(),
        metric: vec![metric],
        unit: String::new(),
    };
    Message(target).write(out);
}

/// A histogram with the samples that its native buckets have: Prometheus takes no others.
fn histogram(read: &Distribution, native: ExponentialHistogram) -> HistogramMessage {
    let all = native.count();
    let mut below = 0;
    let bounded = read.bounds.iter().zip(&read.counts).enumerate();
    let bucket = bounded.map(|(place, (bound, count))| {
        below += count;
        let exemplar = read.exemplars.iter().find(|exemplar| exemplar.bucket == place);
        let exemplar = exemplar.map(example);
        Bucket { cumulative_count: below.min(all), upper_bound: *bound, exemplar }
    });
    let bucket = bucket.collect();
    let (positive_span, positive_delta) = spans(native.buckets());
    HistogramMessage {
        sample_count: all,
        sample_sum: read.sum,
        bucket,
        schema: native.schema().into(),
        zero_threshold: ExponentialHistogram::ZERO_MAX,
        zero_count: native.zeros(),
        positive_span,
        positive_delta,
    }
}

fn example(exemplar: &exemplar::Exemplar) -> ExemplarMessage {
    let exemplar::Exemplar { value, origin, .. } = exemplar;
    let pair = |name: &str, value| LabelPair { name: name.to_owned(), value };
    let mut label = Vec::new();
    if let Some(Found { trace_id, span_id }) = origin.trace {
        label.push(pair("trace_id", format!("{:032x}", u128::from_be_bytes(trace_id))));
        let span_id = span_id.map(|id| format!("{:016x}", u64::from_be_bytes(id)));
        label.extend(span_id.map(|id| pair("span_id", id)));
    }
    label.push(pair("request_id", origin.request.0.to_string()));
    let (seconds, nanos) = (origin.at.as_second(), origin.at.subsec_nanosecond());
    ExemplarMessage { label, value: *value, timestamp: Some(Timestamp { seconds, nanos }) }
}

fn pairs<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<LabelPair> {
    let pair =
        |(key, value): (&str, &str)| LabelPair { name: escaped(key), value: value.to_owned() };
    let mut pairs: Vec<_> = labels.map(pair).collect();
    taximeter_collections::sort_by(&mut pairs, |a, b| a.name.cmp(&b.name));
    pairs
}

/// Buckets by rising numbers, as spans and differences.
fn spans(buckets: impl Iterator<Item = (i32, u64)>) -> (Vec<BucketSpan>, Vec<i64>) {
    let (mut spans, mut deltas): (Vec<BucketSpan>, _) = (Vec::new(), Vec::new());
    let (mut next, mut before) = (0, 0);
    for (number, count) in buckets {
        match spans.last_mut().filter(|_| number == next) {
            Some(span) => span.length += 1,
            None => spans.push(BucketSpan { offset: number - next, length: 1 }),
        }
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        deltas.push(count - before);
        (next, before) = (number + 1, count);
    }
    (spans, deltas)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_that_follow_each_other_are_one_span() {
        let buckets = [(-3, 5), (-2, 1), (0, 4), (1, 4), (9, 1)];
        let (spans, deltas) = spans(buckets.into_iter());
        let spans: Vec<_> = spans.iter().map(|span| (span.offset, span.length)).collect();
        assert_eq!(spans, [(-3, 2), (1, 2), (7, 1)]);
        assert_eq!(deltas, [5, -4, 3, 0, -3]);
    }
}
