//! The dimensions of a request: a group that many entries share, but no string.
//!
//! Requests with the same strings have the same form, by which they are added up. Each session has
//! dimensions of its own, so they are a member. It is the first one, so that it costs nothing to
//! see that there is none. Its bytes are the number of the group, and then the group itself where
//! no two entries before have it. In a complete payload the number is 0.

use super::keys::member_key::DIMENSIONS;
use super::member::{DecodeError, Members, Value, Writer, bytes, number};
use super::numbered::Numbered as _;
use super::texts::{read_text, texts};
use crate::dimensions::{Dimensions, RequestKind, SessionSource};

/// Keys inside the group.
mod dimension {
    pub(super) const SESSION: u64 = 1;
    pub(super) const SESSION_SOURCE: u64 = 2;
    pub(super) const AGENT: u64 = 3;
    pub(super) const PARENT_AGENT: u64 = 4;
    pub(super) const CLIENT: u64 = 5;
    pub(super) const TURN: u64 = 6;
    pub(super) const END_USER: u64 = 7;
    pub(super) const TAG: u64 = 8;
    pub(super) const KIND: u64 = 9;
}

/// The byte with which members begin that have dimensions.
const FIRST_BYTE: u8 = {
    assert!(DIMENSIONS << 1 < 0x80);
    (DIMENSIONS << 1 | 1).to_le_bytes()[0]
};

/// Writes dimensions. They come before all other members.
pub(super) fn write(dimensions: Option<&Dimensions>, out: &mut Writer<'_>) {
    let Some(dimensions) = dimensions else { return };
    out.filled(DIMENSIONS, |bytes| {
        bytes.push(0);
        group(dimensions, &mut Writer::new(bytes));
    });
}

fn group(dimensions: &Dimensions, out: &mut Writer<'_>) {
    out.maybe_text(dimension::SESSION, dimensions.session.as_deref());
    let source = dimensions.session_source.map(SessionSource::number);
    out.maybe_number(dimension::SESSION_SOURCE, source);
    out.maybe_text(dimension::AGENT, dimensions.agent.as_deref());
    out.maybe_text(dimension::PARENT_AGENT, dimensions.parent_agent.as_deref());
    out.maybe_text(dimension::CLIENT, dimensions.client.as_deref());
    out.maybe_text(dimension::TURN, dimensions.turn.as_deref());
    out.maybe_text(dimension::END_USER, dimensions.end_user.as_deref());
    texts(dimension::TAG, &dimensions.tags, out);
    out.maybe_number(dimension::KIND, dimensions.kind.map(RequestKind::number));
}

/// Reads the dimensions of a complete payload. `None` if there is nothing in them.
pub(super) fn read(value: Value<'_>) -> Result<Option<Box<Dimensions>>, DecodeError> {
    let mut group = value.bytes();
    if group.is_empty() {
        return Ok(None);
    }
    let number = number(&mut group)?;
    if number != 0 {
        return Err(DecodeError::UnknownString(number));
    }
    let mut found = Dimensions::default();
    let mut members = Members::new(group);
    while let Some((key, value)) = members.next()? {
        match key {
            dimension::SESSION => found.session = Some(value.owned()?),
            dimension::SESSION_SOURCE => {
                found.session_source = Some(SessionSource::of(value.number())?);
            }
            dimension::AGENT => found.agent = Some(value.owned()?),
            dimension::PARENT_AGENT => found.parent_agent = Some(value.owned()?),
            dimension::CLIENT => found.client = Some(value.owned()?),
            dimension::TURN => found.turn = Some(value.owned()?),
            dimension::END_USER => found.end_user = Some(value.owned()?),
            dimension::TAG => found.tags.extend([read_text(value)?]),
            dimension::KIND => found.kind = Some(RequestKind::of(value.number())?),
            _ => {}
        }
    }
    Ok(found.if_any())
}

/// The dimensions at the start of members, as they are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shared<'a> {
    /// 0 for a group that has none.
    pub(super) number: u64,
    /// Empty if an earlier entry has it.
    pub(super) group: &'a [u8],
    /// The other members.
    pub(super) rest: &'a [u8],
}

/// Whether members begin with dimensions.
pub(super) const fn are_in(members: &[u8]) -> bool {
    matches!(members, [FIRST_BYTE, ..])
}

/// Splits dimensions off the start of members, if there are any.
#[inline]
pub(super) fn split(members: &[u8]) -> Result<Option<Shared<'_>>, DecodeError> {
    match members {
        [FIRST_BYTE, rest @ ..] => split_off(rest).map(Some),
        _ => Ok(None),
    }
}

fn split_off(mut rest: &[u8]) -> Result<Shared<'_>, DecodeError> {
    let mut group = bytes(&mut rest)?;
    let number = if group.is_empty() { 0 } else { number(&mut group)? };
    Ok(Shared { number, group, rest })
}

/// Appends members that begin with a group: its number, and the group itself if it is given.
pub(super) fn join(number: u64, group: Option<&[u8]>, rest: &[u8], out: &mut Vec<u8>) {
    Writer::new(out).filled(DIMENSIONS, |out| {
        super::member::put(number, out);
        out.extend_from_slice(group.unwrap_or_default());
    });
    out.extend_from_slice(rest);
}
