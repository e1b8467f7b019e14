//! Writes every series as OTLP protobuf, one batch at a time.

use std::collections::{BTreeMap, HashMap};
use std::vec;

use ::metrics::Label;
use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::metrics::v1::{
    self as proto, AggregationTemporality, ExponentialHistogramDataPoint, HistogramDataPoint,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, exemplar,
    exponential_histogram_data_point, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use taximeter_config::{GenAi, HistogramBuckets, Temporality};
use taximeter_meter::ExponentialHistogram;

use super::exemplar::Exemplar;
use super::instruments::{Distribution, Reading, Value};
use super::message::{self, nanoseconds, pair, scope, text};
use super::names::{Instrument, InstrumentKind, Spec, key};
use super::resource::{RESOURCE_SCHEMA_URL, schema_url};
use crate::pusher::{Batch, Source};

/// Data points in one request: far below what collectors take, which is 4 MiB.
const BATCH_POINTS_MAX: usize = 1_000;

/// Metrics as a source of batches.
pub struct MetricsSource<R> {
    /// Every series, and what time it is.
    read: R,
    genai: GenAi,
    resource: Resource,
    since: u64,
    temporality: Temporality,
    histograms: HistogramBuckets,
    /// What is left of the round.
    round: vec::IntoIter<(Instrument, Reading)>,
    now: u64,
    /// What the last batch says.
    given: Vec<(usize, Sent)>,
    /// What the collector has of each series; only kept for deltas.
    sent: HashMap<usize, Sent>,
}

/// What a collector has of a series.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    value: Value,
    at: u64,
}

impl<R: FnMut() -> (Vec<(Instrument, Reading)>, Timestamp) + Send> MetricsSource<R> {
    /// A source of metrics that count since then.
    pub fn new(
        genai: GenAi,
        resource: &BTreeMap<String, String>,
        since: Timestamp,
        (temporality, histograms): (Temporality, HistogramBuckets),
        read: R,
    ) -> Self {
        Self {
            read,
            genai,
            resource: message::resource(resource),
            since: nanoseconds(since),
            temporality,
            histograms,
            round: Vec::new().into_iter(),
            now: 0,
            given: Vec::new(),
            sent: HashMap::new(),
        }
    }

    /// The point of a series, as its number since it was made or since the last push; `None` where
    /// nothing has been since then.
    fn point(&mut self, instrument: Instrument, reading: &Reading) -> Option<Point> {
        let spec = instrument.spec();
        let is_fine = self.histograms == HistogramBuckets::Exponential;
        let value = reading.value_with_native_if(is_fine);
        // When the first measurement may have been (OpenTelemetry's metrics SDK, start timestamps).
        let born = match instrument.is_observed() {
            true => self.since,
            false => reading.born().min(self.now).max(self.since),
        };
        if self.temporality == Temporality::Cumulative || !spec.counts() {
            return Some(self.point_since(born, reading, value));
        }
        let id = reading.id();
        let (since, new) = match self.sent.get(&id) {
            Some(sent) => (sent.at, difference(&value, &sent.value)?),
            None => (born, value.clone()),
        };
        self.given.push((id, Sent { value, at: self.now }));
        Some(self.point_since(since, reading, new))
    }

    fn point_since(&self, since: u64, reading: &Reading, value: Value) -> Point {
        let number = |value| {
            Point::Number(NumberDataPoint {
                attributes: attributes(reading.labels()),
                start_time_unix_nano: since,
                time_unix_nano: self.now,
                value: Some(value),
                ..NumberDataPoint::default()
            })
        };
        match value {
            Value::Count(count) => {
                number(number_data_point::Value::AsInt(count.try_into().unwrap_or(i64::MAX)))
            }
            Value::Number(value) => number(number_data_point::Value::AsDouble(value)),
            Value::Distribution(Distribution { native: Some(native), sum, exemplars, .. }) => {
                Point::Exponential(ExponentialHistogramDataPoint {
                    attributes: attributes(reading.labels()),
                    start_time_unix_nano: since,
                    time_unix_nano: self.now,
                    count: native.count(),
                    sum: Some(sum),
                    scale: native.schema().into(),
                    zero_count: native.zeros(),
                    zero_threshold: ExponentialHistogram::ZERO_MAX,
                    positive: buckets(&native),
                    exemplars: exemplars.iter().map(example).collect(),
                    ..ExponentialHistogramDataPoint::default()
                })
            }
            Value::Distribution(read) => Point::Histogram(HistogramDataPoint {
                attributes: attributes(reading.labels()),
                start_time_unix_nano: since,
                time_unix_nano: self.now,
                count: read.counts.iter().sum(),
                sum: Some(read.sum),
                bucket_counts: read.counts,
                explicit_bounds: read.bounds.to_vec(),
                exemplars: read.exemplars.iter().map(example).collect(),
                ..HistogramDataPoint::default()
            }),
        }
    }

    fn request(&self, metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics,
                    schema_url: schema_url(self.genai).to_owned(),
                }],
                schema_url: RESOURCE_SCHEMA_URL.to_owned(),
            }],
        }
    }
}

impl<R: FnMut() -> (Vec<(Instrument, Reading)>, Timestamp) + Send> Source for MetricsSource<R> {
    fn begin(&mut self) -> usize {
        let (readings, now) = (self.read)();
        self.round = readings.into_iter();
        self.now = nanoseconds(now);
        // Each round tells all of it.
        0
    }

