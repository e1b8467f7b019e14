//! Where a client says something: a header, or a member of the body.

/// A header or a member of the body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A header, in lower case.
    Header(String),
    /// A member of the body by its name, or a member of that one: `a` or `a.b`.
    Body(String),
}

/// What is no header, or no member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// It is no name of a header.
    #[error("is not a header name")]
    NoHeader,
    /// It is one that shows who calls.
    #[error("is a header that may contain a credential")]
    Credential,
    /// It is no member, or one that is nested too deep.
    #[error("is not a member of the body")]
    NoMember,
}

/// Longest name of a header or path of a member, in bytes.
const BYTES_MAX: usize = 64;

/// Headers that contain credentials.
const CREDENTIALS: [&str; 7] = [
    "api-key",
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-api-key",
    "x-goog-api-key",
    "x-taximeter-key",
];

impl Place {
    /// The header with this name.
    ///
    /// # Errors
    /// It is none, or one with a credential.
    pub fn header(name: &str) -> Result<Self, PlaceError> {
        let is_of_name =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if name.is_empty() || name.len() > BYTES_MAX || !name.bytes().all(is_of_name) {
            return Err(PlaceError::NoHeader);
        }
        let name = name.to_ascii_lowercase();
        if CREDENTIALS.contains(&name.as_str()) {
            return Err(PlaceError::Credential);
        }
        Ok(Self::Header(name))
    }

    /// The member with this path, `a` or `a.b`.
    ///
    /// # Errors
    /// It is none.
    pub fn body(path: &str) -> Result<Self, PlaceError> {
        let is_name = |name: &str| {
            !name.is_empty() && !name.chars().any(|it| it.is_control() || it.is_whitespace())
        };
        let mut names = path.split('.');
        let good = path.len() <= BYTES_MAX
            && names.clone().all(is_name)
            && names.by_ref().take(2).count() > 0
            && names.next().is_none();
        if good { Ok(Self::Body(path.to_owned())) } else { Err(PlaceError::NoMember) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_a_name_that_servers_take_and_no_credential() {
        assert_eq!(Place::header("X-My-Run"), Ok(Place::Header("x-my-run".to_owned())));
        assert_eq!(Place::header("my_run"), Ok(Place::Header("my_run".to_owned())));
        let long = "x".repeat(65);
        for bad in ["", "x y", "x:", "é", "x\n", &long] {
            assert_eq!(Place::header(bad), Err(PlaceError::NoHeader), "{bad:?}");
        }
        for secret in ["Authorization", "x-api-key", "COOKIE"] {
            assert_eq!(Place::header(secret), Err(PlaceError::Credential), "{secret}");
        }
    }

    #[test]
    fn a_member_is_at_the_top_or_right_below() {
        for good in ["run", "metadata.run", "metadata.run-id", "метка"] {
            assert_eq!(Place::body(good), Ok(Place::Body(good.to_owned())));
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "a.", ".a", "a..b", "a.b.c", "a b", "a\n", &long] {
            assert_eq!(Place::body(bad), Err(PlaceError::NoMember), "{bad:?}");
        }
    }
}
