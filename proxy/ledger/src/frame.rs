//! A frame: the bytes of one entry, numbered and chained to the frame before it.
//!
//! ```text
//! length u24 | kind u8 | number u32 | check u32 | chain u32 | payload        little endian
//! ```
//!
//! `number` is the low half of the entry's sequence number. `check` is the CRC32C of the payload,
//! seeded with the id of the ledger. `chain` is the CRC32C of the three fields before it, seeded
//! with the chain of the frame before. So a reader notices a changed, removed or moved frame, and
//! it knows the end of a frame before it trusts the payload. A client does not know the id of the
//! ledger, so no text that it sends looks like a frame.

use crate::encoding::{self, Interner, StringsSoFar};
use crate::entry::Entry;
use crate::id::LedgerId;
use crate::kind::{BLOCK, Kind, TABLE, is_numbered};

/// Longest payload, in bytes. It bounds the memory of a reader. The parts of a record have limits
/// of their own.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// Bytes of frames after which strings begin anew.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Bytes of a frame before its payload.
pub(crate) const HEAD_BYTES: usize = 16;

/// Shortest frame of an entry, in bytes: a head, an id, the ends of strings and of members.
pub const FRAME_BYTES_MIN: u64 = HEAD_BYTES as u64 + encoding::ID_BYTES as u64 + 2;

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
}

/// The payload of a frame that says only what its kind says.
const NOTHING: &[u8] = &[encoding::END];

/// An entry as bytes, without a position in the journal yet.
#[derive(Debug, Clone, Copy)]
pub struct EncodedEntry<'a> {
    kind: Kind,
    payload: &'a [u8],
}

impl<'a> EncodedEntry<'a> {
    /// Encodes `entry` into `buffer` and replaces its content. The `seq` of a record is left out,
    /// because the frame has it.
    /// # Errors
    /// The entry is longer than [`ENTRY_BYTES_MAX`].
    pub fn new(entry: &Entry, buffer: &'a mut Vec<u8>) -> Result<Self, EncodeError> {
        let kind = encoding::encode(entry, buffer);
        Self::encoded(kind, buffer)
    }

    /// An entry with this complete payload.
    pub(crate) fn encoded(kind: Kind, payload: &'a [u8]) -> Result<Self, EncodeError> {
        // A number in front of each string takes more than its place in a complete payload.
        let bytes = payload.len();
        if bytes > ENTRY_BYTES_MAX - (ENTRY_BYTES_MAX >> 8) {
            return Err(EncodeError::TooLong { bytes });
        }
        Ok(Self { kind, payload })
    }

    /// The complete payload.
    #[must_use]
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Length of the frame if all of its strings are written whole, in bytes.
    #[must_use]
    pub const fn frame_bytes(&self) -> usize {
        HEAD_BYTES + self.payload.len()
    }
}

/// Frames entries, one after the other.
#[derive(Debug)]
pub struct Framer {
    seed: u32,
    last: Position,
    strings: Interner,
    /// Bytes of frames since strings began anew. `None` before they begin.
    block: Option<usize>,
}

impl Framer {
    /// Goes on behind `last` in a journal of `ledger`.
    #[must_use]
    pub fn new(ledger: LedgerId, last: Position) -> Self {
        Self { seed: ledger.seed(), last, strings: Interner::default(), block: None }
    }

    /// The last frame.
    #[must_use]
    pub const fn last(&self) -> Position {
        self.last
    }

    /// The strings that have numbers now. A segment that goes on here begins with
    /// [their table](StringsSoFar::to_frame).
    #[must_use]
    pub fn strings(&self) -> StringsSoFar {
        self.strings.so_far()
    }

    /// Appends an entry to `out`. Returns its position.
    pub fn append(&mut self, entry: &EncodedEntry<'_>, out: &mut Vec<u8>) -> Position {
        let is_full = |bytes: usize| bytes + entry.frame_bytes() > BLOCK_BYTES_MAX;
        if entry.kind == Kind::Checkpoint {
            self.begin_block();
        } else if self.block.is_none_or(is_full) {
            self.begin_block();
            self.frame(BLOCK, out, |_, out| out.extend_from_slice(NOTHING));
        }
        let before = out.len();
        self.frame(entry.kind as u8, out, |strings, out| {
            let start = out.len();
            // A payload that this crate has encoded is complete.
            if strings.shorten(entry.payload, out).is_err() {
                out.truncate(start);
                out.extend_from_slice(entry.payload);
            }
        });
        self.block = self.block.map(|bytes| bytes + out.len() - before);
        self.last
    }

