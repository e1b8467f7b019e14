//! Where requests say what they are part of, and what is kept of that.

use std::collections::BTreeMap;

use taximeter_dimensions::{Hasher, Keep, Place, Settings};

use crate::secret::Secret;

/// Where requests say what they are part of, and what is kept of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dimensions {
    /// Places of sessions.
    pub session: Vec<Place>,
    /// Places of agents.
    pub agent: Vec<Place>,
    /// Places of their parents.
    pub parent_agent: Vec<Place>,
    /// Places of turns.
    pub turn: Vec<Place>,
    /// Places of clients.
    pub client: Vec<Place>,
    /// Places of end users.
    pub end_user: Vec<Place>,
    /// Places of tags, by their names.
    pub tags: BTreeMap<String, Vec<Place>>,
    /// The key of hashed names. `None`: the one in `data_dir`.
    pub secret: Option<Secret>,
    /// What is kept of sessions, agents and turns.
    pub sessions: Keep,
    /// What is kept of end users.
    pub end_users: Keep,
}

impl Default for Dimensions {
    fn default() -> Self {
        let Settings { sessions, end_users, .. } = Settings::default();
        Self {
            session: Vec::new(),
            agent: Vec::new(),
            parent_agent: Vec::new(),
            turn: Vec::new(),
            client: Vec::new(),
            end_user: Vec::new(),
            tags: BTreeMap::new(),
            secret: None,
            sessions,
            end_users,
        }
    }
}

impl Dimensions {
    /// Whether names are hashed.
    #[must_use]
    pub fn hashes(&self) -> bool {
        self.sessions == Keep::Hash || self.end_users == Keep::Hash
    }

    /// The same for those who read requests. `hasher` makes hashes, where there is a key.
    #[must_use]
    pub fn settings(&self, hasher: Option<Hasher>) -> Settings {
        let Self { session, agent, parent_agent, turn, client, end_user, tags, .. } = self.clone();
        Settings {
            session,
            agent,
            parent_agent,
            turn,
            client,
            end_user,
            tags,
            sessions: self.sessions,
            end_users: self.end_users,
            hasher,
        }
    }
}
