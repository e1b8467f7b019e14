//! What can happen to entries that are pushed to a receiver.

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::RequestId;

/// With less time left until what the receiver lacks goes, people are told.
const RISK: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;

/// What a receiver lacks of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushBacklog {
    /// How many, at most: those that have used nothing are not sent.
    pub requests: u64,
    /// Admission of the oldest one.
    pub since: Timestamp,
    /// When that one goes, as far as that can be said now.
    pub goes_at: Timestamp,
    /// Less than a week is left until then.
    pub is_at_risk: bool,
}

impl PushBacklog {
    /// So many requests since `since`. Requests go when their day is `keep_days` old, or where the room
    /// for them ends: in `days_of_room`, if that is known.
    #[must_use]
    pub fn new(
        (requests, since): (u64, Timestamp),
        now: Timestamp,
        keep_days: u32,
        days_of_room: Option<f64>,
    ) -> Self {
        let day = since.as_microsecond().div_euclid(DAY_MICROS);
        let old = day.saturating_add(1).saturating_add(keep_days.into());
        let by_age = Timestamp::from_microsecond(old.saturating_mul(DAY_MICROS));
        let by_room = days_of_room.and_then(|days| {
            let left = SignedDuration::try_from_secs_f64(days * 86_400.0).ok()?;
            now.checked_add(left).ok()
        });
        let by_age = by_age.unwrap_or(Timestamp::MAX);
        let goes_at = by_room.map_or(by_age, |by_room| by_room.min(by_age));
        Self { requests, since, goes_at, is_at_risk: goes_at.duration_since(now) < RISK }
    }
}

/// The result of pushing events.
#[derive(Debug)]
pub enum PushOutcome<'a> {
    /// The receiver has them.
    Stored {
        /// How many.
        events: usize,
    },
    /// The receiver refuses this event. It was set aside.
    Rejected {
        /// Its request, or its correction.
        id: RequestId,
        /// What the receiver said.
        reason: &'a str,
    },
    /// The receiver took nothing. The events are sent again.
    Failed {
        /// Why.
        reason: &'a str,
    },
    /// What the receiver lacks now. `None` if it has all.
    Behind {
        /// The receiver.
        receiver: &'a str,
        /// What it lacks.
        backlog: Option<PushBacklog>,
        /// Less than a week is left and it was more before, or the other way round.
        has_turned: bool,
    },
    /// Requests were removed that were not sent: neither the journal nor the store has them.
    Lost {
        /// Their first sequence number.
        first: u64,
        /// Their last.
        last: u64,
    },
    /// The journal is a different one than before. All of it is sent.
    Replaced,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lacked_goes_with_its_day_or_with_the_room_and_people_have_a_week() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let since = at("2026-11-03T07:00:00Z");
        let look = |now: &str, room| PushBacklog::new((5, since), at(now), 30, room);
        let early = look("2026-11-04T00:00:00Z", None);
        assert_eq!((early.requests, early.since, early.is_at_risk), (5, since, false));
        assert_eq!(early.goes_at, at("2026-12-04T00:00:00Z"));
        assert!(!look("2026-11-27T00:00:00Z", None).is_at_risk);
        assert!(look("2026-11-27T00:00:01Z", None).is_at_risk);
        let roomy = look("2026-11-04T00:00:00Z", Some(8.0));
        assert_eq!((roomy.goes_at, roomy.is_at_risk), (at("2026-11-12T00:00:00Z"), false));
        assert!(look("2026-11-04T00:00:00Z", Some(6.9)).is_at_risk);
        assert!(look("2026-11-04T00:00:00Z", Some(0.0)).is_at_risk);
        assert_eq!(look("2026-11-04T00:00:00Z", Some(f64::MAX)).goes_at, early.goes_at);
    }
}
