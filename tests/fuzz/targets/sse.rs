//! A stream of events, or of AWS's messages, in any bytes and any reads: nothing panics, where reads
//! end means nothing, and every byte passes.

#![no_main]

use std::time::Instant;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use taximeter_meter::{Dialect, Hidden, Measurement, Meter, Setup, StreamEnd, Wire};

const TYPES: [&str; 2] = ["text/event-stream", "application/vnd.amazon.eventstream"];
const DIALECTS: [Dialect; 3] = [Dialect::Auto, Dialect::Vllm, Dialect::Sglang];

fuzz_target!(|data: &[u8]| {
    let Some((&wire, rest)) = data.split_last() else { return };
    let Some((&choice, rest)) = rest.split_last() else { return };
    let Some((&step, body)) = rest.split_last() else { return };
    let setup = Setup {
        wire: Wire::ALL[usize::from(wire) % Wire::ALL.len()],
        dialect: DIALECTS[usize::from(choice) % DIALECTS.len()],
        started_at: Instant::now(),
        hidden: Hidden {
            usage_event: choice & 0x80 != 0,
            running_usage: choice & 0x40 != 0,
            token_ids: choice & 0x20 != 0,
        },
        has_one_prompt: choice & 0x08 != 0,
    };
    let content_type = TYPES[usize::from(choice & 0x10 != 0)];

    let whole = measure(setup, content_type, body, body.len().max(1));
    let parts = measure(setup, content_type, body, usize::from(step) % 37 + 1);
    assert_eq!(whole, parts);
    if !setup.hidden.is_any() {
        assert_eq!(whole.1, body);
    }
});

/// What is measured, and what the client sees.
fn measure(setup: Setup, content_type: &str, body: &[u8], step: usize) -> (Measurement, Vec<u8>) {
    let started_at = setup.started_at;
    let mut meter = Meter::new(setup);
    meter.on_head(200, Some(content_type), None);
    let mut seen = Vec::new();
    for read in body.chunks(step) {
        let passage = meter.on_bytes(started_at, Bytes::copy_from_slice(read));
        seen.extend_from_slice(&passage.forward);
        seen.extend_from_slice(&passage.hold);
    }
    seen.extend_from_slice(&meter.take_withheld());
    (meter.finish(started_at, StreamEnd::Clean), seen)
}
