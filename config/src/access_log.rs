//! Which requests get a line in the log when they end.

/// Which requests get a line in the log when they end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// No request.
    #[default]
    Off,
    /// Requests that failed or were refused.
    Errors,
    /// Every request.
    All,
}

impl AccessLog {
    /// Whether a request gets a line, given that it `failed` or not.
    #[must_use]
    pub const fn wants(self, failed: bool) -> bool {
        match self {
            Self::Off => false,
            Self::Errors => failed,
            Self::All => true,
        }
    }
}
