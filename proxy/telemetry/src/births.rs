//! Numbers series by when they were made, so that a reader knows which it has not seen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use jiff::Timestamp;
use taximeter_system::clock;

use super::message::nanoseconds;

/// When series were made. Each has a number of its own: nanoseconds since 1970, and more than that of
/// every series before it, also if the clock is set back.
#[derive(Debug, Clone)]
pub(crate) struct Births {
    last: Arc<AtomicU64>,
    clock: fn() -> Timestamp,
}

impl Births {
    /// No series yet; times are of this clock.
    pub(crate) fn by(clock: fn() -> Timestamp) -> Self {
        Self { last: Arc::default(), clock }
    }

    /// The number of a series that is made now.
    ///
    /// It is made while the registry keeps others from reading the place of the series. So a reader that
    /// asks for the last number, and reads all series after that, finds every series up to that number.
    pub(crate) fn next(&self) -> u64 {
        let now = nanoseconds((self.clock)());
        let later = |last: u64| now.max(last.saturating_add(1));
        match self.last.fetch_update(SeqCst, SeqCst, |last| Some(later(last))) {
            Ok(last) | Err(last) => later(last),
        }
    }

    /// The number of the newest series.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(SeqCst)
    }
}

impl Default for Births {
    fn default() -> Self {
        Self::by(clock::wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_later_than_all_before_it_even_if_the_clock_stands() {
        let births = Births::by(|| Timestamp::from_second(7).unwrap());
        assert_eq!(births.last(), 0);
        let first = births.next();
        assert_eq!(first, 7_000_000_000);
        assert_eq!([births.next(), births.next()], [first + 1, first + 2]);
        assert_eq!(births.last(), first + 2);
    }
}
