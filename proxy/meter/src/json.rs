//! A forward reader over JSON bytes: no tree, no copy, no recursion.
//!
//! Lenient wherever leniency loses nothing, because these bytes have already gone to the client and
//! a usage object behind an oddity still counts: a member of an unexpected type is stepped over,
//! the last of two equal keys wins, control characters in strings and Python's `NaN` pass. It is
//! `Malformed` when the structure that is walked through does not hold.

use std::borrow::Cow;

use memchr::memchr2;
use rust_decimal::Decimal;

/// The bytes are not the JSON that was walked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// What is left to read of one document.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

/// A number that ought to count something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Count {
    /// `null`.
    Absent,
    /// A whole number from 0 to 2⁵³ − 1.
    Whole(u64),
    /// Anything else.
    Invalid,
}

/// A number of something that need not be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// `null`.
    Absent,
    /// As it stands there, not negative.
    Exact(Decimal),
    /// Anything else.
    Invalid,
}

/// The largest whole number that every JSON reader reads exactly.
const COUNT_MAX: u64 = (1 << 53) - 1;

impl<'a> Reader<'a> {
    pub(crate) const fn new(document: &'a [u8]) -> Self {
        Self { rest: document }
    }

    /// First byte of what comes next, blanks stepped over.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let [first, tail @ ..] = self.rest {
            if !matches!(first, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(*first);
            }
            self.rest = tail;
        }
        None
    }

    /// Reads a document that is one object.
    pub(crate) fn document(
        &mut self,
        member: impl FnMut(&[u8], &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'{') {
            return Err(Malformed);
        }
        self.object(member)?;
        self.end()
    }

    /// Reads a document that is one object, or a list, and calls `element` before that or each.
    pub(crate) fn one_or_each(
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

    /// Reads one object and hands each member to `member`, which must read its value. Steps over
    /// any other type.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&[u8], &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'{') {
            return self.skip();
        }
        self.step();
        if self.peek() == Some(b'}') {
            self.step();
            return Ok(());
        }
        loop {
            let key = self.string()?;
            self.expect(b':')?;
            if key.escaped {
                member(key.decode().as_bytes(), self)?;
            } else {
                member(key.raw, self)?;
            }
            if self.closes(b'}')? {
                return Ok(());
            }
        }
    }

    /// Reads one object for the sake of this member alone, which `read` must read.
    pub(crate) fn member(
        &mut self,
        name: &[u8],
        mut read: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        self.object(|key, value| if key == name { read(value) } else { value.skip() })
    }

    /// Reads one array and calls `element` before each, which must read it. Steps over any other
    /// type.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        if self.peek() != Some(b'[') {
            return self.skip();
        }
        self.step();
        if self.peek() == Some(b']') {
            self.step();
            return Ok(());
        }
        loop {
            element(self)?;
            if self.closes(b']')? {
                return Ok(());
            }
        }
    }

    /// Reads a string; any other type is stepped over and gives `None`.
    pub(crate) fn text(&mut self) -> Result<Option<Text<'a>>, Malformed> {
        if self.peek() == Some(b'"') {
            return self.string().map(Some);
        }
        self.skip()?;
        Ok(None)
    }

    /// Reads a count of something.
    pub(crate) fn count(&mut self) -> Result<Count, Malformed> {
        match self.peek() {
            Some(b'n') => self.word().map(|_| Count::Absent),
            Some(b'-' | b'0'..=b'9') => Ok(whole(self.word()?)),
            _ => self.skip().map(|()| Count::Invalid),
        }
    }

    /// Reads a quantity; some engines quote it.
    pub(crate) fn decimal(&mut self) -> Result<Quantity, Malformed> {
        let literal = match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'n') => return self.word().map(|_| Quantity::Absent),
            _ => self.verbatim()?,
        };
        let literal = literal.decode();
        let number = Decimal::from_str_exact(&literal)
            .or_else(|_| Decimal::from_scientific(&literal))
            .ok()
            .filter(|number| !number.is_sign_negative());
        Ok(number.map_or(Quantity::Invalid, Quantity::Exact))
    }

    /// Reads a small whole number, such as the index of a choice.
    pub(crate) fn index(&mut self) -> Result<u64, Malformed> {
        match self.count()? {
            Count::Whole(index) => Ok(index),
            Count::Absent | Count::Invalid => Ok(0),
        }
    }

    /// Reads a value and tells whether it is `true`.
    pub(crate) fn is_true(&mut self) -> Result<bool, Malformed> {
        let is_true = self.peek() == Some(b't');
        self.skip()?;
        Ok(is_true)
    }

    /// Steps over one value of any type.
    pub(crate) fn skip(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => self.word().map(drop),
        }
    }

    /// Steps over one value and gives it as it stands.
    pub(crate) fn verbatim(&mut self) -> Result<Text<'a>, Malformed> {
        self.quoting(Self::skip).map(|(text, ())| text)
    }

    /// Reads one value and gives it as it stands, too.
    pub(crate) fn quoting<T>(
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

    /// Nothing but blanks may be left.
    pub(crate) fn end(&mut self) -> Result<(), Malformed> {
        self.peek().map_or(Ok(()), |_| Err(Malformed))
    }

    fn step(&mut self) {
        if let [_, tail @ ..] = self.rest {
            self.rest = tail;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Malformed> {
        if self.peek() != Some(byte) {
            return Err(Malformed);
        }
        self.step();
        Ok(())
    }

    /// Whether `closing` comes next rather than a comma; reads either.
    fn closes(&mut self, closing: u8) -> Result<bool, Malformed> {
        let next = self.peek();
        self.step();
        match next {
            Some(b',') => Ok(false),
            Some(byte) if byte == closing => Ok(true),
            _ => Err(Malformed),
        }
    }

    fn string(&mut self) -> Result<Text<'a>, Malformed> {
        self.expect(b'"')?;
        let mut escaped = false;
        let mut at = 0;
        loop {
            let ahead = self.rest.get(at..).ok_or(Malformed)?;
            at += memchr2(b'"', b'\\', ahead).ok_or(Malformed)?;
            let (raw, tail) = self.rest.split_at_checked(at).ok_or(Malformed)?;
            if let [b'"', tail @ ..] = tail {
                self.rest = tail;
                return Ok(Text { raw, escaped });
            }
            escaped = true;
            at += 2;
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

    fn skip_nested(&mut self) -> Result<(), Malformed> {
        let mut depth = 0_usize;
        loop {
            let marks = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
            let at = self.rest.iter().position(marks).ok_or(Malformed)?;
            self.rest = self.rest.get(at..).ok_or(Malformed)?;
            match self.rest.first() {
                Some(b'"') => {
                    self.string()?;
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                _ => depth -= 1,
            }
            self.step();
            if depth == 0 {
                return Ok(());
            }
        }
    }
}

fn whole(word: &[u8]) -> Count {
    let digits = |sum: u64, byte: &u8| match byte {
        b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    };
    match word.iter().try_fold(0, digits) {
        Some(number) if number <= COUNT_MAX => Count::Whole(number),
        _ => Count::Invalid,
    }
}

/// A string as it stands in the document, between its quotes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    pub(crate) const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// A string without escapes.
    pub(crate) const fn plain(raw: &'a [u8]) -> Self {
        Self { raw, escaped: false }
    }

    /// The bytes as they stand.
    pub(crate) const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether it reads `word`.
    pub(crate) fn is(&self, word: &str) -> bool {
        if self.escaped { self.decode() == word } else { self.raw == word.as_bytes() }
    }

    /// Where it begins and ends in the document that it was read from.
    pub(crate) fn place_in(&self, document: &[u8]) -> Option<(usize, usize)> {
        let from = self.raw.as_ptr().addr().checked_sub(document.as_ptr().addr())?;
        let to = from + self.raw.len();
        (document.get(from..to)? == self.raw).then_some((from, to))
    }

    /// The characters meant. What is none (a lone surrogate, broken UTF-8, an unknown escape)
    /// becomes U+FFFD.
    pub(crate) fn decode(&self) -> Cow<'a, str> {
        if !self.escaped {
            return std::str::from_utf8(self.raw)
                .map_or_else(|_| String::from_utf8_lossy(self.raw), Cow::Borrowed);
        }
        let mut decoded = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            decoded.push_str(&String::from_utf8_lossy(plain));
            let (meant, tail) = unescape(escape);
            decoded.push(meant);
            rest = tail;
        }
        decoded.push_str(&String::from_utf8_lossy(rest));
        Cow::Owned(decoded)
    }
}

/// The character that the escape at the front means, and what follows it.
fn unescape(escape: &[u8]) -> (char, &[u8]) {
    match escape {
        [b'\\', b'u', tail @ ..] => unescape_unicode(tail),
        [b'\\', letter, tail @ ..] => {
            let meant = match letter {
                b'"' | b'\\' | b'/' => char::from(*letter),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                _ => char::REPLACEMENT_CHARACTER,
            };
            (meant, tail)
        }
        _ => (char::REPLACEMENT_CHARACTER, &[]),
    }
}

fn unescape_unicode(digits: &[u8]) -> (char, &[u8]) {
    let Some((high, tail)) = hex4(digits) else {
        return (char::REPLACEMENT_CHARACTER, digits);
    };
    if let (0xd800..=0xdbff, [b'\\', b'u', low @ ..]) = (high, tail)
        && let Some((low @ 0xdc00..=0xdfff, tail)) = hex4(low)
    {
        let meant = char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00));
        return (meant.unwrap_or(char::REPLACEMENT_CHARACTER), tail);
    }
    (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), tail)
}

