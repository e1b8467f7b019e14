//! A few members of a JSON object, found without reading the others.
//!
//! A start reads millions of entries, and of each it wants an id, a time and perhaps an amount. The
//! rest is stepped over: that it is what was written is known by its check. Only what is laid out as
//! entries are is read, without blanks or escapes where it matters; a parser is to read all else.

use memchr::memchr2;

/// The members called `names` at the top of the object, as they are written; `None` for one that is
/// not there. What follows the last of them is not looked at.
///
/// `None` altogether where a parser is needed to tell.
pub(crate) fn members<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a [u8]>; N]> {
    let mut found = [None; N];
    let mut missing = N;
    let mut rest = object.strip_prefix(b"{")?;
    loop {
        let (name, after) = plain_text(rest)?;
        let (value, after) = value(after.strip_prefix(b":")?)?;
        let slot = names.iter().zip(&mut found).find(|(wanted, _)| wanted.as_bytes() == name);
        if let Some((_, slot)) = slot {
            if slot.replace(value).is_some() {
                return None;
            }
            missing -= 1;
        }
        match after.split_first()? {
            _ if missing == 0 => return Some(found),
            (b',', after) => rest = after,
            (b'}', []) => return Some(found),
            _ => return None,
        }
    }
}

/// The text that a value is; `None` where it is none, or has escapes.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    match plain_text(value)? {
        (text, []) => str::from_utf8(text).ok(),
        _ => None,
    }
}

/// A text without escapes, and what follows it.
fn plain_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let (text, rest) = inside.split_at_checked(memchr2(b'"', b'\\', inside)?)?;
    Some((text, rest.strip_prefix(b"\"")?))
}

/// The value at the beginning, and what follows it.
fn value(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = match bytes.first()? {
        b' ' | b'\n' => return None,
        b'"' => text_length(bytes)?,
        b'{' | b'[' => nested_length(bytes)?,
        // A number, or a word.
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n'))?,
    };
    bytes.split_at_checked(length)
}

/// Bytes of the text at the beginning, with its quotes.
fn text_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        // And what is escaped.
        at += 2;
    }
}

/// Bytes of the object or array at the beginning, with its brackets.
fn nested_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += text_length(bytes.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
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
    }

    #[test]
    fn what_is_laid_out_otherwise_is_left_to_a_parser() {
        for object in [
            "",
            "{}",
            "[1]",
            r#"{"a" :1}"#,
            r#"{"a": 1}"#,
            r#"{"a":1 }"#,
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
        assert_eq!(
            [text(b"\"a\""), text(b"\"\\n\""), text(b"1"), text(b"\"a\"b")],
            [Some("a"), None, None, None]
        );
    }

    #[test]
    fn what_follows_the_last_one_is_not_looked_at() {
        assert_eq!(found(r#"{"a":1,"b":2,?"#, ["a", "b"]), Some([Some("1"), Some("2")]));
    }
}
