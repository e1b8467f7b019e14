//! How byte-level vocabularies write bytes: each byte as a visible letter.
//!
//! Bytes that print in Latin-1 are that letter. The others are numbered from U+0100 on.

use super::texts::{Bytes, Texts};

/// The byte that `letter` stands for.
pub(super) fn byte(letter: char) -> Option<u8> {
    let code = letter as u32;
    let byte = match code {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => code,
        0x100..=0x120 => code - 0x100,
        0x121..=0x142 => code - 0x121 + 0x7f,
        0x143 => 0xad,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// The letter that `byte` is written as.
pub(super) fn letter(byte: u8) -> char {
    let code = u32::from(byte);
    let code = match byte {
        0..=0x20 => code + 0x100,
        0x7f..=0xa0 => code - 0x7f + 0x121,
        0xad => 0x143,
        _ => code,
    };
    char::from_u32(code).unwrap_or_default()
}

/// The bytes that `token` stands for, into `bytes`; whether it stands for any.
pub(super) fn decode(token: &str, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    token.chars().all(|letter| byte(letter).map(|byte| bytes.push(byte)).is_some())
}

/// The bytes that each of `texts` stands for; none of what stands for none.
pub(super) fn decode_all(texts: &Texts) -> Bytes {
    let (mut bytes, mut decoded) = (Vec::new(), Bytes::default());
    for text in texts.iter() {
        if !decode(text, &mut bytes) {
            bytes.clear();
        }
        decoded.push(&bytes, &[]);
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_letter_of_its_own() {
        let letters: std::collections::BTreeSet<char> = (0..=u8::MAX).map(letter).collect();
        assert_eq!(letters.len(), 256);
        for byte in 0..=u8::MAX {
            assert_eq!(super::byte(letter(byte)), Some(byte));
            assert!(!letter(byte).is_whitespace() && !letter(byte).is_control());
        }
        assert_eq!((letter(b' '), letter(b'\n'), letter(b'a')), ('Ġ', 'Ċ', 'a'));
        assert_eq!([' ', '\u{ad}', 'ń'].map(super::byte), [None, None, None]);
    }
}
