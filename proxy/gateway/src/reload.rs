//! Decides when to read the configuration again, and keeps what is known of the current one.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use taximeter_fleet::Fact;

/// How long a file may be away: some programs remove the old before the new is there.
const AWAY_MAX: Duration = Duration::from_secs(1);

/// Waits until files that have changed hold still, so that none is read while it is written.
#[derive(Debug)]
pub struct Settled<L> {
    /// As they looked when they were last read; `None` where they are to be read in any case.
    read: Option<L>,
    /// As they look since.
    seen: Option<(L, Instant)>,
}

impl<L: PartialEq> Settled<L> {
    /// Files that looked so when they were read.
    pub const fn new(read: L) -> Self {
        Self { read: Some(read), seen: None }
    }

    /// They are to be read, changed or not.
    pub fn hurry(&mut self) {
        self.read = None;
    }

    /// They look so now. Whether it is time to read them: they have changed, and not since the last
    /// look; if one of them is away, not for the last second.
    pub fn look(&mut self, now: Instant, look: L, is_whole: bool) -> bool {
        if self.read.as_ref() == Some(&look) {
            self.seen = None;
            return false;
        }
        let since = match self.seen.take() {
            Some((before, since)) if before == look => Some(since),
            _ => None,
        };
        let held_still =
            since.is_some_and(|since| is_whole || now.duration_since(since) >= AWAY_MAX);
        if held_still {
            self.read = Some(look);
        } else {
            self.seen = Some((look, since.unwrap_or(now)));
        }
        held_still
    }
}

/// What is known of the configuration that is in force.
#[derive(Debug, Clone)]
pub struct InForce {
    /// Since when it is in force.
    pub since: Timestamp,
    /// Keys that have other values in the file, and wait for a start.
    pub waiting: Vec<&'static str>,
    /// Why what is in the file is not in force.
    pub rejected: Option<Rejected>,
    /// What it rests on: its files, with what tells one content of theirs from another.
    pub facts: Vec<Fact>,
}

/// A file that was not taken.
#[derive(Debug, Clone)]
pub struct Rejected {
    /// When.
    pub at: Timestamp,
    /// What is wrong with it, each with its place.
    pub problems: Vec<String>,
}

impl InForce {
    /// All of the file is.
    pub const fn whole(since: Timestamp) -> Self {
        Self { since, waiting: Vec::new(), rejected: None, facts: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taximeter_system::clock;

    /// What comes of looks, a fifth of a second apart.
    fn due(settled: &mut Settled<&'static str>, looks: &[(&'static str, bool)]) -> Vec<bool> {
        let start = clock::now();
        let looks = looks.iter().zip(0u32..);
        looks
            .map(|((look, whole), nth)| {
                settled.look(start + nth * Duration::from_millis(200), look, *whole)
            })
            .collect()
    }

    #[test]
    fn a_change_is_read_once_when_it_holds_still() {
        let mut settled = Settled::new("a");
        let looks = ["a", "b", "c", "c", "c", "c", "a", "c", "c"].map(|look| (look, true));
        let expected = [false, false, false, true, false, false, false, false, false];
        assert_eq!(due(&mut settled, &looks), expected);
    }

    #[test]
    fn a_file_that_is_away_for_a_moment_is_no_change() {
        let mut settled = Settled::new("a");
        let away = [("", false); 5];
        assert_eq!(due(&mut settled, &away), [false; 5]);
        assert_eq!(due(&mut settled, &[("a", true)]), [false]);
        let gone = [("", false); 8];
        let told = [false, false, false, false, false, true, false, false];
        assert_eq!(due(&mut settled, &gone), told, "after a second");
    }

    #[test]
    fn who_hurries_is_read_changed_or_not() {
        let mut settled = Settled::new("a");
        settled.hurry();
        assert_eq!(due(&mut settled, &[("a", true); 4]), [false, true, false, false]);
    }
}
