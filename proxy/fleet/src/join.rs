//! Which engine, pod, GPUs and host serve an upstream, and how sure that is.
//!
//! What the configuration says comes first, then what addresses say, then labels. Where two of them
//! disagree, the first counts and the doubt is stated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::identity::{Field, Identity};
use crate::target::{Target, TargetKind};

/// An upstream.
#[derive(Debug, Clone, Copy)]
pub struct Upstream<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it has a loopback address: it is on the gateway's host, and in its pod.
    pub is_local: bool,
}

/// Where the gateway itself runs, as far as its configuration says.
#[derive(Debug, Clone, Copy, Default)]
pub struct Whereabouts<'a> {
    /// The name of its host or node.
    pub host: Option<&'a str>,
    /// The namespace of its pod.
    pub namespace: Option<&'a str>,
    /// Its pod.
    pub pod: Option<&'a str>,
}

/// What a link rests on, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The configuration says so.
    Configuration,
    /// It is at the same address, or on the same machine.
    Address,
    /// The labels of metrics say so.
    Labels,
}

impl Basis {
    /// One word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Address => "address",
            Self::Labels => "labels",
        }
    }
}

/// What an upstream is linked to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Its name: that of a source, `namespace/pod`, a GPU's id, or a host.
    pub to: String,
    /// What that rests on.
    pub basis: Basis,
}

/// Links in the order of their names, or why there are none.
pub type Links = Result<Vec<Link>, &'static str>;

/// What serves an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// The upstream.
    pub upstream: String,
    /// The sources of its engine.
    pub engines: Links,
    /// Its pod.
    pub pods: Links,
    /// Its GPUs, or their parts.
    pub gpus: Links,
    /// The hosts of these.
    pub hosts: Links,
    /// What speaks against it, for people.
    pub doubts: Vec<String>,
}

/// A pod, with its namespace where that is told.
type Pod<'a> = (Option<&'a str>, &'a str);

/// What exporters tell of a GPU or of a part of one.
#[derive(Default)]
struct Device<'a> {
    host: Option<&'a str>,
    pods: BTreeSet<Pod<'a>>,
}

/// What serves each upstream. `assigned` has the upstreams of GPUs by their ids.
#[must_use]
pub fn joined(
    targets: &[Arc<Target>],
    upstreams: &[Upstream<'_>],
    assigned: &BTreeMap<String, String>,
    own: Whereabouts<'_>,
) -> Vec<Join> {
    let devices = devices(targets);
    let one = |upstream: &Upstream<'_>| join(targets, *upstream, assigned, own, &devices);
    let mut joins: Vec<_> = upstreams.iter().map(one).collect();
    let mut claims = BTreeMap::<String, Vec<usize>>::new();
    for (at, join) in joins.iter().enumerate() {
        for gpu in join.gpus.iter().flatten() {
            claims.entry(gpu.to.clone()).or_default().push(at);
        }
    }
    for (gpu, of) in claims.into_iter().filter(|(_, of)| of.len() > 1) {
        let names: Vec<_> =
            of.iter().filter_map(|at| joins.get(*at)).map(|one| one.upstream.clone()).collect();
        for at in of {
            let Some(join) = joins.get_mut(at) else { continue };
            let others = names.iter().filter(|name| **name != join.upstream);
            let others: Vec<_> = others.map(|name| format!("`{name}`")).collect();
            join.doubts.push(format!("{gpu} is also of the upstream {}", others.join(", ")));
        }
    }
    joins
}

/// All GPUs that any source tells of.
fn devices(targets: &[Arc<Target>]) -> BTreeMap<&str, Device<'_>> {
    let mut devices = BTreeMap::<&str, Device<'_>>::new();
    for target in targets {
        for series in &target.quantities.series {
            let who = &*series.who;
            let Some(id) = who.get(Field::Part).or_else(|| who.get(Field::Gpu)) else { continue };
            let device = devices.entry(id).or_default();
            device.host = device.host.or_else(|| who.get(Field::Node));
            device.pods.extend(pod_of(who));
        }
    }
    devices
}

fn pod_of(who: &Identity) -> Option<Pod<'_>> {
    Some((who.get(Field::Namespace), who.get(Field::Pod)?))
}

fn join(
    targets: &[Arc<Target>],
    upstream: Upstream<'_>,
    assigned: &BTreeMap<String, String>,
    own: Whereabouts<'_>,
    devices: &BTreeMap<&str, Device<'_>>,
) -> Join {
    let is_its = |target: &&Arc<Target>| {
        target.kind == TargetKind::Engine
            && target.upstreams.iter().any(|name| name == upstream.name)
    };
    let sources: Vec<_> = targets.iter().filter(is_its).collect();
    let pods = pods(&sources, upstream, own);
    let its_pods: BTreeSet<Pod<'_>> = pods.iter().map(|(pod, _)| *pod).collect();
    let gpus = gpus(upstream, assigned, devices, &its_pods);
    let hosts = hosts(gpus.as_deref().unwrap_or_default(), devices, upstream, own);
    let mut doubts = Vec::new();
    for gpu in gpus.iter().flatten() {
        doubts.extend(doubts_of(gpu, devices, &its_pods));
    }
    let nodes: BTreeSet<_> = hosts.iter().flatten().map(|host| &host.to).collect();
    if upstream.is_local && nodes.len() > 1 {
        doubts.push("its GPUs are said to be on another host than the gateway".to_owned());
    }
    let link = |to: String, basis| Link { to, basis };
    Join {
        upstream: upstream.name.to_owned(),
        engines: some(
            sources.iter().map(|source| link(source.name.to_string(), Basis::Address)),
            "no source at its address is asked for metrics",
        ),
        pods: some(
            pods.iter().map(|(pod, basis)| link(name_of(*pod), *basis)),
            "no label of its engine names a pod, and it is not on the gateway's host",
        ),
        gpus,
        hosts,
        doubts,
    }
}

