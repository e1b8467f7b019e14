//! Finds the next readable entry after damage in a segment.
//!
//! The search guesses nothing. It accepts an entry only if the payload fits its check, and the head
//! fits the chain of the frame before it, as far as that frame can still be read. Text from a
//! client cannot look like a head: the sequence number in a head contains zero bytes, and JSON has
//! none.

use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Kind, Position};
use crate::segment::HEADER_BYTES;
use crate::sync_mark::SyncMark;

/// Where reading can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// Offset of the next frame in its segment.
    pub offset: u64,
    /// Position of the frame before it, which may be the damaged one.
    pub before: Position,
}

/// The first entry after a damaged one that is surely as it was written.
///
/// `segment` is the whole segment. The damaged frame or header begins at `offset`. `last` is the
/// position of the frame before it, if it is known.
#[must_use]
pub fn find_resume_point(
    segment: &[u8],
    offset: u64,
    last: Option<Position>,
) -> Option<ResumePoint> {
    let offset = usize::try_from(offset).ok()?;
    let is_header = offset < HEADER_BYTES;
    let from = if is_header { HEADER_BYTES } else { offset };
    // Chain values that the damaged part may have ended with.
    let chains: Vec<u32> = if is_header {
        last.map(|last| last.chain).into_iter().collect()
    } else {
        let head = head(segment, from, last.unwrap_or(Position::START));
        let own = head.map(|(_, found, expected)| [found, expected]);
        // A sync mark is not part of the chain: the frame after a damaged one is chained to the
        // entry before.
        own.into_iter().flatten().chain(last.map(|last| last.chain)).collect()
    };
    let after = last.map_or(0, |last| last.seq);
    for at in from..segment.len() {
        let (head, chain, _) = head(segment, at, Position::START)?;
        if head.length as usize > ENTRY_BYTES_MAX {
            continue;
        }
        let here = (at > offset).then(|| chains.iter().copied().map(|chain| (at, chain)));
        let next = at + HEAD_BYTES + head.length as usize;
        for (at, chain) in here.into_iter().flatten().chain([(next, chain)]) {
            let at = at + segment.get(at..).map_or(0, SyncMark::skip);
            if let Some(seq) = follows(segment, at, chain).filter(|seq| *seq > after) {
                return Some(ResumePoint {
                    offset: at as u64,
                    before: Position { seq: seq - 1, chain },
                });
            }
        }
    }
    None
}

/// The sequence number of the frame at `at`, if it is whole and chained to `chain`.
fn follows(segment: &[u8], at: usize, chain: u32) -> Option<u64> {
    let (head, found, expected) = head(segment, at, Position { seq: 0, chain })?;
    let length = head.length as usize;
    if found != expected || length > ENTRY_BYTES_MAX {
        return None;
    }
    Kind::from_byte(head.kind)?;
    let payload = segment.get(at + HEAD_BYTES..)?.get(..length)?;
    (crc32c::crc32c(payload) == head.check && head.seq > 0).then_some(head.seq)
}

/// The head at `at`, its chain value, and the chain value that it should have after `before`.
fn head(segment: &[u8], at: usize, before: Position) -> Option<(Head, u32, u32)> {
    let head = segment.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    Some(Head::read(head, before))
}
