//! What is held of whom, and the events that come of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use crate::events::event::{Event, EventKind};
use crate::events::facts::Fact;

/// Most facts that are known. Those behind are left out: what is not known cannot change.
pub const FACTS_MAX: usize = 50_000;
/// Most events of one kind and subject in an hour. The next one says how many more there were.
pub const EVENTS_OF_ONE_MAX: u16 = 5;
/// Most events of an hour.
pub const EVENTS_MAX: usize = 2_000;
pub(super) const HOUR: i64 = 3_600;
/// Source, kind and subject. The gateway itself is no source.
pub(super) type Key = (Arc<str>, EventKind, String);

/// A source that tells something.
pub(super) const UP: &str = "up";
/// One that has never told anything.
pub(super) const UNHEARD: &str = "unheard";

/// In place of a source: what the gateway knows itself.
pub(super) const OWN: &str = "";

/// What is known of one.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) value: String,
    pub(super) is_secret: bool,
    /// When the first of the last events came, and how many they are.
    since: i64,
    events: u16,
    pub(super) left_out: u32,
}

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Holding {
    pub(super) held: BTreeMap<Key, Held>,
    /// Whether anything was told for the first time, or has changed, since that was last asked.
    pub(super) has_changed: bool,
}

impl Holding {
    /// What is told for the first time.
    pub(super) fn hold(&mut self, key: Key, fact: &Fact) {
        if self.held.len() < FACTS_MAX {
            self.held.insert(key, Held::of(fact.value.clone(), fact.is_secret));
            self.has_changed = true;
        }
    }
}

impl Held {
    pub(super) const fn of(value: String, is_secret: bool) -> Self {
        Self { value, is_secret, since: i64::MIN, events: 0, left_out: 0 }
    }

    /// An event, if there were not too many of it lately.
    pub(super) fn event(
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
        EventKind::SourceState if is == UP && was == UNHEARD => {
            format!("{of} tells something for the first time")
        }
        EventKind::SourceState if is == UP => format!("{of} tells something again"),
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
