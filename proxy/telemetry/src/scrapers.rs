//! Remembers scrapers, so that each is told 0 once of a series that is new to it.
//!
//! A series of a rare caller is made with its first request, so its first number is not 0, and an
//! increase from nothing to that number is seen by no query. So a scraper is told 0 of a series that
//! was made since its last scrape, and the number from the next scrape on.
//!
//! A scraper must never be told 0 of a series of which it has a number already: it would take that for a
//! counter that began anew, and count everything twice. So one that is not known, or was forgotten, is
//! told 0 only of what it cannot have. Where this is not certain, it is told the number.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Scrapers that are remembered. The one that scraped least recently is forgotten for another.
const SCRAPERS_MAX: usize = 16;
/// How long after the start a scraper that is not known is one that comes for the first time: longer
/// than any usual time between two scrapes. Later it may be one whose address has changed.
const ARRIVAL_TIME_MAX: Duration = Duration::from_secs(300);

/// What tells scrapers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScraperId(u64);

impl ScraperId {
    /// Of the scraper at this address that says how long it waits for a scrape, and what it is. The
    /// same one with another query is another: it asks for other metrics, or was told apart so.
    pub fn new(address: IpAddr, timeout: &[u8], agent: &[u8], query: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (address, timeout, agent, query).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A scraper that asks now.
#[derive(Debug, Clone, Copy)]
pub struct Scraper {
    /// Who it is.
    pub id: ScraperId,
    /// Its connection, where that carries one request after the other: who asks again on it has read
    /// the answer before.
    pub connection: Option<u16>,
}

/// The scrapers of a gateway, and which series each has seen.
#[derive(Debug)]
pub(crate) struct Scrapers {
    state: Mutex<State>,
    began: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// The one that scraped least recently first.
    known: Vec<Known>,
    /// The newest series that one has seen that is forgotten.
    forgotten: u64,
}

#[derive(Debug)]
struct Known {
    scraper: Scraper,
    /// The newest series of the scrape before the last one. Of all later ones it was told 0 in the last.
    before: u64,
    /// The newest series of its last scrape.
    last: u64,
}

impl Known {
    /// The newest series of which it may have a number. Whether its last scrape came whole is certain
    /// only if it asks on the same connection. If not, it is told 0 once more: that harms nothing.
    fn seen(&self, by: Scraper) -> u64 {
        let is_same = by.connection.is_some() && by.connection == self.scraper.connection;
        if is_same { self.last } else { self.before }
    }
}

impl Scrapers {
    /// None yet; the gateway starts now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { state: Mutex::default(), began: now }
    }

    /// The newest series of which a scraper may have a number. All later ones are new to it.
    pub(crate) fn seen(&self, by: Scraper, now: Instant) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = state.known.iter().find(|known| known.scraper.id == by.id) {
            return known.seen(by);
        }
        let is_arrival = now.duration_since(self.began) < ARRIVAL_TIME_MAX;
        let others = state.known.iter().map(|known| known.last);
        let any = others.max().filter(|_| !is_arrival).unwrap_or_default();
        any.max(state.forgotten)
    }

