//! The text of a string in a document, and the characters that it stands for.

use std::borrow::Cow;

use memchr::memchr;

use crate::scan::has_control;

/// A part of a document: a string without its quotes, or the text of another value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a [u8],
    escaped: bool,
}

impl<'a> Text<'a> {
    /// A string without escapes.
    #[must_use]
    pub const fn plain(raw: &'a [u8]) -> Self {
        Self { raw, escaped: false }
    }

    /// A string with escapes.
    pub(crate) const fn escaped(raw: &'a [u8]) -> Self {
        Self { raw, escaped: true }
    }

    /// Whether it contains escapes.
    #[must_use]
    pub const fn is_escaped(&self) -> bool {
        self.escaped
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The bytes in the document.
    #[must_use]
    pub const fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Whether it stands for `word`.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        if self.escaped { self.decode() == word } else { self.raw == word.as_bytes() }
    }

    /// Its start and end in the document that it was read from.
    #[must_use]
    pub fn place_in(&self, document: &[u8]) -> Option<(usize, usize)> {
        let from = self.raw.as_ptr().addr().checked_sub(document.as_ptr().addr())?;
        let to = from + self.raw.len();
        (document.get(from..to)? == self.raw).then_some((from, to))
    }

    /// The characters that it stands for. A lone surrogate, broken UTF-8 or an unknown escape
    /// becomes U+FFFD.
    #[must_use]
    pub fn decode(&self) -> Cow<'a, str> {
        if !self.escaped {
            return str::from_utf8(self.raw)
                .map_or_else(|_| String::from_utf8_lossy(self.raw), Cow::Borrowed);
        }
        let text = String::from_utf8_lossy(self.raw);
        let mut decoded = String::with_capacity(text.len());
        let mut rest = &*text;
        while let Some(at) = memchr(b'\\', rest.as_bytes()) {
            let (plain, escape) = rest.split_at_checked(at).unwrap_or((rest, ""));
            decoded.push_str(plain);
            let (meant, tail) = unescape(escape);
            decoded.push(meant.unwrap_or(char::REPLACEMENT_CHARACTER));
            rest = tail;
        }
        decoded.push_str(rest);
        Cow::Owned(decoded)
    }

    /// The same. `None` if a byte or an escape violates RFC 8259.
    #[must_use]
    pub fn decode_strictly(&self) -> Option<Cow<'a, str>> {
        let text = str::from_utf8(self.raw).ok()?;
        if self.has_control() {
            return None;
        }
        let mut rest = text;
        while self.escaped
            && let Some(at) = memchr(b'\\', rest.as_bytes())
        {
            let (meant, tail) = unescape(rest.get(at..)?);
            meant?;
            rest = tail;
        }
        Some(if self.escaped { self.decode() } else { Cow::Borrowed(text) })
    }

    /// Whether it contains a control character. RFC 8259 requires an escape there.
    #[must_use]
    pub fn has_control(&self) -> bool {
        has_control(self.raw)
    }
}

/// The character of the escape at the front, if it is valid, and the text after the escape.
fn unescape(escape: &str) -> (Option<char>, &str) {
    let mut rest = escape.chars();
    match (rest.next(), rest.next()) {
        (Some('\\'), Some('u')) => unescape_unicode(rest.as_str()),
        (Some('\\'), Some(letter)) => {
            let meant = u8::try_from(letter).ok().and_then(simple_escape);
            (meant.map(char::from), rest.as_str())
        }
        _ => (None, ""),
    }
}

/// The byte that a backslash and `letter` stand for.
pub(crate) const fn simple_escape(letter: u8) -> Option<u8> {
    Some(match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        _ => return None,
    })
}

fn unescape_unicode(digits: &str) -> (Option<char>, &str) {
    let Some((high, tail)) = hex4(digits) else { return (None, digits) };
    if let (0xd800..=0xdbff, Some(low)) = (high, tail.strip_prefix("\\u"))
        && let Some((low @ 0xdc00..=0xdfff, tail)) = hex4(low)
    {
        return (char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)), tail);
    }
    (char::from_u32(high), tail)
}

fn hex4(digits: &str) -> Option<(u32, &str)> {
    let (four, tail) = digits.split_at_checked(4)?;
    let value = four.chars().try_fold(0, |value, digit| Some(value * 16 + digit.to_digit(16)?))?;
    Some((value, tail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Reader;

    fn decoded(document: &[u8]) -> String {
        Reader::new(document).text().unwrap().unwrap().decode().into_owned()
    }

    fn strictly_decoded(document: &[u8]) -> Option<String> {
        Reader::new(document).text().ok()??.decode_strictly().map(Cow::into_owned)
    }

    #[test]
    fn escapes_decode_as_json_says() {
        assert_eq!(decoded(br#""a\"\\\/\b\f\n\r\t\u00e9""#), "a\"\\/\u{8}\u{c}\n\r\té");
        assert_eq!(decoded(br#""\ud83d\ude95""#), "🚕");
    }

    #[test]
    fn what_means_no_character_becomes_the_replacement_character() {
        for (document, expected) in [
            (&br#""a\ud83d""#[..], "a\u{fffd}"),
            (br#""\ude95b""#, "\u{fffd}b"),
            (br#""\ud83d\u0041""#, "\u{fffd}A"),
            (br#""\u12""#, "\u{fffd}12"),
            (br#""\x""#, "\u{fffd}"),
            (b"\"a\xff\"", "a\u{fffd}"),
            (b"\"a\xff\\n\"", "a\u{fffd}\n"),
            ("\"a\\é\\n\"".as_bytes(), "a\u{fffd}\n"),
        ] {
            assert_eq!(decoded(document), expected);
        }
    }

    proptest! {
        #[test]
        fn what_serde_json_writes_is_read(text: String) {
            let written = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(decoded(written.as_bytes()), text);
        }

        #[test]
        fn what_is_read_strictly_is_what_serde_json_reads(
            written in "(\\\\[\"\\\\/bfnrtux]|\\\\u[dD][89a-fA-F][0-9a-f]{2}|\\\\u[0-9a-e]{0,4}|[ -!#-\\[\\]-~\u{1}\u{e9}]){0,8}",
        ) {
            let document = format!("\"{written}\"");
            let expected = serde_json::from_str::<String>(&document).ok();
            prop_assert_eq!(strictly_decoded(document.as_bytes()), expected);
        }
    }
}
