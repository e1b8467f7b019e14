//! Which engine, pod, GPUs and host serve an upstream, and how sure that is.
//!
//! What the configuration says comes first, then what addresses say, then the kubelet, then labels. Where
//! two of them disagree, the first counts and the doubt is stated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taximeter_collections::Gather as _;

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
    /// The kubelet says so.
    Podresources,
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
            Self::Podresources => "podresources",
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
    pci: Option<&'a str>,
    pods: BTreeSet<Pod<'a>>,
}

/// A device that the kubelet gives to a container.
struct Held<'a> {
    /// As exporters call it, if one tells of it.
    device: String,
    pod: Pod<'a>,
    container: Option<&'a str>,
    is_shared: bool,
}

/// What is known of all devices.
pub(crate) struct World<'a> {
    own: Whereabouts<'a>,
    /// The upstreams of GPUs by their ids, as the configuration says it.
    assigned: &'a BTreeMap<String, String>,
    devices: BTreeMap<String, Device<'a>>,
    held: Vec<Held<'a>>,
    /// Whether the kubelet tells whose devices are, be it nobody's.
    has_kubelet: bool,
}

/// What serves each upstream. `assigned` has the upstreams of GPUs by their ids; `targets` tell nothing
/// that no longer holds.
#[must_use]
pub fn joined(
    targets: &[Arc<Target>],
    upstreams: &[Upstream<'_>],
    assigned: &BTreeMap<String, String>,
    own: Whereabouts<'_>,
) -> Vec<Join> {
    let world = World::of(targets, assigned, own);
    let one = |upstream: &Upstream<'_>| join(targets, *upstream, &world);
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

impl<'a> World<'a> {
    pub(crate) fn of(
        targets: &'a [Arc<Target>],
        assigned: &'a BTreeMap<String, String>,
        own: Whereabouts<'a>,
    ) -> Self {
        let (kubelets, others): (Vec<_>, Vec<_>) =
            targets.iter().partition(|target| target.kind == TargetKind::Kubelet);
        let mut devices = BTreeMap::<String, Device<'_>>::new();
        for series in others.iter().flat_map(|target| &target.quantities.series) {
            let who = &*series.who;
            let Some(id) = who.device() else { continue };
            // A GPU has many series, and its name is kept once.
            let device = match devices.get_mut(&*id) {
                Some(device) => device,
                None => devices.entry(id.into_owned()).or_default(),
            };
            device.host = device.host.or_else(|| who.get(Field::Node));
            device.pci = device.pci.or_else(|| who.get(Field::Pci));
            device.pods.extend(pod_of(who));
        }
        let has_kubelet =
            kubelets.iter().any(|kubelet| kubelet.quantities.period.sampled_at().is_some());
        let mut world = Self { own, assigned, devices, held: Vec::new(), has_kubelet };
        for series in kubelets.iter().flat_map(|kubelet| &kubelet.quantities.series) {
            let who = &*series.who;
            let Some((device, pod)) = world.known_as(who).zip(pod_of(who)) else { continue };
            let is_shared = series.what.attributes.iter().any(|(_, sharing)| sharing == "shared");
            let container = who.get(Field::Container);
            world.held.push(Held { device, pod, container, is_shared });
        }
        world
    }

    /// What exporters call a device of the kubelet's own node. AMD's plugin knows its place on the bus
    /// only, which devices of other nodes have too.
    pub(crate) fn known_as(&self, who: &Identity) -> Option<String> {
        let name = who.device()?.into_owned();
        let is_it = |device: &Device<'_>| {
            let is_here =
                device.host.is_none_or(|host| self.own.host.is_none_or(|own| own == host));
            is_here && device.pci.is_some() && device.pci == who.get(Field::Pci)
        };
        let mut same = self.devices.iter().filter(|(_, device)| is_it(device));
        match (same.next(), same.next()) {
            (Some((known, _)), None) if !self.devices.contains_key(&name) => Some(known.clone()),
            _ => Some(name),
        }
    }

    /// What the kubelet gives to one of these pods.
    fn held_by<'w>(&'w self, pods: &'w BTreeSet<Pod<'_>>) -> BTreeSet<&'w str> {
        let its = self.held.iter().filter(|one| is_among(one.pod, pods));
        its.map(|one| one.device.as_str()).collect()
    }

    /// Whether an exporter tells of it.
    pub(crate) fn tells_of(&self, id: &str) -> bool {
        self.devices.contains_key(id)
    }

    /// Whether exporters tell of all of these.
    fn tells_of_all(&self, held: &BTreeSet<&str>) -> bool {
        held.iter().all(|id| self.tells_of(id))
    }

    /// What exporters give to one of these pods.
    fn labelled<'w>(&'w self, pods: &'w BTreeSet<Pod<'_>>) -> impl Iterator<Item = &'w str> {
        let is_its = |device: &Device<'_>| device.pods.iter().any(|pod| is_among(*pod, pods));
        let told = self.devices.iter().filter(move |(_, device)| is_its(device));
        told.map(|(id, _)| id.as_str())
    }
}

