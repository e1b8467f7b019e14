//! An entry in its frame, and what can be wrong with the bytes of a segment.

use crate::encoding::{self, Payload, PostBytes};
use crate::entry::Entry;
use crate::frame::Position;
use crate::id::LedgerId;
use crate::kind::Kind;

/// One entry with its position in a segment, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramedEntry {
    /// Sequence number.
    pub seq: u64,
    /// Chain value. It tells this entry from an entry of another journal with the same number.
    pub chain: u32,
    /// Offset of the frame in its segment.
    pub offset: u64,
    /// The ledger.
    pub ledger: LedgerId,
    /// Kind of the entry.
    pub kind: Kind,
    /// The payload of the entry, with all of its strings. Empty if the reader does not complete this
    /// kind.
    pub payload: Payload,
    /// Why strings are missing in the payload, if damage before the entry has taken them.
    pub fault: Option<String>,
}

impl FramedEntry {
    /// Position of the entry in the journal.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { seq: self.seq, chain: self.chain }
    }

    /// Decodes the entry. The record of a post gets its `seq`.
    /// # Errors
    /// [`Fault::Unreadable`] if the payload does not fit its kind.
    pub fn entry(&self) -> Result<Entry, Fault> {
        if let Some(reason) = &self.fault {
            return Err(self.unreadable(reason));
        }
        let decoded = encoding::decode(self.kind, &self.payload);
        let mut entry = decoded.map_err(|error| self.unreadable(&error))?;
        if let Entry::Post(record) = &mut entry {
            record.seq = self.seq;
        }
        Ok(entry)
    }

    /// The payload of a post in its pieces.
    /// # Errors
    /// [`Fault::Unreadable`] if it is none, or if strings are missing.
    pub fn post(&self) -> Result<PostBytes<'_>, Fault> {
        if let Some(reason) = &self.fault {
            return Err(self.unreadable(reason));
        }
        self.payload.post().map_err(|error| self.unreadable(&error))
    }

    /// The fault for a caller that cannot read the payload with a parser of its own.
    #[must_use]
    pub fn unreadable(&self, reason: &impl ToString) -> Fault {
        let Self { seq, offset, .. } = *self;
        Fault::Unreadable { offset, seq, reason: reason.to_string() }
    }
}

/// What is wrong with the bytes of a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end inside a frame, or only zeros follow. The last write was cut off.
    #[error("torn at byte {offset}: {bytes} bytes are not a whole entry")]
    Torn {
        /// End of the last whole frame.
        offset: u64,
        /// Number of bytes after it.
        bytes: u64,
    },
    /// A frame or the header was changed, removed or moved.
    #[error("damaged at byte {offset}: {what} is {found:#x}, expected {expected:#x}")]
    Damaged {
        /// Start of the frame, or 0 for the header.
        offset: u64,
        /// The field that is wrong.
        what: &'static str,
        /// The expected value.
        expected: u64,
        /// The value in the bytes.
        found: u64,
    },
    /// The frame is whole, but its entry cannot be read.
    #[error("entry {seq} at byte {offset} cannot be read: {reason}")]
    Unreadable {
        /// Start of the frame.
        offset: u64,
        /// Sequence number of the entry.
        seq: u64,
        /// The reason.
        reason: String,
    },
    /// The segment has another format.
    #[error("format {found} is not {known}, the one that this version reads")]
    Format {
        /// Format of the segment.
        found: u16,
        /// The format that this version reads.
        known: u16,
    },
}
