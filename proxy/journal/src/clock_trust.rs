//! Decides whether the wall clock may say what is old. A clock that a bad battery or a typing error
//! has set to next year would make all of a history old at once.
//!
//! While the gateway runs, the monotonic clock shows how much time has passed since the last look,
//! whatever the wall clock was set to. Before the first look, the newest entry stands for that. Where
//! the wall clock is more than a day away from it, nothing is removed by age until the wall clock has
//! been steady for a day: as fast as the monotonic clock, without a step. Then it is right, and the
//! gateway was off.
//!
//! What is known is kept in a file, so a restart neither ends a wait nor begins it anew. Time for
//! which no gateway ran does not count. This file reads no clock and no file.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

/// How far the wall clock may be away from what is expected.
const DOUBT_FROM: SignedDuration = SignedDuration::from_hours(24);
/// How long the wall clock must be steady then.
pub(super) const STEADY_FOR: Duration = Duration::from_secs(24 * 3600);
/// A change of the wall clock against the monotonic one that is larger is a step.
const STEP_FROM: SignedDuration = SignedDuration::from_mins(1);

/// Bytes of [`Kept`] as text. It always has the same length, so it is written over in place, and
/// needs no further room on a full volume.
pub(super) const KEPT_BYTES: usize = 128;

/// What is known of the wall clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClockTrust {
    /// The time as it is known without the wall clock.
    trusted: Timestamp,
    /// The last look, on both clocks.
    looked: (Instant, Timestamp),
    /// For how long the wall clock has been steady, while it is in doubt.
    steady: Option<Duration>,
}

/// What outlives the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    trusted: Timestamp,
    looked: Timestamp,
    steady: Option<Duration>,
}

/// A wall clock that is too far ahead. Nothing is removed by age meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockAhead {
    /// What the wall clock says.
    pub clock: Timestamp,
    /// The time of the newest entry, and what has passed since while a gateway ran.
    pub newest: Timestamp,
    /// For how long the wall clock must stay steady, until files are removed by age again.
    pub remaining: Duration,
}

impl ClockTrust {
    /// What is known at a start: from what was `kept`, or else from the newest entry of the journal.
    pub(super) fn begin(
        kept: Option<Kept>,
        newest: Option<Timestamp>,
        (now, wall): (Instant, Timestamp),
    ) -> Self {
        let mut trust = match kept {
            Some(Kept { trusted, looked, steady }) => {
                // How long the process was away is not known. Less than nothing, or more than a day,
                // may be a step.
                let away = wall.duration_since(looked);
                let is_step = away < -STEP_FROM || away > DOUBT_FROM;
                let steady = steady.map(|steady| if is_step { Duration::ZERO } else { steady });
                Self { trusted, looked: (now, wall), steady }
            }
            None => Self { trusted: newest.unwrap_or(wall), looked: (now, wall), steady: None },
        };
        trust.look(now, wall);
        trust
    }

    /// Looks at both clocks.
    pub(super) fn look(&mut self, now: Instant, wall: Timestamp) {
        let (then, wall_then) = self.looked;
        let passed = now.saturating_duration_since(then);
        self.looked = (now, wall);
        let expected = self.trusted.saturating_add(passed).unwrap_or(Timestamp::MAX);
        if is_within(wall.duration_since(expected), DOUBT_FROM) {
            (self.trusted, self.steady) = (wall, None);
            return;
        }
        let moved = wall.duration_since(wall_then);
        let passed_signed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        let is_step = !is_within(moved.saturating_sub(passed_signed), STEP_FROM);
        let steady = self.steady.filter(|_| !is_step);
        let steady = steady.map_or(Duration::ZERO, |steady| steady + passed);
        (self.trusted, self.steady) =
            if steady < STEADY_FOR { (expected, Some(steady)) } else { (wall, None) };
    }

