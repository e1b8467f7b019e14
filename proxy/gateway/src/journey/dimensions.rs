//! Finds what a request is part of: what it says itself, and the session of what it goes on from.

use http::HeaderMap;
use taximeter_dimensions::{Found, Lineage, Reading};
use taximeter_ledger::{Dimensions, SessionSource, TenantId};
use taximeter_meter::Wire;
use taximeter_request::{Context, RequestFacts};
use taximeter_telemetry::events::DimensionDropped;

use super::identify::Call;
use crate::chains::{Chains, Link};
use crate::gateway::Gateway;

/// What the head of a request says.
pub(super) fn read_headers<'a>(gateway: &'a Gateway, headers: &'a HeaderMap) -> Reading<'a> {
    gateway
        .names
        .read_headers(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

/// What the request is part of, now that its body is read.
pub(super) fn find(
    gateway: &Gateway,
    call: &Call,
    reading: Reading<'_>,
    facts: Option<&RequestFacts>,
) -> Option<Box<Dimensions>> {
    let notes = facts.map(|facts| &*facts.notes).unwrap_or_default();
    let user = facts.and_then(|facts| facts.user.as_deref());
    let Found { mut dimensions, dropped, lineage } = reading.finish(notes, user);
    for (dimension, why) in dropped {
        let (dimension, reason) = (dimension.as_str(), why.as_str());
        gateway.telemetry.emit(&DimensionDropped { dimension, reason });
    }
    let tenant = &call.caller.tenant;
    if let Some(dimensions) = &mut dimensions {
        find_root(&gateway.chains, tenant, dimensions, lineage);
    }
    let is_known = dimensions.as_ref().is_some_and(|known| known.session.is_some());
    if call.wire() == Wire::Responses
        && !is_known
        && let Some(session) = facts.and_then(|facts| derived(gateway, tenant, facts))
    {
        let dimensions = dimensions.get_or_insert_default();
        dimensions.session = Some(session);
        dimensions.session_source = Some(SessionSource::Derived);
    }
    dimensions
}

/// Puts a sub-agent into the session of the root, where clients name only who started it, or forget
/// to say so.
fn find_root(chains: &Chains, tenant: &TenantId, dimensions: &mut Dimensions, lineage: Lineage) {
    if lineage == Lineage::Shared {
        return;
    }
    let Some(named) = dimensions.session.clone() else { return };
    let root = chains.find(tenant, Link::Agent(&named)).filter(|root| **root != *named);
    if let Some(root) = root {
        let place = match lineage {
            Lineage::Parent => &mut dimensions.parent_agent,
            Lineage::Own | Lineage::Shared => &mut dimensions.agent,
        };
        *place = Some(named);
        dimensions.session = Some(root.to_string());
    }
    if let (Lineage::Parent, Some(agent), Some(session)) =
        (lineage, &dimensions.agent, &dimensions.session)
    {
        chains.put(tenant, Link::Agent(agent), session);
    }
}

/// The session of the response or the conversation that a request goes on from. Where that is not
/// known, it begins with it.
fn derived(gateway: &Gateway, tenant: &TenantId, facts: &RequestFacts) -> Option<String> {
    match facts.context()? {
        Context::Response(id) => {
            let own = gateway.names.session(&id)?;
            let known = gateway.chains.find(tenant, Link::Response(&id));
            Some(known.map_or(own, |session| session.to_string()))
        }
        Context::Conversation(id) => gateway.names.session(&id),
        Context::Kept => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn found(
        chains: &Chains,
        tenant: &str,
        (session, agent, parent): (&str, &str, Option<&str>),
        lineage: Lineage,
    ) -> (Option<String>, Option<String>, Option<String>) {
        let mut dimensions = Dimensions {
            session: some(session),
            agent: some(agent),
            parent_agent: parent.map(str::to_owned),
            ..Dimensions::default()
        };
        find_root(chains, &TenantId(tenant.into()), &mut dimensions, lineage);
        (dimensions.session, dimensions.agent, dimensions.parent_agent)
    }

    #[test]
    fn a_sub_agent_of_a_sub_agent_belongs_to_the_root() {
        let chains = Chains::default();
        let child = ("s1", "s2", Some("root"));
        let of_root = (some("s1"), some("s2"), some("root"));
        assert_eq!(found(&chains, "acme", child, Lineage::Parent), of_root);
        let grandchild = ("s2", "s3", Some("root"));
        let known = (some("s1"), some("s3"), some("s2"));
        assert_eq!(found(&chains, "acme", grandchild, Lineage::Parent), known);
        // One whose client forgets to name the parent is known by its own name.
        let forgets = (some("s1"), some("s3"), None);
        assert_eq!(found(&chains, "acme", ("s3", "root", None), Lineage::Own), forgets);
        // Nobody else's agents are known.
        let other = (some("s2"), some("s3"), some("root"));
        assert_eq!(found(&chains, "beta", grandchild, Lineage::Parent), other);
        let own = (some("s3"), some("root"), None);
        assert_eq!(found(&chains, "gamma", ("s3", "root", None), Lineage::Own), own);
    }

    #[test]
    fn agents_that_have_started_each_other_end_somewhere() {
        let chains = Chains::default();
        for _ in 0..3 {
            found(&chains, "acme", ("a", "b", None), Lineage::Parent);
            found(&chains, "acme", ("b", "a", None), Lineage::Parent);
        }
        let (session, ..) = found(&chains, "acme", ("b", "a", None), Lineage::Parent);
        assert!(session.is_some());
    }
}
