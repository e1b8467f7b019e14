//! Tells JSON documents that come one a line from one document, by the end of the first line.
//!
//! No valid document has a newline between `}` and `{`: a comma stands there, and a text has no
//! newline in it.

use memchr::memchr;

const BYTE_ORDER_MARK: [u8; 3] = *b"\xef\xbb\xbf";

/// Watches a body that begins with a document.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum FirstLine {
    /// Nothing but blanks has come.
    #[default]
    Before,
    /// The line goes on; the last byte of it that is no blank.
    Inside(u8),
    /// The line has ended with a brace.
    Behind,
    /// A further document follows: they are lines.
    IsOfMany,
    /// It is one document, or nobody can tell.
    IsOfOne,
}

impl FirstLine {
    /// Whether more bytes can tell.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Before | Self::Inside(_) | Self::Behind)
    }

    /// Looks at the next bytes of the body.
    pub fn look(&mut self, mut read: &[u8]) {
        while self.is_open()
            && let Some(first) = read.iter().position(|byte| !is_blank(*byte, *self))
        {
            read = read.get(first..).unwrap_or_default();
            let begins_document = read.first() == Some(&b'{');
            *self = match self {
                Self::Before if begins_document => Self::Inside(b'{'),
                Self::Behind if begins_document => Self::IsOfMany,
                Self::Inside(last) => {
                    let end = memchr(b'\n', read);
                    let line = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
                    let last = line.trim_ascii_end().last().copied().unwrap_or(*last);
                    read = read.get(line.len()..).unwrap_or_default();
                    match (end, last) {
                        (None, last) => Self::Inside(last),
                        (Some(_), b'}') => Self::Behind,
                        (Some(_), _) => Self::IsOfOne,
                    }
                }
                _ => Self::IsOfOne,
            };
        }
    }
}

/// Whether a byte says nothing: in the line every one may end it.
fn is_blank(byte: u8, state: FirstLine) -> bool {
    let is_mark = state == FirstLine::Before && BYTE_ORDER_MARK.contains(&byte);
    !matches!(state, FirstLine::Inside(_)) && (byte.is_ascii_whitespace() || is_mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a body is found to be, in reads of `step` bytes.
    fn look(body: &str, step: usize) -> FirstLine {
        let mut line = FirstLine::default();
        body.as_bytes().chunks(step).for_each(|read| line.look(read));
        line
    }

    #[test]
    fn a_second_document_behind_a_newline_makes_them_lines() {
        use FirstLine::{Before, Behind, Inside, IsOfMany, IsOfOne};
        for (body, expected) in [
            ("", Before),
            ("\u{feff}\r\n ", Before),
            ("{\"a\":1}", Inside(b'}')),
            ("{\"a\":1} \r\n\n", Behind),
            ("{\"a\":1}\n{", IsOfMany),
            ("\u{feff}{\"a\":{}} \r\n \r\n {\"b\":2}\r\n", IsOfMany),
            ("{}\n{}", IsOfMany),
            ("{\n  \"a\": {}\n}\n", IsOfOne),
            ("{\"a\":{}\n,\"b\":{}}", IsOfOne),
            ("{\"a\":{}\n}", IsOfOne),
            ("{\"a\":\n{}}", IsOfOne),
            ("[{}\n{}]", IsOfOne),
        ] {
            for step in 1..=body.len().max(1) {
                assert_eq!(look(body, step), expected, "{body:?} in reads of {step} bytes");
            }
        }
    }
}