    /// Whether the wall clock is too far ahead. A clock that is behind removes too little, and never
    /// too much.
    pub(super) fn ahead(&self) -> Option<ClockAhead> {
        let (clock, newest) = (self.looked.1, self.trusted);
        let steady = self.steady.filter(|_| clock > newest)?;
        Some(ClockAhead { clock, newest, remaining: STEADY_FOR.saturating_sub(steady) })
    }

    /// The time at the last look, to say what is old. `None` while the wall clock is ahead. A clock
    /// that is behind calls too little old, and never too much.
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.ahead().is_none().then(|| self.trusted.min(self.looked.1))
    }

    /// What is to outlive the process.
    pub(super) const fn kept(&self) -> Kept {
        Kept { trusted: self.trusted, looked: self.looked.1, steady: self.steady }
    }
}

fn is_within(difference: SignedDuration, most: SignedDuration) -> bool {
    difference <= most && difference >= -most
}

impl Kept {
    /// What a file of [`KEPT_BYTES`] says. `None` where it says nothing that can be read.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let trusted = words.next()?.parse().ok()?;
        let looked = words.next()?.parse().ok()?;
        let steady = match words.next()? {
            "right" => None,
            seconds => Some(Duration::from_secs(seconds.parse().ok()?)),
        };
        Some(Self { trusted, looked, steady })
    }

    /// Whether the wall clock is in doubt.
    pub(super) const fn is_doubted(&self) -> bool {
        self.steady.is_some()
    }

    /// The text of the file.
    pub(super) fn text(&self) -> String {
        let Self { trusted, looked, steady } = self;
        let steady = steady.map_or("right".to_owned(), |steady| steady.as_secs().to_string());
        let text = format!("{trusted} {looked} {steady}");
        format!("{text:<width$}\n", width = KEPT_BYTES - 1)
    }
}

#[cfg(test)]
mod tests {
    use taximeter_system::clock;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Both clocks, and what is known of them.
    struct Bench {
        now: Instant,
        wall: Timestamp,
        trust: ClockTrust,
    }

    impl Bench {
        fn start(newest: Option<Timestamp>, wall: Timestamp) -> Self {
            let now = clock::now();
            Self { now, wall, trust: ClockTrust::begin(None, newest, (now, wall)) }
        }

        fn pass(&mut self, time: Duration) {
            self.now += time;
            self.wall += time;
        }

        fn is_ahead(&mut self) -> bool {
            self.trust.look(self.now, self.wall);
            self.trust.ahead().is_some()
        }

        /// A restart; the process is away for this long, and another one has the same clocks.
        fn restart(&mut self, away: Duration) {
            let kept = Kept::parse(&self.trust.kept().text()).unwrap();
            self.pass(away);
            // Another boot of the machine: the monotonic clock says nothing of the time before.
            self.now = clock::now();
            // The newest entry is of the wrong clock by now.
            let newest = Some(self.wall);
            self.trust = ClockTrust::begin(Some(kept), newest, (self.now, self.wall));
        }
    }

