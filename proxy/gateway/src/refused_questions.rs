//! Remembers which requests of an upstream cannot be asked for usage: the engine refused the member
//! that the gateway added, and took the same request without it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a refusal is remembered. An engine that is updated may take the question then.
pub const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

/// Refusals that are remembered of one upstream; the oldest gives way to a new one.
const REFUSALS_MAX: usize = 256;

/// The longest path that is remembered, in bytes.
const PATH_BYTES_MAX: usize = 1024;

/// The refusals of one upstream.
#[derive(Debug, Default)]
pub struct RefusedQuestions {
    refusals: Mutex<HashMap<Asked, RefusedMember>>,
    /// How many there are, so that a request to an upstream without one takes no lock.
    count: AtomicUsize,
}

/// The requests that a refusal holds for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    /// The path without the query.
    pub path: String,
    /// The model that the request names.
    pub model: Option<String>,
}

/// What was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedMember {
    /// The member of the body that the engine's refusal named.
    pub member: &'static str,
    /// When it was refused.
    pub at: Instant,
}

impl RefusedQuestions {
    /// Whether the engine has refused the question in such a request.
    pub fn holds(&self, now: Instant, path: &str, model: Option<&str>) -> bool {
        if self.count.load(Relaxed) == 0 {
            return false;
        }
        let asked = Asked { path: path.to_owned(), model: model.map(str::to_owned) };
        self.lock().get(&asked).is_some_and(|refused| refused.lasts(now))
    }

    /// The engine has refused `member` in such a request, and has taken the request without it.
    pub fn remember(&self, now: Instant, asked: Asked, member: &'static str) {
        if asked.path.len() > PATH_BYTES_MAX {
            return;
        }
        let mut refusals = self.lock();
        refusals.retain(|_, refused| refused.lasts(now));
        if refusals.len() >= REFUSALS_MAX
            && let Some(oldest) = refusals.iter().min_by_key(|(_, refused)| refused.at)
        {
            let oldest = oldest.0.clone();
            refusals.remove(&oldest);
        }
        refusals.insert(asked, RefusedMember { member, at: now });
        self.count.store(refusals.len(), Relaxed);
    }

    /// All that are remembered, in order of path and model.
    pub fn all(&self, now: Instant) -> Vec<(Asked, RefusedMember)> {
        let refusals = self.lock();
        let lasting = refusals.iter().filter(|(_, refused)| refused.lasts(now));
        let mut all: Vec<_> = lasting.map(|(asked, refused)| (asked.clone(), *refused)).collect();
        taximeter_collections::sort_by(&mut all, |(one, _), (other, _)| one.cmp(other));
        all
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Asked, RefusedMember>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RefusedMember {
    /// For how long it is still remembered.
    pub fn left(self, now: Instant) -> Duration {
        REMEMBERED_FOR.saturating_sub(now.saturating_duration_since(self.at))
    }

    fn lasts(self, now: Instant) -> bool {
        !self.left(now).is_zero()
    }
}

#[cfg(test)]
mod tests {
    use taximeter_system::clock;

    use super::*;

    const MEMBER: &str = "stream_options";

    fn asked(path: &str, model: &str) -> Asked {
        Asked { path: path.to_owned(), model: Some(model.to_owned()) }
    }

    #[test]
    fn a_refusal_holds_for_its_path_and_model_and_for_an_hour() {
        let (refused, now) = (RefusedQuestions::default(), clock::now());
        let holds = |after, path, model| refused.holds(now + after, path, model);
        assert!(!holds(Duration::ZERO, "/a", Some("m")));
        refused.remember(now, asked("/a", "m"), MEMBER);
        let last = REMEMBERED_FOR - Duration::from_secs(1);
        assert!(holds(Duration::ZERO, "/a", Some("m")) && holds(last, "/a", Some("m")));
        for (path, model) in [("/a", Some("n")), ("/a", None), ("/b", Some("m"))] {
            assert!(!holds(Duration::ZERO, path, model), "{path} {model:?}");
        }
        assert!(!holds(REMEMBERED_FOR, "/a", Some("m")));
        assert_eq!(refused.all(now + last).len(), 1);
        assert_eq!(refused.all(now + REMEMBERED_FOR), []);
    }

    #[test]
    fn the_oldest_refusal_gives_way_to_a_new_one() {
        let (refused, now) = (RefusedQuestions::default(), clock::now());
        let at = |nth: usize| now + Duration::from_millis(nth as u64);
        for nth in 0..=REFUSALS_MAX {
            refused.remember(at(nth), asked("/a", &nth.to_string()), MEMBER);
        }
        assert_eq!(refused.all(now).len(), REFUSALS_MAX);
        assert!(!refused.holds(now, "/a", Some("0")));
        assert!(refused.holds(now, "/a", Some("1")));
        refused.remember(now, asked(&"/".repeat(PATH_BYTES_MAX + 1), "m"), MEMBER);
        assert!(refused.holds(now, "/a", Some("1")), "a long path pushes nothing out");
    }
}
