//! Which requests have a line in the log.

/// Which requests have a line in the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccessLog {
    /// None.
    #[default]
    Off,
    /// Those that failed or were refused.
    Errors,
    /// Each.
    All,
}

impl AccessLog {
    /// Whether a request that failed, or did not, has one.
    #[must_use]
    pub const fn wants(self, failed: bool) -> bool {
        match self {
            Self::Off => false,
            Self::Errors => failed,
            Self::All => true,
        }
    }
}
