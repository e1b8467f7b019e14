//! The dimensions of a request: a group that many entries share, but no string.
//!
//! Requests with the same strings have the same form, by which they are added up. Each session has
//! dimensions of its own, so they are a [shared member](super::shared).

use super::keys::member_key::DIMENSIONS;
use super::member::{DecodeError, Value, Writer};
use super::numbered::Numbered as _;
use super::shared;
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

/// Writes dimensions. They come before all other members.
pub(super) fn write(dimensions: Option<&Dimensions>, out: &mut Writer<'_>) {
    let Some(dimensions) = dimensions else { return };
    shared::write(DIMENSIONS, out, |out| group(dimensions, out));
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
    let mut found = Dimensions::default();
    let mut members = shared::read(value)?;
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
