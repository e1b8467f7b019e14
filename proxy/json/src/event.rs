//! What a [`StreamReader`](crate::StreamReader) is given, and what it tells.

/// What the reader came across, at a level that it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A key. [`text`](crate::StreamReader::text) is its text.
    Key,
    /// A whole value without parts. [`text`](crate::StreamReader::text) is the text of a string or a number.
    Scalar {
        /// Its kind.
        kind: Scalar,
        /// Offset of its first byte.
        start: u64,
        /// Offset behind its last byte.
        end: u64,
    },
    /// An object or a list begins.
    Open {
        /// Which of both.
        container: Container,
        /// Offset behind its bracket.
        inside: u64,
    },
    /// The container that was followed ends.
    Close {
        /// Whether it has no members.
        empty: bool,
    },
}

/// Kinds of values without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// `"…"`
    String,
    /// `-1.5e9`
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// Kinds of values with parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
}

/// A piece of the document.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    /// What is left to read of it.
    pub rest: &'a [u8],
    /// Offset behind its last byte in the document.
    pub end: u64,
}

impl Piece<'_> {
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    /// A fault at the next byte.
    pub(crate) fn invalid(&self, what: &'static str) -> StreamFault {
        StreamFault::Invalid { offset: self.offset(), what }
    }

    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}

/// The bytes are not a JSON object that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    /// Not an object by RFC 8259, in UTF-8.
    #[error("not valid JSON at byte {offset}: {what}")]
    Invalid {
        /// Offset of the first byte that does not fit.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Deeper than what is read.
    #[error("nested deeper than {depth_max} levels at byte {offset}")]
    TooDeep {
        /// Offset of the first bracket that is too deep.
        offset: u64,
        /// Levels that are read.
        depth_max: usize,
    },
}
