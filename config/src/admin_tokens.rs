//! Tokens of the admin address, and what each of them may do there.

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Something that callers of the admin address may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminRight {
    /// Ask.
    Read,
    /// Send what others have measured.
    Ingest,
    /// Change how the gateway works.
    Change,
}

impl AdminRight {
    /// Its word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Ingest => "ingest",
            Self::Change => "change",
        }
    }
}

/// A token of the admin address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminToken {
    /// Unique name.
    pub id: String,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
    /// What it may do.
    pub may: Vec<AdminRight>,
}

impl AdminToken {
    /// Whether `shown` is the token. The time taken depends on the length of `shown` alone.
    #[must_use]
    pub fn matches(&self, shown: &[u8]) -> bool {
        self.sha256.ct_eq(Sha256::digest(shown).as_slice()).into()
    }

    /// Whether it may do something.
    #[must_use]
    pub fn may(&self, right: AdminRight) -> bool {
        self.may.contains(&right)
    }
}
