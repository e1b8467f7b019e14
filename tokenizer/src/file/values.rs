//! Values of a `tokenizer.json`, read strictly: a damaged file must not count.
//!
//! Such a file is tens of megabytes of short texts, and what reads them here reads nothing else. What
//! is small is left to a general reader, see [`value`].

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use taximeter_json::{Malformed, Reader, Text};

use super::recipe::Unsupported;

impl From<Malformed> for Unsupported {
    fn from(error: Malformed) -> Self {
        damaged(error)
    }
}

/// Reads a text.
///
/// Errors: what is none.
pub(super) fn text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>, Unsupported> {
    meaning(reader.text()?.ok_or(Malformed)?)
}

/// What a text means.
///
/// Errors: what is none by JSON's rules.
#[inline]
pub(super) fn meaning(text: Text<'_>) -> Result<Cow<'_, str>, Unsupported> {
    Ok(text.decode_strictly().ok_or(Malformed)?)
}

/// Reads a text, which is not checked to be UTF-8.
///
/// Errors: what is none.
pub(super) fn bytes<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, [u8]>, Unsupported> {
    let text = reader.text()?.ok_or(Malformed)?;
    if text.is_escaped() || text.has_control() {
        return Ok(Cow::Owned(meaning(text)?.into_owned().into()));
    }
    Ok(Cow::Borrowed(text.raw()))
}

/// Reads a value of any kind.
///
/// Errors: what is none of this kind.
pub(super) fn value<T: DeserializeOwned>(reader: &mut Reader<'_>) -> Result<T, Unsupported> {
    serde_json::from_slice(reader.verbatim()?.raw()).map_err(damaged)
}

fn damaged(error: impl std::error::Error) -> Unsupported {
    Unsupported(error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn texts(json: &[u8]) -> Result<Vec<String>, Unsupported> {
        let (mut reader, mut texts) = (Reader::new(json), Vec::new());
        reader.enter(b'[')?;
        while reader.next_element()? {
            texts.push(text(&mut reader)?.into_owned());
        }
        reader.end()?;
        Ok(texts)
    }

    #[test]
    fn escapes_are_undone() {
        let list = r#"["\"\\", "\u00e9\ud83d\ude95 \n", "x\/", "eight or more\\\" and on", ""]"#;
        let undone = ["\"\\", "é🚕 \n", "x/", "eight or more\\\" and on", ""];
        assert_eq!(texts(list.as_bytes()).unwrap(), undone);
    }

    #[test]
    fn what_is_no_list_of_texts_is_refused() {
        for list in [
            &b""[..],
            b"7",
            b"[1]",
            b"[null]",
            b"[\"a\" \"b\"]",
            b"[\"a\",]",
            b"[,\"a\"]",
            b"[\"a\"",
            b"[\"a",
            b"[\"a\\",
            b"[\"a\"}",
            b"[\"a\"] 1",
            b"[\"\n\"]",
            b"[\"eight or more\x01\"]",
            br#"["\ud800"]"#,
            br#"["\x"]"#,
            b"[\"\xff\"]",
        ] {
            assert!(texts(list).is_err(), "{}", list.escape_ascii());
        }
    }

    #[test]
    fn bytes_may_be_no_utf8_but_are_no_control_characters() {
        assert_eq!(bytes(&mut Reader::new(b"\"\xff\"")).unwrap().as_ref(), b"\xff");
        assert_eq!(bytes(&mut Reader::new(br#""\n""#)).unwrap().as_ref(), b"\n");
        assert!(bytes(&mut Reader::new(b"\"\n\"")).is_err());
    }

    #[test]
    fn small_values_are_read_as_the_library_reads_them() {
        let read = |json: &str| value::<Value>(&mut Reader::new(json.as_bytes()));
        let json = r#"{"a": [true, null, -1.5e3], "b": {}}"#;
        assert_eq!(read(json), Ok(json!({"a": [true, null, -1500.0], "b": {}})));
        for json in ["", "]", "tru", "[}", "{\"a\"}", "[1 2]"] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
