//! How often an answer calls each tool. An agent's requests call other tools each time, so they are a
//! [shared member](super::shared) and no string.

use std::collections::BTreeMap;

use super::keys::member_key::TOOLS;
use super::member::{DecodeError, Value, Writer};
use super::shared;
use super::usage::{named_numbers, read_named};

/// Keys inside the group.
mod group {
    pub(super) const TOOL: u64 = 1;
}

/// Writes the calls of an answer, if there are any.
pub(super) fn write(tools: &BTreeMap<String, u64>, out: &mut Writer<'_>) {
    if !tools.is_empty() {
        shared::write(TOOLS, out, |out| named_numbers(group::TOOL, tools, out));
    }
}

/// Reads the calls of a complete payload.
pub(super) fn read(value: Value<'_>) -> Result<BTreeMap<String, u64>, DecodeError> {
    let mut tools = BTreeMap::new();
    let mut members = shared::read(value)?;
    while let Some((key, value)) = members.next()? {
        if key == group::TOOL
            && let Some((tool, calls)) = read_named(value)?
        {
            tools.insert(tool, calls.number());
        }
    }
    Ok(tools)
}
