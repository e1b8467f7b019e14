//! Any bytes as the metrics of a program: nothing panics, no line is told twice, and no quantity is known
//! that no sample is there for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use taximeter_control::exposition::{Bounds, body, read};

/// What one sample can become at most: the bits of a set, each with an owner.
const QUANTITIES_MAX: usize = 20;

fuzz_target!(|data: &[u8]| {
    let text = body(data);
    let exposition = read(&text, &Bounds::default());
    let samples = exposition.samples.len();
    assert!(samples as u64 + exposition.skipped.count() <= exposition.lines);
    let reading =
        taximeter_fleet::read(&exposition.samples, "2026-11-27T00:00:00Z".parse().unwrap());
    assert!(reading.measured.len() <= samples * QUANTITIES_MAX);
});
