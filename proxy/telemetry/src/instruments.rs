//! Stores the numbers: atomics behind the handles of the `metrics` crate. A histogram is its
//! buckets and a sum. So the gaps of a whole stream are merged with a few additions, and memory
//! does not grow with the samples.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ::metrics::{CounterFn, GaugeFn, HistogramFn, Key, Label};
use metrics_util::registry::{Registry, Storage};
use taximeter_config::GenAi;
use taximeter_meter::{ExponentialHistogram, GapHistogram};

use super::births::Births;
use super::exemplar::{Exemplar, Exemplars, Origin};
use super::names::{Generation, Instrument, InstrumentKind};
use super::rooms::Rooms;

pub(crate) use super::value::{Distribution, Value};

/// A number that adds up. It is a float, because money in metrics is an approximation.
#[derive(Debug, Default)]
pub struct Number(AtomicU64);

impl Number {
    /// Adds.
    pub fn add(&self, value: f64) {
        let add = |bits| Some((f64::from_bits(bits) + value).to_bits());
        // The closure never declines.
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }

    /// The value.
    pub fn value(&self) -> f64 {
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
pub struct Count(AtomicU64);

impl Count {
    /// The value.
    pub fn value(&self) -> u64 {
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
pub struct Buckets {
    bounds: &'static [f64],
    /// Per bucket, not cumulative; the last is above the highest bound.
    counts: Vec<AtomicU64>,
    sum: Number,
    exemplars: Exemplars,
    /// The same samples in native buckets, where these are told.
    native: Option<Mutex<ExponentialHistogram>>,
}

impl Buckets {
    fn new(bounds: &'static [f64], has_native: bool) -> Self {
        Self {
            bounds,
            counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(),
            sum: Number::default(),
            exemplars: Exemplars::default(),
            native: has_native.then(Mutex::default),
        }
    }

    /// Adds a sample, and keeps it as an example.
    pub(crate) fn record_from(&self, value: f64, origin: Origin) {
        self.record(value);
        self.exemplars.keep(Exemplar { bucket: self.bucket(value), value, origin });
    }

    /// Adds all gaps of a stream. The longest becomes an exemplar. The stream has the same buckets.
    pub fn merge(&self, gaps: &GapHistogram, longest: Option<f64>, origin: Origin) {
        for (mine, theirs) in self.counts.iter().zip(&gaps.buckets) {
            if *theirs > 0 {
                mine.fetch_add(u64::from(*theirs), Relaxed);
            }
        }
        self.sum.add(gaps.sum.as_secs_f64());
        if let (Some(native), Some(fine)) = (&self.native, &gaps.fine) {
            native.lock().unwrap_or_else(PoisonError::into_inner).merge(fine);
        }
        if let Some(value) = longest {
            self.exemplars.keep(Exemplar { bucket: self.bucket(value), value, origin });
        }
    }

    /// The samples now.
    pub fn distribution(&self) -> Distribution {
        Distribution {
            bounds: self.bounds,
            counts: self.counts.iter().map(|count| count.load(Relaxed)).collect(),
            sum: self.sum.value(),
            exemplars: self.exemplars.all(),
            native: None,
        }
    }

    /// Its native buckets now.
    pub(crate) fn native(&self) -> Option<ExponentialHistogram> {
        let native = self.native.as_ref()?;
        Some(native.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn bucket(&self, value: f64) -> usize {
        self.bounds.partition_point(|bound| *bound < value)
    }
}

impl HistogramFn for Buckets {
    fn record(&self, value: f64) {
        if let Some(count) = self.counts.get(self.bucket(value)) {
            count.fetch_add(1, Relaxed);
        }
        self.sum.add(value);
        if let Some(native) = &self.native {
            native.lock().unwrap_or_else(PoisonError::into_inner).record(value);
        }
    }
}

/// A series: its attributes, when it was made, and its value.
#[derive(Debug)]
pub struct Series<T> {
    labels: Box<[Label]>,
    born: u64,
    value: T,
}

impl<T> Series<T> {
    pub(super) fn new(key: &Key, births: &Births, value: T) -> Arc<Self> {
        Arc::new(Self { labels: key.labels().cloned().collect(), born: births.next(), value })
    }
}

impl<T> Deref for Series<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A series that is made when it is first needed.
pub(super) type SeriesSlot<T> = OnceLock<Arc<Series<T>>>;

/// Makes the storage of a new series; the bounds come from the table of names.
struct Atomics {
    has_native: bool,
    births: Births,
}

impl Storage<Key> for Atomics {
    type Counter = Arc<Series<Count>>;
    type Gauge = Arc<Series<Number>>;
    type Histogram = Arc<Series<Buckets>>;

    fn counter(&self, key: &Key) -> Self::Counter {
        Series::new(key, &self.births, Count::default())
    }

    fn gauge(&self, key: &Key) -> Self::Gauge {
        Series::new(key, &self.births, Number::default())
    }

    fn histogram(&self, key: &Key) -> Self::Histogram {
        let kind = Instrument::named(key.name()).map(|instrument| instrument.spec().kind);
        let bounds = if let Some(InstrumentKind::Histogram(bounds)) = kind { bounds } else { &[] };
        Series::new(key, &self.births, Buckets::new(bounds, self.has_native))
    }
}

impl<T: CounterFn> CounterFn for Series<T> {
    fn increment(&self, value: u64) {
        self.value.increment(value);
    }

    fn absolute(&self, value: u64) {
        self.value.absolute(value);
    }
}

impl<T: GaugeFn> GaugeFn for Series<T> {
    fn increment(&self, value: f64) {
        self.value.increment(value);
    }

    fn decrement(&self, value: f64) {
        self.value.decrement(value);
    }

    fn set(&self, value: f64) {
        self.value.set(value);
    }
}

impl<T: HistogramFn> HistogramFn for Series<T> {
    fn record(&self, value: f64) {
        self.value.record(value);
    }
}

/// A series that can be read without copying its content.
#[derive(Debug, Clone)]
pub enum Reading {
    Count(Arc<Series<Count>>),
    Number(Arc<Series<Number>>),
    Distribution(Arc<Series<Buckets>>),
}

impl Reading {
    /// Its attributes.
    pub fn labels(&self) -> &[Label] {
        match self {
            Self::Count(series) => &series.labels,
            Self::Number(series) => &series.labels,
            Self::Distribution(series) => &series.labels,
        }
    }

    /// When it was made: nanoseconds since 1970, and more than of every series before it.
    pub(crate) fn born(&self) -> u64 {
        match self {
            Self::Count(series) => series.born,
            Self::Number(series) => series.born,
            Self::Distribution(series) => series.born,
        }
    }

    /// Its value now.
    pub fn value(&self) -> Value {
        match self {
            Self::Count(series) => Value::Count(Count::value(series)),
            Self::Number(series) => Value::Number(Number::value(series)),
            Self::Distribution(series) => Value::Distribution(series.distribution()),
        }
    }

    /// The same, with native buckets where they are wanted and there are some.
    pub(crate) fn value_with_native_if(&self, wanted: bool) -> Value {
        // Before the others, so that they never have a sample that others lack.
        let native = if wanted { self.native() } else { None };
        match self.value() {
            Value::Distribution(read) => Value::Distribution(Distribution { native, ..read }),
            other => other,
        }
    }

    /// Its native buckets now; `None` where there are none.
    fn native(&self) -> Option<ExponentialHistogram> {
        match self {
            Self::Distribution(series) => series.native(),
            Self::Count(_) | Self::Number(_) => None,
        }
    }

    /// A number that identifies the series while the process runs. No series is ever dropped.
    pub fn id(&self) -> usize {
        match self {
            Self::Count(series) => Arc::as_ptr(series).addr(),
            Self::Number(series) => Arc::as_ptr(series).addr(),
            Self::Distribution(series) => Arc::as_ptr(series).addr(),
        }
    }
}

/// All series of all instruments.
pub(crate) struct Instruments {
    registry: Registry<Key, Atomics>,
    pub(super) births: Births,
    genai: GenAi,
    rooms: Rooms,
}

impl Instruments {
    /// No series yet; of histograms with native buckets too where `has_native`.
    pub(crate) fn new(genai: GenAi, has_native: bool) -> Self {
        Self::born_by(Births::default(), genai, has_native)
    }

    /// The same with series that were made at other times.
    pub(crate) fn born_by(births: Births, genai: GenAi, has_native: bool) -> Self {
        let registry = Registry::new(Atomics { has_native, births: births.clone() });
        Self { registry, births, genai, rooms: Rooms::new(usize::MAX) }
    }

    /// The same, with no more than `series_max` series of each.
    pub(crate) fn within(self, series_max: usize) -> Self {
        Self { rooms: Rooms::new(series_max), ..self }
    }

    /// Whether the instrument belongs to a generation that was chosen.
    pub(crate) const fn tells(&self, instrument: Instrument) -> bool {
        instrument.spec().generation.is_in(self.genai)
    }

    /// Whether names of v1.41 were chosen.
    pub(crate) const fn tells_v1_41(&self) -> bool {
        Generation::V1_41.is_in(self.genai)
    }

    /// The counter of whole things for these labels.
    pub(crate) fn count(&self, instrument: Instrument, labels: Vec<Label>) -> Arc<Series<Count>> {
        let registry = &self.registry;
        self.rooms.series(
            instrument,
            labels,
            |key| registry.get_counter(key),
            |key| registry.get_or_create_counter(key, Arc::clone),
        )
    }

    /// The number that adds up for these labels: a gauge, or money.
    pub(crate) fn number(&self, instrument: Instrument, labels: Vec<Label>) -> Arc<Series<Number>> {
        let registry = &self.registry;
        self.rooms.series(
            instrument,
            labels,
            |key| registry.get_gauge(key),
            |key| registry.get_or_create_gauge(key, Arc::clone),
        )
    }

    /// The histogram for these labels.
    pub(crate) fn buckets(
        &self,
        instrument: Instrument,
        labels: Vec<Label>,
    ) -> Arc<Series<Buckets>> {
        let registry = &self.registry;
        self.rooms.series(
            instrument,
            labels,
            |key| registry.get_histogram(key),
            |key| registry.get_or_create_histogram(key, Arc::clone),
        )
    }

    /// When the newest series was made. Whoever reads all series after this finds all that were made
    /// until then.
    pub(crate) fn last_birth(&self) -> u64 {
        self.births.last()
    }

    /// Every series, by instrument and then by attributes.
    pub(crate) fn readings(&self) -> Vec<(Instrument, Reading)> {
        let mut all = Vec::new();
        let mut push = |key: &Key, reading| {
            all.extend(Instrument::named(key.name()).map(|instrument| (instrument, reading)));
        };
        self.registry.visit_counters(|key, series| push(key, Reading::Count(series.clone())));
        self.registry.visit_gauges(|key, series| push(key, Reading::Number(series.clone())));
        self.registry.visit_histograms(|key, series| {
            push(key, Reading::Distribution(series.clone()));
        });
        taximeter_collections::sort_by(&mut all, |(left, a), (right, b)| {
            left.cmp(right).then_with(|| a.labels().cmp(b.labels()))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::names::key;
    use super::*;

    #[test]
    fn a_sample_on_a_bound_belongs_below_it() {
        let buckets = Buckets::new(&[1.0, 2.0], false);
        for sample in [0.5, 1.0, 1.5, 2.0, 3.0] {
            buckets.record(sample);
        }
        let read = buckets.distribution();
        assert_eq!(read.counts, [2, 2, 1]);
        assert!((read.sum - 8.0).abs() < 1e-9);
    }

    #[test]
    fn a_stream_s_gaps_are_merged_bucket_by_bucket() {
        let buckets = Buckets::new(&GapHistogram::BOUNDS_SECONDS, true);
        let mut fine = ExponentialHistogram::default();
        fine.record(99.0);
        let mut gaps =
            GapHistogram { fine: Some(Box::new(fine.clone())), ..GapHistogram::default() };
        gaps.buckets[0] = 3;
        gaps.buckets[14] = 1;
        gaps.sum = Duration::from_secs(100);
        let origin = Origin {
            request: taximeter_ledger::RequestId(uuid::Uuid::nil()),
            trace: None,
            at: jiff::Timestamp::UNIX_EPOCH,
        };
        buckets.merge(&gaps, Some(90.0), origin);
        buckets.merge(&gaps, Some(97.0), origin);
        let read = buckets.distribution();
        assert_eq!((read.counts[0], read.counts[14]), (6, 2));
        assert!((read.sum - 200.0).abs() < 1e-9);
        let kept: Vec<_> = read.exemplars.iter().map(|e| (e.bucket, e.value)).collect();
        assert_eq!(kept, [(14, 97.0)]);
        fine.record(99.0);
        assert_eq!(buckets.native(), Some(fine));
    }

    #[test]
    fn an_instrument_has_as_many_series_as_it_may_and_its_sum_stays_whole() {
        for series_max in [10, 100, 2_000] {
            let instruments = Instruments::new(GenAi::V1_41, false).within(series_max);
            let count = |tenant: usize, end: usize| {
                let labels = [(key::TENANT, tenant), (key::END, end)];
                let labels = labels.map(|(key, nth)| Label::new(key, nth.to_string()));
                instruments.count(Instrument::Requests, labels.to_vec()).increment(1);
            };
            let told = || {
                let mut told = (0, 0, 0);
                for (_, reading) in instruments.readings() {
                    let Value::Count(count) = reading.value() else { continue };
                    let narrowed = reading.labels().iter().any(|label| label.value() == "other");
                    told = (told.0 + 1, told.1 + usize::from(narrowed), told.2 + count);
                }
                told
            };
            let for_all = series_max - series_max / 10;
            (0..for_all).for_each(|tenant| count(tenant, 0));
            assert_eq!(told(), (for_all, 0, for_all as u64));
            // One more has no tenant any more, and behind those of all ends there is one for the rest.
            count(for_all, 0);
            assert_eq!(told(), (for_all + 1, 1, for_all as u64 + 1));
            (0..2 * series_max).for_each(|nth| count(series_max + nth, nth));
            (0..for_all).for_each(|tenant| count(tenant, 0));
            let sum = (2 * for_all + 1 + 2 * series_max) as u64;
            assert_eq!(told(), (series_max, series_max / 10, sum));
        }
    }

    #[test]
    fn a_series_that_many_ask_for_at_once_takes_one_place() {
        for _ in 0..100 {
            let instruments = Instruments::new(GenAi::V1_41, false).within(10);
            let barrier = std::sync::Barrier::new(9 * 4);
            std::thread::scope(|scope| {
                for nth in (0..9).cycle().take(9 * 4) {
                    let (barrier, instruments) = (&barrier, &instruments);
                    scope.spawn(move || {
                        let label = Label::new(key::TENANT, nth.to_string());
                        barrier.wait();
                        instruments.count(Instrument::Requests, vec![label]).increment(1);
                    });
                }
            });
            let values: Vec<_> = instruments.readings().iter().map(|(_, it)| it.value()).collect();
            assert!(values.len() == 9 && values.iter().all(|it| matches!(it, Value::Count(4))));
        }
    }

    #[test]
    fn an_instrument_without_room_takes_none_from_others() {
        let instruments = Instruments::new(GenAi::V1_41, false).within(10);
        for nth in 0..100 {
            let label = |key| vec![Label::new(key, nth.to_string())];
            instruments.count(Instrument::Refusals, label(key::CODE));
            instruments.count(Instrument::Voids, label(key::REASON));
        }
        instruments.count(Instrument::LedgerEntries, Vec::new());
        assert_eq!(instruments.readings().len(), 10 + 10 + 1);
    }
}
