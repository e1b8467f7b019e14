//! Limits on what a template can ask for in one step.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// Widest indentation, in characters.
const INDENT_MAX: usize = 64;

/// What a width says to put before a line: so many blanks, or a text.
pub(super) fn indent(width: Value) -> Result<String, Error> {
    if width.kind() == ValueKind::String {
        return Ok(width.to_string());
    }
    match usize::try_from(width) {
        Ok(width) if width <= INDENT_MAX => Ok(" ".repeat(width)),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "no indentation is as wide")),
    }
}
