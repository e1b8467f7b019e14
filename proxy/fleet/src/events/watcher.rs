//! Compares what is so with what was last known.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_collections::Gather as _;

use crate::events::event::{Event, EventKind};
use crate::events::facts::{self, Fact};
use crate::events::held::{EVENTS_MAX, HOUR, Held, Holding, OWN, UNHEARD, UP};
use crate::events::owners::{All, state};
use crate::quantity::GENERATION_TOKENS;
use crate::reading::Value;
use crate::target::{Target, TargetKind};

/// What was last known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Known {
    /// When.
    pub at: Option<Timestamp>,
    /// Source, kind, subject and value of each fact.
    facts: Vec<(String, EventKind, String, String)>,
}

impl Known {
    /// Something has changed after that.
    pub fn after(&mut self, event: &Event) {
        let Event { kind, subject, source, after, .. } = event;
        let source = source.as_deref().unwrap_or_default();
        let is_of = |of: &str, about: &str| of == source && about == subject;
        match (kind, after) {
            (EventKind::GpuVanished, _) => {
                self.facts.retain(|one| !is_of(&one.0, &one.2));
                let is_told = |one: &(String, EventKind, String, String)| {
                    one.1 == EventKind::GpuOwner && one.2 == *subject
                };
                if !self.facts.iter().any(|one| is_told(one) && one.0 != OWN) {
                    self.facts.retain(|one| !is_told(one));
                }
            }
            (EventKind::GpuOwner | EventKind::GpuClaimed, _) | (_, Some(_)) => {
                self.now(source, *kind, subject, after);
            }
            (_, None) => {}
        }
        if *kind == EventKind::GpuOwner {
            self.now(OWN, *kind, subject, after);
        }
    }

    fn now(&mut self, source: &str, kind: EventKind, subject: &str, value: &Option<String>) {
        let is_it = |one: &(String, EventKind, String, String)| {
            (one.0.as_str(), one.1, one.2.as_str()) == (source, kind, subject)
        };
        self.facts.retain(|one| !is_it(one));
        let value = value.clone().unwrap_or_default();
        self.facts.push((source.to_owned(), kind, subject.to_owned(), value));
    }
}

/// What the gateway knows itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Own<'a> {
    /// What is so.
    pub facts: &'a [Fact],
    /// The name of its host or node.
    pub host: Option<&'a str>,
}

/// What was seen of a source since the start.
#[derive(Debug, Default)]
struct Seen {
    sampled: Option<Instant>,
    resets: u64,
}

/// Compares what sources tell with what was last known.
#[derive(Debug, Default)]
pub struct Watcher {
    pub(super) all: Holding,
    seen: HashMap<Arc<str>, Seen, RandomState>,
    /// The hour, and its events.
    hour: (i64, usize),
    /// Whether sources have told something else since that was last asked.
    is_other: bool,
    /// Whether an engine has counted on.
    has_counted: bool,
    /// Whether there were sources since the start.
    has_begun: bool,
}

impl Watcher {
    /// Begins with what was last known.
    #[must_use]
    pub fn new(known: Known) -> Self {
        let held = known.facts.into_iter().map(|(source, kind, subject, value)| {
            ((source.into(), kind, subject), Held::of(value, false))
        });
        Self { all: Holding { held: held.collect(), has_changed: false }, ..Self::default() }
    }

    /// What is known, if that has changed since it was last asked; where `with_counts` is not set, changes
    /// of counts alone are none.
    pub fn known(&mut self, at: Timestamp, with_counts: bool) -> Option<Known> {
        if !(self.all.has_changed || with_counts && self.has_counted) {
            return None;
        }
        (self.all.has_changed, self.has_counted) = (false, false);
        let facts = self.all.held.iter().filter(|(_, held)| !held.is_secret);
        let facts = facts.map(|((source, kind, subject), held)| {
            (source.to_string(), *kind, subject.clone(), held.value.clone())
        });
        Some(Known { at: Some(at), facts: facts.collect() })
    }

    /// What is known was not kept: it is as new as it was.
    pub const fn not_kept(&mut self) {
        self.all.has_changed = true;
    }

