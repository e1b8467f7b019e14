//! The way back into a segment behind damage.
//!
//! Nothing is guessed: an entry is read again once its payload has its check and its head follows
//! from the chain of the frame before it, as far as that can still be read. Text of a client cannot
//! look like a head, whose sequence number has zero bytes: JSON has none.

use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Kind, Position};
use crate::mark::Mark;
use crate::segment::HEADER_BYTES;

/// Where the chain is whole again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resumed {
    /// First byte of the frame in its segment.
    pub offset: u64,
    /// The frame before it, which may be the damaged one.
    pub before: Position,
}

/// The first entry behind a damaged one that surely is as it was written.
///
/// `segment` are all bytes of the segment; the damaged frame, or the damaged header, begins at
/// `offset`; `last` is the frame before it, where that is known.
#[must_use]
pub fn resume(segment: &[u8], offset: u64, last: Option<Position>) -> Option<Resumed> {
    let offset = usize::try_from(offset).ok()?;
    let is_header = offset < HEADER_BYTES;
    let from = if is_header { HEADER_BYTES } else { offset };
    // Chains that the damaged place may have ended with.
    let chains: Vec<u32> = if is_header {
        last.map(|last| last.chain).into_iter().collect()
    } else {
        let head = head(segment, from, last.unwrap_or(Position::START));
        let own = head.map(|(_, found, expected)| [found, expected]);
        // A mark is in no chain: what follows a damaged one follows the entry before it.
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
            let at = at + segment.get(at..).map_or(0, Mark::skip);
            if let Some(seq) = follows(segment, at, chain).filter(|seq| *seq > after) {
                return Some(Resumed {
                    offset: at as u64,
                    before: Position { seq: seq - 1, chain },
                });
            }
        }
    }
    None
}

/// The sequence number of the whole frame at `at`, if it follows one with this chain.
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

/// The head at `at`, its chain, and the chain that it should have behind `before`.
fn head(segment: &[u8], at: usize, before: Position) -> Option<(Head, u32, u32)> {
    let head = segment.get(at..)?.first_chunk::<HEAD_BYTES>()?;
    Some(Head::read(head, before))
}
