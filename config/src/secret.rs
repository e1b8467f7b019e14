//! What must not be seen.

use subtle::ConstantTimeEq;

/// A secret: cannot be printed, and is compared in constant time.
#[derive(Clone)]
pub struct Secret(pub(crate) String);

impl Secret {
    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `offered` is the secret; the time taken tells nothing but the length.
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
