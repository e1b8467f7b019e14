//! The payload of an entry that was read from a segment.

use std::sync::Arc;

use uuid::Uuid;

use super::keys::{END, ID_BYTES};
use super::member::{DecodeError, Members};
use super::parts::Parts;
use super::shared;
use super::strings::{Strings, skip_strings};
use crate::id::RequestId;

/// A complete payload. Entries with the same strings share the memory of these.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// All strings, and their end. Empty if the payload cannot be split.
    strings: Arc<[u8]>,
    /// The id and, behind it, the members.
    rest: Vec<u8>,
}

impl Payload {
    /// The complete payload with this id, these strings and these members. Members end with
    /// [`END`].
    pub(crate) fn new(id: &[u8], strings: Arc<[u8]>, members: &[u8]) -> Self {
        let mut rest = Vec::with_capacity(id.len() + members.len());
        rest.extend_from_slice(id);
        rest.extend_from_slice(members);
        Self { strings, rest }
    }

    /// A payload that cannot be split.
    pub(crate) fn unsplit(bytes: &[u8]) -> Self {
        Self { strings: Arc::default(), rest: bytes.to_vec() }
    }

    /// Length, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.strings.len() + self.rest.len()
    }

    /// Whether the reader of the entry has left the payload out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let (id, members) = self.rest.split_at(ID_BYTES.min(self.rest.len()));
        [id, &self.strings, members].concat()
    }

    /// The payload of a post in its pieces.
    ///
    /// # Errors
    /// It is none.
    pub fn post(&self) -> Result<PostBytes<'_>, DecodeError> {
        let (id, members) = self.rest.split_first_chunk::<ID_BYTES>().ok_or(DecodeError::CutOff)?;
        let Some((&END, members)) = members.split_last() else { return Err(DecodeError::CutOff) };
        if self.strings.is_empty() {
            return Err(DecodeError::CutOff);
        }
        Ok(PostBytes { id: RequestId(Uuid::from_bytes(*id)), strings: &self.strings, members })
    }

    pub(crate) fn parts(&self) -> Result<Parts<'_>, DecodeError> {
        self.post().map(|post| post.parts())
    }
}

impl From<&[u8]> for Payload {
    fn from(payload: &[u8]) -> Self {
        let split = || {
            let (id, rest) = payload.split_at_checked(ID_BYTES)?;
            let members = skip_strings(rest).ok()?;
            let strings = rest.get(..rest.len() - members.len())?;
            Some(Self::new(id, strings.into(), members))
        };
        split().unwrap_or_else(|| Self::unsplit(payload))
    }
}

/// A complete payload of a post in three pieces. Many posts have the same strings.
#[derive(Debug, Clone, Copy)]
pub struct PostBytes<'a> {
    /// The id.
    pub id: RequestId,
    /// All strings, and their end.
    pub strings: &'a Arc<[u8]>,
    /// All members.
    pub members: &'a [u8],
}

impl<'a> PostBytes<'a> {
    /// Whether there is anything that its request is part of.
    #[must_use]
    pub fn has_dimensions(&self) -> bool {
        shared::has_dimensions(self.members)
    }

    pub(super) fn parts(&self) -> Parts<'a> {
        Parts {
            id: self.id,
            strings: Strings::new(self.strings),
            members: Members::new(self.members),
        }
    }
}

/// Puts a complete payload together, in place of what `out` has: the pieces are those of
/// [`PostBytes`].
pub fn join_payload(id: RequestId, strings: &[u8], members: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(id.0.as_bytes());
    out.extend_from_slice(strings);
    out.extend_from_slice(members);
    out.push(END);
}
