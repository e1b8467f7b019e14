//! When a source is asked next.

use std::time::{Duration, Instant};

/// An engine while requests of ours run there.
const BUSY: Duration = Duration::from_secs(1);
/// An engine without.
const IDLE: Duration = Duration::from_secs(15);
/// An exporter.
const EXPORTER: Duration = Duration::from_secs(5);
/// So many answers in a row that are no metrics, and the source is asked rarely.
const USELESS_MAX: u32 = 3;
/// How often then.
const RARELY: Duration = Duration::from_secs(300);
/// The longest pause after failures.
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// What is read of one source in a second, on average: a long answer is asked for less often.
const BYTES_PER_SECOND_MAX: u64 = 256 << 10;

/// How a question has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With metrics, of so many bytes.
    Read(usize),
    /// With an answer that is none and will be none: 404, 401, a page.
    Useless,
    /// Without a whole answer, or with one that says that something is wrong now.
    Failed,
}

/// When one source is asked. One question runs at a time.
#[derive(Debug, Clone)]
pub struct Schedule {
    is_engine: bool,
    /// When it may be asked for the first time.
    first: Instant,
    began: Option<Instant>,
    /// Whether requests of ours ran there when the last question began. The next one comes as soon as while
    /// they run: it tells that they have ended.
    was_busy: bool,
    ended: Option<Instant>,
    is_running: bool,
    /// Failures in a row.
    failures: u32,
    /// Useless answers in a row.
    useless: u32,
    bytes: u64,
}

impl Schedule {
    /// Of an engine, or of an exporter, that may be asked from `first` on.
    #[must_use]
    pub const fn new(is_engine: bool, first: Instant) -> Self {
        let (began, ended) = (None, None);
        let (was_busy, is_running, failures, useless, bytes) = (false, false, 0, 0, 0);
        Self { is_engine, first, began, was_busy, ended, is_running, failures, useless, bytes }
    }

    /// How often it is asked while it answers. `is_busy`: requests of ours run there.
    #[must_use]
    pub fn usual(&self, is_busy: bool) -> Duration {
        let usual = match (self.is_engine, is_busy || self.was_busy) {
            (true, true) => BUSY,
            (true, false) => IDLE,
            (false, _) => EXPORTER,
        };
        usual.max(Duration::from_millis(self.bytes * 1_000 / BYTES_PER_SECOND_MAX))
    }

    /// How often it is asked, as things are.
    #[must_use]
    pub fn every(&self, is_busy: bool) -> Duration {
        if self.useless >= USELESS_MAX {
            return RARELY;
        }
        let usual = self.usual(is_busy);
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        match self.failures {
            0 => usual,
            _ => usual.saturating_mul(factor).min(BACKOFF_MAX).max(usual),
        }
    }

    /// When it is asked next; `None` while a question runs.
    #[must_use]
    pub fn due(&self, is_busy: bool) -> Option<Instant> {
        if self.is_running {
            return None;
        }
        let (Some(began), Some(ended)) = (self.began, self.ended) else { return Some(self.first) };
        let every = self.every(is_busy);
        // One that needs long for its answers gets a pause all the same.
        Some((began + every).max(ended + every / 2))
    }

    /// A question begins.
    pub fn begin(&mut self, now: Instant, is_busy: bool) {
        self.began = Some(now);
        self.was_busy = is_busy;
        self.is_running = true;
    }

    /// Something else is asked meanwhile, or no longer is.
    pub const fn hold(&mut self, is_asked: bool) {
        self.is_running = is_asked;
    }

