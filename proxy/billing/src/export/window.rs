//! Which times of events a receiver takes.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// The times of events that a receiver takes. Times are compared with that of the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The receiver, for messages.
    pub(super) receiver: &'static str,
    /// The highest age of an event. `None` if the receiver states none.
    pub(super) age_max: Option<SignedDuration>,
    /// How far an event may be ahead of the time. `None` if the receiver states no limit.
    pub(super) ahead_max: Option<SignedDuration>,
}

/// Events of an export that the receiver does not take, because of their time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutsideWindow {
    /// The receiver.
    pub receiver: &'static str,
    /// The earliest time that it takes at the time of the export. `None` if it states no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_from: Option<Timestamp>,
    /// The latest time that it takes. `None` if it states no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_to: Option<Timestamp>,
    /// The events that are too old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub older: Option<EventSpan>,
    /// The events that are too far ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer: Option<EventSpan>,
}

/// A number of events, and their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct EventSpan {
    /// Number of events.
    pub events: u64,
    /// Time of the first one.
    pub first: Timestamp,
    /// Time of the last one.
    pub last: Timestamp,
}

impl Window {
    /// How an age is written.
    pub const AGE: &'static str = "35d or 12h, above zero and below 65536";

    /// An age in days or hours, such as `35d` or `12h`. `None` if the text is no such age.
    #[must_use]
    pub fn age(text: &str) -> Option<SignedDuration> {
        let hours = match (text.strip_suffix('d'), text.strip_suffix('h')) {
            (Some(days), _) => days.parse::<u16>().ok().map(|days| i64::from(days) * 24),
            (_, Some(hours)) => hours.parse::<u16>().ok().map(i64::from),
            _ => None,
        };
        hours.filter(|hours| *hours > 0).map(SignedDuration::from_hours)
    }

    /// The time of the event of a correction: that of its request. If the receiver did not take
    /// such a time any more when the correction was made, the time of the correction.
    ///
    /// It does not depend on the time of the export. Otherwise a correction that is sent twice
    /// could count twice, with two times.
    pub(super) fn time_of_correction(self, request: Timestamp, made_at: Timestamp) -> Timestamp {
        match self.age_max {
            Some(age_max) if made_at.duration_since(request) > age_max => made_at,
            _ => request,
        }
    }
}

impl OutsideWindow {
    /// No event yet. `now` is the time of the export.
    pub(super) fn new(window: Window, now: Timestamp) -> Self {
        let Window { receiver, age_max, ahead_max } = window;
        Self {
            receiver,
            takes_from: age_max.and_then(|age| now.checked_sub(age).ok()),
            takes_to: ahead_max.and_then(|ahead| now.checked_add(ahead).ok()),
            older: None,
            newer: None,
        }
    }

    /// Counts an event, if the receiver does not take it.
    pub(super) fn count(&mut self, at: Timestamp) {
        if self.takes_from.is_some_and(|from| at < from) {
            EventSpan::add(&mut self.older, at);
        } else if self.takes_to.is_some_and(|to| at > to) {
            EventSpan::add(&mut self.newer, at);
        }
    }

    /// Whether the receiver takes all events.
    pub(super) const fn is_empty(&self) -> bool {
        self.older.is_none() && self.newer.is_none()
    }
}

impl EventSpan {
    fn add(span: &mut Option<Self>, at: Timestamp) {
        let Self { events, first, last } = span.unwrap_or(Self { events: 0, first: at, last: at });
        *span = Some(Self { events: events + 1, first: first.min(at), last: last.max(at) });
    }
}

/// What is too old and too far ahead, for people.
impl fmt::Display for OutsideWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { receiver, takes_from, takes_to, older, newer } = self;
        let spans = [(older, takes_from, "older", "from"), (newer, takes_to, "newer", "up to")];
        let mut comma = "";
        for (span, limit, word, side) in spans {
            let (Some(EventSpan { events, first, last }), Some(limit)) = (span, limit) else {
                continue;
            };
            let are = if *events == 1 { "event is" } else { "events are" };
            write!(
                f,
                "{comma}{events} {are} {word} than {receiver} takes ({side} {limit:.0}): they \
                 are from {first:.0} to {last:.0}"
            )?;
            comma = "; ";
        }
        Ok(())
    }
}
