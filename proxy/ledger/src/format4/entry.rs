//! An entry, and how it becomes one of the format that is written.

use crate::encoding;
use crate::entry::Entry;
use crate::frame::{EncodeError, EncodedEntry, Position};
use crate::framed::Fault;
use crate::kind::Kind;

/// One entry with its position in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldEntry {
    /// Its position in the journal.
    pub position: Position,
    /// Offset of the frame in its segment.
    pub offset: u64,
    pub(super) kind: Kind,
    pub(super) json: Vec<u8>,
}

impl OldEntry {
    /// Decodes the entry.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] if the JSON does not fit its kind.
    pub fn entry(&self) -> Result<Entry, Fault> {
        let json = &self.json;
        match self.kind {
            Kind::Reserve => serde_json::from_slice(json).map(Entry::Reserve),
            Kind::Post => serde_json::from_slice(json).map(Entry::Post),
            Kind::Void => serde_json::from_slice(json).map(Entry::Void),
            Kind::Progress => serde_json::from_slice(json).map(Entry::Progress),
            Kind::Correction => serde_json::from_slice(json).map(Entry::Correction),
            Kind::Checkpoint => serde_json::from_slice(json).map(Entry::Checkpoint),
            Kind::Refusals => serde_json::from_slice(json).map(Entry::Refusals),
        }
        .map_err(|error| Fault::Unreadable {
            offset: self.offset,
            seq: self.position.seq,
            reason: error.to_string(),
        })
    }

    /// Encodes the entry into `buffer` in the format that is written. An entry that cannot be read
    /// cannot be read there either: it keeps its number, and its JSON as a member. The second value
    /// says why then.
    ///
    /// # Errors
    /// The entry is too long.
    pub fn encode<'a>(
        &self,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(EncodedEntry<'a>, Option<Fault>), EncodeError> {
        match self.entry() {
            Ok(entry) => Ok((EncodedEntry::new(&entry, buffer)?, None)),
            Err(fault) => {
                encoding::encode_unreadable(&self.json, buffer);
                Ok((EncodedEntry::encoded(self.kind, buffer)?, Some(fault)))
            }
        }
    }
}
