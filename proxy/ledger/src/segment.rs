//! The header of a segment, which is one file of the journal.
//!
//! ```text
//! magic 8 | version u16 | gateway length u16 | first seq u64 | chain u32 | created µs i64
//! | gateway, zeros | ledger 16 | follows 32 | sync marks u8 | lost u64 | crc u32   little endian
//! ```
//!
//! A header is always [`HEADER_BYTES`] long. A shorter file is a header that was cut off, and no
//! flipped bit looks like one. `chain` is the chain value of the frame before the first frame here.
//! With it, a reader can check a segment alone and against the segment before. `follows` is the
//! [`Digest`] of the segment before.

use jiff::Timestamp;
use uuid::Uuid;

use crate::digest::{Digest, Digester};
use crate::frame::Position;
use crate::id::LedgerId;

/// The format that is written. Readers accept no other.
pub const FORMAT_VERSION: u16 = 5;

/// Length of a header, in bytes.
pub const HEADER_BYTES: usize = 512;

pub(crate) const MAGIC: [u8; 8] = *b"taxi-tlj";
const CRC_BYTES: usize = 4;
const LOST_BYTES: usize = 8;
const LEDGER_BYTES: usize = 16;
const SYNC_MARKS_BYTES: usize = 1;
/// Bytes after the gateway name and its zeros.
const END_BYTES: usize = LEDGER_BYTES + Digest::BYTES + SYNC_MARKS_BYTES + LOST_BYTES + CRC_BYTES;
const GATEWAY_BYTES_MAX: usize = HEADER_BYTES - 32 - END_BYTES;

/// The header of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Name of the gateway that writes the journal. The header keeps at most 419 bytes of it.
    pub gateway: String,
    /// The ledger that the segment is part of.
    pub ledger: LedgerId,
    /// Position of the frame before the first frame of this segment.
    pub before: Position,
    /// Number of entries up to `before` that cannot be read and are left out. It is an upper bound
    /// if nothing after them could be read either. It is above 0 only in a segment that a salvage
    /// put in their place.
    pub lost: u64,
    /// Whether the segment has sync marks. Such a segment was synced before it got its name, and a
    /// [`SyncMark`](crate::SyncMark) follows each later sync. Entries after the last sync mark may
    /// be lost in a power cut. Without sync marks, it is unknown which entries are on disk.
    pub has_sync_marks: bool,
    /// Digest of the segment with the entry before the first one here, up to that entry. `None` if
    /// there is no such segment, or its digest is unknown.
    pub follows: Option<Digest>,
    /// Time of creation, to the microsecond.
    pub created: Timestamp,
}

/// What is wrong with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// A field has a wrong value.
    Differs { what: &'static str, expected: u64, found: u64 },
    /// The segment has another format.
    Format { found: u16 },
}

impl SegmentHeader {
    /// Sequence number of the first entry, lost ones included.
    #[must_use]
    pub const fn first_seq(&self) -> u64 {
        (self.before.seq + 1).saturating_sub(self.lost)
    }

    /// The format of a file that begins with these bytes. `None` if it is no segment, or too short.
    #[must_use]
    pub fn format(bytes: &[u8]) -> Option<u16> {
        let rest = bytes.strip_prefix(&MAGIC)?;
        rest.first_chunk().copied().map(u16::from_le_bytes)
    }

    /// Begins the digest of the segment. `bytes` is this header as it was read or written.
    #[must_use]
    pub fn digester(&self, bytes: &[u8]) -> Digester {
        // A segment that replaces lost entries does not know their digest.
        Digester::new(bytes, self.follows.filter(|_| self.lost == 0))
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let gateway: Vec<u8> = self.gateway.bytes().take(GATEWAY_BYTES_MAX).collect();
        let length = u16::try_from(gateway.len()).unwrap_or_default();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(self.before.seq + 1).to_le_bytes());
        out.extend_from_slice(&self.before.chain.to_le_bytes());
        out.extend_from_slice(&self.created.as_microsecond().to_le_bytes());
        out.extend_from_slice(&gateway);
        out.resize(start + HEADER_BYTES - END_BYTES, 0);
        out.extend_from_slice(self.ledger.0.as_bytes());
        out.extend_from_slice(&Digest::to_bytes(self.follows));
        out.push(u8::from(self.has_sync_marks));
        out.extend_from_slice(&self.lost.to_le_bytes());
        let crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
    }

    /// Reads a header.
    pub(crate) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderFault> {
        let mut rest = bytes.as_slice();
        let magic: [u8; 8] = take(&mut rest);
        if magic != MAGIC {
            let (expected, found) = (u64::from_be_bytes(MAGIC), u64::from_be_bytes(magic));
            return Err(HeaderFault::Differs { what: "magic", expected, found });
        }
        let version = u16::from_le_bytes(take(&mut rest));
        if version > FORMAT_VERSION {
            return Err(HeaderFault::Format { found: version });
        }
        let (body, mut crc) = bytes.split_at(HEADER_BYTES - CRC_BYTES);
        let (_, mut end) = bytes.split_at(HEADER_BYTES - END_BYTES);
        let ledger = LedgerId(Uuid::from_bytes(take(&mut end)));
        let follows = Digest::from_bytes(take(&mut end));
        let [has_sync_marks] = take(&mut end);
        let (expected, found) = (crc32c::crc32c(body), u32::from_le_bytes(take(&mut crc)));
        if expected != found {
            let (expected, found) = (u64::from(expected), u64::from(found));
            return Err(HeaderFault::Differs { what: "header check", expected, found });
        }
        if version < FORMAT_VERSION {
            return Err(HeaderFault::Format { found: version });
        }
        let length = usize::from(u16::from_le_bytes(take(&mut rest)));
        let first = u64::from_le_bytes(take(&mut rest));
        let chain = u32::from_le_bytes(take(&mut rest));
        let created = i64::from_le_bytes(take(&mut rest));
        let gateway = String::from_utf8_lossy(rest.get(..length).unwrap_or_default());
        Ok(Self {
            gateway: gateway.into_owned(),
            ledger,
            before: Position { seq: first.saturating_sub(1), chain },
            lost: u64::from_le_bytes(take(&mut end)),
            has_sync_marks: has_sync_marks != 0,
            follows,
            created: Timestamp::from_microsecond(created).unwrap_or_default(),
        })
    }
}

/// Takes the first `N` bytes off. Returns zeros if there are fewer, which cannot happen in a
/// header.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    match bytes.split_first_chunk::<N>() {
        Some((first, rest)) => {
            *bytes = rest;
            *first
        }
        None => [0; N],
    }
}
