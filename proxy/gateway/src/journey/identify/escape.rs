//! Decodes percent-escapes in a request target.

/// The bytes that are meant where some are written as `%` and two digits.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    unescape_if(text, |_| true)
}

/// The same, but only of those that `may_stand` as they are.
pub(super) fn unescape_if(text: &str, may_stand: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digits = tail.split_at_checked(2).filter(|_| byte == b'%');
        let escaped = digits.and_then(|(digits, behind)| {
            // A sign would be read as part of a number.
            let digits = Some(digits).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            let digits = std::str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, behind))
        });
        let (byte, behind) = escaped.filter(|(byte, _)| may_stand(*byte)).unwrap_or((byte, tail));
        bytes.push(byte);
        rest = behind;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_behind_a_percent_sign_are_a_byte_and_all_else_is_as_it_stands() {
        for (text, meant) in [
            ("a%3Ab%2fc", "a:b/c"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%+1", "%+1"),
            ("%25%34%31", "%41"),
            ("a+b", "a+b"),
        ] {
            assert_eq!(unescape(text), meant.as_bytes(), "{text}");
        }
    }

    #[test]
    fn what_may_not_stand_as_it_is_stays_escaped() {
        let letters = unescape_if("%61%2F%25%62", |byte| byte.is_ascii_alphabetic());
        assert_eq!(letters, b"a%2F%25b");
    }
}
