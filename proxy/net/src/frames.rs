//! Reads the heads of the frames of one direction of an HTTP/2 connection (RFC 9113 §4.1). It skips
//! their contents, which hyper reads.

/// Before the first frame of a client.
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
/// The flag of the last frame of a head.
const END_HEADERS: u8 = 4;
/// A head, and the error code behind that of a RST_STREAM.
const KEPT_BYTES: usize = HEAD_BYTES + 4;

/// The purpose of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `DATA`.
    Data,
    /// `HEADERS`.
    Headers,
    /// `RST_STREAM`: the stream is aborted.
    Reset {
        /// The error code.
        code: u32,
    },
    /// `CONTINUATION`.
    Continuation,
    /// Every frame that carries no part of a request or an answer. This includes resets of a wrong
    /// length, because they end the connection and not a stream.
    Control,
}

/// What the head of a frame says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The type of the frame.
    pub kind: Kind,
    /// The id of its stream; 0 means the connection.
    pub stream: u32,
    /// Whether the frame is empty and does not end its stream.
    pub idle: bool,
}

/// Reads the frames of one direction.
#[derive(Debug)]
pub struct Frames {
    preface: usize,
    kept: [u8; KEPT_BYTES],
    len: usize,
    payload: usize,
    /// The last frame is of a request's head or trailers.
    in_headers: bool,
    /// These go on in the next frame.
    headers_go_on: bool,
}

impl Frames {
    /// For what a client sends: the preface, then frames.
    pub const fn of_client() -> Self {
        Self { preface: PREFACE_BYTES, ..Self::of_server() }
    }

    /// For what a server sends.
    pub const fn of_server() -> Self {
        Self {
            preface: 0,
            kept: [0; KEPT_BYTES],
            len: 0,
            payload: 0,
            in_headers: false,
            headers_go_on: false,
        }
    }

    /// Whether the next byte begins a frame.
    pub const fn is_between(&self) -> bool {
        self.preface == 0 && self.len == 0 && self.payload == 0
    }

    /// Whether a request's head, or the preface, has arrived only in part.
    pub const fn is_in_head(&self) -> bool {
        let in_headers = self.in_headers && self.payload > 0;
        self.preface > 0 || self.headers_go_on || in_headers
    }

    /// Reads the next bytes and calls `each` once per frame. The bytes may be cut anywhere.
    pub fn read(&mut self, bytes: &[u8], mut each: impl FnMut(Frame)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = match (&mut self.preface, &mut self.payload) {
                (0, 0) => self.read_head(rest, &mut each),
                (0, left) | (left, _) => {
                    let taken = rest.len().min(*left);
                    *left -= taken;
                    taken
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    fn read_head(&mut self, rest: &[u8], each: &mut impl FnMut(Frame)) -> usize {
        let wanted = if self.is_reset() { KEPT_BYTES } else { HEAD_BYTES };
        let free = self.kept.get_mut(self.len..wanted).unwrap_or_default();
        let taken = free.len().min(rest.len());
        for (kept, byte) in free.iter_mut().zip(rest) {
            *kept = *byte;
        }
        self.len += taken;
        if self.len == wanted && (wanted == KEPT_BYTES || !self.is_reset()) {
            let [l1, l2, l3, kind, flags, stream @ .., c1, c2, c3, c4] = self.kept;
            let [s1, s2, s3, s4] = stream;
            let length = u32::from_be_bytes([0, l1, l2, l3]) as usize;
            let code = (wanted == KEPT_BYTES).then_some(u32::from_be_bytes([c1, c2, c3, c4]));
            let kind = Kind::of(kind, code);
            self.in_headers = matches!(kind, Kind::Headers | Kind::Continuation);
            self.headers_go_on = self.in_headers && flags & END_HEADERS == 0;
            each(Frame {
                kind,
                stream: u32::from_be_bytes([s1 & 0x7f, s2, s3, s4]),
                idle: length == 0 && flags & 1 == 0,
            });
            self.payload = length - (wanted - HEAD_BYTES);
            self.len = 0;
        }
        taken
    }

    /// Whether the head of a RST_STREAM of the right length is there.
    fn is_reset(&self) -> bool {
        self.len >= HEAD_BYTES && self.kept.starts_with(&[0, 0, 4, 3])
    }
}

impl Kind {
    /// `code` is that of a reset, where it has the length to say one.
    const fn of(kind: u8, code: Option<u32>) -> Self {
        match (kind, code) {
            (0, _) => Self::Data,
            (1, _) => Self::Headers,
            (_, Some(code)) => Self::Reset { code },
            (9, _) => Self::Continuation,
            _ => Self::Control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    #[test]
    fn frames_are_told_once_however_they_come() {
        let sent = [
            vec![b'x'; PREFACE_BYTES],
            frame(4, 0, 0, &[]),
            frame(1, 5, 1, b"\0\0\x04\x03"),
            frame(0, 0, 1, &[]),
            frame(0, 1, 1, &[]),
            frame(0, 0, 1, &[3; 200]),
            frame(3, 0, 1, &[0, 0, 0, 8]),
            frame(8, 0, 0, &[0, 0, 0, 1]),
        ];
        let told = [
            (Kind::Control, 0, true),
            (Kind::Headers, 1, false),
            (Kind::Data, 1, true),
            (Kind::Data, 1, false),
            (Kind::Data, 1, false),
            (Kind::Reset { code: 8 }, 1, false),
            (Kind::Control, 0, false),
        ];
        let told = told.map(|(kind, stream, idle)| Frame { kind, stream, idle });
        let bytes = sent.concat();
        for cut in 0..=bytes.len() {
            let mut heard = Vec::new();
            let mut frames = Frames::of_client();
            for part in [&bytes[..cut], &bytes[cut..]] {
                frames.read(part, |frame| heard.push(frame));
            }
            assert_eq!(heard, told, "split at {cut}");
            assert!(frames.is_between());
        }
    }

    #[test]
    fn a_head_is_being_read_from_its_first_byte_to_its_last() {
        let mut frames = Frames::of_client();
        let mut read = |bytes: &[u8]| {
            frames.read(bytes, |_| {});
            frames.is_in_head()
        };
        assert!(read(&[b'x'; PREFACE_BYTES - 1]));
        assert!(!read(b"x"));
        assert!(!read(&frame(4, 0, 0, &[])));
        let (whole, part) = (frame(1, END_HEADERS, 1, b"abc"), frame(1, 0, 3, b"abc"));
        assert!(read(&whole[..whole.len() - 1]));
        assert!(!read(&whole[whole.len() - 1..]));
        assert!(read(&part));
        assert!(read(&frame(9, 0, 3, b"d")));
        assert!(!read(&frame(9, END_HEADERS, 3, b"e")));
        assert!(!read(&frame(0, 0, 3, &[7; 100])[..50]), "that is no head");
    }

    #[test]
    fn a_reset_of_a_wrong_length_is_a_frame_that_resets_nothing() {
        let mut frames = Frames::of_server();
        let mut heard = Vec::new();
        let sent = [
            frame(3, 0, 1, &[0, 0, 0, 8]),
            frame(3, 0, 3, &[0; 5]),
            frame(3, 0, 5, &[0; 3]),
            frame(3, 0, 7, &[]),
            frame(6, 0, 0, &[0; 8]),
        ];
        frames.read(&sent.concat(), |frame| heard.push(frame.kind));
        let others = [Kind::Control; 4];
        assert_eq!(heard, [&[Kind::Reset { code: 8 }][..], &others].concat());
        assert!(frames.is_between());
    }
}
