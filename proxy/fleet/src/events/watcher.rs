//! Compares what is so with what was last known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_collections::Gather as _;

use crate::events::event::{Event, EventKind};
use crate::events::facts::{self, Fact};
use crate::quantity::GENERATION_TOKENS;
use crate::reading::Value;
use crate::target::{Silence, Target, TargetState};

/// Most facts that are known. Those behind are left out: what is not known cannot change.
pub const FACTS_MAX: usize = 40_000;
/// Most events of one kind and subject in an hour. The next one says how many more there were.
pub const EVENTS_OF_ONE_MAX: u16 = 5;
/// Most events of an hour.
pub const EVENTS_MAX: usize = 2_000;
const HOUR: i64 = 3_600;
/// A source that has never answered since the start is silent after so many questions.
const QUESTIONS: u64 = 3;

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
            (EventKind::GpuVanished, _) => self.facts.retain(|one| !is_of(&one.0, &one.2)),
            (EventKind::GpuOwner | EventKind::GpuClaimed, _) | (_, Some(_)) => {
                self.facts.retain(|one| !(one.1 == *kind && is_of(&one.0, &one.2)));
                let value = after.clone().unwrap_or_default();
                self.facts.push((source.to_owned(), *kind, subject.clone(), value));
            }
            (_, None) => {}
        }
    }
}

/// Source, kind and subject. The gateway itself is no source.
type Key = (Arc<str>, EventKind, String);

