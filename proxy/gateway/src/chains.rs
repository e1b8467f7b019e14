//! Remembers which session earlier responses belong to, and sub-agents whose clients name only the
//! agent that has started them. So a request that goes on from one of them has its session.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use taximeter_ledger::TenantId;

use crate::recent::Recent;

/// Most links that are remembered, of all tenants. The one that was said the longest ago goes for a
/// new one.
const LINKS_MAX: usize = 1 << 14;

/// What a session is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Link<'a> {
    /// A response, by its `id`.
    Response(&'a str),
    /// A sub-agent.
    Agent(&'a str),
}

/// The links that are known, of all tenants.
#[derive(Debug, Default)]
pub struct Chains {
    sessions: Mutex<Recent<Arc<str>, LINKS_MAX>>,
    /// Nobody can make two keys with the same hash on purpose.
    hashers: [RandomState; 2],
}

impl Chains {
    /// Remembers the session of a link of this tenant.
    pub(crate) fn put(&self, tenant: &TenantId, link: Link<'_>, session: &str) {
        let key = self.key(tenant, link);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).put(key, session.into());
    }

    /// The session of a link of this tenant.
    pub(crate) fn find(&self, tenant: &TenantId, link: Link<'_>) -> Option<Arc<str>> {
        let key = self.key(tenant, link);
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn key(&self, tenant: &TenantId, link: Link<'_>) -> u128 {
        let [high, low] = &self.hashers;
        let hash = |hasher: &RandomState| u128::from(hasher.hash_one((tenant, link)));
        hash(high) << 64 | hash(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_belongs_to_its_tenant_and_is_of_one_kind() {
        let chains = Chains::default();
        let [acme, beta] = ["acme", "beta"].map(|name| TenantId(name.into()));
        chains.put(&acme, Link::Response("r"), "s");
        assert_eq!(chains.find(&acme, Link::Response("r")).as_deref(), Some("s"));
        assert_eq!(chains.find(&beta, Link::Response("r")), None);
        assert_eq!(chains.find(&acme, Link::Agent("r")), None);
        for number in 0..LINKS_MAX {
            chains.put(&beta, Link::Response(&number.to_string()), "other");
        }
        assert_eq!(chains.find(&acme, Link::Response("r")), None);
    }
}
