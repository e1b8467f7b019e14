//! Whose each GPU is. Several sources may tell that, each in its own time: the kubelet, and the labels of
//! exporters.
//!
//! What each of them has said is known, and so is what was told of the GPU. It moves when a source says
//! something else than before, and that was not told yet. A source that says another than the others, and
//! always the same, tells no move: that is a doubt of the [joins](crate::join).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use taximeter_collections::Gather as _;

use crate::events::event::{Event, EventKind};
use crate::events::facts::{Fact, Gpu, pod};
use crate::events::held::{Holding, Key, OWN, UP};
use crate::identity::{Field, Identity};
use crate::join::{Whereabouts, World};
use crate::quantity::GPU_OWNER;
use crate::target::{Silence, Target, TargetKind, TargetState};

const KIND: EventKind = EventKind::GpuOwner;
/// How the id of a GPU begins that all programs call so.
const UUID: &str = "GPU-";
/// What is between the pods of a GPU.
const COMMA: &str = ", ";

/// A source that has never answered since the start is silent after so many questions.
pub(super) const QUESTIONS: u64 = 3;

/// How a source does. `None`: it was asked too little to know that.
pub(super) fn state(target: &Target, now: Instant) -> Option<&'static str> {
    match (target.silence(now), &target.state) {
        (None, _) => Some(UP),
        (Some(Silence::Stale(_)), _) => Some("stale"),
        (Some(Silence::Never), TargetState::Failing { .. }) => {
            (target.asked >= QUESTIONS).then_some("stale")
        }
        (Some(Silence::Never), _) => None,
    }
}

/// All sources.
pub(super) struct All<'a> {
    targets: &'a [Arc<Target>],
    /// The gateway's own host, which is the kubelet's.
    host: Option<&'a str>,
    /// The kubelets that tell something, or may do so soon.
    kubelets: Vec<&'a Arc<str>>,
    pub(super) now: Instant,
}

impl<'a> All<'a> {
    pub(super) fn of(targets: &'a [Arc<Target>], host: Option<&'a str>, now: Instant) -> Self {
        let is_heard = |target: &&Arc<Target>| {
            target.kind == TargetKind::Kubelet && state(target, now) != Some("stale")
        };
        let kubelets = targets.iter().filter(is_heard).map(|target| &target.name).collect();
        Self { targets, host, kubelets, now }
    }
}

impl Holding {
    /// Whether a kubelet has answered before.
    pub(super) fn has_heard(&self, kubelet: &Arc<str>) -> bool {
        let state = (kubelet.clone(), EventKind::SourceState, kubelet.to_string());
        self.held.get(&state).is_some_and(|held| held.value == UP)
            || self.said(kubelet).next().is_some()
    }

    /// The GPUs of which a source has said whose they are.
    fn said<'w>(&'w self, source: &'w Arc<str>) -> impl Iterator<Item = &'w str> {
        let all = self.held.range((source.clone(), KIND, String::new())..);
        let of_source = all.take_while(move |((of, kind, _), _)| of == source && *kind == KIND);
        of_source.map(|((.., subject), _)| subject.as_str())
    }

    /// What a kubelet says of all GPUs that it has ever listed: one that it no longer lists is nobody's.
    pub(super) fn listed(&self, kubelet: &Target, all: &All<'_>) -> Vec<Fact> {
        let series = || {
            let series = kubelet.quantities.series.iter();
            series.filter(|one| one.what.quantity == GPU_OWNER).map(|one| &*one.who)
        };
        let is_certain = |who: &Identity| who.device().is_some_and(|id| id.starts_with(UUID));
        // What exporters tell of is looked up only for devices that they may call otherwise.
        let has_exporters = all.targets.iter().any(|target| target.kind == TargetKind::Gpu);
        let (own, nothing) =
            (Whereabouts { host: all.host, ..Default::default() }, BTreeMap::new());
        let is_needed = has_exporters && !series().all(is_certain);
        let world = is_needed.then(|| World::of(all.targets, &nothing, own));
        let name_of = |who: &Identity| match &world {
            Some(world) if !is_certain(who) => {
                world.known_as(who).filter(|name| world.tells_of(name))
            }
            _ => who.device().map(Cow::into_owned),
        };
        let mut owners = BTreeMap::<String, Gpu<'_>>::new();
        let is_whole = !kubelet.cut && kubelet.quantities.counts.left_out == 0;
        let mut has_others = false;
        for who in series() {
            let Some(name) = name_of(who) else {
                has_others = true;
                continue;
            };
            let gpu = owners.entry(name).or_default();
            gpu.owners.extend(pod(who));
            gpu.names.extend([Field::Gpu, Field::Part].iter().filter_map(|of| who.get(*of)));
        }
        // A device that no exporter calls so may be any.
        let is_gone = |gpu: &&str| {
            is_whole && !owners.contains_key(*gpu) && (!has_others || gpu.starts_with(UUID))
        };
        let gone = self.said(&kubelet.name).filter(is_gone);
        let mut facts: Vec<_> = gone.map(|gpu| Fact::new(KIND, gpu, "", Vec::new())).collect();
        facts.extend(owners.iter().map(|(name, gpu)| {
            let about = gpu.names.iter().map(|name| (*name).to_owned()).collect();
            Fact::new(KIND, name, &gpu.pods(), about)
        }));
        facts
    }

