//! The names that a provider gives its error.

/// Longest name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// `error.type` of an error without a name.
const OTHER_ERROR: &str = "_OTHER";

/// What a provider calls its error.
///
/// Each name has at most 64 bytes of `[A-Za-z0-9_.:-]`. A longer name, or one with other characters,
/// is left out. The message is always left out: it may quote a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderError {
    /// Its status, in digits or a word: `429`, `RESOURCE_EXHAUSTED`.
    pub status: Option<String>,
    /// Its type: `overloaded_error`.
    pub error_type: Option<String>,
    /// Its code, in digits or a word: `1008`, `context_length_exceeded`.
    pub code: Option<String>,
}

impl ProviderError {
    /// `error.type`: a word before a number, and the code before the type and the status.
    #[must_use]
    pub fn word(&self) -> &str {
        let names = [&self.code, &self.error_type, &self.status];
        let names = names.into_iter().flatten().map(String::as_str);
        let is_word = |name: &&str| name.bytes().any(|byte| byte.is_ascii_alphabetic());
        names.clone().find(is_word).or_else(|| names.clone().next()).unwrap_or(OTHER_ERROR)
    }

    /// These names, and those of `outer` where this has none.
    pub(crate) fn over(self, outer: Self) -> Self {
        Self {
            status: self.status.or(outer.status),
            error_type: self.error_type.or(outer.error_type),
            code: self.code.or(outer.code),
        }
    }
}

/// `name`, if it may stand on a record.
pub(crate) fn name(name: &[u8]) -> Option<String> {
    let fits = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b':' | b'-');
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && name.iter().all(fits);
    is_name.then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_of_few_characters() {
        let longest = "x".repeat(NAME_BYTES_MAX);
        for known in
            ["invalid_api_key", "RESOURCE_EXHAUSTED", "-1", "about:blank", "a.b-c", &longest]
        {
            assert_eq!(name(known.as_bytes()).as_deref(), Some(known));
        }
        for unfit in ["", "two words", "line\n", "naïve", "a/b", "{}", &format!("{longest}x")] {
            assert_eq!(name(unfit.as_bytes()), None, "{unfit}");
        }
    }

    #[test]
    fn its_word_is_its_code_then_its_type_then_its_status_and_a_number_last() {
        let error = |status: &str, error_type: &str, code: &str| {
            let given = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
            let (status, error_type) = (given(status), given(error_type));
            ProviderError { status, error_type, code: given(code) }.word().to_owned()
        };
        assert_eq!(error("400", "invalid_request", "too_long"), "too_long");
        assert_eq!(error("", "BadRequestError", "400"), "BadRequestError");
        assert_eq!(error("RESOURCE_EXHAUSTED", "", "429"), "RESOURCE_EXHAUSTED");
        assert_eq!(error("500", "", "1008"), "1008");
        assert_eq!(error("500", "", ""), "500");
        assert_eq!(error("", "", ""), OTHER_ERROR);
    }
}
