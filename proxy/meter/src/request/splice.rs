//! Asking for usage on a client's behalf: a few bytes put into the body, nothing else touched.

use std::ops::Range;

use bytes::Bytes;

/// One change of a body: `text` takes the place of `range`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// Bytes of the body that `text` replaces, by offset; empty where it is only put in.
    pub range: Range<u64>,
    /// What to send there.
    pub text: &'static [u8],
}

impl Splice {
    /// `body` with the change, in three pieces to send one after the other.
    ///
    /// Offsets beyond the end of `body` mean its end.
    #[must_use]
    pub fn pieces(&self, body: &Bytes) -> [Bytes; 3] {
        let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(body.len());
        let (start, end) = (at(self.range.start), at(self.range.end));
        [body.slice(..start), Bytes::from_static(self.text), body.slice(end.max(start)..)]
    }
}

/// Where the answer to "may usage be reported in the stream" stands in the body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Place {
    /// There is no `stream_options`.
    #[default]
    Absent,
    /// `stream_options` is null, at these offsets.
    Null { start: u64, end: u64 },
    /// `stream_options` is an object; its members begin at `inside`.
    Object { inside: u64, empty: bool },
    /// `include_usage` is there and is not true, at these offsets.
    Flag { start: u64, end: u64 },
    /// `stream_options` is something else; the engine decides.
    Other,
}

impl Place {
    /// The change that asks for usage, in an object whose members begin at `members`.
    ///
    /// The object has members: a request for a stream names at least that.
    pub(super) fn splice(self, members: u64) -> Option<Splice> {
        let (range, text): (_, &'static [u8]) = match self {
            Self::Absent => (members..members, br#""stream_options":{"include_usage":true},"#),
            Self::Null { start, end } => (start..end, br#"{"include_usage":true}"#),
            Self::Object { inside, empty: true } => (inside..inside, br#""include_usage":true"#),
            Self::Object { inside, empty: false } => (inside..inside, br#""include_usage":true,"#),
            Self::Flag { start, end } => (start..end, b"true"),
            Self::Other => return None,
        };
        Some(Splice { range, text })
    }
}