fn hex4(digits: &[u8]) -> Option<(u32, &[u8])> {
    let (four, tail) = digits.split_at_checked(4)?;
    let value = four
        .iter()
        .try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?))?;
    Some((value, tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(document: &str) -> String {
        Reader::new(document.as_bytes()).text().unwrap().unwrap().decode().into_owned()
    }

    fn skipped(document: &str) -> Result<(), Malformed> {
        let mut reader = Reader::new(document.as_bytes());
        reader.skip()?;
        reader.end()
    }

    #[test]
    fn escapes_decode_as_json_says() {
        assert_eq!(decoded(r#""a\"\\\/\b\f\n\r\t\u00e9""#), "a\"\\/\u{8}\u{c}\n\r\té");
        assert_eq!(decoded(r#""\ud83d\ude95""#), "🚕");
    }

    #[test]
    fn what_is_no_character_becomes_the_replacement_character() {
        assert_eq!(decoded(r#""a\ud83d""#), "a\u{fffd}");
        assert_eq!(decoded(r#""\ude95b""#), "\u{fffd}b");
        assert_eq!(decoded(r#""\ud83d\u0041""#), "\u{fffd}A");
        assert_eq!(decoded(r#""\u12""#), "\u{fffd}12");
        assert_eq!(decoded(r#""\x""#), "\u{fffd}");
        let broken = Reader::new(b"\"a\xff\"").text().unwrap().unwrap();
        assert_eq!(broken.decode(), "a\u{fffd}");
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
    fn only_whole_numbers_in_range_count() {
        let count = |document: &str| Reader::new(document.as_bytes()).count().unwrap();
        assert_eq!(count("0"), Count::Whole(0));
        assert_eq!(count("9007199254740991"), Count::Whole(COUNT_MAX));
        assert_eq!(count("null"), Count::Absent);
        for wrong in ["9007199254740992", "-1", "1.5", "1e3", "true", "\"7\"", "[7]", "{}"] {
            assert_eq!(count(wrong), Count::Invalid, "{wrong}");
        }
        assert_eq!(count("99999999999999999999999999"), Count::Invalid);
    }

    #[test]
    fn a_quantity_is_taken_as_it_stands() {
        let quantity = |document: &str| Reader::new(document.as_bytes()).decimal().unwrap();
        let exact = |digits, scale| Quantity::Exact(Decimal::new(digits, scale));
        assert_eq!(quantity("12.50"), exact(1250, 2));
        assert_eq!(quantity("\"8.470000095367432\""), exact(8_470_000_095_367_432, 15));
        assert_eq!(quantity("2e3"), exact(2000, 0));
        assert_eq!(quantity("null"), Quantity::Absent);
        for wrong in ["-1", "true", "\"long\"", "{}", "1e99", "0.12345678901234567890123456789"] {
            assert_eq!(quantity(wrong), Quantity::Invalid, "{wrong}");
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
}
