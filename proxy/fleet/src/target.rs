//! One source that is asked again and again, and all of them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::reading::{Program, Version};
use crate::series::Quantities;

/// Where a source is asked more often than this, its values hold as if it were asked so often: who asks
/// has a low priority, and may be late.
const USUAL_MIN: Duration = Duration::from_secs(1);

/// What a source is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TargetKind {
    /// An engine.
    Engine,
    /// An exporter of GPUs.
    Gpu,
    /// A host, or an exporter of hosts.
    Host,
    /// The kubelet, which knows whose each GPU of its node is.
    Kubelet,
    /// The file of the annotations of the gateway's own pod.
    Annotations,
}

impl TargetKind {
    /// One word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Gpu => "gpu",
            Self::Host => "host",
            Self::Kubelet => "kubelet",
            Self::Annotations => "annotations",
        }
    }
}

/// How the last attempt to read a source has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetState {
    /// There was none yet.
    Waiting,
    /// With metrics of a program that is read.
    Up,
    /// Without.
    Failing {
        /// One of a few words.
        cause: &'static str,
        /// The reason, for people.
        why: Arc<str>,
        /// Since when it is so.
        since: Timestamp,
    },
}

/// Why the quantities of a source do not hold now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Silence {
    /// It has never told any.
    Never,
    /// Its last ones are this old.
    Stale(Duration),
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("nothing has come yet"),
            Self::Stale(age) => write!(f, "stale: the last value is {} s old", age.as_secs()),
        }
    }
}

/// A source, as it is now.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its URL, or the path of what is read.
    pub name: Arc<str>,
    /// What it is asked for.
    pub kind: TargetKind,
    /// The names of the upstreams that are there.
    pub upstreams: Arc<[String]>,
    /// How the last attempt has ended.
    pub state: TargetState,
    /// When it was last asked.
    pub asked_at: Option<Timestamp>,
    /// When it last answered with metrics.
    pub answered_at: Option<Timestamp>,
    /// How often it is asked, as things are.
    pub every: Duration,
    /// How often it is asked while it answers: its values hold for three times as long.
    pub usual: Duration,
    /// The programs that its metrics are of.
    pub programs: Arc<Vec<Program>>,
    /// The versions of what it tells of, as far as anybody says them.
    pub versions: Arc<Vec<Version>>,
    /// What it tells.
    pub quantities: Arc<Quantities>,
    /// Lines of the last answer that could not be read.
    pub skipped: u64,
    /// Whether the last answer is longer than is read.
    pub cut: bool,
    /// How often it was asked.
    pub asked: u64,
    /// How often that gave no metrics.
    pub failed: u64,
}

impl Target {
    /// A source that was not asked yet.
    #[must_use]
    pub fn new(name: &str, kind: TargetKind, upstreams: Vec<String>, every: Duration) -> Self {
        Self {
            name: name.into(),
            kind,
            upstreams: upstreams.into(),
            state: TargetState::Waiting,
            asked_at: None,
            answered_at: None,
            every,
            usual: every,
            programs: Arc::default(),
            versions: Arc::default(),
            quantities: Arc::default(),
            skipped: 0,
            cut: false,
            asked: 0,
            failed: 0,
        }
    }

    /// Why its quantities do not hold at `now`; `None` if they do.
    #[must_use]
    pub fn silence(&self, now: Instant) -> Option<Silence> {
        let period = &self.quantities.period;
        match period.age(now) {
            None => Some(Silence::Never),
            Some(age) => {
                period.is_stale(now, self.usual.max(USUAL_MIN)).then_some(Silence::Stale(age))
            }
        }
    }

    /// How it does at `now`, in one word.
    #[must_use]
    pub fn state_word(&self, now: Instant) -> &'static str {
        match (&self.state, self.silence(now)) {
            (_, Some(Silence::Stale(_))) => "stale",
            (TargetState::Waiting, _) => "waiting",
            (TargetState::Up, _) => "up",
            (TargetState::Failing { .. }, _) => "failing",
        }
    }

    /// Notes an attempt at `at` that brought nothing.
    pub fn fail(&mut self, at: Timestamp, cause: &'static str, why: &str) {
        let since = match &self.state {
            TargetState::Failing { cause: before, since, .. } if *before == cause => *since,
            _ => at,
        };
        self.state = TargetState::Failing { cause, why: why.into(), since };
        self.asked_at = Some(at);
        self.asked += 1;
        self.failed += 1;
    }
}

/// All sources. One thread writes, whoever likes reads; nobody holds the lock for longer than it takes
/// to count the sources.
#[derive(Debug, Default)]
pub struct Board {
    targets: Mutex<Vec<Arc<Target>>>,
}

impl Board {
    /// All sources as they are now.
    #[must_use]
    pub fn targets(&self) -> Vec<Arc<Target>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Source number `at` is like this now.
    pub fn put(&self, at: usize, target: Arc<Target>) {
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        // The old one is freed after the lock.
        let old = targets.get_mut(at).map(|place| std::mem::replace(place, target));
        drop(targets);
        drop(old);
    }

    /// These are all sources.
    pub fn replace(&self, targets: Vec<Arc<Target>>) {
        let mut held = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *held, targets);
        drop(held);
        drop(old);
    }
}
