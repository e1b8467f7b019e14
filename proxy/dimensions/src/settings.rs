//! What a configuration adds.

use std::collections::BTreeMap;

use crate::keep::{Hasher, Keep};
use crate::place::Place;

/// Most tags.
pub const TAGS_MAX: usize = 8;

/// What a configuration says of dimensions. Its places come before those of the table.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Places of sessions.
    pub session: Vec<Place>,
    /// Places of agents.
    pub agent: Vec<Place>,
    /// Places of their parents.
    pub parent_agent: Vec<Place>,
    /// Places of turns.
    pub turn: Vec<Place>,
    /// Places of clients: a product, or a product and its version.
    pub client: Vec<Place>,
    /// Places of end users.
    pub end_user: Vec<Place>,
    /// Places of tags, by their names. Those behind the eighth are not read.
    pub tags: BTreeMap<String, Vec<Place>>,
    /// What becomes of sessions, agents and turns.
    pub sessions: Keep,
    /// What becomes of end users.
    pub end_users: Keep,
    /// Makes hashes. Without it what is to be hashed is left out.
    pub hasher: Option<Hasher>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            session: Vec::new(),
            agent: Vec::new(),
            parent_agent: Vec::new(),
            turn: Vec::new(),
            client: Vec::new(),
            end_user: Vec::new(),
            tags: BTreeMap::new(),
            sessions: Keep::Keep,
            end_users: Keep::Hash,
            hasher: None,
        }
    }
}
