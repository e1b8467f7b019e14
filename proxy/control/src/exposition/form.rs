//! What an answer is, before it is read.

use std::borrow::Cow;
use std::fmt;

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Form {
    /// Lines of metrics.
    Text,
    /// Nothing at all.
    Empty,
    /// A page for people.
    Html,
    /// A document in JSON.
    Json,
    /// Compressed by gzip or zstd.
    Compressed,
}

impl Form {
    /// What `text` is, by its first bytes.
    #[must_use]
    pub fn of(text: &[u8]) -> Self {
        let text = without_mark(text).trim_ascii_start();
        match text {
            [] => Self::Empty,
            [b'<', ..] => Self::Html,
            [b'[', ..] => Self::Json,
            [b'{', rest @ ..] if is_object(rest) => Self::Json,
            [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Compressed,
            _ => Self::Text,
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "metrics",
            Self::Empty => "empty",
            Self::Html => "a page in HTML",
            Self::Json => "JSON",
            Self::Compressed => "compressed",
        })
    }
}

/// Whether what stands behind `{` is a member of an object. A metric with a quoted name begins with a
/// brace too.
fn is_object(behind: &[u8]) -> bool {
    let behind = behind.trim_ascii_start();
    if let Some(rest) = behind.strip_prefix(b"}") {
        return rest.trim_ascii().is_empty();
    }
    let Some(name) = behind.strip_prefix(b"\"") else { return false };
    let end = memchr::memchr(b'"', name).and_then(|end| name.get(end + 1..));
    end.is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
}

/// The text without the mark of its byte order.
pub(super) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// The text of an answer: some builds of llama.cpp send it as one string of JSON.
#[must_use]
pub fn body(answer: &[u8]) -> Cow<'_, [u8]> {
    if answer.trim_ascii_start().first() == Some(&b'"')
        && let Ok(text) = serde_json::from_slice::<String>(answer)
    {
        return Cow::Owned(text.into_bytes());
    }
    Cow::Borrowed(answer)
}
