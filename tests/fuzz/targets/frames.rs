//! One direction of an HTTP/2 connection in any bytes and any reads: nothing panics, and each frame is
//! told once, whatever stands in it and wherever reads end.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../../proxy/net/src"]
#[expect(dead_code, reason = "the gateway asks more of it")]
mod net {
    pub(crate) mod frames;
}

use net::frames::{Frame, Frames, Kind};

const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
const RESET: u8 = 3;

fuzz_target!(|data: &[u8]| {
    let Some((&step, sent)) = data.split_last() else { return };
    let mut frames = Frames::of_client();
    let mut told = Vec::new();
    for part in sent.chunks(usize::from(step) % 37 + 1) {
        frames.read(part, |frame| told.push(frame));
    }
    let (expected, is_between) = whole(sent);
    assert_eq!(told, expected);
    assert_eq!(frames.is_between(), is_between);
});

/// The frames of what was sent, read at once; and whether it ends where one does.
fn whole(sent: &[u8]) -> (Vec<Frame>, bool) {
    let mut told = Vec::new();
    let Some(mut rest) = sent.get(PREFACE_BYTES..) else { return (told, false) };
    loop {
        let Some((head, behind)) = rest.split_at_checked(HEAD_BYTES) else {
            return (told, rest.is_empty());
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        let (length, stream) = (number(&head[..3]) as usize, number(&head[5..]) & 0x7fff_ffff);
        // Of a reset the code is told too, so that it must have come.
        let code = behind.get(..4).map(number);
        let kind = match (head[3], length, code) {
            (RESET, 4, None) => return (told, false),
            (RESET, 4, Some(code)) => Kind::Reset { code },
            (0, ..) => Kind::Data,
            (1, ..) => Kind::Headers,
            (9, ..) => Kind::Continuation,
            _ => Kind::Control,
        };
        told.push(Frame { kind, stream, idle: length == 0 && head[4] & 1 == 0 });
        let Some(behind) = behind.get(length..) else { return (told, false) };
        rest = behind;
    }
}
