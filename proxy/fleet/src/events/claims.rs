//! Which upstreams claim each GPU: what of that is known, and so can be compared.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use taximeter_collections::Gather as _;

use crate::events::event::EventKind;
use crate::events::facts::Fact;
use crate::events::held::{OWN, UP};
use crate::events::owners::state;
use crate::events::watcher::Watcher;
use crate::target::{Target, TargetKind};

const KIND: EventKind = EventKind::GpuClaimed;
/// What is between the upstreams that claim a GPU.
const COMMA: &str = ", ";

impl Watcher {
    /// The claims that are known, of `claims`, which are those that the joins say now. Those that have
    /// ended are among them: where several claimed a GPU and nobody does any more.
    ///
    /// An end is known where a source still tells of the GPU, or the upstreams are gone from the
    /// configuration; else those who told of it are silent. Nothing is known before all sources had the
    /// time to answer.
    #[must_use]
    pub fn claims(
        &self,
        mut claims: Vec<Fact>,
        targets: &[Arc<Target>],
        upstreams: &BTreeSet<&str>,
        now: Instant,
    ) -> Vec<Fact> {
        let tells = |target: &&Arc<Target>| {
            matches!(target.kind, TargetKind::Engine | TargetKind::Gpu | TargetKind::Kubelet)
        };
        if targets.iter().filter(tells).any(|target| state(target, now).is_none()) {
            return Vec::new();
        }
        let up = targets.iter().filter(|target| state(target, now) == Some(UP));
        let up: BTreeSet<&Arc<str>> = up.map(|target| &target.name).gather_set();
        let mut ended = Vec::new();
        for ((source, kind, gpu), held) in &self.all.held {
            // A single claim that ends is no news.
            if *kind != KIND || &**source != OWN || !held.value.contains(COMMA) {
                continue;
            }
            let claim = claims.iter().position(|claim| claim.subject == *gpu);
            let still = claim.and_then(|at| claims.get(at)).map_or("", |claim| &claim.value);
            let still: BTreeSet<&str> = still.split(COMMA).gather_set();
            let mut lost = held.value.split(COMMA).filter(|name| !still.contains(name)).peekable();
            if lost.peek().is_none() {
                continue;
            }
            let is_known = self.is_told_of(gpu, &up) || lost.all(|name| !upstreams.contains(name));
            match claim {
                Some(at) if !is_known => drop(claims.swap_remove(at)),
                None if is_known => ended.push(Fact::new(KIND, gpu, "", Vec::new())),
                _ => {}
            }
        }
        claims.extend(ended);
        claims
    }

    /// Whether any of these sources tells of a GPU.
    fn is_told_of(&self, gpu: &str, sources: &BTreeSet<&Arc<str>>) -> bool {
        let of = |source: &Arc<str>, kind| (source.clone(), kind, gpu.to_owned());
        let kinds = [EventKind::GpuAppeared, EventKind::GpuOwner];
        sources
            .iter()
            .any(|source| kinds.iter().any(|kind| self.all.held.contains_key(&of(source, *kind))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::tests::Sources;

    /// What the joins say of `GPU-1`.
    fn claimed(by: &str) -> Vec<Fact> {
        let names: Vec<_> = by.split(COMMA).map(str::to_owned).collect();
        if by.is_empty() { Vec::new() } else { vec![Fact::new(KIND, "GPU-1", by, names)] }
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn a_claim_that_ends_for_all_upstreams_at_once_is_told() {
        let mut all = Sources::new();
        all.exporter_says(&[("GPU-1", "a"), ("GPU-2", "")]);
        assert_eq!(all.claimed(claimed("one, two"), &["one", "two"]), NOTHING, "the first time");
        assert_eq!(
            all.claimed(claimed(""), &["one", "two"]),
            ["gpu_claimed: GPU-1 is no longer claimed by one, two"]
        );
        assert_eq!(all.claimed(claimed(""), &["one", "two"]), NOTHING);
        assert_eq!(
            all.claimed(claimed("one, two"), &["one", "two"]),
            ["gpu_claimed: GPU-1 is claimed by one, two"]
        );
        // Another process finds it, too.
        all.restart();
        all.exporter_says(&[("GPU-1", ""), ("GPU-2", "")]);
        assert_eq!(
            all.claimed(claimed(""), &["one", "two"]),
            ["gpu_claimed: GPU-1 is no longer claimed by one, two"]
        );
    }

    #[test]
    fn while_nobody_tells_of_a_gpu_its_claims_are_as_they_were() {
        let mut all = Sources::new();
        all.exporter_says(&[("GPU-1", "a")]);
        let both = &["one", "two"];
        all.claimed(claimed("one, two"), both);
        all.restart();
        assert_eq!(all.claimed(claimed(""), both), NOTHING, "the exporter was not heard yet");
        assert_eq!(all.claimed(claimed("one"), both), NOTHING);
        all.exporter_says(&[("GPU-1", "a")]);
        all.silence_of_exporter();
        assert_eq!(all.claimed(claimed(""), both), NOTHING);
        assert_eq!(all.claimed(claimed("two"), both), NOTHING);
        // Those are gone from the configuration, whoever is silent.
        assert_eq!(
            all.claimed(claimed("two"), &["two"]),
            ["gpu_claimed: GPU-1 is of two alone now, and was claimed by one, two"]
        );
        assert_eq!(all.claimed(claimed("two, three"), &["two", "three"]).len(), 1);
        assert_eq!(
            all.claimed(claimed(""), &[]),
            ["gpu_claimed: GPU-1 is no longer claimed by two, three"]
        );
    }

    #[test]
    fn a_gpu_that_only_the_kubelet_tells_of_is_told_of() {
        let mut all = Sources::new();
        all.exporter_says(&[("GPU-9", "")]);
        all.kubelet_says(&[("a", "GPU-1"), ("b", "GPU-1")]);
        all.claimed(claimed("one, two"), &["one", "two"]);
        all.kubelet_says(&[]);
        assert_eq!(
            all.claimed(claimed(""), &["one", "two"]),
            ["gpu_claimed: GPU-1 is no longer claimed by one, two"]
        );
    }
}
