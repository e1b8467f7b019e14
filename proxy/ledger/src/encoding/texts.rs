//! Texts with names, such as labels.

use std::collections::BTreeMap;

use super::member::{DecodeError, Value, Writer};

/// Keys inside a text with a name.
mod entry {
    pub(super) const NAME: u64 = 1;
    pub(super) const VALUE: u64 = 2;
}

/// Writes texts with names.
pub(super) fn texts(key: u64, texts: &BTreeMap<String, String>, out: &mut Writer<'_>) {
    for (name, value) in texts {
        out.nested(key, |out| {
            out.bytes(entry::NAME, name.as_bytes());
            out.bytes(entry::VALUE, value.as_bytes());
        });
    }
}

/// Reads a text with a name.
pub(super) fn read_text(value: Value<'_>) -> Result<(String, String), DecodeError> {
    let mut text = (String::new(), String::new());
    let mut members = value.members();
    while let Some((key, value)) = members.next()? {
        match key {
            entry::NAME => text.0 = value.owned()?,
            entry::VALUE => text.1 = value.owned()?,
            _ => {}
        }
    }
    Ok(text)
}
