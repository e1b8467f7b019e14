//! Sync marks. The journal writer puts one between entries after a sync has succeeded. It says up
//! to which entry the journal is on disk.
//!
//! A sync mark is a frame with a kind of its own. It is not an entry: it has no sequence number of
//! its own, and it is not part of the chain. Its payload is the number of the last synced entry. So
//! a reader can find and check a sync mark even after damage.

use crate::encoding::END;
use crate::frame::{HEAD_BYTES, Head};
use crate::id::LedgerId;
use crate::kind::SYNC_MARK;

/// Length of the payload: a number, and the end of a payload.
const PAYLOAD_BYTES: usize = 9;

/// Says that all entries up to `synced` are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncMark {
    /// Sequence number of the last synced entry.
    pub synced: u64,
}

impl SyncMark {
    /// Length of a sync mark, in bytes.
    pub(crate) const BYTES: usize = HEAD_BYTES + PAYLOAD_BYTES;

    /// Appends the sync mark to `out`, a journal of `ledger`.
    pub fn append(self, ledger: LedgerId, out: &mut Vec<u8>) {
        let (seed, payload) = (ledger.seed(), self.payload());
        let head = Head::of(SYNC_MARK, self.synced, &payload, seed);
        out.extend_from_slice(&head.bytes(seed).0);
        out.extend_from_slice(&payload);
    }

    fn payload(self) -> [u8; PAYLOAD_BYTES] {
        let [a, b, c, d, e, f, g, h] = self.synced.to_le_bytes();
        [a, b, c, d, e, f, g, h, END]
    }

    /// The highest synced entry that a sync mark in `bytes` names. `bytes` is a part of a segment
    /// of `ledger`.
    #[must_use]
    pub fn last_in(bytes: &[u8], ledger: LedgerId) -> Option<u64> {
        let rests = (0..bytes.len()).filter_map(|at| bytes.get(at..));
        rests.filter_map(|rest| Self::read(rest, ledger.seed())).map(|mark| mark.synced).max()
    }

    /// Whether bytes begin with the head of a sync mark.
    pub(crate) fn has_head(bytes: &[u8; HEAD_BYTES], seed: u32) -> bool {
        if bytes.get(Head::KIND_AT) != Some(&SYNC_MARK) {
            return false;
        }
        let (head, found, expected) = Head::read(bytes, seed);
        head.kind == SYNC_MARK && found == expected && head.length as usize == PAYLOAD_BYTES
    }

    /// Reads a whole sync mark at the start of `bytes`. `None` if the bytes are something else, or
    /// too few.
    pub(crate) fn read(bytes: &[u8], seed: u32) -> Option<Self> {
        if bytes.get(Head::KIND_AT) != Some(&SYNC_MARK) {
            return None;
        }
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let payload = rest.first_chunk::<PAYLOAD_BYTES>()?;
        let (head_read, _, _) = Head::read(head, seed);
        if !Self::has_head(head, seed) || head_read.check != crc32c::crc32c_append(seed, payload) {
            return None;
        }
        let [a, b, c, d, e, f, g, h, _] = *payload;
        Some(Self { synced: u64::from_le_bytes([a, b, c, d, e, f, g, h]) })
    }

    /// Total length of the sync marks at the start of `bytes`.
    pub(crate) fn skip(bytes: &[u8], seed: u32) -> usize {
        let mut length = 0;
        while bytes.get(length..).is_some_and(|rest| Self::read(rest, seed).is_some()) {
            length += Self::BYTES;
        }
        length
    }
}
