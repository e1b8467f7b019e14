//! Reads errors inside answers, and gives each one plain word.

use crate::facts::OTHER_ERROR;
use crate::json::{Count, Malformed, Reader, Text};

/// Longest word, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// The names that an error object gives itself.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    code: Option<Text<'a>>,
    number: Option<u64>,
    kind: Option<Text<'a>>,
}

impl<'a> Names<'a> {
    /// Reads a member of an error object.
    pub(super) fn read_member(
        &mut self,
        key: &[u8],
        value: &mut Reader<'a>,
    ) -> Result<(), Malformed> {
        match key {
            b"code" if value.peek() == Some(b'"') => self.code = value.text()?,
            b"code" => {
                if let Count::Whole(number) = value.count()? {
                    self.number = Some(number);
                }
            }
            b"type" | b"error_type" => self.kind = value.text()?,
            _ => value.skip()?,
        }
        Ok(())
    }

    /// Its code, else its type, else its number, whichever is a plain word.
    pub(super) fn word(&self) -> String {
        [self.code, self.kind]
            .iter()
            .flatten()
            .map(|name| name.decode().into_owned())
            .find(|name| is_plain(name))
            .or_else(|| self.number.map(|number| number.to_string()))
            .unwrap_or_else(|| OTHER_ERROR.to_owned())
    }
}

/// Reads the value of an `error` member; `None` where that means no error (`null`, `false`, empty).
pub(super) fn read(value: &mut Reader<'_>) -> Result<Option<String>, Malformed> {
    match value.peek() {
        Some(b'{') => {
            let mut names = Names::default();
            let mut is_empty = true;
            value.object(|key, value| {
                is_empty = false;
                names.read_member(key, value)
            })?;
            Ok((!is_empty).then(|| names.word()))
        }
        Some(b'"') => {
            let said = value.text()?.is_some_and(|text| !text.is_empty());
            Ok(said.then(|| OTHER_ERROR.to_owned()))
        }
        Some(b'n' | b'f') => value.skip().map(|()| None),
        _ => value.skip().map(|()| Some(OTHER_ERROR.to_owned())),
    }
}

fn is_plain(word: &str) -> bool {
    let plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
    !word.is_empty() && word.len() <= WORD_BYTES_MAX && word.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(error: &str) -> Option<String> {
        read(&mut Reader::new(error.as_bytes())).unwrap()
    }

    #[test]
    fn an_error_goes_by_its_first_plain_word() {
        assert_eq!(word(r#"{"code":"rate_limited","type":"x"}"#).unwrap(), "rate_limited");
        assert_eq!(word(r#"{"code":null,"type":"server_error"}"#).unwrap(), "server_error");
        assert_eq!(word(r#"{"code":400,"type":"BadRequestError"}"#).unwrap(), "400");
        assert_eq!(word(r#"{"message":"x"}"#).unwrap(), OTHER_ERROR);
        assert_eq!(word(r#""it broke""#).unwrap(), OTHER_ERROR);
        assert_eq!(word("true").unwrap(), OTHER_ERROR);
    }

    #[test]
    fn what_means_no_error_is_none() {
        for error in ["null", "false", "\"\"", "{}"] {
            assert_eq!(word(error), None, "{error}");
        }
    }
}
