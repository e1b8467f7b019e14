//! Whom each series is about. Exporters print the same labels with many metrics, so each set of labels
//! is read once.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::identity::{Field, Identity};
use crate::names::Names;
use crate::reading::{Component, Version};
use crate::row::Source;
use crate::sample::{Label, Samples, value};

/// All identities of a scrape. A number stands for one of them.
pub(super) struct Who<'a> {
    source: &'static Source,
    identities: Vec<Arc<Identity>>,
    numbers: HashMap<Arc<Identity>, usize, RandomState>,
    /// By the hash of labels: those labels, their identity, and what else they tell.
    labels: HashMap<u64, OfLabels<'a>, RandomState>,
    hasher: RandomState,
    /// Name of the node by the address that samples were taken from.
    nodes: HashMap<Option<&'a str>, &'a str>,
    /// Another scraper renamed the exporter's own labels.
    is_exported: bool,
    notes: BTreeSet<String>,
    versions: Vec<Version>,
}

/// What labels tell.
struct OfLabels<'a> {
    labels: &'a [Label<'a>],
    identity: usize,
    /// Those of them which nobody knows, as attributes.
    attributes: Attributes,
}

/// Names and values of what else tells series apart.
pub(super) type Attributes = Vec<(String, String)>;

/// Most versions that a scrape tells.
const VERSIONS_MAX: usize = 256;
/// Most notes of a program.
const NOTES_MAX: usize = 20;

impl<'a> Who<'a> {
    pub(super) fn new(
        source: &'static Source,
        samples: &'a Samples<'a>,
        names: &Names<'a>,
    ) -> Self {
        let of_gpus = source.subject.contains(&Field::Gpu);
        let mut labels = names.metrics.iter().flat_map(|metric| metric.labels);
        let is_exported = of_gpus && labels.any(|label| label.name == "exported_pod");
        let (mut nodes, mut versions) = (HashMap::new(), Vec::new());
        if let Some((info, label)) = source.node_of {
            let infos = samples.iter().filter(|(sample, _)| sample.name == info);
            for (_, labels) in infos {
                if let Some(node) = value(labels, label) {
                    nodes.insert(value(labels, "instance"), node);
                    note_versions(&mut versions, source, labels, Some(node));
                }
            }
        }
        let mut notes = BTreeSet::new();
        if is_exported {
            notes.insert(
                "labels pod, namespace and container are of the exporter: the GPU's owner is in \
                 exported_pod, exported_namespace, exported_container"
                    .to_owned(),
            );
        }
        Self {
            source,
            identities: Vec::new(),
            numbers: HashMap::default(),
            labels: HashMap::default(),
            hasher: RandomState::default(),
            nodes,
            is_exported,
            notes,
            versions,
        }
    }

    /// Says something that should be known of the reading. What is beyond the most is left out.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.insert(note);
        }
    }

    /// All notes, and the versions that labels tell.
    pub(super) fn finish(self) -> (BTreeSet<String>, Vec<Version>) {
        (self.notes, self.versions)
    }

    /// The identity that a number stands for.
    pub(super) fn get(&self, number: usize) -> Arc<Identity> {
        self.identities.get(number).cloned().unwrap_or_default()
    }

    /// The number of whom `labels` are about, and their attributes where a row says nothing of labels.
    pub(super) fn of(&mut self, labels: &'a [Label<'a>]) -> (usize, &Attributes) {
        let mut hash = self.hasher.hash_one(Plain(labels));
        // Of two with one hash, the second stands at the next one.
        while self.labels.get(&hash).is_some_and(|known| known.labels != labels) {
            hash = hash.wrapping_add(1);
        }
        if !self.labels.contains_key(&hash) {
            let identity = Arc::new(self.read(labels));
            let number = match self.numbers.get(&identity) {
                Some(number) => *number,
                None => {
                    self.numbers.insert(Arc::clone(&identity), self.identities.len());
                    self.identities.push(identity);
                    self.identities.len() - 1
                }
            };
            let others = labels.iter().filter(|label| !self.source.knows(label.name));
            let others = others.filter(|label| !label.value.is_empty());
            let attributes =
                others.map(|label| (label.name.to_owned(), label.value.clone().into_owned()));
            let attributes = attributes.collect();
            self.labels.insert(hash, OfLabels { labels, identity: number, attributes });
        }
        const NONE: &Attributes = &Vec::new();
        self.labels.get(&hash).map_or((0, NONE), |known| (known.identity, &known.attributes))
    }

    fn read(&mut self, labels: &'a [Label<'a>]) -> Identity {
        let mut identity = Identity::default();
        for (name, field) in self.source.identity {
            let owner = matches!(field, Field::Pod | Field::Namespace | Field::Container);
            if self.is_exported && owner && !name.starts_with("exported_") {
                continue;
            }
            if let Some(value) = value(labels, name) {
                if *field == Field::Gpu && value.contains("::") {
                    self.note(format!(
                        "{value}: what stands behind `::` is a number that a plugin gave, and is left \
                         out"
                    ));
                }
                if *field == Field::Node && value.contains("dcgm-exporter") {
                    self.note(format!("{value} may be the exporter's own pod, and no node"));
                }
                identity.set(*field, value);
            }
        }
        identity.identify();
        if let Some(node) = self.nodes.get(&value(labels, "instance")) {
            identity.set(Field::Node, node);
        }
        let host = identity.get(Field::Node).or_else(|| identity.get(Field::Instance));
        note_versions(&mut self.versions, self.source, labels, host);
        identity
    }
}

/// Notes the versions that labels tell of a host, each once.
fn note_versions(
    all: &mut Vec<Version>,
    source: &'static Source,
    labels: &[Label<'_>],
    host: Option<&str>,
) {
    for (label, of) in source.versions {
        let is_known =
            |of: Component| all.iter().any(|one| (one.of, one.host.as_deref()) == (of, host));
        let Some(version) = value(labels, label).and_then(|text| Version::of(*of, host, text))
        else {
            continue;
        };
        if all.len() < VERSIONS_MAX && !is_known(*of) {
            all.push(version);
        }
    }
}

/// Labels as they are hashed.
struct Plain<'a>(&'a [Label<'a>]);

impl std::hash::Hash for Plain<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        for label in self.0 {
            state.write(label.name.as_bytes());
            state.write(label.value.as_bytes());
        }
    }
}