    /// Whether sources have told anything for the first time, or something else, since this was last asked.
    pub const fn has_other(&mut self) -> bool {
        std::mem::replace(&mut self.is_other, false)
    }

    /// What has changed: of `targets`, which are all sources, and of what the gateway knows itself.
    pub fn note(
        &mut self,
        targets: &[Arc<Target>],
        own: Own<'_>,
        now: Instant,
        at: Timestamp,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let gateway: Arc<str> = OWN.into();
        for fact in own.facts {
            self.compare(&gateway, fact, at, &mut events);
        }
        let has_changed = std::mem::replace(&mut self.all.has_changed, false);
        let all = All::of(targets, own.host, now);
        for target in targets {
            self.look(target, &all, at, &mut events);
        }
        // Without any source nothing is followed, or not yet.
        if !targets.is_empty() && (!self.has_begun || targets.len() < self.seen.len()) {
            self.has_begun = true;
            let there: BTreeSet<_> = targets.iter().map(|target| &target.name).gather_set();
            self.seen.retain(|name, _| there.contains(name));
            self.all.held.retain(|(source, ..), _| &**source == OWN || there.contains(source));
            self.all.forget_owners();
            self.all.has_changed = true;
        }
        self.is_other |= self.all.has_changed;
        self.all.has_changed |= has_changed;
        self.bounded(events, at)
    }

    fn look(&mut self, target: &Target, all: &All<'_>, at: Timestamp, events: &mut Vec<Event>) {
        let name = &target.name;
        if !self.seen.contains_key(name) {
            self.seen.insert(name.clone(), Seen::default());
        }
        let Some(mut state) = state(target, all.now) else { return };
        let key = (name.clone(), EventKind::SourceState, name.to_string());
        // One that was never heard tells something for the first time then, and not again.
        if state != UP && self.all.held.get(&key).is_none_or(|held| held.value == UNHEARD) {
            state = UNHEARD;
        }
        let about = |mut fact: Fact| {
            fact.about.push(name.to_string());
            fact.about.extend(target.upstreams.iter().cloned());
            fact
        };
        let state = about(Fact::new(EventKind::SourceState, name, state, Vec::new()));
        let is_kubelet = target.kind == TargetKind::Kubelet;
        let was_heard = is_kubelet && self.all.has_heard(name);
        self.compare(name, &state, at, events);
        let sampled = target.quantities.period.sampled_at();
        let Some(seen) = self.seen.get_mut(name) else { return };
        if sampled.is_none() || seen.sampled == sampled {
            return;
        }
        let (is_first, resets) = (seen.sampled.is_none(), target.quantities.counts.resets);
        seen.sampled = sampled;
        let restarted = std::mem::replace(&mut seen.resets, resets) < resets && !is_first;
        if let Some(count) = generated(target) {
            let count = about(Fact::new(EventKind::EngineRestarted, name, &count, Vec::new()));
            self.count(name, &count, restarted, is_first, (at, &mut *events));
        }
        if is_kubelet {
            for fact in self.all.listed(target, all).into_iter().map(about) {
                events.extend(self.all.held_by(name, &fact, was_heard, at));
            }
            return;
        }
        let facts: Vec<_> = facts::of(target).into_iter().map(about).collect();
        self.gpus(name, target, &facts, at, events);
        for fact in &facts {
            match fact.kind {
                EventKind::GpuOwner => events.extend(self.all.labelled(name, fact, all, at)),
                _ => self.compare(name, fact, at, events),
            }
        }
    }

    /// An engine counts. It is anew where it has counted more before, also before the gateway was started.
    fn count(
        &mut self,
        source: &Arc<str>,
        fact: &Fact,
        restarted: bool,
        is_first: bool,
        (at, events): (Timestamp, &mut Vec<Event>),
    ) {
        let key = (source.clone(), fact.kind, fact.subject.clone());
        let Some(held) = self.all.held.get_mut(&key) else { return self.all.hold(key, fact) };
        let before = std::mem::replace(&mut held.value, fact.value.clone());
        self.has_counted |= before != fact.value;
        let number = |text: &str| text.parse::<f64>().unwrap_or_default();
        if restarted || is_first && number(&fact.value) < number(&before) {
            events.extend(held.event(source, fact, None, at));
        }
    }

