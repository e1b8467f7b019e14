//! What serves each upstream, as the API tells it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use taximeter_fleet::{EventKind, Fact, Join, Links, Target, Upstream, Whereabouts, joined};
use taximeter_gateway::gateway::Gateway;
use taximeter_system::clock;
use utoipa::ToSchema;

/// What serves an upstream: its engine, pod, GPUs and host.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetJoin {
    /// The upstream.
    pub(crate) upstream: String,
    /// The sources of its engine.
    pub(crate) engines: FleetLinks,
    /// Its pod.
    pub(crate) pods: FleetLinks,
    /// Its GPUs, or their parts.
    pub(crate) gpus: FleetLinks,
    /// The hosts of these.
    pub(crate) hosts: FleetLinks,
    /// What speaks against it.
    pub(crate) doubts: Vec<String>,
}

/// Links, or why there are none.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetLinks {
    /// In the order of their names.
    pub(crate) links: Vec<FleetLink>,
    /// Why there are none. Null if there are some.
    pub(crate) unknown: Option<&'static str>,
}

/// What an upstream is linked to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FleetLink {
    /// The name of a source, `namespace/pod`, a GPU's id, or a host.
    pub(crate) to: String,
    /// What that rests on, the surest first: `configuration`, `address`, `podresources` (the kubelet) or
    /// `labels`.
    pub(crate) basis: &'static str,
}

/// What serves each upstream of a gateway, as things are now.
pub(crate) fn joins(gateway: &Gateway) -> Vec<FleetJoin> {
    let config = &gateway.config;
    let Some(fleet) = &config.fleet else { return Vec::new() };
    let upstreams = config.upstreams.iter();
    let upstreams: Vec<_> = upstreams
        .map(|one| Upstream { name: &one.name, is_local: one.url.is_loopback() })
        .collect();
    let own = whereabouts(gateway);
    let now = clock::now();
    let targets: Vec<_> =
        gateway.fleet.targets().into_iter().map(|one| holding(one, now)).collect();
    let joins = joined(&targets, &upstreams, &fleet.assigned, own);
    joins.into_iter().map(FleetJoin::of).collect()
}

/// Where the gateway itself runs, as its configuration says it.
#[must_use]
pub fn whereabouts(gateway: &Gateway) -> Whereabouts<'_> {
    let told = |names: &[&str]| {
        names.iter().find_map(|name| gateway.config.resource.get(*name)).map(String::as_str)
    };
    Whereabouts {
        host: told(&["k8s.node.name", "host.name"]),
        namespace: told(&["k8s.namespace.name"]),
        pod: told(&["k8s.pod.name"]),
    }
}

/// The upstreams that claim each GPU, as things are now.
#[must_use]
pub fn claims(gateway: &Gateway) -> Vec<Fact> {
    let mut claims = BTreeMap::<String, Vec<String>>::new();
    for join in joins(gateway) {
        for gpu in join.gpus.links {
            claims.entry(gpu.to).or_default().push(join.upstream.clone());
        }
    }
    let fact = |(gpu, of): (String, Vec<String>)| {
        Fact::new(EventKind::GpuClaimed, &gpu, &of.join(", "), of)
    };
    claims.into_iter().map(fact).collect()
}

/// The source without what no longer holds.
fn holding(target: Arc<Target>, now: Instant) -> Arc<Target> {
    match target.silence(now) {
        None => target,
        Some(_) => Arc::new(Target { quantities: Arc::default(), ..Target::clone(&target) }),
    }
}

impl FleetJoin {
    fn of(join: Join) -> Self {
        let Join { upstream, engines, pods, gpus, hosts, doubts } = join;
        let [engines, pods, gpus, hosts] = [engines, pods, gpus, hosts].map(FleetLinks::of);
        Self { upstream, engines, pods, gpus, hosts, doubts }
    }
}

impl FleetLinks {
    fn of(links: Links) -> Self {
        let unknown = links.as_ref().err().copied();
        let links = links.into_iter().flatten();
        let links =
            links.map(|link| FleetLink { to: link.to, basis: link.basis.as_str() }).collect();
        Self { links, unknown }
    }
}
