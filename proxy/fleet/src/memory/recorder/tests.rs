use std::collections::BTreeMap;
use std::convert::Infallible;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::histogram::Buckets;
use crate::pool::Pool;
use crate::quantity::{
    GENERATION_TOKENS, GPU_LAST_XID, KV_CACHE_USAGE, Quantity, TIME_TO_FIRST_TOKEN,
};
use crate::reading::{Measured, Reading, Value};
use crate::target::TargetKind;

/// 2026-11-20T00:00:00Z.
const DAY: i64 = 1_795_132_800;

/// A source that is asked again and again.
struct Asked {
    begun: Instant,
    pool: Pool,
    target: Target,
    recorder: Recorder,
}

type All = BTreeMap<(&'static str, String, &'static str), Vec<At>>;

impl Asked {
    #[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
    fn every(seconds: u64) -> Self {
        let every = Duration::from_secs(seconds);
        let target = Target::new("http://e/metrics", TargetKind::Engine, Vec::new(), every);
        let recorder = Recorder::default();
        Self { begun: Instant::now(), pool: Pool::default(), target, recorder }
    }

    /// It tells this, so many seconds after the beginning of the day.
    fn tells(&mut self, second: u64, measured: Vec<Measured>) {
        let now = self.begun + Duration::from_secs(second);
        let reading = Reading { measured, ..Reading::default() };
        self.target.quantities =
            Arc::new(self.target.quantities.after(reading, now, &mut self.pool));
        let at = Timestamp::from_second(DAY + i64::try_from(second).unwrap()).unwrap();
        self.target.answered_at = Some(at);
        self.recorder.note(&[Arc::new(self.target.clone())]);
    }

    /// What is over then, by grid, quantity with its labels, and statistic.
    fn gives(&mut self, second: i64) -> All {
        let (mut all, mut last) = (All::new(), None);
        let told = self.recorder.give::<Infallible>(DAY + second, &mut |told| {
            assert!(last.as_ref().is_none_or(|last| last <= told.key), "{last:?} {:?}", told.key);
            assert!(told.samples.is_sorted_by(|a, b| a.0 < b.0) && !told.samples.is_empty());
            last = Some(told.key.clone());
            let key = (told.grid.name(), told.key.labels.clone(), told.key.statistic.as_str());
            let samples = told.samples.iter().map(|(at, value)| (at - DAY, *value));
            assert_eq!(all.insert(key, samples.collect()), None);
            Ok(())
        });
        told.unwrap();
        all
    }
}

fn one(quantity: &'static Quantity, of: &str, value: f64) -> Measured {
    Measured {
        quantity,
        value: Value::Number(value),
        buckets: None,
        identity: Arc::default(),
        attributes: vec![("of".to_owned(), of.to_owned())],
        program: "vllm",
        from: "vllm:x".to_owned(),
        how: String::new(),
        age: None,
    }
}

fn named(
    grid: &'static str,
    of: &str,
    statistic: &'static str,
) -> (&'static str, String, &'static str) {
    (grid, format!("{{\"of\":\"{of}\"}}"), statistic)
}

fn sum(given: &All, grid: &'static str) -> i64 {
    given.get(&named(grid, "a", "increase")).into_iter().flatten().map(|(_, value)| value).sum()
}

impl Asked {
    /// The usual time between two questions is this now.
    fn is_usual(&mut self, seconds: u64) {
        self.target.usual = Duration::from_secs(seconds);
        self.recorder.note(&[Arc::new(self.target.clone())]);
    }
}

#[test]
fn an_engine_that_is_asked_rarely_while_nothing_runs_loses_no_growth_and_its_means_are_of_time() {
    let mut asked = Asked::every(15);
    let told = |running: f64, tokens: f64| {
        vec![one(KV_CACHE_USAGE, "", running), one(GENERATION_TOKENS, "", tokens)]
    };
    asked.tells(0, told(0.0, 100.0));
    // Requests run for six seconds; then it is asked once more, and rarely again.
    asked.is_usual(1);
    for (second, tokens) in
        [(16, 110.0), (17, 130.0), (18, 150.0), (19, 170.0), (20, 190.0), (21, 200.0)]
    {
        asked.tells(second, told(0.5, tokens));
    }
    asked.tells(22, told(0.0, 201.0));
    asked.is_usual(15);
    asked.tells(37, told(0.0, 201.0));
    asked.is_usual(1);
    asked.tells(50, told(0.5, 231.0));
    asked.tells(51, told(0.0, 240.0));
    let all = asked.gives(60);
    let of = |statistic: &str, grid: &str| {
        let found = all.iter().filter(|((of, _, is), _)| *of == grid && *is == statistic);
        found.flat_map(|(_, samples)| samples.iter().copied()).collect::<Vec<_>>()
    };
    assert_eq!(of("increase", "1m"), [(0, 140)], "{all:?}");
    // Half of the cache for 7 of 60 seconds, and a sample each 15 seconds or so else.
    let scale = scale_of(KV_CACHE_USAGE);
    let [(0, mean)] = of("mean", "1m")[..] else { panic!("{all:?}") };
    let mean = crate::memory::scale::value(mean, scale);
    assert!((mean - 0.5 * 7.0 / 60.0).abs() < 0.01, "{mean} {all:?}");
}

