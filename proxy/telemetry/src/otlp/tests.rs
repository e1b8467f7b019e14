//! Tests of the OTLP batches.

use ::metrics::{CounterFn as _, GaugeFn as _};
use taximeter_config::GenAi;
use taximeter_ledger::RequestId;

use super::super::births::Births;
use super::super::exemplar::Origin;
use super::super::instruments::Instruments;
use super::super::trace::Found;
use super::*;

const AT: i64 = 1_763_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(AT + seconds).unwrap()
}

fn nanos(seconds: i64) -> u64 {
    u64::try_from(AT + seconds).unwrap() * 1_000_000_000
}

/// No series yet; those that come are made twenty seconds after the start, each a bit after the other.
fn later() -> Instruments {
    Instruments::born_by(Births::by(|| at(20)), GenAi::V1_41, false)
}

/// A source whose rounds are a minute apart.
fn source(instruments: &Instruments, temporality: Temporality) -> impl Source + use<'_> {
    source_of(instruments, (temporality, HistogramBuckets::Explicit))
}

/// The same, with histograms of either kind.
fn source_of(
    instruments: &Instruments,
    form: (Temporality, HistogramBuckets),
) -> impl Source + use<'_> {
    let resource = [("service.name".to_owned(), "t".to_owned())].into();
    let mut minutes = 0;
    MetricsSource::new(GenAi::V1_41, &resource, at(0), form, move || {
        minutes += 1;
        (instruments.readings(), at(60 * minutes))
    })
}

/// The metrics of the next batch.
fn metrics(source: &mut impl Source) -> Option<Vec<Metric>> {
    let batch = source.next()?;
    let mut request = ExportMetricsServiceRequest::decode(&*batch.body).unwrap();
    assert_eq!(request.resource_metrics.len(), 1);
    let resource = request.resource_metrics.remove(0);
    assert_eq!(resource.resource.unwrap().attributes[0], text("service.name", "t"));
    Some(resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics).collect())
}

fn sum(metrics: &[Metric], name: &str) -> proto::Sum {
    let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
    match metric.data.clone().unwrap() {
        metric::Data::Sum(sum) => sum,
        other => panic!("{other:?}"),
    }
}

fn histogram(metrics: &[Metric], name: &str) -> HistogramDataPoint {
    let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
    match metric.data.clone().unwrap() {
        metric::Data::Histogram(mut histogram) => histogram.data_points.remove(0),
        other => panic!("{other:?}"),
    }
}

fn int(sum: &proto::Sum) -> (u64, Option<number_data_point::Value>) {
    let point = &sum.data_points[0];
    (point.start_time_unix_nano, point.value)
}

#[test]
fn every_kind_is_told_as_what_it_is() {
    let instruments = later();
    let labels = vec![Label::new(key::SERVER_PORT, "80"), Label::new(key::SERVER_ADDRESS, "80")];
    let origin = Origin {
        request: RequestId(uuid::Uuid::nil()),
        trace: Some(Found { trace_id: [7; 16], span_id: Some([8; 8]) }),
        at: at(9),
    };
    instruments.buckets(Instrument::HttpClientRequestDuration, labels).record_from(0.006, origin);
    instruments.count(Instrument::StoreFaults, Vec::new()).increment(3);
    instruments.number(Instrument::RequestsOpen, Vec::new()).set(2.0);
    instruments.number(Instrument::LedgerHealthy, Vec::new()).set(1.0);
    let mut source = source(&instruments, Temporality::Cumulative);
    source.begin();
    let metrics = metrics(&mut source).unwrap();
    assert!(source.next().is_none());
    let read = histogram(&metrics, "http.client.request.duration");
    assert_eq!((read.count, read.bucket_counts[1], read.explicit_bounds.len()), (1, 1, 14));
    assert_eq!((read.start_time_unix_nano, read.time_unix_nano), (nanos(20), nanos(60)));
    assert_eq!(read.exemplars[0].trace_id, [7; 16]);
    assert_eq!(read.exemplars[0].span_id, [8; 8]);
    assert_eq!(read.exemplars[0].time_unix_nano, nanos(9));
    assert!(read.attributes.contains(&pair(key::SERVER_PORT, Attribute::IntValue(80))));
    assert!(read.attributes.contains(&text(key::SERVER_ADDRESS, "80")));
    let faults = sum(&metrics, "taximeter.store.faults");
    assert!(faults.is_monotonic);
    assert_eq!(int(&faults), (nanos(20) + 1, Some(number_data_point::Value::AsInt(3))));
    assert!(!sum(&metrics, "taximeter.requests.open").is_monotonic);
    assert!(metrics.iter().any(|metric| matches!(metric.data, Some(metric::Data::Gauge(_)))));
}

