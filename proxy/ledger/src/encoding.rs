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
mod entries;
mod member;
mod numbered;
mod post;
mod record;
mod refusals;
mod strings;
mod usage;

use jiff::Timestamp;
use taximeter_pricing::Flag;

use crate::entry::Entry;
use crate::frame::Kind;
use crate::id::RequestId;

pub(crate) use self::checkpoint::write_pending;
pub use self::member::DecodeError;
pub(crate) use self::member::{Members, Writer};
pub use self::post::PostView;
pub use self::strings::StringsSoFar;
pub(crate) use self::strings::{Interner, StringTable, Strings, skip_strings};

/// Length of the id at the start of a payload, in bytes.
pub(crate) const ID_BYTES: usize = 16;

/// The last byte of a payload.
pub(crate) const END: u8 = b'.';

/// Strings of entries, by their key.
pub(crate) mod string {
    pub(crate) const TENANT: u64 = 1;
    pub(crate) const CALLER: u64 = 2;
    pub(crate) const CALL: u64 = 3;
    pub(crate) const REQUEST_MODEL: u64 = 4;
    pub(crate) const RESPONSE_MODEL: u64 = 5;
    pub(crate) const SERVICE_TIER: u64 = 6;
    pub(crate) const ORIGIN: u64 = 7;
    pub(crate) const OUTCOME: u64 = 8;
    pub(crate) const SOURCES: u64 = 9;
    pub(crate) const PRICE: u64 = 10;
    pub(crate) const RATE: u64 = 11;
    pub(crate) const UNKNOWN_COST: u64 = 12;
    pub(crate) const PRICE_BEFORE: u64 = 13;
    pub(crate) const RATE_BEFORE: u64 = 14;
    pub(crate) const REASON: u64 = 15;
    pub(crate) const GATEWAY: u64 = 16;
}

/// Members of entries, by their key.
pub(crate) mod member_key {
    pub(crate) const STARTED_AT: u64 = 1;
    pub(crate) const DURATION: u64 = 2;
    pub(crate) const ENDED_AT: u64 = 3;
    pub(crate) const REQUEST_ID: u64 = 4;
    pub(crate) const REQUEST_UUID: u64 = 5;
    pub(crate) const RESPONSE_ID: u64 = 6;
    pub(crate) const ATTEMPT: u64 = 7;
    pub(crate) const TOKENS: u64 = 8;
    pub(crate) const COUNTED: u64 = 9;
    pub(crate) const MODALITY: u64 = 10;
    pub(crate) const UNIT: u64 = 11;
    pub(crate) const PASS: u64 = 12;
    pub(crate) const TIMING: u64 = 13;
    pub(crate) const GAPS: u64 = 14;
    pub(crate) const LINES: u64 = 15;
    pub(crate) const AMOUNT: u64 = 16;
    pub(crate) const LIST_AMOUNT: u64 = 17;
    pub(crate) const REPORTED_COST: u64 = 18;
    pub(crate) const AT: u64 = 19;
    pub(crate) const VOID_REASON: u64 = 20;
    pub(crate) const HAS_PASSES: u64 = 21;
    pub(crate) const LINES_BEFORE: u64 = 22;
    pub(crate) const AMOUNT_BEFORE: u64 = 23;
    pub(crate) const LIST_AMOUNT_BEFORE: u64 = 24;
    pub(crate) const CORRECTS: u64 = 25;
    pub(crate) const COMPLETION: u64 = 26;
    pub(crate) const COMPLETED: u64 = 27;
    pub(crate) const POSTS: u64 = 28;
    pub(crate) const VOIDS: u64 = 29;
    pub(crate) const CORRECTIONS: u64 = 30;
    pub(crate) const COST: u64 = 31;
    pub(crate) const UNKNOWN_COSTS: u64 = 32;
    pub(crate) const OLDEST_OPEN: u64 = 33;
    pub(crate) const PENDING: u64 = 34;
    pub(crate) const MINUTE: u64 = 35;
    pub(crate) const REFUSAL: u64 = 36;
}

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

/// Decodes a complete payload.
///
/// # Errors
/// The payload does not fit `kind`.
pub(crate) fn decode(kind: Kind, payload: &[u8]) -> Result<Entry, DecodeError> {
    let parts = Parts::split(payload)?;
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
pub(crate) fn glance_at_reserve(payload: &[u8]) -> Result<(RequestId, Timestamp), DecodeError> {
    let Parts { id, mut members, .. } = Parts::split(payload)?;
    while let Some((key, value)) = members.next()? {
        if key == member_key::STARTED_AT {
            return Ok((id, value.time(member::time_of(id))?));
        }
    }
    Err(DecodeError::Missing("started_at"))
}

/// What changes a sum in a post. `None` if its usage is pending: what is kept of it then is in many
/// members.
pub(crate) fn glance_at_post(payload: &[u8]) -> Result<Option<PostView<'_>>, DecodeError> {
    let post = PostView::read(payload)?;
    Ok(Some(post).filter(|post| !post.flags.contains(&Flag::Pending)))
}

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