#[test]
fn a_minute_that_is_over_is_given_by_the_second_and_as_one_and_a_gap_has_no_sample() {
    let mut asked = Asked::every(1);
    for (second, value) in [(0, 0.5), (1, 0.25), (58, 0.9), (61, 0.1), (185, 0.0)] {
        let code = one(GPU_LAST_XID, "b", 79.0 + value * 20.0);
        asked.tells(second, vec![one(KV_CACHE_USAGE, "a", value), code]);
        if second == 58 {
            assert_eq!(asked.gives(59), All::new(), "its minute is not over");
        }
    }
    let expected: All = [
        (named("1s", "a", "mean"), vec![(0, 5_000), (1, 2_500), (58, 9_000), (61, 1_000)]),
        (named("1m", "a", "mean"), vec![(0, 3_361), (60, 1_000)]),
        (named("1m", "a", "min"), vec![(0, 2_500), (60, 1_000)]),
        (named("1m", "a", "max"), vec![(0, 9_000), (60, 1_000)]),
        (named("1s", "b", "last"), vec![(0, 89), (1, 84), (58, 97), (61, 81)]),
        (named("1m", "b", "last"), vec![(0, 97), (60, 81)]),
    ]
    .into();
    assert_eq!(asked.gives(185), expected);
    assert_eq!(asked.gives(239), All::new(), "it is given once");
    assert_eq!(asked.gives(240)[&named("1m", "a", "mean")], [(180, 0)], "a true 0 is a sample");
    assert_eq!(asked.recorder.left_out(), 0);
}

#[test]
fn a_counter_tells_its_growth_and_nothing_after_a_silence() {
    let mut asked = Asked::every(5);
    let counted = [(0, 100.0), (5, 130.0), (11, 130.0), (15, 20.0), (90, 900.0), (95, 901.0)];
    for (second, value) in counted {
        asked.tells(second, vec![one(GENERATION_TOKENS, "a", value)]);
    }
    let given = asked.gives(120);
    let seconds = vec![(5, 30), (10, 0), (15, 20), (95, 1)];
    assert_eq!(given[&named("1s", "a", "increase")], seconds);
    assert_eq!(given[&named("1m", "a", "increase")], [(0, 50), (60, 1)]);
}

#[test]
fn what_a_source_repeats_because_it_has_nothing_newer_is_one_sample() {
    let mut asked = Asked::every(5);
    for second in (0..120).step_by(5) {
        let measured_at = f64::from(u32::try_from(second / 30).unwrap());
        asked.tells(second, vec![one(KV_CACHE_USAGE, "a", measured_at / 10.0)]);
    }
    let seconds = &asked.gives(120)[&named("1s", "a", "mean")];
    let newer: Vec<_> = seconds.iter().filter(|(at, _)| *at > 60).collect();
    assert_eq!(newer, [&(90, 3_000)], "its period is known by then");
}

#[test]
fn a_percentile_is_that_of_its_time_and_not_of_all_since_the_program_started() {
    let mut asked = Asked::every(15);
    let mut seen = [1_000.0, 0.0, 0.0];
    let mut tell = |asked: &mut Asked, second, more: [f64; 3]| {
        for (seen, more) in seen.iter_mut().zip(more) {
            *seen += more;
        }
        let (mut buckets, mut below) = (Buckets::default(), 0.0);
        for (bound, seen) in [0.1, 1.0, f64::INFINITY].into_iter().zip(seen) {
            below += seen;
            buckets.add(bound, below);
        }
        (buckets.count, buckets.sum) = (Some(below), Some(below * 0.5));
        let value = Value::Histogram(buckets.distribution(1.0));
        let buckets = Some(Arc::new(buckets));
        let one = Measured { value, buckets, ..one(TIME_TO_FIRST_TOKEN, "a", 0.0) };
        asked.tells(second, vec![one]);
    };
    tell(&mut asked, 0, [0.0; 3]);
    tell(&mut asked, 15, [0.0, 10.0, 0.0]);
    tell(&mut asked, 30, [10.0, 0.0, 0.0]);
    tell(&mut asked, 45, [0.0; 3]);
    tell(&mut asked, 60, [0.0, 0.0, 2.0]);
    let given = asked.gives(120);
    assert_eq!(given[&named("1s", "a", "p50")], [(15, 5_500), (30, 500)]);
    assert_eq!(given[&named("1s", "a", "count")], [(15, 10), (30, 10), (45, 0), (60, 2)]);
    assert_eq!(
        given[&named("1s", "a", "sum")],
        [(15, 50_000), (30, 50_000), (45, 0), (60, 10_000)]
    );
    // Above the last bound, nobody knows how far.
    assert_eq!(given[&named("1m", "a", "p50")], [(0, 1_000)]);
    assert_eq!(given[&named("1m", "a", "count")], [(0, 20), (60, 2)]);
    tell(&mut asked, 3_585, [0.0; 3]);
    tell(&mut asked, 3_600, [0.0, 20.0, 0.0]);
    let given = asked.gives(3_660);
    assert_eq!(given[&named("1h", "a", "p50")], [(0, 1_900)], "10 below 0.1, 10 below 1, and 2");
    tell(&mut asked, 3_615, [0.0, 1.0, 0.0]);
    asked.recorder.since = Some(DAY + 3_601);
    let given = asked.gives(7_200);
    assert!(!given.contains_key(&named("1h", "a", "p50")), "a part of the hour is no hour");
}

