//! The dimensions, and their words in metrics.

/// What a client can say of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// The session.
    Session,
    /// The agent within it.
    Agent,
    /// The agent that has started that one.
    ParentAgent,
    /// The turn.
    Turn,
    /// What the request is for.
    Kind,
    /// The client program.
    Client,
    /// The end user.
    EndUser,
    /// A tag of the configuration, by its place there.
    Tag(u8),
}

impl Dimension {
    /// Those that are no tags.
    pub(crate) const COUNT: u8 = 7;

    /// The word in metrics. All tags share one.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Agent => "agent",
            Self::ParentAgent => "parent_agent",
            Self::Turn => "turn",
            Self::Kind => "kind",
            Self::Client => "client",
            Self::EndUser => "end_user",
            Self::Tag(_) => "tag",
        }
    }

    /// Its number among all of them, tags last.
    pub(crate) const fn slot(self) -> u8 {
        match self {
            Self::Session => 0,
            Self::Agent => 1,
            Self::ParentAgent => 2,
            Self::Turn => 3,
            Self::Kind => 4,
            Self::Client => 5,
            Self::EndUser => 6,
            Self::Tag(number) => Self::COUNT.saturating_add(number),
        }
    }
}
