use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::*;
use crate::quantity::{GENERATION_TOKENS, KV_CACHE_USAGE, Quantity, TIME_TO_FIRST_TOKEN};
use crate::{Declared, Label, Percentile, Sample, Samples};

/// Any instant: only differences count.
#[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
fn epoch() -> Instant {
    Instant::now()
}

fn measured(quantity: &'static Quantity, reason: &str, value: f64) -> Measured {
    Measured {
        quantity,
        value: Value::Number(value),
        buckets: None,
        identity: Arc::default(),
        attributes: vec![("reason".to_owned(), reason.to_owned())],
        program: "vllm",
        from: "vllm:x".to_owned(),
        how: String::new(),
        age: None,
    }
}

fn reading(measured: Vec<Measured>) -> Reading {
    Reading { measured, ..Reading::default() }
}

proptest! {
    /// A program counts, and begins anew whenever it likes.
    #[test]
    fn a_counter_that_jumps_back_is_a_reset_and_no_rate_is_below_zero(
        steps in proptest::collection::vec((0_u32..1_000, any::<bool>(), 1_u64..90), 1..60),
    ) {
        let (mut now, mut pool) = (epoch(), Pool::default());
        let (mut counted, mut resets) = (500.0_f64, 0);
        let mut followed = Quantities::default();
        followed = followed.after(reading(vec![measured(GENERATION_TOKENS, "a", counted)]), now, &mut pool);
        prop_assert_eq!(followed.series[0].rate(), None);
        for (more, restarts, seconds) in steps {
            let before = counted;
            counted = if restarts { 0.0 } else { counted } + f64::from(more);
            resets += u64::from(counted < before);
            now += Duration::from_secs(seconds);
            let next = reading(vec![measured(GENERATION_TOKENS, "a", counted)]);
            followed = followed.after(next, now, &mut pool);
            let series = &followed.series[0];
            prop_assert_eq!(series.value(), Value::Number(counted));
            prop_assert!(series.rate().is_none_or(|rate| rate >= 0.0));
            prop_assert_eq!((followed.counts.resets, u64::from(series.resets())), (resets, resets));
        }
        prop_assert_eq!(followed.counts.vanished, 0);
        prop_assert_eq!(pool.len(), 1);
    }

    /// Whatever order a program prints in, each series goes on where it was.
    #[test]
    fn the_order_of_series_does_not_matter(order in Just((0..20).collect::<Vec<u32>>()).prop_shuffle()) {
        let (now, mut pool) = (epoch(), Pool::default());
        let all = |of: &[u32], value: f64| {
            reading(of.iter().map(|n| measured(KV_CACHE_USAGE, &n.to_string(), value)).collect())
        };
        let first: Vec<_> = (0..20).collect();
        let followed = Quantities::default().after(all(&first, 0.5), now, &mut pool);
        let next = followed.after(all(&order, 0.5), now + Duration::from_secs(1), &mut pool);
        prop_assert_eq!((next.counts.appeared, next.counts.vanished), (0, 0));
        prop_assert_eq!(pool.len(), 20);
    }
}

#[test]
fn a_rate_is_made_of_what_a_source_has_measured_anew() {
    let (begin, mut pool) = (epoch(), Pool::default());
    let mut followed = Quantities::default();
    // It measures each 10 s, and is asked each 2 s.
    for second in (0..60_u32).step_by(2) {
        let value = f64::from(second / 10 * 50);
        let now = begin + Duration::from_secs(second.into());
        followed =
            followed.after(reading(vec![measured(GENERATION_TOKENS, "a", value)]), now, &mut pool);
    }
    assert_eq!(followed.period.learnt(), Some(Duration::from_secs(10)));
    assert_eq!(followed.series[0].rate(), Some(5.0));
}

#[test]
fn a_histogram_that_begins_anew_is_a_reset() {
    let (now, mut pool) = (epoch(), Pool::default());
    let histogram = |count: f64| {
        let p50 = Percentile::Unknown("");
        let of = Distribution { count: Some(count), sum: None, p50, p95: p50 };
        let value = Value::Histogram(of);
        reading(vec![Measured { value, ..measured(TIME_TO_FIRST_TOKEN, "", 0.0) }])
    };
    let followed = Quantities::default().after(histogram(9.0), now, &mut pool);
    let followed = followed.after(histogram(9.0), now + Duration::from_secs(1), &mut pool);
    assert_eq!(followed.counts.resets, 0);
    let followed = followed.after(histogram(2.0), now + Duration::from_secs(2), &mut pool);
    assert_eq!((followed.counts.resets, followed.series[0].rate()), (1, None));
}

#[test]
fn series_that_come_and_go_are_counted_and_a_gauge_may_fall() {
    let (now, mut pool) = (epoch(), Pool::default());
    let of = |names: &[&str], value: f64| {
        reading(names.iter().map(|name| measured(KV_CACHE_USAGE, name, value)).collect())
    };
    let followed = Quantities::default().after(of(&["a", "b"], 0.9), now, &mut pool);
    assert_eq!(followed.counts, Counts::default());
    let swapped = followed.after(of(&["c", "b"], 0.1), now + Duration::from_secs(1), &mut pool);
    let expected = Counts { appeared: 1, vanished: 1, ..Counts::default() };
    assert_eq!(swapped.counts, expected);
    assert_eq!(swapped.series.len(), 2);
}

#[test]
fn what_is_too_much_is_left_out_and_counted_and_what_nobody_has_is_forgotten() {
    let (now, mut pool) = (epoch(), Pool::default());
    let name = |n: usize| format!("{n}");
    let many = |from: usize| {
        let all = from..from + SERIES_MAX + 7;
        let long = measured(KV_CACHE_USAGE, &"x".repeat(TEXT_BYTES_MAX + 1), 0.0);
        let all = all.map(|n| measured(KV_CACHE_USAGE, &name(n), 0.5));
        reading([long].into_iter().chain(all).collect())
    };
    let mut followed = Quantities::default().after(many(0), now, &mut pool);
    assert_eq!((followed.series.len(), followed.counts.left_out), (SERIES_MAX, 8));
    for round in 1..6 {
        let from = round * 2 * SERIES_MAX;
        followed = followed.after(many(from), now + Duration::from_secs(round as u64), &mut pool);
    }
    assert!(pool.len() <= 3 * SERIES_MAX, "{}", pool.len());
}

#[test]
fn an_engine_s_own_text_goes_through() {
    let (now, mut pool) = (epoch(), Pool::default());
    let mut samples = Samples::default();
    let mut labels = vec![Label { name: "model_name", value: "m".into() }];
    let name = "vllm:num_requests_running";
    let sample = Sample { name, declared: Declared::Gauge, value: 3.0, stamped: None, line: 1 };
    samples.push(sample, &mut labels);
    let reading = crate::read(&samples, Timestamp::UNIX_EPOCH);
    let followed = Quantities::default().after(reading, now, &mut pool);
    assert_eq!(followed.series.len(), 1);
    assert!(followed.unknown.iter().any(|one| one.why.starts_with("no vllm:")));
    assert_eq!(std::mem::size_of::<Series>(), 56, "a thousand sources have half a million of them");
}
