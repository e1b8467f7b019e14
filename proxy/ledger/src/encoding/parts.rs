//! The parts of a payload.

use super::keys::{END, ID_BYTES};
use super::member::{DecodeError, Members};
use super::strings::{Strings, skip_strings};
use crate::id::RequestId;

/// A complete payload, split into its parts.
#[derive(Debug, Clone)]
pub(crate) struct Parts<'a> {
    pub(crate) id: RequestId,
    pub(crate) strings: Strings<'a>,
    pub(crate) members: Members<'a>,
}

impl<'a> Parts<'a> {
    pub(crate) fn split(payload: &'a [u8]) -> Result<Self, DecodeError> {
        let (id, rest) = payload.split_first_chunk::<ID_BYTES>().ok_or(DecodeError::CutOff)?;
        let Some((&END, rest)) = rest.split_last() else { return Err(DecodeError::CutOff) };
        let strings = Strings::new(rest);
        let members = skip_strings(rest)?;
        Ok(Self {
            id: RequestId(uuid::Uuid::from_bytes(*id)),
            strings,
            members: Members::new(members),
        })
    }
}
