//! The few members of an entry that change a sum.
//!
//! A start reads millions of entries. Their checks say that they are what was written, so the rest of
//! an entry is stepped over. What is not written as we write it is left to a parser.

use taximeter_json::Reader;

/// The members called `names` of the object, as they are written; `None` for one that is not there.
/// What follows the last of them is not looked at.
///
/// `None` altogether where a parser is needed to tell.
pub(crate) fn members<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a [u8]>; N]> {
    let mut found = [None; N];
    let mut missing = N;
    let mut reader = Reader::compact(object);
    reader.enter(b'{').ok()?;
    while let Some(key) = reader.next_key().ok()? {
        if key.is_escaped() {
            return None;
        }
        let slot = names.iter().zip(&mut found).find(|(name, _)| name.as_bytes() == key.raw());
        let Some((_, slot)) = slot else {
            reader.skip().ok()?;
            continue;
        };
        if slot.replace(reader.verbatim().ok()?.raw()).is_some() {
            return None;
        }
        missing -= 1;
        if missing == 0 {
            return Some(found);
        }
    }
    reader.end().ok()?;
    Some(found)
}

/// The text that a value is; `None` where it is none, or has escapes.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    let text = Reader::compact(value).text().ok()??;
    if text.is_escaped() { None } else { str::from_utf8(text.raw()).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'a>(object: &'a str, names: [&str; 2]) -> Option<[Option<&'a str>; 2]> {
        let found = members(object.as_bytes(), names)?;
        Some(found.map(|value| value.map(|value| str::from_utf8(value).unwrap())))
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
            r#"{"a":1}x"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"x":"1}"#,
            r#"{"x":"1\"#,
            r#"{"x":[1}"#,
            r#"{"x":1"#,
        ] {
            assert_eq!(found(object, ["a", "b"]), None, "{object}");
        }
        assert_eq!([text(b"\"a\""), text(b"\"\\n\""), text(b"1")], [Some("a"), None, None]);
    }
}
