//! The last requests that the gateway refused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_ledger::{RequestId, TenantId};

/// Refused requests of one reason that are kept.
const KEPT_MAX: usize = 100;

/// A request that the gateway refused. It has nothing that the client wrote but what the
/// configuration knows, and not the client's address.
#[derive(Debug, Clone)]
pub struct RefusedRequest {
    /// The id that the gateway gave it.
    pub id: RequestId,
    /// When it was refused.
    pub at: Timestamp,
    /// The tenant, if it was known.
    pub tenant: Option<TenantId>,
    /// The `id` of the API key, if one was known.
    pub key_id: Option<String>,
    /// The template of the route, if there is one.
    pub route: Option<&'static str>,
    /// The upstream that it was meant for, if it came so far.
    pub upstream: Option<Arc<str>>,
    /// What the client was told. `None` if it had left.
    pub status: Option<u16>,
    /// The error code: a fixed word.
    pub reason: &'static str,
}

/// The last requests of each reason. There are only so many reasons.
#[derive(Debug, Default)]
pub(super) struct Recent(BTreeMap<&'static str, VecDeque<RefusedRequest>>);

impl Recent {
    pub(super) fn push(&mut self, refused: RefusedRequest) {
        let kept = self.0.entry(refused.reason).or_default();
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(refused);
    }

    pub(super) fn newest_first(&self) -> Vec<RefusedRequest> {
        let mut all: Vec<_> = self.0.values().flatten().cloned().collect();
        taximeter_collections::sort_by_key(&mut all, |refused| {
            std::cmp::Reverse((refused.at, refused.id))
        });
        all
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_last_hundred_of_each_reason_are_kept() {
        let mut recent = Recent::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut refuse = |reason, second| {
            recent.push(RefusedRequest {
                id: RequestId(Uuid::nil()),
                at: at(second),
                tenant: None,
                key_id: None,
                route: None,
                upstream: None,
                status: Some(401),
                reason,
            });
        };
        refuse("draining", 0);
        (1..=250).for_each(|second| refuse("invalid_api_key", second));
        let kept = recent.newest_first();
        let seconds: Vec<_> = kept.iter().map(|refused| refused.at.as_second()).collect();
        assert_eq!(seconds, (151..=250).rev().chain([0]).collect::<Vec<_>>());
    }
}
