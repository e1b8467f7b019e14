//! Finds the next readable entry after damage in a segment.
//!
//! The search guesses nothing. It accepts an entry only if the payload fits its check, and the head
//! fits the chain of the frame before it, as far as that frame can still be read. Text from a
//! client cannot look like a head: the sequence number in a head contains zero bytes, and JSON has
//! none.

use super::frame::{HEAD_BYTES, Head, skip_marks};
use crate::frame::{ENTRY_BYTES_MAX, Position};
use crate::kind::Kind;
use crate::resume::ResumePoint;
use crate::segment::HEADER_BYTES;

/// The first entry after a damaged one that is surely as it was written.
///
/// `segment` is the whole segment. The damaged frame or header begins at `offset`. `last` is the
/// position of the frame before it.
#[must_use]
pub fn find_resume_point(segment: &[u8], offset: u64, last: Position) -> Option<ResumePoint> {
    let offset = usize::try_from(offset).ok()?;
    let is_header = offset < HEADER_BYTES;
    let from = if is_header { HEADER_BYTES } else { offset };
    // Chain values that the damaged part may have ended with. A sync mark is not part of the chain:
    // the frame after a damaged one is chained to the entry before.
    let own = if is_header { None } else { head(segment, from, last.chain) };
    let own = own.map(|(_, found, expected)| [found, expected]);
    let chains: Vec<u32> = own.into_iter().flatten().chain([last.chain]).collect();
    for at in from..segment.len() {
        let (head, chain, _) = head(segment, at, 0)?;
        if head.length as usize > ENTRY_BYTES_MAX {
            continue;
        }
        let is_behind = is_header || at > offset;
        let here = is_behind.then(|| chains.iter().copied().map(|chain| (at, chain)));
        let next = at + HEAD_BYTES + head.length as usize;
        for (at, chain) in here.into_iter().flatten().chain([(next, chain)]) {
            let at = at + segment.get(at..).map_or(0, skip_marks);
            if let Some(seq) = follows(segment, at, chain).filter(|seq| *seq > last.seq) {
                let before = Position { seq: seq - 1, chain };
                return Some(ResumePoint { offset: at as u64, before });
            }
        }
    }
    None
}

/// The sequence number of the frame at `at`, if it is whole and chained to `chain`.
fn follows(segment: &[u8], at: usize, chain: u32) -> Option<u64> {
    let (head, found, expected) = head(segment, at, chain)?;
    let length = head.length as usize;
    if found != expected || length > ENTRY_BYTES_MAX {
        return None;
    }
    Kind::from_byte(head.kind)?;
    let payload = segment.get(at + HEAD_BYTES..)?.get(..length)?;
    (crc32c::crc32c(payload) == head.check && head.seq > 0).then_some(head.seq)
}

/// The head at `at`, its chain value, and the chain value that it should have behind `before`.
fn head(segment: &[u8], at: usize, before: u32) -> Option<(Head, u32, u32)> {
    Some(Head::read(segment.get(at..)?.first_chunk::<HEAD_BYTES>()?, before))
}
