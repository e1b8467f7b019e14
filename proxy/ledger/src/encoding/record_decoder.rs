//! Decodes many records, of which many have the same strings.

use super::DecodeError;
use super::keys::{END, ID_BYTES};
use super::member::Members;
use super::record::{forget_members, of_strings, read_members};
use super::strings::Strings;
use crate::id::RequestId;
use crate::record::{Counted, Record};

/// So many different strings are kept: requests of some tenants for some models take turns.
const KEPT_MAX: usize = 16;

/// Decodes posts one after the other. Strings that one of the last posts had are not read again,
/// which saves most of the work: a record is what its strings say, and a dozen numbers.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    kept: Vec<Kept>,
    /// The one that gives way to others first.
    oldest: usize,
}

/// Strings, and the last record that had them.
#[derive(Debug)]
struct Kept {
    /// With their end. No other strings begin with them.
    strings: Vec<u8>,
    record: Record,
    /// What the strings say of the tokens that were counted.
    counted: Option<Counted>,
}

impl RecordDecoder {
    /// Decodes the complete payload of the post with the sequence number `seq`, as [`Record::decode`]
    /// does.
    ///
    /// # Errors
    /// It is no post.
    pub fn decode(&mut self, seq: u64, payload: &[u8]) -> Result<&Record, DecodeError> {
        let (id, rest) = payload.split_first_chunk::<ID_BYTES>().ok_or(DecodeError::CutOff)?;
        let Some((&END, rest)) = rest.split_last() else { return Err(DecodeError::CutOff) };
        let kept = self.kept.iter().position(|kept| rest.starts_with(&kept.strings));
        let at = kept.map_or_else(|| self.keep(rest), Ok)?;
        let Some(Kept { strings, record, counted }) = self.kept.get_mut(at) else {
            return Err(DecodeError::CutOff);
        };
        forget_members(record, *counted);
        let members = Members::new(rest.get(strings.len()..).unwrap_or_default());
        read_members(record, RequestId(uuid::Uuid::from_bytes(*id)), members)?;
        record.seq = seq;
        Ok(record)
    }

    /// Reads the strings at the start of `rest`, and keeps them. Where they are.
    fn keep(&mut self, rest: &[u8]) -> Result<usize, DecodeError> {
        let mut strings = Strings::new(rest);
        let record = of_strings(&mut strings)?;
        let length = rest.len() - strings.rest().len();
        let counted = record.usage.counted;
        let strings = rest.get(..length).unwrap_or_default().to_vec();
        let kept = Kept { strings, record, counted };
        if self.kept.len() < KEPT_MAX {
            self.kept.push(kept);
            return Ok(self.kept.len() - 1);
        }
        let at = self.oldest;
        self.oldest = (at + 1) % KEPT_MAX;
        if let Some(place) = self.kept.get_mut(at) {
            *place = kept;
        }
        Ok(at)
    }
}