#[test]
fn a_delta_counts_from_what_the_collector_has() {
    let instruments = later();
    let faults = instruments.count(Instrument::StoreFaults, Vec::new());
    let gateway = instruments.buckets(Instrument::GatewayDuration, Vec::new());
    instruments.number(Instrument::RequestsOpen, Vec::new()).set(2.0);
    let origin = Origin { request: RequestId(uuid::Uuid::nil()), trace: None, at: at(9) };
    let mut source = source(&instruments, Temporality::Delta);
    let as_int = |count| Some(number_data_point::Value::AsInt(count));

    faults.increment(3);
    gateway.record_from(0.5, origin);
    source.begin();
    let first = metrics(&mut source).unwrap();
    assert_eq!(int(&sum(&first, "taximeter.store.faults")), (nanos(20), as_int(3)));
    // It was not taken: the next round tells it again, and what came since.
    faults.increment(4);
    source.begin();
    let again = metrics(&mut source).unwrap();
    let told = sum(&again, "taximeter.store.faults");
    assert_eq!(int(&told), (nanos(20), as_int(7)));
    assert_eq!(told.aggregation_temporality, AggregationTemporality::Delta as i32);
    source.taken();

    faults.increment(1);
    source.begin();
    let last = metrics(&mut source).unwrap();
    assert_eq!(int(&sum(&last, "taximeter.store.faults")), (nanos(120), as_int(1)));
    assert!(!last.iter().any(|metric| metric.name == "taximeter.gateway.duration"));
    let open = sum(&last, "taximeter.requests.open");
    assert_eq!(open.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    source.taken();

    gateway.record_from(0.25, origin);
    source.begin();
    let read = histogram(&metrics(&mut source).unwrap(), "taximeter.gateway.duration");
    assert_eq!((read.count, read.sum, read.bucket_counts.iter().sum()), (1, Some(0.25), 1));
    // The example of the other bucket went with the first push.
    let values: Vec<_> = read.exemplars.iter().map(|exemplar| exemplar.value).collect();
    assert_eq!(values, [Some(exemplar::Value::AsDouble(0.25))]);
}

#[test]
fn a_histogram_is_exponential_where_that_is_asked_for_as_whole_or_since_the_last_push() {
    let instruments = Instruments::new(GenAi::V1_41, true);
    let gateway = instruments.buckets(Instrument::GatewayDuration, Vec::new());
    let origin = Origin { request: RequestId(uuid::Uuid::nil()), trace: None, at: at(9) };
    let [mut whole, mut since] = [Temporality::Cumulative, Temporality::Delta]
        .map(|temporality| source_of(&instruments, (temporality, HistogramBuckets::Exponential)));
    let pushed = |source: &mut dyn Source| {
        source.begin();
        let batch = source.next()?;
        source.taken();
        let mut request = ExportMetricsServiceRequest::decode(&*batch.body).unwrap();
        match request.resource_metrics.remove(0).scope_metrics.remove(0).metrics.remove(0).data {
            Some(metric::Data::ExponentialHistogram(mut told)) => Some(told.data_points.remove(0)),
            other => panic!("{other:?}"),
        }
    };
    for sample in [0.0, 1.0, 1.01, 2.0] {
        gateway.record_from(sample, origin);
    }
    let bounds = |point: &ExponentialHistogramDataPoint| {
        let buckets = point.positive.clone().unwrap();
        let numbered = (buckets.offset..).zip(buckets.bucket_counts);
        numbered.filter(|(_, count)| *count > 0).collect::<Vec<_>>()
    };
    for source in [&mut whole as &mut dyn Source, &mut since] {
        let point = pushed(source).unwrap();
        assert_eq!((point.scale, point.count, point.zero_count, point.sum), (3, 4, 1, Some(4.01)));
        // A bucket ends with its bound: 1 lies in the one below it, and so does 2.
        assert_eq!(bounds(&point), [(-1, 1), (0, 1), (7, 1)]);
        assert!(!point.exemplars.is_empty());
    }
    gateway.record_from(0.5, origin);
    assert_eq!(bounds(&pushed(&mut whole).unwrap()), [(-9, 1), (-1, 1), (0, 1), (7, 1)]);
    let more = pushed(&mut since).unwrap();
    assert_eq!((more.count, more.zero_count, bounds(&more)), (1, 0, vec![(-9, 1)]));
    assert_eq!(pushed(&mut since), None, "nothing since then");
}

#[test]
fn batches_are_bounded_and_what_is_left_of_a_round_is_known() {
    let instruments = Instruments::new(GenAi::V1_41, false);
    for cause in 0..2 * BATCH_POINTS_MAX + 1 {
        let labels = vec![Label::new(key::CAUSE, cause.to_string())];
        instruments.count(Instrument::BadFraming, labels).increment(1);
    }
    let mut source = source(&instruments, Temporality::Cumulative);
    source.begin();
    let batch = source.next().unwrap();
    assert_eq!(batch.items, BATCH_POINTS_MAX);
    assert!(batch.body.len() < 1 << 20);
    assert_eq!(source.abandon(), BATCH_POINTS_MAX + 1);
    assert!(source.next().is_none());
    source.begin();
    let items: Vec<_> = std::iter::from_fn(|| source.next()).map(|batch| batch.items).collect();
    assert_eq!(items, [BATCH_POINTS_MAX, BATCH_POINTS_MAX, 1]);
}

#[test]
fn what_is_counted_elsewhere_from_the_start_says_so() {
    let instruments = later();
    let told = |instrument| {
        instruments.count(instrument, Vec::new()).increment(1);
        let mut source = source(&instruments, Temporality::Cumulative);
        source.begin();
        int(&sum(&metrics(&mut source).unwrap(), instrument.spec().name)).0
    };
    assert_eq!(told(Instrument::LogLinesLost), nanos(0));
    assert_eq!(told(Instrument::LedgerEntries), nanos(0));
    assert!(told(Instrument::StoreFaults) >= nanos(20));
}
