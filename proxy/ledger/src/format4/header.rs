//! The header of a segment.

use jiff::Timestamp;

use super::VERSION;
use crate::digest::Digest;
use crate::frame::Position;
use crate::framed::Fault;
use crate::id::LedgerId;
use crate::segment::{FORMAT_VERSION, HEADER_BYTES, MAGIC, SegmentHeader};

const GATEWAY_AT: usize = 32;
const FOLLOWS_AT: usize = 467;
const SYNC_MARKS_AT: usize = 499;
const LOST_AT: usize = 500;
const CRC_AT: usize = 508;

/// Reads a header. Its ledger has no identity.
pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<SegmentHeader, Fault> {
    let damaged = |what, expected, found| Fault::Damaged { offset: 0, what, expected, found };
    let magic: [u8; 8] = at(bytes, 0);
    if magic != MAGIC {
        return Err(damaged("magic", u64::from_be_bytes(MAGIC), u64::from_be_bytes(magic)));
    }
    let crc = u32::from_le_bytes(at(bytes, CRC_AT));
    let expected = crc32c::crc32c(bytes.get(..CRC_AT).unwrap_or_default());
    if crc != expected {
        return Err(damaged("header check", u64::from(expected), u64::from(crc)));
    }
    let found = u16::from_le_bytes(at(bytes, 8));
    if found != VERSION {
        return Err(Fault::Format { found, known: FORMAT_VERSION });
    }
    let length = usize::from(u16::from_le_bytes(at(bytes, 10)));
    let first = u64::from_le_bytes(at(bytes, 12));
    let gateway = bytes.get(GATEWAY_AT..GATEWAY_AT + length).unwrap_or_default();
    let created = i64::from_le_bytes(at(bytes, 24));
    Ok(SegmentHeader {
        gateway: String::from_utf8_lossy(gateway).into_owned(),
        ledger: LedgerId::default(),
        before: Position { seq: first.saturating_sub(1), chain: u32::from_le_bytes(at(bytes, 20)) },
        lost: u64::from_le_bytes(at(bytes, LOST_AT)),
        has_sync_marks: at::<1>(bytes, SYNC_MARKS_AT) != [0],
        follows: Digest::from_bytes(at(bytes, FOLLOWS_AT)),
        created: Timestamp::from_microsecond(created).unwrap_or_default(),
    })
}

/// The bytes of a field.
fn at<const N: usize>(bytes: &[u8; HEADER_BYTES], offset: usize) -> [u8; N] {
    bytes.get(offset..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}