    /// It has ended.
    pub fn end(&mut self, now: Instant, outcome: Outcome) {
        self.ended = Some(now);
        self.is_running = false;
        (self.failures, self.useless) = match outcome {
            Outcome::Read(_) => (0, 0),
            Outcome::Useless => (0, self.useless.saturating_add(1)),
            Outcome::Failed => (self.failures.saturating_add(1), self.useless),
        };
        if let Outcome::Read(bytes) = outcome {
            self.bytes = bytes as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use taximeter_system::clock;

    use super::*;

    fn outcome() -> impl Strategy<Value = Outcome> {
        prop_oneof![
            (0_usize..20 << 20).prop_map(Outcome::Read),
            Just(Outcome::Useless),
            Just(Outcome::Failed),
        ]
    }

    proptest! {
        /// Whatever a source answers, and however long it takes for it.
        #[test]
        fn a_source_is_asked_one_question_at_a_time_and_never_too_often(
            is_engine in any::<bool>(),
            asked in proptest::collection::vec((outcome(), 0_u64..12_000, any::<bool>()), 1..80),
        ) {
            let mut now = clock::now();
            let mut schedule = Schedule::new(is_engine, now);
            let (mut useless, mut last) = (0, None::<(Instant, Instant, Outcome)>);
            let mut was_busy = false;
            for (outcome, took, is_busy) in asked {
                let due = schedule.due(is_busy).unwrap();
                if let Some((began, ended, before)) = last {
                    let is_busy = is_busy || was_busy;
                    let usual = if !is_engine { EXPORTER } else if is_busy { BUSY } else { IDLE };
                    prop_assert!(due >= began + usual && due > ended);
                    let longest = match before {
                        _ if useless >= USELESS_MAX => RARELY,
                        Outcome::Read(bytes) => usual.max(Duration::from_millis(bytes as u64 / 200)),
                        _ => BACKOFF_MAX.max(Duration::from_millis(20 << 20) / 200),
                    };
                    prop_assert!(due <= began + longest || due <= ended + longest / 2 + usual);
                    if useless >= USELESS_MAX {
                        prop_assert!(due >= began + RARELY);
                    }
                }
                now = due.max(now);
                schedule.begin(now, is_busy);
                was_busy = is_busy;
                prop_assert_eq!(schedule.due(is_busy), None);
                let began = now;
                now += Duration::from_millis(took);
                schedule.end(now, outcome);
                useless = match outcome {
                    Outcome::Useless => useless + 1,
                    Outcome::Read(_) => 0,
                    Outcome::Failed => useless,
                };
                last = Some((began, now, outcome));
            }
        }
    }

    fn after(outcomes: &[Outcome]) -> Schedule {
        let now = clock::now();
        let mut schedule = Schedule::new(true, now);
        for outcome in outcomes {
            schedule.begin(now, false);
            schedule.end(now, *outcome);
        }
        schedule
    }

    #[test]
    fn an_engine_is_asked_each_second_while_requests_run_there() {
        let read = after(&[Outcome::Read(1_000)]);
        let seconds =
            |schedule: &Schedule| [true, false].map(|busy| schedule.every(busy).as_secs());
        assert_eq!(seconds(&read), [1, 15]);
        assert_eq!(seconds(&after(&[Outcome::Failed])), [2, 30]);
        assert_eq!(seconds(&after(&[Outcome::Failed; 4])), [16, 60]);
        assert_eq!(seconds(&after(&[Outcome::Failed; 99])), [60, 60]);
        assert_eq!(seconds(&after(&[Outcome::Useless; 2])), [1, 15]);
        assert_eq!(seconds(&after(&[Outcome::Useless; 3])), [300, 300]);
        let failed_between =
            [Outcome::Useless, Outcome::Failed, Outcome::Useless, Outcome::Useless];
        assert_eq!(seconds(&after(&failed_between)), [300, 300]);
        assert_eq!(
            seconds(&after(&[[Outcome::Useless; 3], [Outcome::Read(9); 3]].concat())),
            [1, 15]
        );
        assert_eq!(seconds(&after(&[Outcome::Read(8 << 20)])), [32, 32]);
        let exporter = Schedule::new(false, clock::now());
        assert_eq!(seconds(&exporter), [5, 5]);
    }

    #[test]
    fn an_engine_is_asked_once_more_when_its_last_request_has_ended() {
        let mut schedule = Schedule::new(true, clock::now());
        let mut now = clock::now();
        let mut gaps = Vec::new();
        // Requests ran when the first two questions began.
        for is_busy in [true, true, false, false] {
            schedule.begin(now, is_busy);
            schedule.end(now, Outcome::Read(9));
            let due = schedule.due(false).unwrap();
            gaps.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(gaps, [1, 1, 15, 15]);
    }
}
