//! A frame: the bytes of one entry, numbered and chained to the frame before it.
//!
//! ```text
//! length u32 | seq u64 | kind u8 | check u32 | chain u32 | payload        little endian
//! ```
//!
//! `check` is the CRC32C of the payload. `chain` is the CRC32C of the four fields before it, seeded
//! with the chain of the frame before. So a reader notices a changed, removed or moved frame. It
//! knows the end of a frame before it trusts the payload. A writer holds its lock only to compute a
//! CRC of 17 bytes.

use crate::compact;
use crate::entry::Entry;

/// Longest payload, in bytes. It bounds the memory of a reader. The parts of a record have limits
/// of their own.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Bytes of a frame before its payload.
pub(crate) const HEAD_BYTES: usize = 21;

/// Shortest frame, in bytes: a head and an empty JSON object.
pub const FRAME_BYTES_MIN: u64 = HEAD_BYTES as u64 + 2;

/// The position of a frame in the journal. The next frame is chained to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Sequence number, from 1 without gaps.
    pub seq: u64,
    /// The chain value of the frame.
    pub chain: u32,
}

impl Position {
    /// Before the first frame.
    pub const START: Self = Self { seq: 0, chain: 0 };
}

/// Why an entry cannot become a frame.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The payload is longer than [`ENTRY_BYTES_MAX`].
    #[error("an entry of {bytes} bytes is longer than {ENTRY_BYTES_MAX}")]
    TooLong {
        /// Length of the payload.
        bytes: usize,
    },
    /// The entry cannot be written as JSON.
    #[error("an entry cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A [`Reserve`](crate::Reserve).
    Reserve = 1,
    /// A [`Record`](crate::Record).
    Post = 2,
    /// A [`Void`](crate::Void).
    Void = 3,
    /// A [`Progress`](crate::Progress).
    Progress = 4,
    /// A [`Correction`](crate::Correction).
    Correction = 5,
    /// A [`Checkpoint`](crate::Checkpoint).
    Checkpoint = 6,
    /// A [`Refusals`](crate::Refusals).
    Refusals = 7,
}

impl Kind {
    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Reserve),
            2 => Some(Self::Post),
            3 => Some(Self::Void),
            4 => Some(Self::Progress),
            5 => Some(Self::Correction),
            6 => Some(Self::Checkpoint),
            7 => Some(Self::Refusals),
            _ => None,
        }
    }
}

/// An entry as bytes, without a position in the journal yet.
#[derive(Debug)]
pub struct EncodedEntry<'a> {
    kind: Kind,
    payload: &'a [u8],
    length: u32,
    check: u32,
}

impl<'a> EncodedEntry<'a> {
    /// Encodes `entry` into `buffer` and replaces its content. The `seq` of a record is left out,
    /// because the frame has it.
    /// # Errors
    /// The entry is longer than [`ENTRY_BYTES_MAX`], or cannot be written as JSON.
    pub fn new(entry: &Entry, buffer: &'a mut Vec<u8>) -> Result<Self, EncodeError> {
        buffer.clear();
        let kind = match entry {
            Entry::Reserve(reserve) => compact::reserve(reserve, buffer).map(|()| Kind::Reserve)?,
            Entry::Post(record) => compact::post(record, buffer).map(|()| Kind::Post)?,
            Entry::Void(void) => compact::void(void, buffer).map(|()| Kind::Void)?,
            Entry::Progress(progress) => {
                compact::progress(progress, buffer).map(|()| Kind::Progress)?
            }
            Entry::Correction(correction) => {
                serde_json::to_writer(&mut *buffer, correction).map(|()| Kind::Correction)?
            }
            Entry::Checkpoint(checkpoint) => {
                serde_json::to_writer(&mut *buffer, checkpoint).map(|()| Kind::Checkpoint)?
            }
            Entry::Refusals(refusals) => {
                serde_json::to_writer(&mut *buffer, refusals).map(|()| Kind::Refusals)?
            }
        };
        let bytes = buffer.len();
        match u32::try_from(bytes) {
            Ok(length) if bytes <= ENTRY_BYTES_MAX => {
                Ok(Self { kind, payload: buffer, length, check: crc32c::crc32c(buffer) })
            }
            _ => Err(EncodeError::TooLong { bytes }),
        }
    }

    /// Length of the whole frame, in bytes.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        HEAD_BYTES + self.payload.len()
    }

    /// Appends the frame to `out`, chained to `before`. Returns the position of the frame.
    pub fn append(&self, before: Position, out: &mut Vec<u8>) -> Position {
        let head = Head {
            length: self.length,
            seq: before.seq + 1,
            kind: self.kind as u8,
            check: self.check,
        };
        out.reserve(self.frame_bytes());
        let chain = head.append(before, out);
        out.extend_from_slice(self.payload);
        Position { seq: head.seq, chain }
    }
}

/// The fields of a frame head that the chain covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: u32,
    pub(crate) seq: u64,
    pub(crate) kind: u8,
    pub(crate) check: u32,
}

impl Head {
    /// Offset of the kind in a head.
    pub(crate) const KIND_AT: usize = 12;

    fn fields(self) -> [u8; HEAD_BYTES - 4] {
        let [a, b, c, d] = self.length.to_le_bytes();
        let [e, f, g, h, i, j, k, l] = self.seq.to_le_bytes();
        let [m, n, o, p] = self.check.to_le_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l, self.kind, m, n, o, p]
    }

    /// Appends the head to `out`, chained to `before`. Returns its chain value.
    pub(crate) fn append(self, before: Position, out: &mut Vec<u8>) -> u32 {
        let fields = self.fields();
        let chain = crc32c::crc32c_append(before.chain, &fields);
        out.extend_from_slice(&fields);
        out.extend_from_slice(&chain.to_le_bytes());
        chain
    }

    /// Splits a head into its fields, the chain value in the bytes, and the chain value that fits
    /// the fields and `before`.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES], before: Position) -> (Self, u32, u32) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, kind, m, n, o, p, q, r, s, t] = *bytes;
        let head = Self {
            length: u32::from_le_bytes([a, b, c, d]),
            seq: u64::from_le_bytes([e, f, g, h, i, j, k, l]),
            kind,
            check: u32::from_le_bytes([m, n, o, p]),
        };
        let expected = crc32c::crc32c_append(before.chain, &head.fields());
        (head, u32::from_le_bytes([q, r, s, t]), expected)
    }
}
