//! How much usage the gateway asks an engine for, and which parts of the answer it then hides from
//! the client.

use crate::Dialect;

/// How much an engine is asked to say about usage in a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum UsageAsk {
    /// Usage at the end.
    #[default]
    Final,
    /// Running totals in every event too, so that a stream that is cut has an exact count.
    Continuous,
    /// The ids of the prompt's tokens and of each event's: to be counted when a stream is cut.
    TokenIds,
}

impl UsageAsk {
    /// Whether an engine of this dialect can be asked so.
    #[must_use]
    pub fn suits(self, dialect: Dialect) -> bool {
        match self {
            Self::Final => true,
            Self::Continuous => dialect.accepts_continuous_usage(),
            Self::TokenIds => dialect.accepts_token_ids(),
        }
    }
}

/// What only we asked for: it is taken out of what the client sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The event that says nothing but usage, and `usage: null` in all others.
    pub usage_event: bool,
    /// Running totals in events with choices.
    pub running_usage: bool,
    /// Token ids.
    pub token_ids: bool,
}

impl Hidden {
    /// Whether anything is hidden.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.usage_event || self.running_usage || self.token_ids
    }
}