    fn at(days: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + days * 86_400).unwrap()
    }

    #[test]
    fn a_clock_that_is_right_is_never_in_doubt_however_long_nothing_is_written() {
        let mut bench = Bench::start(Some(at(0)), at(1));
        assert!(!bench.is_ahead());
        for hours in [1, 5, 30, 24 * 90] {
            bench.pass(HOUR * hours);
            assert!(!bench.is_ahead(), "{hours} hours");
        }
        bench.restart(HOUR * 23);
        assert!(!bench.is_ahead());
        assert!(!Bench::start(None, at(9_000)).is_ahead(), "a ledger without entries");
    }

    #[test]
    fn a_clock_far_ahead_of_the_newest_entry_waits_for_a_steady_day() {
        for days in [2, 30, 500] {
            let mut bench = Bench::start(Some(at(0)), at(days));
            let ahead = bench.trust.ahead().unwrap();
            assert_eq!((ahead.clock, ahead.newest, ahead.remaining), (at(days), at(0), DAY));
            bench.pass(HOUR * 23);
            assert!(bench.is_ahead());
            assert_eq!(bench.trust.ahead().unwrap().remaining, HOUR);
            bench.pass(HOUR);
            assert!(!bench.is_ahead());
            bench.pass(HOUR * 1_000);
            assert!(!bench.is_ahead());
        }
    }

    #[test]
    fn a_step_while_the_gateway_runs_is_seen_too() {
        let mut bench = Bench::start(Some(at(0)), at(0));
        bench.pass(HOUR);
        bench.wall += DAY * 500;
        assert!(bench.is_ahead());
        bench.pass(HOUR * 12);
        assert!(bench.is_ahead());
        // Repaired: all is as before, without a wait.
        bench.wall = at(0) + HOUR * 13;
        assert!(!bench.is_ahead());
    }

    #[test]
    fn a_step_begins_the_wait_anew_and_a_small_correction_does_not() {
        for (step, is_new) in [(30, false), (-30, false), (3_600, true), (-3_600, true)] {
            let mut bench = Bench::start(Some(at(0)), at(500));
            bench.pass(HOUR * 23);
            assert!(bench.is_ahead());
            bench.pass(HOUR);
            bench.wall += SignedDuration::from_secs(step);
            assert_eq!(bench.is_ahead(), is_new, "{step} seconds");
            bench.pass(HOUR * 23);
            assert_eq!(bench.is_ahead(), is_new, "{step} seconds");
            bench.pass(HOUR);
            assert!(!bench.is_ahead());
        }
    }

    #[test]
    fn a_restart_neither_ends_the_wait_nor_makes_it_endless() {
        let mut bench = Bench::start(Some(at(0)), at(500));
        for _ in 0..23 {
            bench.pass(HOUR);
            assert!(bench.is_ahead());
            // Time without a gateway does not count.
            bench.restart(HOUR * 2);
            assert!(bench.is_ahead());
        }
        assert_eq!(bench.trust.ahead().unwrap().remaining, HOUR);
        bench.pass(HOUR);
        assert!(!bench.is_ahead());
    }

    #[test]
    fn a_step_behind_a_restart_begins_the_wait_anew() {
        for step in [DAY * 30, DAY * 2] {
            let mut bench = Bench::start(Some(at(0)), at(500));
            bench.pass(HOUR * 20);
            assert!(bench.is_ahead());
            bench.restart(step);
            assert_eq!(bench.trust.ahead().unwrap().remaining, DAY);
        }
        let mut bench = Bench::start(Some(at(0)), at(500));
        bench.pass(HOUR * 20);
        assert!(bench.is_ahead());
        bench.wall -= HOUR * 30;
        bench.restart(Duration::ZERO);
        assert_eq!(bench.trust.ahead().unwrap().remaining, DAY);
    }

    #[test]
    fn a_clock_that_is_behind_does_not_wait_and_is_known_once_it_was_steady() {
        // A machine without a battery begins in 1970, until it has asked for the time.
        let mut bench = Bench::start(Some(at(0)), Timestamp::UNIX_EPOCH);
        assert!(!bench.is_ahead());
        bench.pass(HOUR);
        bench.wall = at(0) + HOUR;
        assert!(!bench.is_ahead());
        // An entry of a clock that was ahead is no measure for ever.
        let mut bench = Bench::start(Some(at(500)), at(0));
        for _ in 0..25 {
            assert!(!bench.is_ahead());
            bench.pass(HOUR);
        }
        bench.wall = at(400);
        assert!(bench.is_ahead());
    }

    #[test]
    fn what_is_kept_has_one_length_and_reads_back() {
        for steady in [None, Some(Duration::ZERO), Some(STEADY_FOR)] {
            for time in [Timestamp::MIN, at(0), Timestamp::MAX] {
                let kept = Kept { trusted: time, looked: time, steady };
                assert_eq!(kept.text().len(), KEPT_BYTES);
                assert_eq!(Kept::parse(&kept.text()), Some(kept));
            }
        }
        for text in ["", "   \n", "soon", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z now 3"] {
            assert_eq!(Kept::parse(text), None, "{text}");
        }
    }
}