fn pod_of(who: &Identity) -> Option<Pod<'_>> {
    Some((who.get(Field::Namespace), who.get(Field::Pod)?))
}

fn join(targets: &[Arc<Target>], upstream: Upstream<'_>, world: &World<'_>) -> Join {
    let is_its = |target: &&Arc<Target>| {
        target.kind == TargetKind::Engine
            && target.upstreams.iter().any(|name| name == upstream.name)
    };
    let sources: Vec<_> = targets.iter().filter(is_its).collect();
    let pods = pods(&sources, upstream, world.own);
    let its_pods: BTreeSet<Pod<'_>> = pods.iter().map(|(pod, _)| *pod).collect();
    let gpus = gpus(upstream, world, &its_pods);
    let hosts = hosts(gpus.as_deref().unwrap_or_default(), upstream, world);
    let mut doubts = Vec::new();
    for gpu in gpus.iter().flatten() {
        doubts.extend(doubts_of(&gpu.to, world, &its_pods));
    }
    doubts.extend(left_out(gpus.as_deref().unwrap_or_default(), upstream, world, &its_pods));
    let nodes: BTreeSet<_> = hosts.iter().flatten().map(|host| &host.to).gather_set();
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
            match upstream.is_local {
                true => {
                    "it is beside the gateway, whose pod `k8s.pod.name` of `resource` does not name"
                }
                false => "no label of its engine names a pod, and it is not on the gateway's host",
            },
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
    let told: BTreeSet<_> = series.filter_map(|series| pod_of(&series.who)).gather_set();
    told.into_iter().map(|pod| (pod, Basis::Labels)).collect()
}

/// The GPUs of an upstream: those of the configuration, else those of its pods.
fn gpus(upstream: Upstream<'_>, world: &World<'_>, pods: &BTreeSet<Pod<'_>>) -> Links {
    let of_file = world.assigned.iter().filter(|(_, of)| *of == upstream.name);
    let of_file: Vec<_> =
        of_file.map(|(gpu, _)| Link { to: gpu.clone(), basis: Basis::Configuration }).collect();
    if !of_file.is_empty() {
        return Ok(of_file);
    }
    if pods.is_empty() {
        return Err("the configuration assigns it no GPU, and its pod is unknown");
    }
    let held = world.held_by(pods);
    let mut links: BTreeMap<&str, Basis> =
        held.iter().map(|id| (*id, Basis::Podresources)).gather();
    // What no exporter calls as the kubelet does, labels may name.
    if held.is_empty() || !world.tells_of_all(&held) {
        for id in world.labelled(pods) {
            links.entry(id).or_insert(Basis::Labels);
        }
    }
    let why = match world.has_kubelet {
        true => "neither the kubelet nor an exporter says that a GPU is of its pod",
        false => "no exporter says that a GPU is of its pod",
    };
    some(links.into_iter().map(|(id, basis)| Link { to: id.to_owned(), basis }), why)
}

fn is_among(pod: Pod<'_>, pods: &BTreeSet<Pod<'_>>) -> bool {
    pods.iter().any(|of| same(pod, *of))
}

