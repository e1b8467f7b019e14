//! What a source tells that does not change by itself: versions, models, GPUs and their owners. What the
//! kubelet tells is in `owners.rs`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use taximeter_collections::Gather as _;

use crate::events::event::EventKind;
use crate::identity::{Field, Identity};
use crate::quantity as q;
use crate::reading::{Component, Value};
use crate::series::Series;
use crate::target::{Target, TargetKind};

/// Longest text of a fact, in characters. What is behind is cut off.
const TEXT_CHARS_MAX: usize = 200;

/// Something that is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// What changes when it is no longer so.
    pub kind: EventKind,
    /// Of whom.
    pub subject: String,
    /// What is so. Empty means nothing of the kind, which is known.
    pub value: String,
    /// Whom else it concerns.
    pub about: Vec<String>,
    /// Whether nobody is to read the value: it is neither told nor kept.
    pub is_secret: bool,
}

impl Fact {
    /// A fact that everybody may know.
    #[must_use]
    pub fn new(kind: EventKind, subject: &str, value: &str, about: Vec<String>) -> Self {
        let cut = |text: &str| text.chars().take(TEXT_CHARS_MAX).collect();
        Self { kind, subject: cut(subject), value: cut(value), about, is_secret: false }
    }
}

/// All that a source tells.
pub(super) fn of(target: &Target) -> Vec<Fact> {
    let mut facts = Vec::new();
    for version in target.versions.iter() {
        let title = target.programs.iter().find(|program| program.is_read);
        let (kind, value) = match version.of {
            Component::Engine => {
                let title = title.map_or("", |program| program.title);
                (EventKind::EngineVersion, format!("{title} {}", version.version))
            }
            Component::Driver => (EventKind::DriverVersion, version.version.clone()),
            Component::Kernel => (EventKind::KernelVersion, version.version.clone()),
        };
        let subject = version.host.as_deref().unwrap_or(&target.name);
        facts.push(Fact::new(kind, subject, &value, Vec::new()));
    }
    let series = &target.quantities.series;
    if target.kind == TargetKind::Engine {
        let models: BTreeSet<_> = each(series).filter_map(|who| who.get(Field::Model)).gather_set();
        if !models.is_empty() {
            let models: Vec<_> = models.into_iter().collect();
            let (kind, models) = (EventKind::EngineModel, models.join(", "));
            facts.push(Fact::new(kind, &target.name, &models, Vec::new()));
        }
    }
    for (subject, gpu) in gpus(series) {
        let about = gpu.host.iter().chain(&gpu.names).map(|name| (*name).to_owned());
        let about: Vec<_> = about.collect();
        let mut add = |kind, value: &str| {
            facts.push(Fact::new(kind, &subject, value, about.clone()));
        };
        add(EventKind::GpuAppeared, gpu.model.unwrap_or("a GPU"));
        add(EventKind::GpuOwner, &gpu.pods());
        if let Some(code) = gpu.code {
            add(EventKind::GpuXid, &code.to_string());
        }
        if gpu.tells_reasons {
            let reasons: Vec<_> = gpu.reasons.into_iter().collect();
            add(EventKind::GpuThrottled, &reasons.join(", "));
        }
    }
    facts
}

/// Each identity of some series. Those of one scrape share them, and one that comes twice does no harm.
fn each(series: &[Series]) -> impl Iterator<Item = &Arc<Identity>> {
    let mut seen = HashSet::<_, RandomState>::default();
    series.iter().map(|one| &one.who).filter(move |who| seen.insert(Arc::as_ptr(who)))
}

/// A GPU, or a part of one.
#[derive(Default)]
pub(super) struct Gpu<'a> {
    host: Option<&'a str>,
    model: Option<&'a str>,
    /// Its id, and that of its part.
    pub(super) names: BTreeSet<&'a str>,
    /// The pods that have it.
    pub(super) owners: BTreeSet<String>,
    code: Option<f64>,
    tells_reasons: bool,
    reasons: BTreeSet<&'a str>,
}

impl Gpu<'_> {
    /// The pods that have it, in one text.
    pub(super) fn pods(&self) -> String {
        let pods: Vec<_> = self.owners.iter().map(String::as_str).collect();
        pods.join(", ")
    }
}

fn gpus(series: &[Series]) -> BTreeMap<String, Gpu<'_>> {
    let mut all = BTreeMap::<String, Gpu<'_>>::new();
    for who in each(series) {
        if let Some(name) = who.device() {
            let gpu = all.entry(name.into_owned()).or_default();
            gpu.host = gpu.host.or_else(|| who.get(Field::Node));
            gpu.model = gpu.model.or_else(|| who.get(Field::GpuModel));
            gpu.names.extend([Field::Gpu, Field::Part].iter().filter_map(|one| who.get(*one)));
        }
    }
    for one in series {
        let told = one.what.quantity;
        let is_told = |of: &[&q::Quantity]| of.contains(&told);
        let (owner, code) = (is_told(&[q::GPU_OWNER]), is_told(CODES));
        let (now, lately) = (is_told(&[q::GPU_THROTTLED]), is_told(&[q::GPU_THROTTLE]));
        if !(owner || code || now || lately) {
            continue;
        }
        let gpu = one.who.device().and_then(|name| all.get_mut(&*name));
        let (Some(gpu), Value::Number(value)) = (gpu, one.value()) else { continue };
        if owner {
            gpu.owners.extend(pod(&one.who));
        } else if code {
            gpu.code = Some(gpu.code.unwrap_or_default().max(value));
        } else {
            gpu.tells_reasons = true;
            let held = if now { value > 0.0 } else { one.rate().is_some_and(|rate| rate > 0.0) };
            let mut reason = one.what.attributes.iter().filter(|(name, _)| name == "reason");
            let reason = reason.next().map(|(_, reason)| reason.as_str());
            gpu.reasons.extend(reason.filter(|reason| held && is_bad(reason)));
        }
    }
    all
}

const CODES: &[&q::Quantity] = &[q::GPU_LAST_XID, q::GPU_LAST_AFID];

/// Whether clocks that are held down so say that something is wrong: a limit of power is how a busy GPU
/// runs.
fn is_bad(reason: &str) -> bool {
    reason.ends_with("thermal")
        || reason.starts_with("hw_")
        || ["processor_hot", "reliability"].contains(&reason)
}

/// The pod of a device, with its namespace where that is told.
pub(super) fn pod(who: &Identity) -> Option<String> {
    let pod = who.get(Field::Pod)?;
    let namespace = who.get(Field::Namespace);
    Some(namespace.map_or_else(|| pod.to_owned(), |namespace| format!("{namespace}/{pod}")))
}
