//! An exporter and a kubelet of one host, each asked when a test likes, and who watches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::events::facts::Fact;
use crate::events::watcher::{Own, Watcher};
use crate::identity::{Field, Identity};
use crate::kubelet::{Held, read_held};
use crate::quantity::{GPU_OWNER, POWER};
use crate::reading::{Measured, Reading, Value};
use crate::target::{Target, TargetKind, TargetState};
use crate::{Pool, Quantity};

/// Any instant: only differences count.
#[expect(clippy::disallowed_methods, reason = "a beginning to count from")]
fn epoch() -> Instant {
    Instant::now()
}

pub(super) struct Sources {
    begun: Instant,
    second: u64,
    pool: Pool,
    exporter: Target,
    kubelet: Option<Target>,
    pub(super) watcher: Watcher,
}

impl Sources {
    pub(super) fn new() -> Self {
        let exporter = Target::new("http://x", TargetKind::Gpu, Vec::new(), Duration::from_secs(5));
        let (begun, pool, watcher) = (epoch(), Pool::default(), Watcher::default());
        Self { begun, second: 0, pool, exporter, kubelet: None, watcher }
    }

    fn now(&self) -> Instant {
        self.begun + Duration::from_secs(self.second)
    }

    fn targets(&self) -> Vec<Arc<Target>> {
        let all = self.kubelet.iter().chain([&self.exporter]);
        all.map(|target| Arc::new(target.clone())).collect()
    }

    pub(super) fn note(&mut self, facts: &[Fact]) -> Vec<String> {
        let at = Timestamp::from_second(1_795_132_800 + i64::try_from(self.second).unwrap());
        let own = Own { facts, host: Some("n1") };
        let events = self.watcher.note(&self.targets(), own, self.now(), at.unwrap());
        events.into_iter().map(|event| format!("{}: {}", event.kind.as_str(), event.text)).collect()
    }

    fn told(&mut self, target: &mut Target, reading: Reading) {
        self.second += 1;
        let next = target.quantities.after(reading, self.now(), &mut self.pool);
        (target.quantities, target.state) = (Arc::new(next), TargetState::Up);
    }

    /// Each GPU with the pod of its labels. An id with a dot is a place on the bus, of the GPU before.
    pub(super) fn exporter_says(&mut self, gpus: &[(&str, &str)]) -> Vec<String> {
        let mut measured = Vec::new();
        for (gpu, pod) in gpus {
            let mut who = Identity::default();
            let (gpu, pci) = gpu.split_once('@').unwrap_or((*gpu, ""));
            let of =
                [(Field::Gpu, gpu), (Field::Pci, pci), (Field::Node, "n1"), (Field::Pod, *pod)];
            of.iter().for_each(|(field, value)| who.set(*field, value));
            let who = Arc::new(who);
            measured.push(one(POWER, &who));
            if !pod.is_empty() {
                measured.push(one(GPU_OWNER, &who));
            }
        }
        let mut target = self.exporter.clone();
        self.told(&mut target, Reading { measured, ..Reading::default() });
        self.exporter = target;
        self.note(&[])
    }

    /// Each pod with the device that it has.
    pub(super) fn kubelet_says(&mut self, held: &[(&str, &str)]) -> Vec<String> {
        let reading = read_held(held.iter().map(|(pod, id)| Held {
            namespace: "llm",
            pod,
            container: "engine",
            resource: if id.starts_with("GPU-") { "nvidia.com/gpu" } else { "amd.com/gpu" },
            id: (*id).into(),
        }));
        let mut target = self.kubelet_unheard();
        self.told(&mut target, reading);
        self.kubelet = Some(target);
        self.note(&[])
    }

    /// There is a kubelet, which may not have answered yet.
    pub(super) fn kubelet_unheard(&mut self) -> Target {
        let new = || Target::new("k.sock", TargetKind::Kubelet, Vec::new(), Duration::from_secs(5));
        self.kubelet.get_or_insert_with(new).clone()
    }

    /// So many seconds pass, in which nobody is asked.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.second += seconds;
    }

    /// So much time passes that the kubelet is stale, and the exporter says the same as before.
    pub(super) fn silence_of_kubelet(&mut self, gpus: &[(&str, &str)]) -> Vec<String> {
        self.second += 60;
        self.exporter_says(gpus).into_iter().filter(|text| !text.starts_with("source_")).collect()
    }

    pub(super) fn silence_of_exporter(&mut self) {
        self.second += 60;
        self.note(&[]);
    }

    /// Another process goes on with what this one has kept, and has heard nobody yet.
    pub(super) fn restart(&mut self) {
        let known = self.watcher.known(Timestamp::UNIX_EPOCH, true).unwrap();
        let kept = serde_json::to_string(&known).unwrap();
        self.watcher = Watcher::new(serde_json::from_str(&kept).unwrap());
        for target in self.kubelet.iter_mut().chain([&mut self.exporter]) {
            (target.quantities, target.state) = (Arc::default(), TargetState::Waiting);
        }
    }

    /// The joins say these claims, with such upstreams in the configuration.
    pub(super) fn claimed(&mut self, claims: Vec<Fact>, upstreams: &[&str]) -> Vec<String> {
        let upstreams: BTreeSet<_> = upstreams.iter().copied().collect();
        let claims = self.watcher.claims(claims, &self.targets(), &upstreams, self.now());
        self.note(&claims)
    }
}

fn one(quantity: &'static Quantity, who: &Arc<Identity>) -> Measured {
    Measured {
        quantity,
        value: Value::Number(1.0),
        buckets: None,
        identity: who.clone(),
        attributes: Vec::new(),
        program: "x",
        from: "x".to_owned(),
        how: String::new(),
        age: None,
    }
}
