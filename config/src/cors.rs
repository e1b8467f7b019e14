//! Which web pages of other origins may use the gateway.

use crate::mistake::Invalid;

/// The pages of other origins that may send requests and read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// Their origins.
    pub origins: Vec<Origin>,
}

/// An origin as browsers write it, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `*`.
    Any,
    /// `scheme://host[:port]` in lower case, without the scheme's default port.
    One(String),
}

impl Cors {
    /// Whether a page of this origin may.
    #[must_use]
    pub fn allows(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| match allowed {
            Origin::Any => true,
            Origin::One(allowed) => allowed.eq_ignore_ascii_case(origin),
        })
    }
}

impl Origin {
    /// What a message expects.
    pub(crate) const FORM: &str = "an origin such as https://app.example, or `*`";

    /// `*`, or `scheme://host[:port]`.
    ///
    /// Errors: it has a path, or is no origin. `null` is none: every page can have it.
    pub(crate) fn new(text: &str) -> Result<Self, Invalid> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let invalid = || Invalid::new("is not an origin", Self::FORM);
        let lower = text.to_ascii_lowercase();
        let (scheme, host) = lower.split_once("://").ok_or_else(invalid)?;
        let is_of_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        if host.ends_with('/') || host.contains(['/', '?', '#']) {
            return Err(Invalid::new(
                "has a path",
                "the origin alone, such as https://app.example",
            ));
        }
        if scheme.is_empty()
            || host.is_empty() && scheme != "file"
            || !scheme.bytes().all(is_of_scheme)
            || !host.bytes().all(is_of_host)
        {
            return Err(invalid());
        }
        let usual = match scheme {
            "http" => ":80",
            "https" => ":443",
            _ => "",
        };
        let host = host.strip_suffix(usual).unwrap_or(host);
        Ok(Self::One(format!("{scheme}://{host}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cors(origins: &[&str]) -> Cors {
        Cors { origins: origins.iter().map(|text| Origin::new(text).unwrap()).collect() }
    }

    #[test]
    fn a_page_is_known_by_its_whole_origin() {
        let cors = cors(&[
            "https://App.example:443",
            "http://localhost:3000",
            "app://obsidian.md",
            "file://",
        ]);
        for allowed in
            ["https://app.example", "http://localhost:3000", "app://obsidian.md", "file://"]
        {
            assert!(cors.allows(allowed), "{allowed}");
        }
        for other in [
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil.example",
            "https://evil.example/https://app.example",
            "http://localhost",
            "null",
            "",
        ] {
            assert!(!cors.allows(other), "{other}");
        }
        assert!(super::Cors { origins: vec![Origin::Any] }.allows("null"));
    }

    #[test]
    fn what_browsers_write_nowhere_is_no_origin() {
        for text in [
            "",
            "null",
            "app.example",
            "https://",
            "://a",
            "https://a/",
            "https://a/b",
            "https://*.a",
        ] {
            assert!(Origin::new(text).is_err(), "{text:?}");
        }
    }
}
