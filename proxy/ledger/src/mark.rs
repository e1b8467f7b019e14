//! Marks: how far all entries surely are on the disk, said between them once a sync has succeeded.
//!
//! A mark is a frame of a kind of its own with an empty object for a payload. It is no entry: it
//! takes no number, its `seq` is that of the last entry that was synced, and it is in no chain. So
//! it can be found, and believed, behind any damage.

use crate::frame::{HEAD_BYTES, Head, Position};

/// What the payload of a mark is.
const PAYLOAD: &[u8] = b"{}";
/// The kind of a mark; those of entries are in [`Kind`](crate::Kind).
const KIND: u8 = 7;

/// All entries up to `synced` are on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Sequence number of the last of them.
    pub synced: u64,
}

impl Mark {
    /// Length of a mark.
    pub(crate) const BYTES: usize = HEAD_BYTES + PAYLOAD.len();

    /// Appends the mark to `out`.
    pub fn seal(self, out: &mut Vec<u8>) {
        let check = crc32c::crc32c(PAYLOAD);
        let length = u32::try_from(PAYLOAD.len()).unwrap_or_default();
        Head { length, seq: self.synced, kind: KIND, check }.seal(Position::START, out);
        out.extend_from_slice(PAYLOAD);
    }

    /// The last entry that any mark in `bytes`, a part of a segment, says to be synced.
    #[must_use]
    pub fn last_in(bytes: &[u8]) -> Option<u64> {
        let rests = (0..bytes.len()).filter_map(|at| bytes.get(at..)?.split_first_chunk());
        let whole = rests.filter(|(_, payload)| payload.starts_with(PAYLOAD));
        whole.filter_map(|(head, _)| Self::read(head)).map(|mark| mark.synced).max()
    }

    /// Reads the head of a mark.
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

    /// Whether a mark's payload is what follows its head, once all of it is there.
    pub(crate) fn is_followed_by(rest: &[u8]) -> Option<bool> {
        rest.get(..PAYLOAD.len()).map(|payload| payload == PAYLOAD)
    }

    /// Length of all marks that `bytes` begin with.
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
