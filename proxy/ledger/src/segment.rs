//! The header of a segment, one file of the journal.
//!
//! ```text
//! magic 8 | version u16 | gateway length u16 | first seq u64 | chain u32 | created µs i64
//! | gateway, zeros | follows 32 | marked u8 | lost u64 | crc u32      little endian
//! ```
//!
//! Always [`HEADER_BYTES`] long: a shorter file is a header that was cut off, and no flipped bit
//! can look like one. Frames do not depend on their segment: `chain` is that of the frame before
//! the first one here, so that a segment can be checked alone, and against the one before it;
//! `follows` is the [`Digest`] of that one.

use jiff::Timestamp;

use crate::digest::{Digest, Digester};
use crate::frame::Position;

/// Format that is written, and the only one that is read.
pub const FORMAT_VERSION: u16 = 4;

/// Length of a header, in bytes.
pub const HEADER_BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"taxi-tlj";
const CRC_BYTES: usize = 4;
const LOST_BYTES: usize = 8;
const MARKED_BYTES: usize = 1;
/// Behind the gateway and its zeros.
const END_BYTES: usize = Digest::BYTES + MARKED_BYTES + LOST_BYTES + CRC_BYTES;
const GATEWAY_BYTES_MAX: usize = HEADER_BYTES - 32 - END_BYTES;

/// First bytes of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Who writes it; at most 435 bytes are kept.
    pub gateway: String,
    /// The frame before its first one.
    pub before: Position,
    /// How many entries up to `before` could not be read any more and are left out; at most so
    /// many, where nothing behind them could be read either. 0 but in a segment that a salvage has
    /// put in their place.
    pub lost: u64,
    /// It was synced before it took its name, and a [`Mark`](crate::Mark) follows each later sync:
    /// what no mark speaks of was never promised to survive a power cut. Otherwise nobody knows
    /// what of it is on the disk.
    pub marked: bool,
    /// Digest of the segment that has the entry before its first one, up to that. `None` where there
    /// is no such segment, or nobody knows what it was.
    pub follows: Option<Digest>,
    /// When it was begun, to the microsecond.
    pub created: Timestamp,
}

/// What is wrong with the first bytes of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeaderFault {
    /// A field differs.
    Differs { what: &'static str, expected: u64, found: u64 },
    /// Another format.
    Format { found: u16 },
}

impl SegmentHeader {
    /// Sequence number of the first entry that it stands for, lost ones included.
    #[must_use]
    pub const fn first_seq(&self) -> u64 {
        (self.before.seq + 1).saturating_sub(self.lost)
    }

    /// Begins the digest of its segment, of which it was read, or was written, as `bytes`.
    #[must_use]
    pub fn digester(&self, bytes: &[u8]) -> Digester {
        // What has taken the place of lost entries does not know the digest that they had.
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
        out.extend_from_slice(&Digest::to_bytes(self.follows));
        out.push(u8::from(self.marked));
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
        let follows = Digest::from_bytes(take(&mut end));
        let [marked] = take(&mut end);
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
            before: Position { seq: first.saturating_sub(1), chain },
            lost: u64::from_le_bytes(take(&mut end)),
            marked: marked != 0,
            follows,
            created: Timestamp::from_microsecond(created).unwrap_or_default(),
        })
    }
}

/// Takes the first `N` bytes off; zeros where there are none, which a header of fixed length rules
/// out.
fn take<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    match bytes.split_first_chunk::<N>() {
        Some((first, rest)) => {
            *bytes = rest;
            *first
        }
        None => [0; N],
    }
}
