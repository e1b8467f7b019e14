//! The engines, GPUs and hosts that sources tell of, each with its quantities.

use std::collections::{BTreeMap, BTreeSet};

use taximeter_collections::Gather as _;

use crate::fleet::{FleetAnswer, FleetQuantity, FleetSource};

/// What a table has a row for each of.
pub(super) struct Kind {
    /// The layer of its quantities.
    layer: &'static str,
    /// The labels that tell one from the other.
    labels: &'static [&'static str],
    /// Whether what is told of several of them at once is shown with each.
    shares: bool,
}

/// Of more subjects of a source it is not found out whom several share.
const SHARING_MAX: usize = 256;

/// An engine, or one of several in a server.
pub(super) const ENGINE: Kind = Kind {
    layer: "L6",
    labels: &[
        "instance",
        "host.name",
        "k8s.namespace.name",
        "k8s.pod.name",
        "gen_ai.request.model",
        "engine",
        "engine.rank",
    ],
    shares: true,
};
/// A GPU, or a part of one.
pub(super) const GPU: Kind = Kind {
    layer: "L1",
    labels: &["instance", "host.name", "hw.id", "hw.pci", "hw.gpu.part"],
    // What is told of a whole GPU is not that of its parts.
    shares: false,
};
/// A host.
pub(super) const HOST: Kind =
    Kind { layer: "L3", labels: &["instance", "host.name"], shares: false };

/// One of them.
pub(super) struct Subject<'a> {
    /// Who tells of it.
    pub(super) source: &'a FleetSource,
    quantities: Vec<&'a FleetQuantity>,
    /// Of a GPU: what the kubelet says of whose it is.
    held: Vec<&'a FleetQuantity>,
}

/// Subjects of one source by the labels that tell them apart.
type Subjects<'a> = BTreeMap<Vec<Option<&'a str>>, Vec<&'a FleetQuantity>>;

/// All of a kind, in the order of their sources and names.
pub(super) fn subjects<'a>(found: &'a FleetAnswer, kind: &Kind) -> Vec<Subject<'a>> {
    let kubelets = found.sources.iter().filter(|source| source.kind == "kubelet");
    let held: Vec<_> = kubelets.flat_map(|kubelet| &kubelet.quantities).collect();
    let mut all = Vec::new();
    for source in &found.sources {
        let mut of_source = Subjects::new();
        for quantity in source.quantities.iter().filter(|one| one.layer == kind.layer) {
            let labels = kind.labels.iter().map(|label| quantity.labels.get(*label));
            let key = labels.map(|label| label.map(String::as_str)).collect();
            of_source.entry(key).or_default().push(quantity);
        }
        if kind.shares && of_source.len() <= SHARING_MAX {
            of_source = shared(of_source);
        }
        all.extend(of_source.into_values().map(|quantities| {
            let is_it =
                |one: &&&FleetQuantity| quantities.first().is_some_and(|it| is_same(it, one));
            let held = held.iter().filter(is_it).copied().collect();
            Subject { source, quantities, held }
        }));
    }
    all
}

/// Whether both are about the same GPU, or the same part of one.
fn is_same(one: &FleetQuantity, other: &FleetQuantity) -> bool {
    let same = |label| one.labels.get(label) == other.labels.get(label);
    one.labels.contains_key("hw.id") && same("hw.id") && same("hw.gpu.part")
}

/// The same without those of which only some labels are told: others have these as well, and take over
/// what these tell. An engine names its model in some metrics, and its number in others.
fn shared(all: Subjects<'_>) -> Subjects<'_> {
    let is_part = |part: &[Option<&str>], of: &[Option<&str>]| {
        part != of && part.iter().zip(of).all(|(part, of)| part.is_none() || part == of)
    };
    let (parts, mut whole): (Subjects<'_>, Subjects<'_>) = all
        .iter()
        .map(|(key, quantities)| (key.clone(), quantities.clone()))
        .partition(|(key, _)| all.keys().any(|other| is_part(key, other)));
    for (part, quantities) in &parts {
        for (_, others) in whole.iter_mut().filter(|(key, _)| is_part(part, key)) {
            let known: BTreeSet<_> = others.iter().map(|other| other.name).gather_set();
            others.extend(quantities.iter().filter(|one| !known.contains(one.name)));
        }
    }
    whole
}

/// A number, or why there is none.
pub(super) type Told<'a> = Result<f64, &'a str>;

/// Labels that a quantity must have.
pub(super) type Having<'a> = &'a [(&'a str, &'a str)];

impl<'a> Subject<'a> {
    /// A label of it.
    pub(super) fn label(&self, label: &str) -> Option<&'a str> {
        self.quantities.iter().find_map(|one| one.labels.get(label)).map(String::as_str)
    }

    /// The pods that have it: by its own labels, and by the kubelet.
    pub(super) fn owners(&self) -> String {
        let name = |one: &&FleetQuantity| {
            let pod = one.labels.get("k8s.pod.name")?;
            let namespace = one.labels.get("k8s.namespace.name");
            Some(namespace.map_or_else(|| pod.clone(), |namespace| format!("{namespace}/{pod}")))
        };
        let names: BTreeSet<_> =
            self.quantities.iter().chain(&self.held).filter_map(name).gather_set();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// The upstream that it serves.
    pub(super) fn upstream(&self) -> Option<&'a str> {
        self.quantities.iter().find_map(|one| one.upstream.as_deref())
    }

    /// The short name of the program that tells of it.
    pub(super) fn program(&self) -> &'static str {
        self.quantities.first().map_or("", |one| one.program)
    }

    /// All of its quantities with this name.
    pub(super) fn all(&self, name: &str, having: Having<'_>) -> Vec<&'a FleetQuantity> {
        let has = |quantity: &FleetQuantity| {
            let is = |(label, value): &(&str, &str)| {
                quantity.labels.get(*label).is_some_and(|label| label == value)
            };
            quantity.name == name && having.iter().all(is)
        };
        self.quantities.iter().copied().filter(|quantity| has(quantity)).collect()
    }

    /// The values of a quantity, added up.
    pub(super) fn value(&self, name: &str, having: Having<'_>) -> Told<'a> {
        let all = self.all(name, having);
        let values: Vec<_> = all.iter().filter_map(|one| one.value).collect();
        if values.is_empty() { Err(self.why(name)) } else { Ok(values.iter().sum()) }
    }

    /// By how much a counter grows per second; of several, all of them together.
    pub(super) fn rate(&self, name: &str, having: Having<'_>) -> Told<'a> {
        let all = self.all(name, having);
        if all.is_empty() {
            return Err(self.why(name));
        }
        // One that is not known yet would be missing in the sum.
        let rates: Option<Vec<_>> = all.iter().map(|one| one.rate).collect();
        rates.map(|rates| rates.iter().sum()).ok_or("its counter was read once so far")
    }

    /// Why a quantity is not known.
    fn why(&self, name: &str) -> &'a str {
        let unknown = self.source.unknown.iter().find(|one| one.name == name);
        unknown.map_or("the source does not tell it", |one| &one.why)
    }
}

/// The part that one number is of another.
pub(super) fn share<'a>(part: Told<'a>, whole: Told<'a>) -> Told<'a> {
    let (part, whole) = (part?, whole?);
    if whole > 0.0 { Ok(part / whole) } else { Err("there was none of it lately") }
}
