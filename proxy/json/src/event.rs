//! The input and the output of a [`StreamReader`](crate::StreamReader).

/// What the reader found, at a level that it reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A key. [`text`](crate::StreamReader::text) has its text.
    Key,
    /// A whole scalar value. [`text`](crate::StreamReader::text) has the text of a string or a
    /// number.
    Scalar {
        /// Its type.
        kind: Scalar,
        /// Offset of its first byte.
        start: u64,
        /// Offset after its last byte.
        end: u64,
    },
    /// An object or an array begins.
    Open {
        /// Which of the two.
        container: Container,
        /// Offset after its bracket.
        inside: u64,
    },
    /// The object or array that the reader follows ends.
    Close {
        /// Whether it is empty.
        empty: bool,
    },
}

/// Types of scalar values.
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

/// Types of values with members or elements.
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
    /// The bytes that are not read yet.
    pub rest: &'a [u8],
    /// Offset in the document after the last byte of the piece.
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

/// Why the reader refuses a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StreamFault {
    /// It is not a JSON object by RFC 8259, in UTF-8.
    #[error("not valid JSON at byte {offset}: {what}")]
    Invalid {
        /// Offset of the first wrong byte.
        offset: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// Its nesting is too deep.
    #[error("nested deeper than {depth_max} levels at byte {offset}")]
    TooDeep {
        /// Offset of the first bracket that is too deep.
        offset: u64,
        /// Most levels that are allowed.
        depth_max: usize,
    },
}