/// Whether two pods may be one: one of them may lack its namespace.
fn same(one: Pod<'_>, other: Pod<'_>) -> bool {
    one.1 == other.1 && one.0.is_none_or(|one| other.0.is_none_or(|other| one == other))
}

/// The hosts of these GPUs, and the gateway's own where the upstream is on it. The kubelet is on it too.
fn hosts(gpus: &[Link], upstream: Upstream<'_>, world: &World<'_>) -> Links {
    let mut hosts = BTreeMap::<&str, Basis>::new();
    for gpu in gpus {
        if let Some(host) = world.devices.get(&gpu.to).and_then(|device| device.host) {
            hosts.insert(host, Basis::Labels);
        }
    }
    if let Some(host) = world.own.host {
        if gpus.iter().any(|gpu| gpu.basis == Basis::Podresources) {
            hosts.insert(host, Basis::Podresources);
        }
        if upstream.is_local {
            hosts.insert(host, Basis::Address);
        }
    }
    some(
        hosts.into_iter().map(|(host, basis)| Link { to: host.to_owned(), basis }),
        match upstream.is_local {
            true => "it is on the gateway's host, which `host.name` of `resource` does not name",
            false => {
                "no label of its GPUs names a host, and it is not known to be on the gateway's"
            }
        },
    )
}

/// What speaks against a GPU being an upstream's, or its alone.
fn doubts_of(id: &str, world: &World<'_>, pods: &BTreeSet<Pod<'_>>) -> Vec<String> {
    let mut doubts = Vec::new();
    let device = world.devices.get(id);
    if device.is_none() {
        doubts.push(format!("no exporter tells of {id}"));
    }
    let labelled = device.map(|device| device.pods.clone()).unwrap_or_default();
    let held: Vec<_> = world.held.iter().filter(|one| one.device == id).collect();
    let by_kubelet: BTreeSet<_> = held.iter().map(|one| one.pod).gather_set();
    for (who, of) in [("its exporter", &labelled), ("the kubelet", &by_kubelet)] {
        let (its, others): (Vec<&Pod<'_>>, Vec<&Pod<'_>>) =
            of.iter().partition(|pod| is_among(**pod, pods));
        let names = || others.iter().map(|pod| name_of(**pod)).collect::<Vec<_>>().join(", ");
        let doubt = match (its.is_empty(), others.is_empty(), pods.is_empty()) {
            (false, false, _) => format!("{id} is shared with {}", names()),
            (true, false, false) => format!("{who} says that {id} is of {}", names()),
            _ => continue,
        };
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    let its = || held.iter().filter(|one| is_among(one.pod, pods));
    let containers: BTreeSet<_> = its().filter_map(|one| one.container).gather_set();
    if containers.len() > 1 {
        let names = containers.into_iter().collect::<Vec<_>>().join(", ");
        doubts.push(format!("{id} is shared by the containers {names} of its pod"));
    } else if held.len() == 1 && its().any(|one| one.is_shared) {
        doubts.push(format!("{id} is given as a replica, so others may have it too"));
    }
    doubts
}

/// What others give to an upstream's pods, and is not linked: what comes before says otherwise.
fn left_out(
    gpus: &[Link],
    upstream: Upstream<'_>,
    world: &World<'_>,
    pods: &BTreeSet<Pod<'_>>,
) -> Vec<String> {
    let held = world.held_by(pods);
    let is_linked = |id: &&str| gpus.iter().any(|link| link.to == *id);
    let by_kubelet = held.iter().filter(|id| !is_linked(id));
    let mut doubts: Vec<_> = by_kubelet
        .map(|id| format!("the kubelet gives {id} to its pod, and the configuration does not"))
        .collect();
    // It knows the pods of its own node, and may call devices as no exporter does.
    let is_known = !held.is_empty() || (upstream.is_local && world.has_kubelet);
    if is_known && world.tells_of_all(&held) {
        let others = world.labelled(pods).filter(|id| !held.contains(id));
        doubts.extend(
            others
                .map(|id| format!("its exporter gives {id} to its pod, and the kubelet does not")),
        );
    }
    doubts
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
