//! Finds the next readable entry after damage in a segment.
//!
//! The search guesses nothing. It accepts an entry only if the payload fits its check, and the head
//! fits the chain of the frame before it, as far as that frame can still be read. The check is
//! seeded with the id of the ledger, so no text of a client passes it.

use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Position};
use crate::id::LedgerId;
use crate::kind::{is_chained, is_numbered};
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
/// `segment` is the whole segment, of `ledger`. The damaged frame or header begins at `offset`.
/// `last` is the position of the frame before it, if it is known.
#[must_use]
pub fn find_resume_point(
    segment: &[u8],
    ledger: LedgerId,
    offset: u64,
    last: Option<Position>,
) -> Option<ResumePoint> {
    let seed = ledger.seed();
    let offset = usize::try_from(offset).ok()?;
    let is_header = offset < HEADER_BYTES;
    let from = if is_header { HEADER_BYTES } else { offset };
    // Chain values that the damaged part may have ended with.
    let chains: Vec<u32> = if is_header {
        last.map(|last| last.chain).into_iter().collect()
    } else {
        let head = head(segment, from, last.map_or(0, |last| last.chain));
        let own = head.map(|(_, found, expected)| [found, expected]);
        // A sync mark is not part of the chain: the frame after a damaged one is chained to the
        // entry before.
        own.into_iter().flatten().chain(last.map(|last| last.chain)).collect()
    };
    let after = last.map_or(0, |last| last.seq);
    for at in from..segment.len() {
        let (head, chain, _) = head(segment, at, 0)?;
        if head.length as usize > ENTRY_BYTES_MAX {
            continue;
        }
        let here = (at > offset).then(|| chains.iter().copied().map(|chain| (at, chain)));
        let next = at + HEAD_BYTES + head.length as usize;
        for (at, chain) in here.into_iter().flatten().chain([(next, chain)]) {
            let at = at + segment.get(at..).map_or(0, |rest| SyncMark::skip(rest, seed));
            let follows = follows(segment, at, (chain, seed), after);
            if let Some(before) = follows.filter(|before| *before >= after) {
                return Some(ResumePoint {
                    offset: at as u64,
                    before: Position { seq: before, chain },
                });
            }
        }
    }
    None
}

/// The sequence number of the entry before the frame at `at`, if that is whole and chained to a
/// frame with this chain value.
fn follows(segment: &[u8], at: usize, (chain, seed): (u32, u32), near: u64) -> Option<u64> {
    let (head, found, expected) = head(segment, at, chain)?;
    let length = head.length as usize;
    if found != expected || length > ENTRY_BYTES_MAX || !is_chained(head.kind) {
        return None;
    }
    let payload = segment.get(at + HEAD_BYTES..)?.get(..length)?;
    if crc32c::crc32c_append(seed, payload) != head.check {
        return None;
    }
    let seq = head.seq_near(near);
    if is_numbered(head.kind) { seq.checked_sub(1) } else { Some(seq) }
}

/// The head at `at`, its chain value, and the chain value that it should have behind a frame with
/// the chain value `before`.
fn head(segment: &[u8], at: usize, before: u32) -> Option<(Head, u32, u32)> {
    let head = segment.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    Some(Head::read(head, before))
}
