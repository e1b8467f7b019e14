//! What the reader asks of a value: the text of one YAML scalar becomes a value of one type.

use std::borrow::Cow;

use crate::json_schema::Allowed;
use crate::mistake::Invalid;

/// A value that one scalar holds.
pub(crate) trait Value: Sized {
    /// What a message expects when the file has something else.
    const EXPECTED: &'static str;
    /// Whether messages must hide the value.
    const SECRET: bool = false;

    /// The value of `text`.
    fn parse(text: &str) -> Result<Self, Invalid>;

    /// How `parse` takes each character of `text` as it is, which stands for a reference between what
    /// is written `before` and `behind` it.
    fn literal<'t>(text: &'t str, _before: &str, _behind: &str) -> Cow<'t, str> {
        text.into()
    }

    /// What `EXPECTED` says, where that depends on the type's parameters.
    fn expected() -> Cow<'static, str> {
        Self::EXPECTED.into()
    }

    /// Which values the schema allows.
    fn allowed() -> Allowed {
        Allowed::Text
    }
}
