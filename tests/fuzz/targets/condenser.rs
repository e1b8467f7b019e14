//! A JSON text in any pieces: nothing panics, where pieces end means nothing, and of a valid text a
//! valid one is left, with its members and no more than it had.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use taximeter_json::Condenser;

/// A string that is shorter is kept.
const DATA_BYTES: usize = 4 << 10;

/// Longer than is kept.
const LONG_BYTES: usize = 3 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((&step, text)) = data.split_last() else { return };
    let step = usize::from(step) % 37 + 1;
    assert_eq!(condensed(text, step).condensed(), condensed(text, text.len().max(1)).condensed());

    if serde_json::from_slice::<Value>(text).is_err() {
        return;
    }
    let document = [b"{\"list\":[", text, b"]}"].concat();
    // It may be nested too deep for that reader.
    let Ok(value) = serde_json::from_slice::<Value>(&document) else { return };
    if document.len() < DATA_BYTES {
        let condenser = condensed(&document, step);
        assert_eq!(read(&condenser), value);
    }

    let mut long = b"{\"list\":[".to_vec();
    while long.len() < LONG_BYTES {
        long.extend_from_slice(text);
        long.push(b',');
    }
    long.extend_from_slice(b"7],\"usage\":7}");
    let condenser = condensed(&long, long.len());
    assert_eq!(read(&condenser)["usage"], 7);
    assert!(condenser.condensed().text().len() < 3 << 20);
});

fn condensed(text: &[u8], step: usize) -> Condenser {
    let mut condenser = Condenser::new();
    text.chunks(step).for_each(|piece| condenser.push(piece));
    condenser
}

fn read(condenser: &Condenser) -> Value {
    serde_json::from_slice(condenser.condensed().text()).unwrap()
}
