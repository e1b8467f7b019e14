//! Secrets, such as keys and tokens.

use subtle::ConstantTimeEq;

/// A secret. It cannot be printed, and is compared in constant time.
#[derive(Clone)]
pub struct Secret(pub(crate) String);

impl Secret {
    /// The secret itself, for the code that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is the secret. The time taken depends only on the length.
    #[must_use]
    pub fn matches(&self, offered: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(offered).into()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(other.0.as_bytes())
    }
}

impl Eq for Secret {}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}
