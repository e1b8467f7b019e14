//! Reads only the JSON members of an entry that change a sum.
//!
//! A start of the gateway reads millions of entries. The CRC of an entry proves that its bytes are
//! the ones that were written, so the reader skips all other members without parsing them. If the
//! JSON is not laid out as this crate writes it, the caller uses a full parser.

use taximeter_json::Reader;

/// A reader in front of the value of each member in `names`, or `None` for a missing member. The
/// search stops at the last member that is found.
///
/// The whole result is `None` if only a full parser can tell.
pub(crate) fn members<'a, const N: usize>(
    mut reader: Reader<'a>,
    names: [&str; N],
) -> Option<[Option<Reader<'a>>; N]> {
    let mut found = [const { None }; N];
    let mut missing = N;
    reader.enter(b'{').ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key.is_escaped() {
            return None;
        }
        let slot = names.iter().zip(&mut found).find(|(name, _)| name.as_bytes() == key.raw());
        if let Some((_, slot)) = slot {
            if slot.replace(reader.clone()).is_some() {
                return None;
            }
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
        reader.skip().ok()?;
    }
    Some(found)
}

/// The string that comes next. `None` if it is not a string, or has escapes.
pub(crate) fn text<'a>(mut reader: Reader<'a>) -> Option<&'a str> {
    let text = reader.text().ok()??;
    if text.is_escaped() { None } else { str::from_utf8(text.raw()).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(object: &'a str, names: [&str; 2]) -> Option<[Option<&'a str>; 2]> {
        let found = members(Reader::compact(object.as_bytes()), names)?;
        let value = |mut reader: Reader<'a>| reader.verbatim().unwrap().raw();
        Some(found.map(|reader| reader.map(|reader| str::from_utf8(value(reader)).unwrap())))
    }

    #[test]
    fn members_are_found_whatever_is_between_them() {
        let object =
            r#"{"x":"}\",\\","a":"1","y":[{"a":"]"},["\"",-1.5e3]],"z":null,"b":{"c":[]}}"#;
        assert_eq!(found(object, ["a", "b"]), Some([Some("\"1\""), Some("{\"c\":[]}")]));
        assert_eq!(found(object, ["c", "z"]), Some([None, Some("null")]));
        assert_eq!(found(object, ["b", "a"]), Some([Some("{\"c\":[]}"), Some("\"1\"")]));
        assert_eq!(found(r#"{"n":12}"#, ["n", "m"]), Some([Some("12"), None]));
        assert_eq!(found("{}", ["n", "m"]), Some([None, None]));
        assert_eq!(found(r#"{"a":1,"b":2,?"#, ["a", "b"]), Some([Some("1"), Some("2")]));
    }

    #[test]
    fn what_is_written_otherwise_is_left_to_a_parser() {
        for object in [
            "",
            "[1]",
            r#"{"a" :1}"#,
            r#"{"a":1,}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"x":"1}"#,
            r#"{"x":"1\"#,
            r#"{"x":[1}"#,
            r#"{"x":1"#,
        ] {
            assert_eq!(found(object, ["a", "b"]), None, "{object}");
        }
        let text = |value: &'static [u8]| text(Reader::compact(value));
        assert_eq!([text(b"\"a\""), text(b"\"\\n\""), text(b"1")], [Some("a"), None, None]);
    }
}
