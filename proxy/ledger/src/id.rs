//! Ids of requests and tenants.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Longest tenant name, in bytes.
pub const TENANT_BYTES_MAX: usize = 128;

/// The gateway's id of a request: a UUIDv7. The gateway also sends it as `x-taximeter-request-id`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
pub struct RequestId(pub Uuid);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RequestId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Uuid::parse_str(text).map(Self)
    }
}

/// The identity of a ledger: a UUID that is made with its directory.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct LedgerId(pub Uuid);

impl LedgerId {
    /// That of requests that a shared store has from an older version: its ledgers had no id.
    pub const UNKNOWN: Self = Self(Uuid::nil());

    /// What the checks of its frames are seeded with.
    pub(crate) fn seed(self) -> u32 {
        crc32c::crc32c(self.0.as_bytes())
    }
}

impl fmt::Display for LedgerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a tenant, who pays for requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct TenantId(pub Arc<str>);

/// Why a text is not a tenant name. Such a name could mislead a reader of logs, file names or
/// spreadsheets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TenantIdError {
    /// The name is empty.
    #[error("a tenant name must not be empty")]
    Empty,
    /// The name is longer than [`TENANT_BYTES_MAX`].
    #[error("a tenant name must not be longer than {TENANT_BYTES_MAX} bytes")]
    TooLong,
    /// The name has control characters such as NUL, line ends or escapes.
    #[error("a tenant name must not contain control characters")]
    Control,
    /// The name has `/` or `\`, or is `.` or `..`.
    #[error("a tenant name must not be or contain a part of a path")]
    Path,
    /// A spreadsheet would run the name as a formula.
    #[error("a tenant name must not begin with one of = + - @")]
    Formula,
}

impl TenantId {
    /// Checks a name.
    /// # Errors
    /// The name is empty, too long, or could be mistaken for something else (see
    /// [`TenantIdError`]).
    pub fn new(name: &str) -> Result<Self, TenantIdError> {
        if name.is_empty() {
            Err(TenantIdError::Empty)
        } else if name.len() > TENANT_BYTES_MAX {
            Err(TenantIdError::TooLong)
        } else if name.contains(char::is_control) {
            Err(TenantIdError::Control)
        } else if name.contains(['/', '\\']) || matches!(name, "." | "..") {
            Err(TenantIdError::Path)
        } else if name.starts_with(['=', '+', '-', '@']) {
            Err(TenantIdError::Formula)
        } else {
            Ok(Self(name.into()))
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_name_must_not_be_taken_for_something_else() {
        let long = "x".repeat(TENANT_BYTES_MAX + 1);
        for (name, error) in [
            ("", TenantIdError::Empty),
            (long.as_str(), TenantIdError::TooLong),
            ("a\0b", TenantIdError::Control),
            ("a\u{1b}[2J", TenantIdError::Control),
            ("a\u{85}", TenantIdError::Control),
            ("../etc", TenantIdError::Path),
            ("..", TenantIdError::Path),
            ("a\\b", TenantIdError::Path),
            ("=1+1", TenantIdError::Formula),
            ("@cmd", TenantIdError::Formula),
        ] {
            assert_eq!(TenantId::new(name), Err(error), "{name:?}");
        }
        for name in ["acme", "org_2.a-b", "Grüße", "a=b", "…", &"x".repeat(TENANT_BYTES_MAX)] {
            assert_eq!(TenantId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_request_id_is_read_as_it_is_shown() {
        let id = RequestId(Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_0001));
        assert_eq!(id.to_string(), "01930000-0000-7000-8000-000000000001");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("acme".parse::<RequestId>().is_err());
    }
}
