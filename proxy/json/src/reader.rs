//! Reads a document that is in memory, value by value.
//!
//! The reader is lenient: it steps over a member of an unexpected type, returns all members with
//! equal keys, and accepts control characters in strings and Python's `NaN`. It reports a document
//! as [`Malformed`] if the structure that the caller reads is broken.

use crate::nesting::Nesting;
use crate::number::Count;
use crate::scan::{behind_blanks, quote_or_escape};
use crate::text::Text;

/// The bytes are not the JSON that the caller expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON")]
pub struct Malformed;

/// The rest of one document.
///
/// A method fails with [`Malformed`] if the bytes do not fit, and with the errors of the closures
/// that it calls.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Whether the object or array that was entered last has not been read yet.
    is_first: bool,
    blanks: bool,
}

impl<'a> Reader<'a> {
    /// Reads a document from its first byte.
    #[must_use]
    pub const fn new(document: &'a [u8]) -> Self {
        Self { rest: document, is_first: false, blanks: true }
    }

    /// Reads a document without blanks between values. A blank is [`Malformed`].
    #[must_use]
    pub const fn compact(document: &'a [u8]) -> Self {
        Self { rest: document, is_first: false, blanks: false }
    }

    /// First byte of the next value. Steps over blanks.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        match self.rest.first() {
            Some(first) if *first <= b' ' && self.blanks => self.peek_behind_blanks(),
            first => first.copied(),
        }
    }

    /// Reads a document that is one object.
    pub fn document(
        &mut self,
        member: impl FnMut(&[u8], &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'{') {
            return Err(Malformed);
        }
        self.object(member)?;
        self.end()
    }

    /// Reads a document that is one object or an array. Calls `element` before the object, or
    /// before each element of the array.
    pub fn one_or_each(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'[') => self.array(element)?,
            Some(b'{') => element(self)?,
            _ => return Err(Malformed),
        }
        self.end()
    }

    /// Reads one object and calls `member` for each member, which must read its value. Steps over a
    /// value of any other type.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&[u8], &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'{') {
            return self.skip();
        }
        self.enter(b'{')?;
        while let Some(key) = self.next_key()? {
            if key.is_escaped() {
                member(key.decode().as_bytes(), self)?;
            } else {
                member(key.raw(), self)?;
            }
        }
        Ok(())
    }

    /// Reads one object and calls `read` for the member `name` only, which must read its value.
    pub fn member(
        &mut self,
        name: &[u8],
        mut read: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.object(|key, value| if key == name { read(value) } else { value.skip() })
    }

    /// Reads one array and calls `element` before each element, which must read it. Steps over a
    /// value of any other type.
    pub fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'[') {
            return self.skip();
        }
        self.enter(b'[')?;
        while self.next_element()? {
            element(self)?;
        }
        Ok(())
    }

    /// Steps over the bracket `opening` of an object or an array.
    #[inline]
    pub fn enter(&mut self, opening: u8) -> Result<(), Malformed> {
        self.expect(opening)?;
        self.is_first = true;
        Ok(())
    }

    /// The key of the next member of the object that was entered. The caller must read the value
    /// before it asks for the next key. `None` at the end of the object.
    #[inline]
    pub fn next_key(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        // Most keys stand directly between a comma and a colon.
        if let [b',', b'"', inside @ ..] = self.rest
            && !self.is_first
            && let Some(end) = quote_or_escape(inside)
            && let Some((raw, [b'"', b':', tail @ ..])) = inside.split_at_checked(end)
        {
            self.rest = tail;
            return Ok(Some(Text::plain(raw)));
        }
        if !self.goes_on(b'}')? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(Malformed);
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Whether the array that was entered has another element, which the caller must read.
    #[inline]
    pub fn next_element(&mut self) -> Result<bool, Malformed> {
        self.goes_on(b']')
    }

    /// Reads a string. Steps over a value of any other type and returns `None`.
    #[inline]
    pub fn text(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// Reads a count. A value of another type is [`Count::Invalid`].
    pub fn count(&mut self) -> Result<Count, Malformed> {
        match self.peek() {
            Some(b'n') => self.word().map(|_| Count::Absent),
            Some(b'-' | b'0'..=b'9') => self.word().map(Count::of),
            _ => self.skip().map(|()| Count::Invalid),
        }
    }

    /// Reads a small whole number, such as the index of a choice. Any other value is `None`.
    pub fn index(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(match self.count()? {
            Count::Whole(index) => Some(index),
            Count::Absent | Count::Invalid => None,
        })
    }

    /// Reads a value. Returns whether it is `true`.
    pub fn is_true(&mut self) -> Result<bool, Malformed> {
        let is_true = self.peek() == Some(b't');
        self.skip()?;
        Ok(is_true)
    }

    /// Steps over one value of any type.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{' | b'[') => {
                let end = Nesting::new().reach(self.rest, 0).ok_or(Malformed)?;
                self.rest = self.rest.get(end..).ok_or(Malformed)?;
                Ok(())
            }
            _ => self.word().map(drop),
        }
    }

    /// Steps over one value and returns its text in the document. A string keeps its quotes.
    #[inline]
    pub fn verbatim(&mut self) -> Result<Text<'a>, Malformed> {
        self.quoting(Self::skip).map(|(text, ())| text)
    }

    /// Reads one value with `read`, and also returns its text in the document.
    #[inline]
    pub fn quoting<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<(Text<'a>, T), Malformed> {
        self.peek();
        let from = self.rest;
        let value = read(self)?;
        let length = from.len() - self.rest.len();
        let (raw, _) = from.split_at_checked(length).ok_or(Malformed)?;
        Ok((Text::plain(raw), value))
    }

    /// Checks that only blanks are left.
    pub fn end(&mut self) -> Result<(), Malformed> {
        self.peek().map_or(Ok(()), |_| Err(Malformed))
    }

    fn peek_behind_blanks(&mut self) -> Option<u8> {
        self.rest = behind_blanks(self.rest);
        self.rest.first().copied()
    }

    #[inline]
    fn step(&mut self) {
        if let [_, tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(Malformed);
        }
        self.step();
        Ok(())
    }

    /// Whether another element comes before `closing`. Steps over the comma, or over `closing`.
    #[inline]
    fn goes_on(&mut self, closing: u8) -> Result<bool, Malformed> {
        let next = self.peek();
        let goes_on = match next {
            Some(b',') if !self.is_first => true,
            Some(byte) if byte == closing => false,
            _ if self.is_first => {
                self.is_first = false;
                return Ok(true);
            }
            _ => return Err(Malformed),
        };
        self.is_first = false;
        self.step();
        Ok(goes_on)
    }

    /// The string that begins with the next quote.
    #[inline]
    fn string(&mut self) -> Result<Text<'a>, Malformed> {
        self.step();
        let inside = self.rest;
        let end = quote_or_escape(inside).ok_or(Malformed)?;
        match inside.split_at_checked(end) {
            Some((raw, [b'"', tail @ ..])) => {
                self.rest = tail;
                Ok(Text::plain(raw))
            }
            _ => self.escaped_string(end),
        }
    }

    /// The string after its first quote, with its first backslash at `at`.
    #[cold]
    fn escaped_string(&mut self, mut at: usize) -> Result<Text<'a>, Malformed> {
        loop {
            at += 2;
            let ahead = self.rest.get(at..).ok_or(Malformed)?;
            at += quote_or_escape(ahead).ok_or(Malformed)?;
            let (raw, tail) = self.rest.split_at_checked(at).ok_or(Malformed)?;
            if let [b'"', tail @ ..] = tail {
                self.rest = tail;
                return Ok(Text::escaped(raw));
            }
        }
    }

    /// A number or a literal.
    fn word(&mut self) -> Result<&'a [u8], Malformed> {
        self.peek();
        let ends =
            |byte: &u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
        let length = self.rest.iter().position(ends).unwrap_or(self.rest.len());
        let (word, tail) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        if word.is_empty() {
            return Err(Malformed);
        }
        self.rest = tail;
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(document: &str) -> Result<(), Malformed> {
        let mut reader = Reader::new(document.as_bytes());
        reader.skip()?;
        reader.end()
    }

    #[test]
    fn values_of_every_type_are_stepped_over() {
        for document in ["{}", "[]", "null", "-1.5e+9", r#""\\""#, r#"{"a":[{"}":"]"}],"b":NaN}"#] {
            assert_eq!(skipped(document), Ok(()), "{document}");
        }
        for document in ["", "{", "[1", r#""\""#, "]", r#"{"a":"}"#] {
            assert_eq!(skipped(document), Err(Malformed), "{document}");
        }
    }

    #[test]
    fn deep_nesting_is_stepped_over_without_recursion() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(skipped(&deep), Ok(()));
    }

    #[test]
    fn a_count_is_a_number_or_null() {
        let count = |document: &str| Reader::new(document.as_bytes()).count().unwrap();
        assert_eq!(count(" 7 "), Count::Whole(7));
        assert_eq!(count("null"), Count::Absent);
        for wrong in ["-1", "true", "\"7\"", "[7]", "{}", "NaN"] {
            assert_eq!(count(wrong), Count::Invalid, "{wrong}");
        }
    }

    #[test]
    fn keys_may_be_escaped_and_repeated() {
        let mut last = None;
        Reader::new(br#"{"us\u0061ge":1,"usage":2}"#)
            .object(|key, value| {
                assert_eq!(key, b"usage");
                last = Some(value.count()?);
                Ok(())
            })
            .unwrap();
        assert_eq!(last, Some(Count::Whole(2)));
    }

    #[test]
    fn objects_are_walked_through_member_by_member() {
        let mut reader = Reader::compact(br#"{"a":{"b":1,"c":{}},"d":[{"e":2}],"f":{}}"#);
        let key = |reader: &mut Reader<'static>| reader.next_key().unwrap().map(|key| key.raw());
        reader.enter(b'{').unwrap();
        assert_eq!((key(&mut reader), reader.peek()), (Some(&b"a"[..]), Some(b'{')));
        reader.enter(b'{').unwrap();
        assert_eq!(key(&mut reader), Some(&b"b"[..]));
        assert_eq!(reader.verbatim().unwrap().raw(), b"1");
        assert_eq!(key(&mut reader), Some(&b"c"[..]));
        assert_eq!(reader.verbatim().unwrap().raw(), b"{}");
        assert_eq!((key(&mut reader), key(&mut reader)), (None, Some(&b"d"[..])));
        assert_eq!(reader.verbatim().unwrap().raw(), br#"[{"e":2}]"#);
        assert_eq!(key(&mut reader), Some(&b"f"[..]));
        reader.enter(b'{').unwrap();
        assert_eq!((key(&mut reader), key(&mut reader)), (None, None));
        assert_eq!((reader.end(), reader.next_key()), (Ok(()), Err(Malformed)));
    }

    #[test]
    fn commas_stand_between_members_and_nowhere_else() {
        for wrong in [r#"{,"a":1}"#, r#"{"a":"1""b":2}"#, r#"{"a":1,}"#, r#"{"a":1,,"b":2}"#] {
            let read = Reader::new(wrong.as_bytes()).object(|_, value| value.skip());
            assert_eq!(read, Err(Malformed), "{wrong}");
        }
        for wrong in ["[,1]", "[1 2]", "[1,]", "[1,,2]", "[1}"] {
            let read = Reader::new(wrong.as_bytes()).array(Reader::skip);
            assert_eq!(read, Err(Malformed), "{wrong}");
        }
    }

    #[test]
    fn a_compact_document_has_no_blanks_between_values() {
        let read = |document: &'static str| {
            let mut reader = Reader::compact(document.as_bytes());
            reader.document(|_, value| value.skip())
        };
        assert_eq!(read(r#"{"a b":"c d","e":[1]}"#), Ok(()));
        for wrong in [
            r#" {"a":1}"#,
            r#"{ "a":1}"#,
            r#"{"a" :1}"#,
            r#"{"a": 1}"#,
            "{\"a\":1\n}",
            "{\"a\":1} ",
        ] {
            assert_eq!(read(wrong), Err(Malformed), "{wrong}");
        }
    }
}