    fn begin_block(&mut self) {
        self.strings.clear();
        self.block = Some(0);
    }

    fn frame(
        &mut self,
        kind: u8,
        out: &mut Vec<u8>,
        payload: impl FnOnce(&mut Interner, &mut Vec<u8>),
    ) {
        let at = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        payload(&mut self.strings, out);
        let payload = out.get(at + HEAD_BYTES..).unwrap_or_default();
        let seq = if is_numbered(kind) { self.last.seq + 1 } else { self.last.seq };
        let head = Head::of(kind, seq, payload, self.seed);
        let (bytes, chain) = head.bytes(self.last.chain);
        if let Some(place) = out.get_mut(at..at + HEAD_BYTES) {
            place.copy_from_slice(&bytes);
        }
        self.last = Position { seq, chain };
    }
}

impl StringsSoFar {
    /// The frame with which a segment of `ledger` begins whose entries have these strings. Empty if
    /// there are none.
    #[must_use]
    pub fn to_frame(&self, ledger: LedgerId) -> Vec<u8> {
        table_frame(ledger.seed(), &self.to_table())
    }
}

/// A frame with the strings of a table. Empty if it has none.
pub(crate) fn table_frame(seed: u32, table: &[u8]) -> Vec<u8> {
    if table.is_empty() {
        return Vec::new();
    }
    let payload = [table, NOTHING].concat();
    let (head, _) = Head::of(TABLE, 0, &payload, seed).bytes(seed);
    [head.as_slice(), &payload].concat()
}

/// Length of the frame with which `bytes` begin, by its head, which is not checked. `None` if they
/// are less than a head.
#[must_use]
pub fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    let (head, _, _) = Head::read(bytes.first_chunk()?, 0);
    Some(HEAD_BYTES + head.length as usize)
}

/// The fields of a frame head that the chain covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: u32,
    pub(crate) kind: u8,
    pub(crate) number: u32,
    pub(crate) check: u32,
}

impl Head {
    /// Offset of the kind in a head.
    pub(crate) const KIND_AT: usize = 3;

    /// The head of a payload.
    pub(crate) fn of(kind: u8, seq: u64, payload: &[u8], seed: u32) -> Self {
        let [a, b, c, d, ..] = seq.to_le_bytes();
        Self {
            length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            kind,
            number: u32::from_le_bytes([a, b, c, d]),
            check: crc32c::crc32c_append(seed, payload),
        }
    }

    fn fields(self) -> [u8; HEAD_BYTES - 4] {
        let [a, b, c, _] = self.length.to_le_bytes();
        let [e, f, g, h] = self.number.to_le_bytes();
        let [m, n, o, p] = self.check.to_le_bytes();
        [a, b, c, self.kind, e, f, g, h, m, n, o, p]
    }

    /// The bytes of the head behind a frame with this chain value, and its own chain value.
    pub(crate) fn bytes(self, before: u32) -> ([u8; HEAD_BYTES], u32) {
        let fields = self.fields();
        let chain = crc32c::crc32c_append(before, &fields);
        let [q, r, s, t] = chain.to_le_bytes();
        let [a, b, c, d, e, f, g, h, m, n, o, p] = fields;
        ([a, b, c, d, e, f, g, h, m, n, o, p, q, r, s, t], chain)
    }

    /// Splits a head into its fields, the chain value in the bytes, and the chain value that fits
    /// the fields and the frame before, which has the chain value `before`.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES], before: u32) -> (Self, u32, u32) {
        let [a, b, c, kind, e, f, g, h, m, n, o, p, q, r, s, t] = *bytes;
        let head = Self {
            length: u32::from_le_bytes([a, b, c, 0]),
            kind,
            number: u32::from_le_bytes([e, f, g, h]),
            check: u32::from_le_bytes([m, n, o, p]),
        };
        let expected = crc32c::crc32c_append(before, &head.fields());
        (head, u32::from_le_bytes([q, r, s, t]), expected)
    }

    /// The sequence number of the head: the one with its low half that is nearest to `near`.
    pub(crate) fn seq_near(self, near: u64) -> u64 {
        let [a, b, c, d, ..] = near.to_le_bytes();
        let ahead = self.number.wrapping_sub(u32::from_le_bytes([a, b, c, d])).cast_signed();
        near.saturating_add_signed(ahead.into())
    }
}
