//! Decodes many records, of which many have the same strings.

use std::collections::HashMap;

use super::DecodeError;
use super::keys::{END, ID_BYTES};
use super::member::Members;
use super::record::{forget_members, of_strings, read_members};
use super::strings::{Strings, skip_strings};
use crate::id::RequestId;
use crate::record::{Counted, Record};

/// Bytes of records that are kept. Those of some hundred tenants for some models take turns.
const KEPT_BYTES_MAX: usize = 2 << 20;

/// Decodes posts one after the other. Strings that an earlier post had are not read again, which saves
/// most of the work: a record is what its strings say, and a dozen numbers.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    /// By the strings of their posts.
    kept: HashMap<Vec<u8>, Kept, foldhash::fast::RandomState>,
    bytes: usize,
}

/// The last record with these strings.
#[derive(Debug)]
struct Kept {
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
        let members = skip_strings(rest)?;
        let strings = rest.get(..rest.len() - members.len()).unwrap_or_default();
        if !self.kept.contains_key(strings) {
            self.keep(strings)?;
        }
        let Some(Kept { record, counted }) = self.kept.get_mut(strings) else {
            return Err(DecodeError::CutOff);
        };
        forget_members(record, *counted);
        let id = RequestId(uuid::Uuid::from_bytes(*id));
        read_members(record, id, Members::new(members))?;
        record.seq = seq;
        Ok(record)
    }

    fn keep(&mut self, strings: &[u8]) -> Result<(), DecodeError> {
        let record = of_strings(&mut Strings::new(strings))?;
        self.bytes += size_of::<Record>() + strings.len();
        if self.bytes > KEPT_BYTES_MAX {
            self.kept.clear();
            self.bytes = size_of::<Record>() + strings.len();
        }
        let counted = record.usage.counted;
        self.kept.insert(strings.to_vec(), Kept { record, counted });
        Ok(())
    }
}
