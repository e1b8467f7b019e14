//! Reads the arguments of a call.

use crate::generated::is_empty_object;
use crate::json::{Malformed, Reader, Text};

/// Reads arguments, which some formats write as text and some as an object. An empty object says
/// nothing.
pub(super) fn read_arguments<'a>(value: &mut Reader<'a>) -> Result<Option<Text<'a>>, Malformed> {
    match value.peek() {
        Some(b'{' | b'[') => {
            let arguments = value.verbatim()?;
            Ok(Some(arguments).filter(|arguments| !is_empty_object(arguments.raw())))
        }
        _ => value.text(),
    }
}
