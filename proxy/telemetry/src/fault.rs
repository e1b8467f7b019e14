//! Whose fault it is that a request was not served.

/// Who has caused that a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The client: it left, or asked for what no engine would serve.
    Client,
    /// The engine: it is away, overloaded, or broke off.
    Engine,
    /// The gateway, or its configuration.
    Gateway,
}

impl Fault {
    /// The word in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Engine => "engine",
            Self::Gateway => "gateway",
        }
    }
}