    /// The GPUs of a source that was known before: those that have come, and those that have gone.
    fn gpus(
        &mut self,
        source: &Arc<str>,
        target: &Target,
        facts: &[Fact],
        at: Timestamp,
        events: &mut Vec<Event>,
    ) {
        const KIND: EventKind = EventKind::GpuAppeared;
        let of = |subject: &str| (source.clone(), KIND, subject.to_owned());
        let known = self.all.held.range(of("")..);
        let known = known.take_while(|((of, kind, _), _)| of == source && *kind == KIND);
        let known: BTreeSet<String> = known.map(|((.., subject), _)| subject.clone()).collect();
        let there: Vec<_> = facts.iter().filter(|fact| fact.kind == KIND).collect();
        if known.is_empty() || target.cut || target.quantities.counts.left_out > 0 {
            return;
        }
        for fact in there.iter().filter(|fact| !known.contains(&fact.subject)) {
            // As if it had been known to be nothing.
            self.all.hold(of(&fact.subject), &Fact { value: String::new(), ..(*fact).clone() });
        }
        for gone in known.iter().filter(|name| there.iter().all(|fact| fact.subject != **name)) {
            let about = vec![source.to_string()];
            let mut fact = Fact::new(EventKind::GpuVanished, gone, "", about);
            fact.about.extend(target.upstreams.iter().cloned());
            if let Some(held) = self.all.held.get_mut(&of(gone)) {
                events.extend(held.event(source, &fact, None, at));
            }
            self.all.held.retain(|(of, _, subject), _| of != source || subject != gone);
            self.all.forget_owners();
            self.all.has_changed = true;
        }
    }

    fn compare(&mut self, source: &Arc<str>, fact: &Fact, at: Timestamp, events: &mut Vec<Event>) {
        let key = (source.clone(), fact.kind, fact.subject.clone());
        let Some(held) = self.all.held.get_mut(&key) else { return self.all.hold(key, fact) };
        if held.value == fact.value {
            return;
        }
        self.all.has_changed = true;
        let before = std::mem::replace(&mut held.value, fact.value.clone());
        if is_event(fact.kind, &before, &fact.value) {
            events.extend(held.event(source, fact, Some(before), at));
        }
    }

    /// As many as an hour may have.
    fn bounded(&mut self, mut events: Vec<Event>, at: Timestamp) -> Vec<Event> {
        let hour = at.as_second().div_euclid(HOUR);
        if self.hour.0 != hour {
            self.hour = (hour, 0);
        }
        let room = EVENTS_MAX.saturating_sub(self.hour.1);
        let has_told = self.hour.1 > EVENTS_MAX;
        self.hour.1 = self.hour.1.saturating_add(events.len());
        if events.len() > room {
            events.truncate(room);
            if !has_told {
                self.hour.1 = self.hour.1.max(EVENTS_MAX + 1);
                let fact = Fact::new(EventKind::LeftOut, "the fleet", "", Vec::new());
                events.extend(Held::of(String::new(), false).event("", &fact, None, at));
            }
        }
        events
    }
}

/// Whether a change is told: some end quietly.
fn is_event(kind: EventKind, before: &str, now: &str) -> bool {
    match kind {
        EventKind::GpuXid => now != "0",
        EventKind::GpuThrottled => before.is_empty() && !now.is_empty(),
        EventKind::GpuClaimed => [before, now].iter().any(|names| names.contains(", ")),
        _ => true,
    }
}

/// All that an engine has generated.
fn generated(target: &Target) -> Option<String> {
    let series = target.quantities.series.iter();
    let of = series.filter(|series| series.what.quantity == GENERATION_TOKENS);
    let counts = of.filter_map(|series| match series.value() {
        Value::Number(count) => Some(count),
        Value::Histogram(_) => None,
    });
    counts.reduce(|all, count| all + count).map(|all| all.to_string())
}

#[cfg(test)]
mod tests;
