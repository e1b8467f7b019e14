//! Sync marks. The journal writer puts one between entries after a sync has succeeded. It says up
//! to which entry the journal is on disk.
//!
//! A sync mark is a frame with a kind of its own and an empty JSON object as its payload. It is not
//! an entry: it has no sequence number of its own, and it is not part of the chain. Its `seq` is
//! the number of the last synced entry. So a reader can find and check a sync mark even after
//! damage.

use crate::frame::{HEAD_BYTES, Head, Position};

/// The payload of a sync mark.
const PAYLOAD: &[u8] = b"{}";
/// The kind byte of a sync mark. [`Kind`](crate::Kind) has those of entries.
const KIND: u8 = 7;

/// Says that all entries up to `synced` are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncMark {
    /// Sequence number of the last synced entry.
    pub synced: u64,
}

impl SyncMark {
    /// Length of a sync mark, in bytes.
    pub(crate) const BYTES: usize = HEAD_BYTES + PAYLOAD.len();

    /// Appends the sync mark to `out`.
    pub fn append(self, out: &mut Vec<u8>) {
        let check = crc32c::crc32c(PAYLOAD);
        let length = u32::try_from(PAYLOAD.len()).unwrap_or_default();
        Head { length, seq: self.synced, kind: KIND, check }.append(Position::START, out);
        out.extend_from_slice(PAYLOAD);
    }

    /// The highest synced entry that a sync mark in `bytes` names. `bytes` is a part of a segment.
    #[must_use]
    pub fn last_in(bytes: &[u8]) -> Option<u64> {
        let rests = (0..bytes.len()).filter_map(|at| bytes.get(at..)?.split_first_chunk());
        let whole = rests.filter(|(_, payload)| payload.starts_with(PAYLOAD));
        whole.filter_map(|(head, _)| Self::read(head)).map(|mark| mark.synced).max()
    }

    /// Reads the head of a sync mark. `None` if the bytes are something else.
    pub(crate) fn read(bytes: &[u8; HEAD_BYTES]) -> Option<Self> {
        if bytes.get(Head::KIND_AT) != Some(&KIND) {
            return None;
        }
        let (head, found, expected) = Head::read(bytes, Position::START);
        let is_mark = found == expected
            && head.length as usize == PAYLOAD.len()
            && head.check == crc32c::crc32c(PAYLOAD);
        is_mark.then_some(Self { synced: head.seq })
    }

    /// Whether `rest` begins with the payload of a sync mark. `None` if it is too short to tell.
    pub(crate) fn is_followed_by(rest: &[u8]) -> Option<bool> {
        rest.get(..PAYLOAD.len()).map(|payload| payload == PAYLOAD)
    }

    /// Total length of the sync marks at the start of `bytes`.
    pub(crate) fn skip(bytes: &[u8]) -> usize {
        let is_mark = |rest: &[u8]| {
            let (head, payload) = rest.split_first_chunk()?;
            Self::read(head)?;
            Self::is_followed_by(payload)
        };
        let mut length = 0;
        while bytes.get(length..).and_then(is_mark) == Some(true) {
            length += Self::BYTES;
        }
        length
    }
}