    /// A kubelet says whose a GPU is. Where it has answered before and did not list that GPU, it was
    /// nobody's, if no program calls it otherwise.
    pub(super) fn held_by(
        &mut self,
        kubelet: &Arc<str>,
        fact: &Fact,
        was_heard: bool,
        at: Timestamp,
    ) -> Option<Event> {
        let before = self
            .replace(kubelet, fact)
            .or_else(|| (was_heard && fact.subject.starts_with(UUID)).then(String::new));
        match before {
            Some(before) => self.moved(kubelet, fact, before, at),
            None => {
                self.replace(&OWN.into(), fact);
                None
            }
        }
    }

    /// The labels of an exporter say whose a GPU is. While a kubelet tells whose it is, they are not
    /// looked at; what they last said stays known.
    pub(super) fn labelled(
        &mut self,
        exporter: &Arc<str>,
        fact: &Fact,
        all: &All<'_>,
        at: Timestamp,
    ) -> Option<Event> {
        let key = |source: &Arc<str>| (source.clone(), KIND, fact.subject.clone());
        if all.kubelets.iter().any(|kubelet| self.held.contains_key(&key(kubelet))) {
            return None;
        }
        match self.replace(exporter, fact) {
            Some(before) => self.moved(exporter, fact, before, at),
            None => {
                let told = key(&OWN.into());
                if !self.held.contains_key(&told) {
                    self.hold(told, fact);
                }
                None
            }
        }
    }

    /// A source says this now. What it said before.
    fn replace(&mut self, source: &Arc<str>, fact: &Fact) -> Option<String> {
        let key = (source.clone(), KIND, fact.subject.clone());
        let Some(held) = self.held.get_mut(&key) else {
            self.hold(key, fact);
            return None;
        };
        self.has_changed |= held.value != fact.value;
        Some(std::mem::replace(&mut held.value, fact.value.clone()))
    }

    /// A GPU has moved, where a source says another than it said `before`, and that was not told yet.
    fn moved(
        &mut self,
        source: &Arc<str>,
        fact: &Fact,
        before: String,
        at: Timestamp,
    ) -> Option<Event> {
        if before == fact.value {
            return None;
        }
        let key: Key = (OWN.into(), KIND, fact.subject.clone());
        if !self.held.contains_key(&key) {
            self.hold(key.clone(), &Fact { value: before, ..fact.clone() });
        }
        let told = self.held.get_mut(&key)?;
        if are_same(&told.value, &fact.value) {
            return None;
        }
        let before = std::mem::replace(&mut told.value, fact.value.clone());
        told.event(source, fact, Some(before), at)
    }

    /// Forgets what was told of GPUs of which no source says anything any more.
    pub(super) fn forget_owners(&mut self) {
        let words = self.held.keys().filter(|(source, kind, _)| *kind == KIND && &**source != OWN);
        let said: BTreeSet<_> = words.map(|(.., subject)| subject.clone()).gather_set();
        self.held.retain(|(source, kind, subject), _| {
            *kind != KIND || &**source != OWN || said.contains(subject)
        });
    }
}

/// Whether these are the same pods. A label may lack the namespace.
fn are_same(one: &str, other: &str) -> bool {
    let is_same = |one: &str, other: &str| {
        let ends = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        ends(one, other) || ends(other, one)
    };
    let (one, other): (Vec<_>, Vec<_>) = (one.split(COMMA).collect(), other.split(COMMA).collect());
    let is_among = |name: &&str, all: &[&str]| all.iter().any(|of| is_same(name, of));
    one.len() == other.len()
        && one.iter().all(|name| is_among(name, &other))
        && other.iter().all(|name| is_among(name, &one))
}

#[cfg(test)]
mod tests;
