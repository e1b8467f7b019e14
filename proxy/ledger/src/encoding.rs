//! The payload of an entry: its id, its strings, and its members.
//!
//! ```text
//! id 16 | strings … 0 | members … | '.'
//! ```
//!
//! - A **string** is a text or a group of members that many entries share: the tenant, the call, a
//!   price. It is `key × 2 + 1, number, length, bytes`, or `key × 2, number` where it stands for
//!   the bytes that an earlier entry gave this number ([`StringTable`]).
//! - A **member** is `key × 2, number` or `key × 2 + 1, length, bytes`. A reader skips members and
//!   strings whose key it does not know.
//! - The **dimensions** of a request are the first member, shared as strings are (`dimensions.rs`).
//! - All numbers are LEB128, the lowest seven bits first.
//! - The last byte is never zero, so a reader tells a payload from the zeros of a torn write.
//!
//! A payload whose strings all have their bytes is **complete**: it can be read alone. Readers give
//! out complete payloads, and writers take them. Only files contain short ones.
//!
//! The encodings of entries are in the folder: one file for each group of members.

mod checkpoint;
mod correction;
mod cost;
mod dimensions;
mod entries;
mod keys;
mod member;
mod numbered;
mod parts;
mod payload;
mod post;
mod record;
mod record_decoder;
mod refusals;
mod shared;
mod string_table;
mod strings;
mod texts;
mod tools;
mod usage;

use jiff::Timestamp;
use taximeter_pricing::Flag;
use uuid::Uuid;

use crate::entry::{Correction, Entry};
use crate::id::RequestId;
use crate::kind::Kind;
use crate::record::Record;

use self::keys::member_key;
use self::member::Writer;
use self::parts::Parts;

pub use self::cost::{CostNumbers, LineQuantities, TOKENS_MAX};
pub(crate) use self::keys::{END, ID_BYTES};
pub use self::member::DecodeError;
pub use self::payload::{Payload, PostBytes, join_payload};
pub use self::post::{PostNumbers, PostNumbersReader, PostView};
pub use self::record_decoder::RecordDecoder;
pub use self::string_table::StringsSoFar;
pub(crate) use self::string_table::{Interner, StringTable};

/// Encodes an entry as a complete payload, in place of what `out` has. Its kind.
pub(crate) fn encode(entry: &Entry, out: &mut Vec<u8>) -> Kind {
    out.clear();
    let mut writer = Writer::new(out);
    match entry {
        Entry::Reserve(reserve) => entries::reserve(reserve, &mut writer),
        Entry::Post(record) => record::post(record, &mut writer),
        Entry::Void(void) => entries::void(void, &mut writer),
        Entry::Progress(progress) => entries::progress(progress, &mut writer),
        Entry::Correction(correction) => correction::correction(correction, &mut writer),
        Entry::Checkpoint(checkpoint) => checkpoint::checkpoint(checkpoint, &mut writer),
        Entry::Refusals(refusals) => refusals::refusals(refusals, &mut writer),
    }
    out.push(END);
    match entry {
        Entry::Reserve(_) => Kind::Reserve,
        Entry::Post(_) => Kind::Post,
        Entry::Void(_) => Kind::Void,
        Entry::Progress(_) => Kind::Progress,
        Entry::Correction(_) => Kind::Correction,
        Entry::Checkpoint(_) => Kind::Checkpoint,
        Entry::Refusals(_) => Kind::Refusals,
    }
}

/// A complete payload that has nothing but the JSON of an entry that cannot be read, in place of what
/// `out` has. No kind of entry can be decoded from it.
pub(crate) fn encode_unreadable(json: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut writer = Writer::new(out);
    writer.id(RequestId(Uuid::nil()));
    writer.end_strings();
    writer.bytes(member_key::UNREADABLE_JSON, json);
    out.push(END);
}

impl Record {
    /// Encodes the complete payload of the post, in place of what `out` has. It does not have the
    /// sequence number.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        record::post(self, &mut Writer::new(out));
        out.push(END);
    }

    /// Decodes the complete payload of the post with the sequence number `seq`.
    ///
    /// # Errors
    /// It is no post.
    pub fn decode(seq: u64, payload: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self { seq, ..record::read_post(&Parts::split(payload)?)? })
    }
}

impl Correction {
    /// Decodes the complete payload of a correction.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        correction::read_correction(&Parts::split(payload)?)
    }
}

/// Decodes a complete payload. A record does not have its number.
///
/// # Errors
/// The payload does not fit `kind`.
pub(crate) fn decode(kind: Kind, payload: &Payload) -> Result<Entry, DecodeError> {
    let parts = payload.parts()?;
    Ok(match kind {
        Kind::Reserve => Entry::Reserve(Box::new(entries::read_reserve(&parts)?)),
        Kind::Post => Entry::Post(Box::new(record::read_post(&parts)?)),
        Kind::Void => Entry::Void(entries::read_void(&parts)?),
        Kind::Progress => Entry::Progress(Box::new(entries::read_progress(&parts)?)),
        Kind::Correction => Entry::Correction(Box::new(correction::read_correction(&parts)?)),
        Kind::Checkpoint => Entry::Checkpoint(Box::new(checkpoint::read_checkpoint(&parts)?)),
        Kind::Refusals => Entry::Refusals(Box::new(refusals::read_refusals(&parts)?)),
    })
}

/// The id and the time of a reservation.
pub(crate) fn glance_at_reserve(payload: &Payload) -> Result<(RequestId, Timestamp), DecodeError> {
    let Parts { id, mut members, .. } = payload.parts()?;
    while let Some((key, value)) = members.next()? {
        if key == member_key::STARTED_AT {
            return Ok((id, value.time(member::time_of(id))?));
        }
    }
    Err(DecodeError::Missing("started_at"))
}

/// What changes a sum in a post. `None` if its usage is pending: what is kept of it then is in many
/// members.
pub(crate) fn glance_at_post(payload: &Payload) -> Result<Option<PostView<'_>>, DecodeError> {
    let post = PostView::of(payload.parts()?)?;
    Ok(Some(post).filter(|post| !post.flags.contains(&Flag::Pending)))
}