/// The pods of an upstream.
fn pods<'a>(
    sources: &[&'a Arc<Target>],
    upstream: Upstream<'_>,
    own: Whereabouts<'a>,
) -> Vec<(Pod<'a>, Basis)> {
    if let Some(pod) = own.pod.filter(|_| upstream.is_local) {
        return vec![((own.namespace, pod), Basis::Address)];
    }
    let series = sources.iter().flat_map(|source| &source.quantities.series);
    let told: BTreeSet<_> = series.filter_map(|series| pod_of(&series.who)).collect();
    told.into_iter().map(|pod| (pod, Basis::Labels)).collect()
}

/// The GPUs of an upstream: those of the configuration, else those of its pods.
fn gpus(
    upstream: Upstream<'_>,
    assigned: &BTreeMap<String, String>,
    devices: &BTreeMap<&str, Device<'_>>,
    pods: &BTreeSet<Pod<'_>>,
) -> Links {
    let of_file = assigned.iter().filter(|(_, of)| *of == upstream.name);
    let of_file: Vec<_> =
        of_file.map(|(gpu, _)| Link { to: gpu.clone(), basis: Basis::Configuration }).collect();
    if !of_file.is_empty() {
        return Ok(of_file);
    }
    if pods.is_empty() {
        return Err("the configuration assigns it no GPU, and its pod is unknown");
    }
    let is_its =
        |device: &Device<'_>| device.pods.iter().any(|pod| pods.iter().any(|of| same(*pod, *of)));
    let told = devices.iter().filter(|(_, device)| is_its(device));
    some(
        told.map(|(gpu, _)| Link { to: (*gpu).to_owned(), basis: Basis::Labels }),
        "no exporter says that a GPU is of its pod",
    )
}

/// Whether two pods may be one: one of them may lack its namespace.
fn same(one: Pod<'_>, other: Pod<'_>) -> bool {
    one.1 == other.1 && one.0.is_none_or(|one| other.0.is_none_or(|other| one == other))
}

/// The hosts of these GPUs, and the gateway's own where the upstream is on it.
fn hosts(
    gpus: &[Link],
    devices: &BTreeMap<&str, Device<'_>>,
    upstream: Upstream<'_>,
    own: Whereabouts<'_>,
) -> Links {
    let mut hosts = BTreeMap::<&str, Basis>::new();
    for gpu in gpus {
        if let Some(host) = devices.get(gpu.to.as_str()).and_then(|device| device.host) {
            hosts.insert(host, Basis::Labels);
        }
    }
    if let Some(host) = own.host.filter(|_| upstream.is_local) {
        hosts.insert(host, Basis::Address);
    }
    some(
        hosts.into_iter().map(|(host, basis)| Link { to: host.to_owned(), basis }),
        "no label of its GPUs names a host, and it is not known to be on the gateway's",
    )
}

/// What speaks against a GPU being an upstream's.
fn doubts_of(
    gpu: &Link,
    devices: &BTreeMap<&str, Device<'_>>,
    pods: &BTreeSet<Pod<'_>>,
) -> Option<String> {
    let id = &gpu.to;
    let Some(device) = devices.get(id.as_str()) else {
        return Some(format!("no exporter tells of {id}"));
    };
    let is_its = |pod: &&Pod<'_>| pods.iter().any(|of| same(**pod, *of));
    let (its, others): (Vec<&Pod<'_>>, Vec<&Pod<'_>>) = device.pods.iter().partition(is_its);
    let names = || others.iter().map(|pod| name_of(**pod)).collect::<Vec<_>>().join(", ");
    match (its.is_empty(), others.is_empty(), pods.is_empty()) {
        (false, false, _) => Some(format!("{id} is shared with {}", names())),
        (true, false, false) => Some(format!("its exporter says that {id} is of {}", names())),
        _ => None,
    }
}

fn name_of((namespace, pod): Pod<'_>) -> String {
    namespace.map_or_else(|| pod.to_owned(), |namespace| format!("{namespace}/{pod}"))
}

fn some(links: impl Iterator<Item = Link>, why: &'static str) -> Links {
    let links: Vec<_> = links.collect();
    if links.is_empty() { Err(why) } else { Ok(links) }
}

#[cfg(test)]
mod tests;
