//! An answer as one document, on every wire: nothing panics, and what is JSON is read as JSON.

#![no_main]

use std::time::Instant;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use taximeter_meter::{Dialect, Hidden, Meter, Setup, StreamEnd, Wire};

fuzz_target!(|data: &[u8]| {
    let is_object =
        data.first() == Some(&b'{') && serde_json::from_slice::<serde_json::Value>(data).is_ok();
    for &wire in Wire::ALL {
        let started_at = Instant::now();
        let dialect = Dialect::Auto;
        let mut meter = Meter::new(Setup { wire, dialect, started_at, hidden: Hidden::default(), has_one_prompt: false });
        meter.on_head(200, Some("application/json"), None);
        let passage = meter.on_bytes(started_at, Bytes::copy_from_slice(data));
        let seen = [passage.forward, passage.hold, meter.take_withheld()].concat();
        assert_eq!(seen, data);
        let measurement = meter.finish(started_at, StreamEnd::Clean);
        if is_object {
            assert_eq!(measurement.counts.not_json, 0, "{wire:?}");
        }
        if let Some(reported) = &measurement.reported {
            let usage = &reported.usage;
            let whole_of_passes = usage.passes.iter().map(|pass| &pass.usage);
            for usage in whole_of_passes.chain([usage]) {
                let most = 6 << 53;
                assert!(usage.input_tokens.unwrap_or(0) <= most);
                assert!(usage.output_tokens.unwrap_or(0) <= most);
            }
        }
    }
});