#[test]
fn series_may_come_and_go_and_what_waits_of_them_is_kept() {
    let mut asked = Asked::every(1);
    asked.tells(1, vec![one(KV_CACHE_USAGE, "a", 0.1), one(KV_CACHE_USAGE, "b", 0.2)]);
    asked.tells(2, vec![one(KV_CACHE_USAGE, "b", 0.3), one(KV_CACHE_USAGE, "c", 0.4)]);
    asked.tells(3, vec![one(KV_CACHE_USAGE, "c", 0.5), one(KV_CACHE_USAGE, "a", 0.6)]);
    asked.tells(61, vec![one(KV_CACHE_USAGE, "c", 0.7)]);
    let given = asked.gives(60);
    assert_eq!(given[&named("1s", "a", "mean")], [(1, 1_000), (3, 6_000)]);
    assert_eq!(given[&named("1s", "b", "mean")], [(1, 2_000), (2, 3_000)]);
    assert_eq!(given[&named("1s", "c", "mean")], [(2, 4_000), (3, 5_000)]);
    assert_eq!(asked.recorder.series(), 1);
    asked.recorder.note(&[]);
    assert_eq!(asked.gives(120)[&named("1s", "c", "mean")], [(61, 7_000)]);
    assert_eq!((asked.recorder.series(), asked.recorder.left_out()), (0, 0));
    asked.tells(121, vec![one(KV_CACHE_USAGE, "a", f64::NAN)]);
    assert_eq!((asked.gives(180), asked.recorder.left_out()), (All::new(), 1));
}

#[test]
fn samples_that_wait_are_bounded_and_those_left_out_are_counted() {
    let mut asked = Asked::every(1);
    asked.recorder.waiting_max = 10;
    for second in 0..4 {
        let value = f64::from(u32::try_from(second).unwrap()) / 10.0;
        let all = ["a", "b", "c"].map(|of| one(KV_CACHE_USAGE, of, value));
        asked.tells(second, all.to_vec());
    }
    assert_eq!((asked.recorder.left_out(), asked.recorder.waiting), (2, 10));
    let given = asked.gives(60);
    let seconds = |of| given[&named("1s", of, "mean")].len();
    assert_eq!([seconds("a"), seconds("b"), seconds("c")], [4, 3, 3]);
    asked.tells(61, vec![one(KV_CACHE_USAGE, "a", 0.5)]);
    assert_eq!(asked.gives(120)[&named("1s", "a", "mean")], [(61, 5_000)], "there is room again");
}

proptest! {
    /// However often a source is asked, and whenever minutes are given: what a counter grew by is there
    /// once.
    #[test]
    fn growth_is_neither_lost_nor_told_twice(steps in prop::collection::vec((1..8_u64, 0_u32..99, any::<bool>()), 1..99)) {
        let mut asked = Asked::every(5);
        let (mut second, mut counted, mut minutes, mut seconds) = (0, 0_u32, 0, 0);
        asked.tells(0, vec![one(GENERATION_TOKENS, "a", 0.0)]);
        for (gap, more, gives) in steps {
            (second, counted) = (second + gap, counted + more);
            asked.tells(second, vec![one(GENERATION_TOKENS, "a", counted.into())]);
            if gives {
                let given = asked.gives(i64::try_from(second).unwrap());
                (seconds, minutes) = (seconds + sum(&given, "1s"), minutes + sum(&given, "1m"));
            }
        }
        let given = asked.gives(i64::try_from(second).unwrap() + 60);
        prop_assert_eq!(seconds + sum(&given, "1s"), i64::from(counted));
        prop_assert_eq!(minutes + sum(&given, "1m"), i64::from(counted));
    }
}