/// What is known of one.
#[derive(Debug)]
struct Held {
    value: String,
    is_secret: bool,
    /// When the first of the last events came, and how many they are.
    since: i64,
    events: u16,
    left_out: u32,
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
    held: BTreeMap<Key, Held>,
    seen: HashMap<Arc<str>, Seen, RandomState>,
    /// The hour, and its events.
    hour: (i64, usize),
    has_changed: bool,
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
        Self { held: held.collect(), ..Self::default() }
    }

    /// What is known, if that has changed since it was last asked; where `with_counts` is not set, changes
    /// of counts alone are none.
    pub fn known(&mut self, at: Timestamp, with_counts: bool) -> Option<Known> {
        if !(self.has_changed || with_counts && self.has_counted) {
            return None;
        }
        (self.has_changed, self.has_counted) = (false, false);
        let facts = self.held.iter().filter(|(_, held)| !held.is_secret);
        let facts = facts.map(|((source, kind, subject), held)| {
            (source.to_string(), *kind, subject.clone(), held.value.clone())
        });
        Some(Known { at: Some(at), facts: facts.collect() })
    }

    /// Whether anything was told for the first time, or has changed, since what is known was last asked.
    #[must_use]
    pub const fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// What has changed: of `targets`, which are all sources, and of `own`, which the gateway knows itself.
    pub fn note(
        &mut self,
        targets: &[Arc<Target>],
        own: &[Fact],
        now: Instant,
        at: Timestamp,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        let gateway: Arc<str> = "".into();
        for fact in own {
            self.compare(&gateway, fact, at, &mut events);
        }
        for target in targets {
            self.look(target, now, at, &mut events);
        }
        // Without any source nothing is followed, or not yet.
        if !targets.is_empty() && (!self.has_begun || targets.len() < self.seen.len()) {
            self.has_begun = true;
            let there: BTreeSet<_> = targets.iter().map(|target| &target.name).gather_set();
            self.seen.retain(|name, _| there.contains(name));
            self.held.retain(|(source, ..), _| source.is_empty() || there.contains(source));
            self.has_changed = true;
        }
        self.bounded(events, at)
    }

    fn look(&mut self, target: &Target, now: Instant, at: Timestamp, events: &mut Vec<Event>) {
        let name = &target.name;
        if !self.seen.contains_key(name) {
            self.seen.insert(name.clone(), Seen::default());
        }
        let state = match (target.silence(now), &target.state) {
            (Some(Silence::Stale(_)), _) => "stale",
            (Some(Silence::Never), TargetState::Failing { .. }) if target.asked >= QUESTIONS => {
                "stale"
            }
            (Some(Silence::Never), _) => return,
            (None, _) => "up",
        };
        let about = |mut fact: Fact| {
            fact.about.push(name.to_string());
            fact.about.extend(target.upstreams.iter().cloned());
            fact
        };
        let state = about(Fact::new(EventKind::SourceState, name, state, Vec::new()));
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
        let facts: Vec<_> = facts::of(target).into_iter().map(about).collect();
        self.gpus(name, target, &facts, at, events);
        for fact in &facts {
            self.compare(name, fact, at, events);
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
        let Some(held) = self.held.get_mut(&key) else { return self.hold(key, fact) };
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
        let known = self.held.range(of("")..);
        let known = known.take_while(|((of, kind, _), _)| of == source && *kind == KIND);
        let known: BTreeSet<String> = known.map(|((.., subject), _)| subject.clone()).collect();
        let there: Vec<_> = facts.iter().filter(|fact| fact.kind == KIND).collect();
        if known.is_empty() || target.cut || target.quantities.counts.left_out > 0 {
            return;
        }
        for fact in there.iter().filter(|fact| !known.contains(&fact.subject)) {
            // As if it had been known to be nothing.
            self.hold(of(&fact.subject), &Fact { value: String::new(), ..(*fact).clone() });
        }
        for gone in known.iter().filter(|name| there.iter().all(|fact| fact.subject != **name)) {
            let about = vec![source.to_string()];
            let mut fact = Fact::new(EventKind::GpuVanished, gone, "", about);
            fact.about.extend(target.upstreams.iter().cloned());
            if let Some(held) = self.held.get_mut(&of(gone)) {
                events.extend(held.event(source, &fact, None, at));
            }
            self.held.retain(|(of, _, subject), _| of != source || subject != gone);
            self.has_changed = true;
        }
    }

    fn compare(&mut self, source: &Arc<str>, fact: &Fact, at: Timestamp, events: &mut Vec<Event>) {
        let key = (source.clone(), fact.kind, fact.subject.clone());
        let Some(held) = self.held.get_mut(&key) else { return self.hold(key, fact) };
        if held.value == fact.value {
            return;
        }
        self.has_changed = true;
        let before = std::mem::replace(&mut held.value, fact.value.clone());
        if is_event(fact.kind, &before, &fact.value) {
            events.extend(held.event(source, fact, Some(before), at));
        }
    }

    /// What is told for the first time.
    fn hold(&mut self, key: Key, fact: &Fact) {
        if self.held.len() < FACTS_MAX {
            self.held.insert(key, Held::of(fact.value.clone(), fact.is_secret));
            self.has_changed = true;
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

impl Held {
    const fn of(value: String, is_secret: bool) -> Self {
        Self { value, is_secret, since: i64::MIN, events: 0, left_out: 0 }
    }

    /// An event, if there were not too many of it lately.
    fn event(
        &mut self,
        source: &str,
        fact: &Fact,
        before: Option<String>,
        at: Timestamp,
    ) -> Option<Event> {
        if at.as_second().saturating_sub(self.since) >= HOUR {
            (self.since, self.events) = (at.as_second(), 0);
        }
        self.events += 1;
        if self.events > EVENTS_OF_ONE_MAX {
            self.events = EVENTS_OF_ONE_MAX;
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        let Fact { kind, subject, value, about, is_secret } = fact;
        let is_told = before.is_some() && !is_secret;
        let told = |text: &str| Some(text.to_owned()).filter(|text| is_told && !text.is_empty());
        let was = before.as_deref().unwrap_or_default();
        let mut text = sentence(*kind, subject, was, value);
        match std::mem::take(&mut self.left_out) {
            0 => {}
            1 => text.push_str("; a change before that was left out"),
            left_out => text.push_str(&format!("; {left_out} changes before that were left out")),
        }
        let mut all = vec![subject.clone()];
        if *kind == EventKind::GpuOwner || *kind == EventKind::GpuClaimed {
            all.extend(was.split(", ").chain(value.split(", ")).map(str::to_owned));
        }
        all.extend(about.iter().cloned());
        all.retain(|name| !name.is_empty());
        let mut seen = BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        Some(Event {
            at,
            kind: *kind,
            subject: subject.clone(),
            source: Some(source.to_owned()).filter(|source| !source.is_empty()),
            about: all,
            before: told(was),
            after: told(value),
            text,
        })
    }
}

/// An event for people.
fn sentence(kind: EventKind, of: &str, was: &str, is: &str) -> String {
    let nobody = |pods: &str| if pods.is_empty() { "no pod".to_owned() } else { pods.to_owned() };
    match kind {
        EventKind::SourceState if is == "up" => format!("{of} tells something again"),
        EventKind::SourceState => format!("{of} is stale: nothing has come for three periods"),
        EventKind::EngineVersion => format!("the engine at {of} is {is} now, and was {was}"),
        EventKind::EngineModel => format!("the engine at {of} serves {is} now, and served {was}"),
        EventKind::EngineRestarted => format!("the engine at {of} counts from 0 again"),
        EventKind::DriverVersion => format!("the driver of {of} is {is} now, and was {was}"),
        EventKind::KernelVersion => format!("the kernel of {of} is {is} now, and was {was}"),
        EventKind::GpuAppeared if was.is_empty() => format!("{of} has come: {is}"),
        EventKind::GpuAppeared => format!("{of} is {is} now, and was {was}"),
        EventKind::GpuVanished => format!("{of} has gone: its exporter no longer tells of it"),
        EventKind::GpuOwner => {
            format!("{of} is given to {} now, and was to {}", nobody(is), nobody(was))
        }
        EventKind::GpuClaimed if is.contains(", ") => format!("{of} is claimed by {is}"),
        EventKind::GpuClaimed if is.is_empty() => format!("{of} is no longer claimed by {was}"),
        EventKind::GpuClaimed => format!("{of} is of {is} alone now, and was claimed by {was}"),
        EventKind::GpuXid => format!("the driver tells error {is} of {of}"),
        EventKind::GpuThrottled => format!("the clocks of {of} are held down: {is}"),
        EventKind::Configuration => format!("{of} has changed, and is in force"),
        EventKind::Prices => format!("the prices in {of} have changed, and are in force"),
        EventKind::LeftOut => {
            format!("there were more than {EVENTS_MAX} changes in this hour: the rest is left out")
        }
    }
}

#[cfg(test)]
mod tests;
