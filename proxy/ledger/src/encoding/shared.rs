//! Shared members: groups that many entries have, and that are no strings.
//!
//! Requests with the same strings have the same form, by which they are added up. What differs from
//! one request to the next, and comes again all the same, is a shared member. These are the first
//! ones, so that it costs nothing to see that there is none. The bytes of one are the number of the
//! group, and then the group itself where no two entries before have it. In a complete payload the
//! number is 0.

use super::keys::member_key::{DIMENSIONS, TOOLS};
use super::member::{DecodeError, Members, Value, Writer, bytes, number, put};

/// The bytes with which members begin that are shared.
const DIMENSIONS_BYTE: u8 = first_byte(DIMENSIONS);
const TOOLS_BYTE: u8 = first_byte(TOOLS);

const fn first_byte(key: u64) -> u8 {
    assert!(key << 1 < 0x80);
    (key << 1 | 1).to_le_bytes()[0]
}

/// A shared member at the start of others, as it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    pub(super) key: u64,
    /// 0 for a group that has none.
    pub(super) number: u64,
    /// Empty if an earlier entry has it.
    pub(super) group: &'a [u8],
    /// The members behind it.
    pub(super) rest: &'a [u8],
}

/// Whether members have dimensions: they come before all others.
pub(super) const fn has_dimensions(members: &[u8]) -> bool {
    matches!(members, [DIMENSIONS_BYTE, ..])
}

/// Splits a shared member off the start of members, if there is one.
#[inline]
pub(super) fn split(members: &[u8]) -> Result<Option<Shared<'_>>, DecodeError> {
    match members {
        [DIMENSIONS_BYTE, rest @ ..] => split_off(DIMENSIONS, rest).map(Some),
        [TOOLS_BYTE, rest @ ..] => split_off(TOOLS, rest).map(Some),
        _ => Ok(None),
    }
}

fn split_off(key: u64, mut rest: &[u8]) -> Result<Shared<'_>, DecodeError> {
    let mut group = bytes(&mut rest)?;
    let number = if group.is_empty() { 0 } else { number(&mut group)? };
    Ok(Shared { key, number, group, rest })
}

/// Appends a shared member: the number of its group, and the group itself if it is given.
pub(super) fn put_shared(key: u64, number: u64, group: Option<&[u8]>, out: &mut Vec<u8>) {
    Writer::new(out).filled(key, |out| {
        put(number, out);
        out.extend_from_slice(group.unwrap_or_default());
    });
}

/// Writes a shared member of a complete payload. It comes before all others that are not shared.
pub(super) fn write(key: u64, out: &mut Writer<'_>, group: impl FnOnce(&mut Writer<'_>)) {
    out.filled(key, |bytes| {
        bytes.push(0);
        group(&mut Writer::new(bytes));
    });
}

/// The members of the group in a complete payload.
pub(super) fn read(value: Value<'_>) -> Result<Members<'_>, DecodeError> {
    let mut group = value.bytes();
    if group.is_empty() {
        return Ok(Members::new(group));
    }
    match number(&mut group)? {
        0 => Ok(Members::new(group)),
        number => Err(DecodeError::UnknownString(number)),
    }
}