    /// Notes that a scraper was sent a whole scrape: 0 of every series after `seen`, and all series up to
    /// `newest`.
    pub(crate) fn note(&self, scraper: Scraper, seen: u64, newest: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = state.known.iter().position(|known| known.scraper.id == scraper.id);
        let before = place.map(|place| state.known.remove(place));
        let (before, last) = before.map_or((seen, seen), |known| (known.last, known.last));
        state.known.push(Known { scraper, before, last: newest.max(last) });
        if state.known.len() > SCRAPERS_MAX {
            let forgotten = state.known.remove(0).last;
            state.forgotten = state.forgotten.max(forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use taximeter_system::clock;

    use super::*;

    fn on(nth: u8, connection: Option<u16>) -> Scraper {
        let address = IpAddr::from([127, 0, 0, nth]);
        Scraper { id: ScraperId::new(address, b"10", b"Prometheus/2.42.0", ""), connection }
    }

    fn by(nth: u8) -> Scraper {
        on(nth, Some(1))
    }

    /// A whole scrape of all series up to this one; what the scraper had seen before.
    fn scrape(scrapers: &Scrapers, scraper: Scraper, newest: u64, now: Instant) -> u64 {
        let seen = scrapers.seen(scraper, now);
        scrapers.note(scraper, seen, newest);
        seen
    }

    #[test]
    fn scrapers_are_told_apart_by_address_words_and_query() {
        let [here, there] = [1, 2].map(|nth| IpAddr::from([127, 0, 0, nth]));
        let one = ScraperId::new(here, b"10", b"a", "");
        assert_eq!(one, ScraperId::new(here, b"10", b"a", ""));
        for other in [
            ScraperId::new(there, b"10", b"a", ""),
            ScraperId::new(here, b"9", b"a", ""),
            ScraperId::new(here, b"10", b"b", ""),
            ScraperId::new(here, b"10", b"a", "scraper=b"),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn each_has_seen_what_it_scraped_and_one_that_comes_after_the_start_nothing() {
        let now = clock::now();
        let scrapers = Scrapers::new(now);
        assert_eq!(scrape(&scrapers, by(1), 10, now), 0);
        assert_eq!(scrape(&scrapers, by(2), 12, now), 0);
        assert_eq!(scrape(&scrapers, by(1), 20, now), 10);
        assert_eq!(scrape(&scrapers, by(2), 20, now), 12);
        assert_eq!([by(1), by(2)].map(|by| scrapers.seen(by, now)), [20, 20]);
    }

    #[test]
    fn on_another_connection_what_was_new_last_time_is_new_once_more() {
        let now = clock::now();
        let scrapers = Scrapers::new(now);
        for (connection, newest, seen) in [
            (Some(1), 10, 0),
            (Some(1), 20, 10),
            // Perhaps it has not read what was told on the other one.
            (Some(2), 30, 10),
            (Some(2), 40, 30),
            (None, 50, 30),
            (None, 60, 40),
            (None, 60, 50),
            (None, 60, 60),
        ] {
            assert_eq!(scrape(&scrapers, on(1, connection), newest, now), seen, "{newest}");
        }
    }

    #[test]
    fn one_that_comes_late_may_have_what_any_other_has() {
        let now = clock::now();
        let scrapers = Scrapers::new(now);
        let late = now + ARRIVAL_TIME_MAX;
        assert_eq!(scrape(&scrapers, by(1), 10, late), 0, "nobody has anything");
        assert_eq!(scrape(&scrapers, by(2), 12, late), 10);
        assert_eq!((scrapers.seen(by(3), late), scrapers.seen(by(1), late)), (12, 10));
    }

    #[test]
    fn one_that_was_forgotten_is_never_told_0_of_what_it_has() {
        let now = clock::now();
        let scrapers = Scrapers::new(now);
        let max = u8::try_from(SCRAPERS_MAX).unwrap();
        for nth in 0..max {
            scrape(&scrapers, by(nth), 10 + u64::from(nth), now);
        }
        // It is the one that scraped last now.
        scrape(&scrapers, by(0), 30, now);
        scrape(&scrapers, by(max), 40, now);
        assert_eq!(scrapers.state.lock().unwrap().known.len(), SCRAPERS_MAX);
        assert_eq!(scrapers.seen(by(0), now), 30);
        assert_eq!(scrapers.seen(by(1), now), 11, "it is forgotten");
        assert_eq!(scrapers.seen(by(99), now), 11, "it may be the one that is forgotten");
    }

    proptest::proptest! {
        /// Whoever scrapes how, a number is never followed by a 0, and 0 comes before every number
        /// where the scraper is known.
        #[test]
        fn nobody_is_told_0_of_a_series_after_its_number(
            scrapes in proptest::collection::vec((0..20_u8, 0..3_u16, 0..5_u64, 0..9_u64), 1..200),
        ) {
            let mut now = clock::now();
            let scrapers = Scrapers::new(now);
            let mut newest = 0;
            let mut numbers: [u64; 20] = [0; 20];
            for (nth, connection, born, minutes) in scrapes {
                newest += born;
                now += Duration::from_secs(60 * minutes);
                let scraper = on(nth, (connection > 0).then_some(connection));
                let seen = scrape(&scrapers, scraper, newest, now);
                let told = &mut numbers[usize::from(nth)];
                proptest::prop_assert!(*told <= seen, "{} has numbers up to {}", nth, told);
                *told = seen;
            }
        }
    }
}
