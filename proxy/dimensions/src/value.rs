//! Which values are taken.

/// Longest name of a session, an agent or a turn, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest end user that is kept as it is, in bytes.
pub const END_USER_BYTES_MAX: usize = 128;
/// Longest value of a tag, in bytes.
pub const TAG_BYTES_MAX: usize = 64;

/// Why a value is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// It is longer than its limit.
    TooLong,
    /// It has characters that its dimension does not have.
    Characters,
    /// It is given twice, and not the same.
    Disagreement,
    /// It should be in a JSON object and is in none.
    NoJson,
    /// An agent that is named as its own parent.
    OwnParent,
}

impl Dropped {
    /// The word in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Characters => "characters",
            Self::Disagreement => "disagreement",
            Self::NoJson => "no_json",
            Self::OwnParent => "own_parent",
        }
    }
}

const fn is_of_name(byte: u8) -> bool {
    let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    // `-`, `.`, `/`, digits and `:` follow each other.
    let from_dash = byte.wrapping_sub(b'-') < 14;
    letter | from_dash | (byte == b'@') | (byte == b'_')
}

/// Bytes that are looked at in one step.
const STEP: usize = 16;

fn are_of_name(bytes: &[u8]) -> bool {
    // The last step looks at some bytes again.
    let Some(last) = bytes.last_chunk::<STEP>() else {
        return bytes.iter().all(|byte| is_of_name(*byte));
    };
    let (steps, _) = bytes.as_chunks::<STEP>();
    let good = |step: &[u8; STEP]| step.iter().fold(true, |all, byte| all & is_of_name(*byte));
    steps.iter().all(good) && good(last)
}

/// Checks the name of a session, an agent or a turn: up to 128 bytes of `[A-Za-z0-9._:@/-]`. An
/// empty one is none.
///
/// # Errors
/// It cannot be taken.
pub fn name(text: &str) -> Result<Option<&str>, Dropped> {
    if text.len() > NAME_BYTES_MAX {
        return Err(Dropped::TooLong);
    }
    if are_of_name(text.as_bytes()) {
        Ok(Some(text).filter(|text| !text.is_empty()))
    } else {
        Err(Dropped::Characters)
    }
}

/// Checks a text of any alphabet, without control characters. An empty one is none.
pub(crate) fn text(text: &str, bytes_max: usize) -> Result<Option<&str>, Dropped> {
    if text.len() > bytes_max {
        return Err(Dropped::TooLong);
    }
    // Most are ASCII, of which all bytes are looked at, several at once.
    let is_plain = |byte: u8| byte.wrapping_sub(b' ') < 0x7f - b' ';
    if !text.bytes().fold(true, |all, byte| all & is_plain(byte))
        && text.chars().any(char::is_control)
    {
        return Err(Dropped::Characters);
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_of_few_characters() {
        let longest = "a".repeat(NAME_BYTES_MAX);
        for good in ["01a2-Z", "a.b_c:d@e/f-g", "0", &longest] {
            assert_eq!(name(good), Ok(Some(good)));
        }
        assert_eq!(name(""), Ok(None));
        for length in [NAME_BYTES_MAX + 1, 1 << 20] {
            assert_eq!(name(&"a".repeat(length)), Err(Dropped::TooLong));
        }
        for bad in ["a b", "a\n", "a\0", "é", "сессия", "會話", "a\"", "a\\", "<a>", "a=b", "a,b"]
        {
            assert_eq!(name(bad), Err(Dropped::Characters), "{bad:?}");
        }
    }

    #[test]
    fn a_byte_that_is_not_of_a_name_is_found_wherever_it_is() {
        for length in 0..=NAME_BYTES_MAX {
            let mut text = "a".repeat(length);
            assert_eq!(name(&text), Ok(Some(&*text).filter(|text| !text.is_empty())));
            for at in 0..length {
                text.replace_range(at..=at, " ");
                assert_eq!(name(&text), Err(Dropped::Characters), "{text:?}");
                text.replace_range(at..=at, "a");
            }
        }
    }

    #[test]
    fn each_byte_is_of_a_name_or_not() {
        for byte in 0..=u8::MAX {
            let expected = byte.is_ascii_alphanumeric() || b"._:@/-".contains(&byte);
            assert_eq!(is_of_name(byte), expected, "{byte}");
        }
    }

    #[test]
    fn a_text_has_any_alphabet_and_no_control_characters() {
        for good in ["anna@example.org", "Анна", "a b", "\"", "😀"] {
            assert_eq!(text(good, 64), Ok(Some(good)));
        }
        assert_eq!(text("", 64), Ok(None));
        assert_eq!(text(&"é".repeat(33), 64), Err(Dropped::TooLong));
        for bad in ["a\nb", "\u{7f}", "a\u{85}", "\0"] {
            assert_eq!(text(bad, 64), Err(Dropped::Characters), "{bad:?}");
        }
    }
}
