//! Requests of a connection in any bytes and any reads: nothing panics, where reads end means nothing,
//! and a head that is taken is one that hyper's parser takes too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../proxy/net/src"]
#[expect(dead_code, reason = "answers are read by it too")]
mod net {
    pub(crate) mod framing;
}

use net::framing::{Broken, Framing, FramingFault};

const HEAD_BYTES_MAX: usize = 1 << 10;
const FIELDS_MAX: usize = 10;

fuzz_target!(|data: &[u8]| {
    let Some((&step, sent)) = data.split_last() else { return };
    let whole = read(sent, sent.len().max(1));
    let split = read(sent, usize::from(step) % 37 + 1);
    // Of a line that breaks off, more is good the later that is seen.
    assert_eq!(whole.1, split.1);
    let (good, fault) = whole;
    if let Some(fault) = fault {
        assert!(!fault.cause().is_empty());
    }
    // Empty lines before a request are no part of it.
    let mut first = &sent[..good];
    while let Some(rest) = first.strip_prefix(b"\r\n") {
        first = rest;
    }
    let Some(end) = first.windows(4).position(|four| four == b"\r\n\r\n") else { return };
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let parsed = httparse::Request::new(&mut fields).parse(&first[..end + 4]);
    assert_eq!(parsed, Ok(httparse::Status::Complete(end + 4)), "{}", first.escape_ascii());
});

/// How many bytes are good, and what is wrong behind them.
fn read(sent: &[u8], step: usize) -> (usize, Option<FramingFault>) {
    let mut framing = Framing::requests(HEAD_BYTES_MAX, FIELDS_MAX);
    for (nth, part) in sent.chunks(step).enumerate() {
        if let Err(Broken { at, fault }) = framing.read(part) {
            assert!(at <= part.len());
            return (nth * step + at, Some(fault));
        }
    }
    (sent.len(), None)
}
