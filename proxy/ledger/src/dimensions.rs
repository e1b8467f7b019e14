//! What a request is part of: the session of an agent, as far as its client tells.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

/// How the gateway knows the session of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionSource {
    /// By a header of the request.
    Header,
    /// By a member of its body.
    Body,
    /// By the earlier response or the conversation that it goes on from.
    Derived,
}

impl SessionSource {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Body => "body",
            Self::Derived => "derived",
        }
    }
}

/// What a request of an agent is for, where that is not its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// To fill the engine's cache before the first turn.
    Prewarm,
    /// To make the context shorter.
    Compaction,
    /// To name the session.
    Title,
}

impl RequestKind {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prewarm => "prewarm",
            Self::Compaction => "compaction",
            Self::Title => "title",
        }
    }
}

/// What a request is part of. The client tells it: it proves nothing, and nobody pays by it. `None`
/// means that the client has not told it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Dimensions {
    /// The session, which is one task of an agent with all its sub-agents: at most 128 bytes of
    /// `[A-Za-z0-9._:@/-]`. Two tenants with the same one have two sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// How the session is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_source: Option<SessionSource>,
    /// The agent or sub-agent within the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent that has started this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent: Option<String>,
    /// The client program with the first two numbers of its version, as `codex/0.169`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The turn: what follows from one message of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The end user for whom the client acts, by default as a keyed hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_user: Option<String>,
    /// At most 8 tags that the configuration names, each of at most 64 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What the request is for, where that is not the next turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<RequestKind>,
}

impl Dimensions {
    /// The same, or nothing if nothing is known.
    #[must_use]
    pub fn if_any(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

/// Reads dimensions that are members of a larger object.
pub(crate) fn read<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Box<Dimensions>>, D::Error> {
    Dimensions::deserialize(from).map(Dimensions::if_any)
}
