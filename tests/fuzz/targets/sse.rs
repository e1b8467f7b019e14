//! A stream of events, in any bytes and any reads: nothing panics, where reads end means nothing,
//! and every byte passes.

#![no_main]

use std::time::Instant;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use taximeter_meter::{Dialect, Measurement, Meter, Setup, StreamEnd, Wire};

const WIRES: [Wire; 4] = [Wire::ChatCompletions, Wire::Completions, Wire::Responses, Wire::Messages];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_last() else { return };
    let Some((&step, body)) = rest.split_last() else { return };
    let wire = WIRES[usize::from(choice) % WIRES.len()];
    let hide_usage = choice & 0x80 != 0;
    let started_at = Instant::now();

    let whole = measure(wire, hide_usage, started_at, body, body.len().max(1));
    let parts = measure(wire, hide_usage, started_at, body, usize::from(step) % 37 + 1);
    assert_eq!(whole, parts);
    if !hide_usage {
        assert_eq!(whole.1, body);
    }
});

/// What is measured, and what the client sees.
fn measure(
    wire: Wire,
    hide_usage: bool,
    started_at: Instant,
    body: &[u8],
    step: usize,
) -> (Measurement, Vec<u8>) {
    let mut meter = Meter::new(Setup { wire, dialect: Dialect::OpenAi, started_at, hide_usage });
    meter.on_head(200, Some("text/event-stream"), None);
    let mut seen = Vec::new();
    for read in body.chunks(step) {
        let passage = meter.on_bytes(started_at, Bytes::copy_from_slice(read));
        seen.extend_from_slice(&passage.forward);
        seen.extend_from_slice(&passage.hold);
    }
    seen.extend_from_slice(&meter.take_withheld());
    (meter.finish(started_at, StreamEnd::Clean), seen)
}
