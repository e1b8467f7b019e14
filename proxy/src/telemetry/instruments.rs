//! Where numbers are kept: atomics behind the `metrics` crate's handles. A histogram is its buckets
//! and a sum, so that a whole stream's gaps are merged with a few additions and memory never grows
//! with the samples.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ::metrics::{CounterFn, GaugeFn, HistogramFn, Key, Label};
use metrics_util::registry::{Registry, Storage};
use taximeter_meter::GapHistogram;

use super::names::{Instrument, Kind};

/// A number that adds up; floating, since money in metrics is an approximation anyway.
#[derive(Debug, Default)]
pub(crate) struct Number(AtomicU64);

impl Number {
    /// Adds.
    pub(crate) fn add(&self, value: f64) {
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure never declines.
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }

    /// The value.
    pub(crate) fn value(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }
}

impl GaugeFn for Number {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Relaxed);
    }
}

/// A counter of whole things.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// The value.
    pub(crate) fn value(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

impl CounterFn for Count {
    fn increment(&self, value: u64) {
        self.0.fetch_add(value, Relaxed);
    }

    fn absolute(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// A histogram with fixed bounds.
#[derive(Debug)]
pub(crate) struct Buckets {
    bounds: &'static [f64],
    /// Per bucket, not cumulative; the last is above the highest bound.
    counts: Vec<AtomicU64>,
    sum: Number,
}

impl Buckets {
    fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: Number::default() }
    }

    /// Adds a whole stream's gaps; its buckets are ours.
    pub(crate) fn merge(&self, gaps: &GapHistogram) {
        for (mine, theirs) in self.counts.iter().zip(&gaps.buckets) {
            if *theirs > 0 {
                mine.fetch_add(u64::from(*theirs), Relaxed);
            }
        }
        self.sum.add(gaps.sum.as_secs_f64());
    }

    /// Upper bounds with the samples at or below them, then the sum of all samples.
    pub(crate) fn cumulative(&self) -> (Vec<(f64, u64)>, f64) {
        let mut total = 0;
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        let cumulative = bounds
            .zip(&self.counts)
            .map(|(bound, count)| {
                total += count.load(Relaxed);
                (bound, total)
            })
            .collect();
        (cumulative, self.sum.value())
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Relaxed);
        }
        self.sum.add(value);
    }
}

/// Makes the storage of a new series; the bounds come from the table of names.
struct Atomics;

impl Storage<Key> for Atomics {
    type Counter = Arc<Count>;
    type Gauge = Arc<Number>;
    type Histogram = Arc<Buckets>;

    fn counter(&self, _: &Key) -> Arc<Count> {
        Arc::default()
    }

    fn gauge(&self, _: &Key) -> Arc<Number> {
        Arc::default()
    }

    fn histogram(&self, key: &Key) -> Arc<Buckets> {
        let spec = Instrument::ALL.iter().map(|i| i.spec()).find(|spec| spec.name == key.name());
        Arc::new(Buckets::new(match spec.map(|spec| spec.kind) {
            Some(Kind::Histogram(bounds)) => bounds,
            _ => &[],
        }))
    }
}

/// One series' value, at a moment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    /// Upper bounds with the samples at or below them, then the sum.
    Histogram(Vec<(f64, u64)>, f64),
}

/// All series of all instruments.
pub(crate) struct Instruments {
    registry: Registry<Key, Atomics>,
}

impl Instruments {
    /// No series yet.
    pub(crate) fn new() -> Self {
        Self { registry: Registry::new(Atomics) }
    }

    /// The counter of whole things for these labels.
    pub(crate) fn count(&self, instrument: Instrument, labels: Vec<Label>) -> Arc<Count> {
        let key = Key::from_parts(instrument.spec().name, labels);
        self.registry.get_or_create_counter(&key, Arc::clone)
    }

    /// The number that adds up for these labels: a gauge, or money.
    pub(crate) fn number(&self, instrument: Instrument, labels: Vec<Label>) -> Arc<Number> {
        let key = Key::from_parts(instrument.spec().name, labels);
        self.registry.get_or_create_gauge(&key, Arc::clone)
    }

    /// The histogram for these labels.
    pub(crate) fn buckets(&self, instrument: Instrument, labels: Vec<Label>) -> Arc<Buckets> {
        let key = Key::from_parts(instrument.spec().name, labels);
        self.registry.get_or_create_histogram(&key, Arc::clone)
    }

    /// Every series with its value, in no order.
    pub(crate) fn snapshot(&self) -> Vec<(Key, Value)> {
        let mut all = Vec::new();
        self.registry.visit_counters(|key, count| {
            #[expect(clippy::cast_precision_loss, reason = "Prometheus' numbers are floats")]
            all.push((key.clone(), Value::Number(count.value() as f64)));
        });
        self.registry.visit_gauges(|key, number| {
            all.push((key.clone(), Value::Number(number.value())));
        });
        self.registry.visit_histograms(|key, buckets| {
            let (cumulative, sum) = buckets.cumulative();
            all.push((key.clone(), Value::Histogram(cumulative, sum)));
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sample_on_a_bound_belongs_below_it() {
        let buckets = Buckets::new(&[1.0, 2.0]);
        for sample in [0.5, 1.0, 1.5, 2.0, 3.0] {
            buckets.record(sample);
        }
        let (cumulative, sum) = buckets.cumulative();
        assert_eq!(cumulative, [(1.0, 2), (2.0, 4), (f64::INFINITY, 5)]);
        assert!((sum - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_stream_s_gaps_are_merged_bucket_by_bucket() {
        let buckets = Buckets::new(&GapHistogram::BOUNDS_SECONDS);
        let mut gaps = GapHistogram::default();
        gaps.buckets[0] = 3;
        gaps.buckets[14] = 1;
        gaps.sum = Duration::from_secs(100);
        buckets.merge(&gaps);
        buckets.merge(&gaps);
        let (cumulative, sum) = buckets.cumulative();
        assert_eq!(cumulative.first(), Some(&(0.01, 6)));
        assert_eq!(cumulative.last(), Some(&(f64::INFINITY, 8)));
        assert!((sum - 200.0).abs() < 1e-9);
    }
}
