//! Reads a `tokenizer.json` piece by piece.
//!
//! Such a file is tens of megabytes of short texts with blanks between them. A general reader
//! spends more time on these than everything else takes. It reads only the small parts, see
//! [`Cursor::value`].

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use super::recipe::Unsupported;

/// What is left of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) const fn new(json: &'a [u8]) -> Self {
        Self(json)
    }

    /// Reads a list; `item` reads each of its items.
    ///
    /// Errors: what is no list, and those of `item`.
    pub(super) fn list(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<(), Unsupported>,
    ) -> Result<(), Unsupported> {
        self.each(*b"[]", item)
    }

    /// Reads an object; `member` reads the value of each name.
    ///
    /// Errors: what is no object, and those of `member`.
    pub(super) fn object(
        &mut self,
        mut member: impl FnMut(&str, &mut Self) -> Result<(), Unsupported>,
    ) -> Result<(), Unsupported> {
        self.each(*b"{}", |cursor| {
            let name = cursor.text()?;
            cursor.expect(b':')?;
            member(&name, cursor)
        })
    }

    fn each(
        &mut self,
        [open, close]: [u8; 2],
        mut item: impl FnMut(&mut Self) -> Result<(), Unsupported>,
    ) -> Result<(), Unsupported> {
        self.expect(open)?;
        if self.take(close) {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.take(close) {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    /// Reads a text.
    ///
    /// Errors: what is none.
    pub(super) fn text(&mut self) -> Result<Cow<'a, str>, Unsupported> {
        match self.bytes()? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(damaged),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(damaged),
        }
    }

    /// Reads a text, which is not checked to be UTF-8.
    ///
    /// Errors: what is none.
    #[inline]
    pub(super) fn bytes(&mut self) -> Result<Cow<'a, [u8]>, Unsupported> {
        self.skip_blanks();
        let Some((b'"', rest)) = self.0.split_first() else {
            return Err(Unsupported("no text where one should be".to_owned()));
        };
        let (bytes, behind) = rest.split_at_checked(plain(rest)).ok_or_else(ends)?;
        match behind.split_first() {
            Some((b'"', behind)) => {
                self.0 = behind;
                Ok(Cow::Borrowed(bytes))
            }
            _ => self.escaped(),
        }
    }

    /// Reads the text that comes next, which has escapes.
    fn escaped(&mut self) -> Result<Cow<'a, [u8]>, Unsupported> {
        let mut end = 1;
        loop {
            let rest = self.0.get(end..).ok_or_else(ends)?;
            end += plain(rest);
            match self.0.get(end).ok_or_else(ends)? {
                b'"' => break,
                // What an escape begins with is no quote.
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        let (literal, behind) = self.0.split_at_checked(end + 1).ok_or_else(ends)?;
        self.0 = behind;
        let text: String = serde_json::from_slice(literal).map_err(damaged)?;
        Ok(Cow::Owned(text.into()))
    }

    /// Reads a whole number.
    ///
    /// Errors: what is none, or too large.
    pub(super) fn number(&mut self) -> Result<u32, Unsupported> {
        self.skip_blanks();
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, behind) = self.0.split_at_checked(digits).ok_or_else(ends)?;
        self.0 = behind;
        serde_json::from_slice(digits).map_err(damaged)
    }

    /// Reads a value of any kind.
    ///
    /// Errors: what is none of this kind.
    pub(super) fn value<T: DeserializeOwned>(&mut self) -> Result<T, Unsupported> {
        let from = self.0;
        self.skip()?;
        let value = from.get(..from.len() - self.0.len()).unwrap_or_default();
        serde_json::from_slice(value).map_err(damaged)
    }

    /// Goes behind a value, and looks no closer than that takes.
    ///
    /// Errors: what has no end.
    pub(super) fn skip(&mut self) -> Result<(), Unsupported> {
        let mut depth = 0_usize;
        loop {
            self.skip_blanks();
            match self.0.first().ok_or_else(ends)? {
                b'"' => drop(self.bytes()?),
                b'[' | b'{' => {
                    depth += 1;
                    self.step();
                    continue;
                }
                b']' | b'}' => {
                    depth = depth.checked_sub(1).ok_or_else(ends)?;
                    self.step();
                }
                b',' | b':' if depth > 0 => {
                    self.step();
                    continue;
                }
                _ => {
                    let word = |byte: &u8| {
                        !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')
                    };
                    let word = self.0.iter().take_while(|byte| word(byte)).count();
                    self.0 = self.0.get(word.max(1)..).unwrap_or_default();
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Errors: what is not blank.
    pub(super) fn end(mut self) -> Result<(), Unsupported> {
        self.skip_blanks();
        self.0.is_empty().then_some(()).ok_or_else(|| Unsupported("more than one value".to_owned()))
    }

    /// Whether a text comes next.
    pub(super) fn is_at_text(&mut self) -> bool {
        self.skip_blanks();
        self.0.first() == Some(&b'"')
    }

    /// Goes behind `sign`.
    ///
    /// Errors: anything else.
    #[inline]
    pub(super) fn expect(&mut self, sign: u8) -> Result<(), Unsupported> {
        let wanted = || Unsupported(format!("no {:?} where one should be", char::from(sign)));
        self.take(sign).then_some(()).ok_or_else(wanted)
    }

    /// Goes behind `sign` if it comes next.
    #[inline]
    fn take(&mut self, sign: u8) -> bool {
        self.skip_blanks();
        match self.0.split_first() {
            Some((found, behind)) if *found == sign => {
                self.0 = behind;
                true
            }
            _ => false,
        }
    }

    fn step(&mut self) {
        self.0 = self.0.get(1..).unwrap_or_default();
    }

    #[inline]
    fn skip_blanks(&mut self) {
        if let [b' ' | b'\n' | b'\r' | b'\t', ..] = self.0 {
            self.0 = behind_blanks(self.0);
        }
    }
}

fn behind_blanks(mut json: &[u8]) -> &[u8] {
    loop {
        json = match json {
            [b'\n' | b'\r' | b'\t', behind @ ..] => behind,
            [b' ', behind @ ..] => match json.split_first_chunk() {
                Some((eight_bytes, all_behind)) => match spaces(*eight_bytes) {
                    8 => all_behind,
                    some => json.get(some..).unwrap_or_default(),
                },
                None => behind,
            },
            _ => return json,
        }
    }
}

/// A byte eight times.
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The highest bit of each byte.
const HIGH: u64 = eight(0x80);

/// Bytes before the first whose highest bit is set.
const fn before(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// How many of these bytes, from the first on, are spaces.
const fn spaces(bytes: [u8; 8]) -> usize {
    let others = u64::from_le_bytes(bytes) ^ eight(b' ');
    before((((others & !HIGH) + !HIGH) | others) & HIGH)
}

/// Bytes before the first that ends a text, or that does not stand for itself in one.
fn plain(json: &[u8]) -> usize {
    let mut at = 0;
    while let Some(eight_bytes) = json.get(at..).and_then(<[u8]>::first_chunk) {
        let bytes = u64::from_le_bytes(*eight_bytes);
        let less = |bytes: u64, than: u8| bytes.wrapping_sub(eight(than)) & !bytes;
        // Above the first byte that is marked, others may be that should not.
        let [quotes, escapes] = [b'"', b'\\'].map(|sign| less(bytes ^ eight(sign), 1));
        let marks = (less(bytes, b' ') | quotes | escapes) & HIGH;
        if marks != 0 {
            return at + before(marks);
        }
        at += 8;
    }
    let rest = json.get(at..).unwrap_or_default();
    let special = |byte: &u8| matches!(byte, ..b' ' | b'"' | b'\\');
    at + rest.iter().take_while(|byte| !special(byte)).count()
}

fn damaged(error: impl std::error::Error) -> Unsupported {
    Unsupported(error.to_string())
}

fn ends() -> Unsupported {
    Unsupported("a value without an end".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn read<'a, T>(
        json: &'a str,
        read: impl FnOnce(&mut Cursor<'a>) -> Result<T, Unsupported>,
    ) -> Result<T, Unsupported> {
        let mut cursor = Cursor::new(json.as_bytes());
        let found = read(&mut cursor)?;
        cursor.end().map(|()| found)
    }

    fn texts(json: &str) -> Result<Vec<String>, Unsupported> {
        let mut texts = Vec::new();
        read(json, |cursor| {
            cursor.list(|cursor| {
                texts.push(cursor.text()?.into_owned());
                Ok(())
            })
        })?;
        Ok(texts)
    }

    /// A value by our own reader, down to its texts and numbers.
    fn whole(cursor: &mut Cursor<'_>) -> Result<Value, Unsupported> {
        cursor.skip_blanks();
        Ok(match cursor.0.first() {
            Some(b'[') => {
                let mut items = Vec::new();
                cursor.list(|cursor| {
                    items.push(whole(cursor)?);
                    Ok(())
                })?;
                items.into()
            }
            Some(b'{') => {
                let mut members = serde_json::Map::new();
                cursor.object(|name, cursor| {
                    members.insert(name.to_owned(), whole(cursor)?);
                    Ok(())
                })?;
                members.into()
            }
            Some(b'"') => cursor.text()?.into(),
            _ => cursor.number()?.into(),
        })
    }

    fn value() -> impl Strategy<Value = Value> {
        let text =
            prop_oneof![any::<String>(), "[\"\\\\\n\r\t a\u{1f695}]{0,20}", "[ a-z\"]{0,40}"];
        let leaf =
            prop_oneof![any::<u32>().prop_map(Value::from), text.clone().prop_map(Value::from)];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            let members = prop::collection::hash_map(text.clone(), inner.clone(), 0..6);
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(Value::from),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(value in value(), other in value()) {
            for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                prop_assert_eq!(read(&json, whole), Ok(value.clone()), "{}", json);
                prop_assert_eq!(read(&json, Cursor::value), Ok(value.clone()), "{}", json);
            }
            let two = format!("[{value:#} ,{other}]");
            let second = read(&two, |cursor| {
                let mut second = Value::Null;
                let mut at = 0;
                cursor.list(|cursor| {
                    at += 1;
                    if at == 1 { cursor.skip() } else { second = cursor.value()?; Ok(()) }
                })?;
                Ok(second)
            });
            prop_assert_eq!(second, Ok(other));
        }

        #[test]
        fn what_ends_early_is_refused(value in value(), cut in 0.0..1.0) {
            let json = format!("[{value:#}]");
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part")]
            let cut = (json.len() as f64 * cut) as usize;
            let mut cursor = Cursor::new(&json.as_bytes()[..cut]);
            prop_assert!(whole(&mut cursor).is_err() && Cursor::new(&json.as_bytes()[..cut]).skip().is_err());
        }
    }

    #[test]
    fn escapes_are_undone() {
        let list = r#"["\"\\", "\u00e9\ud83d\ude95 \n", "x\/", "eight or more\\\" and on", ""]"#;
        let undone = ["\"\\", "é🚕 \n", "x/", "eight or more\\\" and on", ""];
        assert_eq!(texts(list).unwrap(), undone);
    }

    #[test]
    fn what_is_no_list_of_texts_is_refused() {
        for list in [
            "",
            "7",
            "[1]",
            "[null]",
            "[\"a\" \"b\"]",
            "[\"a\",]",
            "[,\"a\"]",
            "[\"a\"",
            "[\"a",
            "[\"a\\",
            "[\"a\"}",
            "[\"a\"] 1",
            "[\"\n\"]",
            "[\"eight or more\u{1}\"]",
            r#"["\ud800"]"#,
            r#"["\x"]"#,
        ] {
            assert!(texts(list).is_err(), "{list}");
        }
        let bytes = [b"[\"", &[0xff][..], b"\"]"].concat();
        assert!(Cursor::new(&bytes).list(|cursor| cursor.text().map(drop)).is_err());
    }

    #[test]
    fn numbers_are_whole_and_small() {
        assert_eq!(read(" 4294967295 ", Cursor::number), Ok(u32::MAX));
        for number in ["", "-1", "1.5", "1e3", "4294967296", "01", "\"1\""] {
            assert!(read(number, Cursor::number).is_err(), "{number}");
        }
    }

    #[test]
    fn small_values_are_read_as_the_library_reads_them() {
        let json = r#"{"a": [true, null, -1.5e3], "b": {}}"#;
        assert_eq!(read(json, Cursor::value), Ok(json!({"a": [true, null, -1500.0], "b": {}})));
        for json in ["", "]", "tru", "[}", "{\"a\"}", "[1 2]"] {
            assert!(read(json, Cursor::value::<Value>).is_err(), "{json}");
        }
    }
}