    fn next(&mut self) -> Option<Batch> {
        self.given.clear();
        let mut metrics: Vec<Metric> = Vec::new();
        let mut items = 0;
        while items < BATCH_POINTS_MAX {
            let Some((instrument, reading)) = self.round.next() else { break };
            let spec = instrument.spec();
            let Some(point) = self.point(instrument, &reading) else { continue };
            items += 1;
            match metrics.last_mut().filter(|metric| metric.name == spec.name) {
                Some(metric) => push(metric, point),
                None => {
                    let mut metric = empty(&spec, self.temporality, self.histograms);
                    push(&mut metric, point);
                    metrics.push(metric);
                }
            }
        }
        let body = || self.request(metrics).encode_to_vec().into();
        (items > 0).then(|| Batch { body: body(), items })
    }

    fn taken(&mut self) {
        self.sent.extend(self.given.drain(..));
    }

    fn abandon(&mut self) -> usize {
        std::mem::take(&mut self.round).len()
    }
}

enum Point {
    Number(NumberDataPoint),
    Histogram(HistogramDataPoint),
    Exponential(ExponentialHistogramDataPoint),
}

fn empty(spec: &Spec, temporality: Temporality, histograms: HistogramBuckets) -> Metric {
    let preferred = match temporality {
        Temporality::Cumulative => AggregationTemporality::Cumulative,
        Temporality::Delta => AggregationTemporality::Delta,
    } as i32;
    let sum = |is_monotonic, aggregation_temporality| {
        metric::Data::Sum(proto::Sum {
            data_points: Vec::new(),
            aggregation_temporality,
            is_monotonic,
        })
    };
    let data = match spec.kind {
        InstrumentKind::Counter => sum(true, preferred),
        // What goes up and down is told as it is, whatever is preferred for the rest.
        InstrumentKind::UpDownCounter => sum(false, AggregationTemporality::Cumulative as i32),
        InstrumentKind::Gauge => metric::Data::Gauge(proto::Gauge::default()),
        InstrumentKind::Histogram(_) => match histograms {
            HistogramBuckets::Explicit => metric::Data::Histogram(proto::Histogram {
                data_points: Vec::new(),
                aggregation_temporality: preferred,
            }),
            HistogramBuckets::Exponential => {
                metric::Data::ExponentialHistogram(proto::ExponentialHistogram {
                    data_points: Vec::new(),
                    aggregation_temporality: preferred,
                })
            }
        },
    };
    Metric {
        name: spec.name.to_owned(),
        description: spec.help.to_owned(),
        unit: spec.unit.to_owned(),
        data: Some(data),
        ..Metric::default()
    }
}

fn push(metric: &mut Metric, point: Point) {
    match (&mut metric.data, point) {
        (Some(metric::Data::Sum(sum)), Point::Number(point)) => sum.data_points.push(point),
        (Some(metric::Data::Gauge(gauge)), Point::Number(point)) => gauge.data_points.push(point),
        (Some(metric::Data::Histogram(histogram)), Point::Histogram(point)) => {
            histogram.data_points.push(point);
        }
        (Some(metric::Data::ExponentialHistogram(histogram)), Point::Exponential(point)) => {
            histogram.data_points.push(point);
        }
        // An instrument has one kind of storage.
        _ => {}
    }
}

/// What `new` has more than `old`; `None` where that is nothing.
fn difference(new: &Value, old: &Value) -> Option<Value> {
    let more = match (new, old) {
        (Value::Count(new), Value::Count(old)) => Value::Count(new.saturating_sub(*old)),
        (Value::Number(new), Value::Number(old)) => Value::Number(new - old),
        (Value::Distribution(new), Value::Distribution(old)) => {
            let mut more = new.clone();
            for (count, old) in more.counts.iter_mut().zip(&old.counts) {
                *count = count.saturating_sub(*old);
            }
            more.sum -= old.sum;
            if let (Some(native), Some(old)) = (&mut more.native, &old.native) {
                *native = native.since(old);
            }
            // The collector has those already.
            more.exemplars.retain(|exemplar| !old.exemplars.contains(exemplar));
            Value::Distribution(more)
        }
        (new, _) => new.clone(),
    };
    let any = match &more {
        Value::Count(count) => *count > 0,
        Value::Number(number) => *number > 0.0,
        Value::Distribution(more) => match &more.native {
            Some(native) => native.count() > 0,
            None => more.counts.iter().any(|count| *count > 0),
        },
    };
    any.then_some(more)
}

/// From the first bucket with samples to the last. OTLP's bucket n begins where ours ends that has
/// the number n.
fn buckets(native: &ExponentialHistogram) -> Option<exponential_histogram_data_point::Buckets> {
    let mut counts = Vec::new();
    let (first, _) = native.buckets().next()?;
    for (number, count) in native.buckets() {
        let index = usize::try_from(i64::from(number) - i64::from(first)).ok()?;
        counts.resize(index, 0);
        counts.push(count);
    }
    Some(exponential_histogram_data_point::Buckets { offset: first - 1, bucket_counts: counts })
}

fn example(exemplar: &Exemplar) -> proto::Exemplar {
    let Exemplar { value, origin, .. } = exemplar;
    proto::Exemplar {
        filtered_attributes: vec![text(key::REQUEST_ID, &origin.request.0.to_string())],
        time_unix_nano: nanoseconds(origin.at),
        trace_id: origin.trace.map(|found| found.trace_id.into()).unwrap_or_default(),
        span_id: origin.trace.and_then(|found| found.span_id).map(Vec::from).unwrap_or_default(),
        value: Some(exemplar::Value::AsDouble(*value)),
    }
}

fn attributes(labels: &[Label]) -> Vec<KeyValue> {
    let attribute = |label: &Label| match (key::kind(label.key()), label.value().parse()) {
        (key::Type::Int, Ok(number)) => pair(label.key(), Attribute::IntValue(number)),
        _ => text(label.key(), label.value()),
    };
    labels.iter().map(attribute).collect()
}

#[cfg(test)]
mod tests;
