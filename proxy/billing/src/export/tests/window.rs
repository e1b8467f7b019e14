//! Which times of events receivers take.

use jiff::{SignedDuration, Timestamp};

use crate::export::Format;
use crate::export::window::{EventSpan, OutsideWindow};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn outside(format: Format, age_max: Option<i64>, times: &[&str]) -> OutsideWindow {
    let window = format.window(age_max.map(SignedDuration::from_hours));
    let mut outside = OutsideWindow::new(window, at("2026-11-20T16:00:00Z"));
    times.iter().for_each(|time| outside.count(at(time)));
    outside
}

#[test]
fn stripe_takes_35_days_and_5_minutes() {
    let taken = ["2026-10-16T16:00:00Z", "2026-11-20T16:00:00Z", "2026-11-20T16:05:00Z"];
    assert!(outside(Format::Stripe, None, &taken).is_empty());
    let old = ["2026-10-16T15:59:59Z", "2026-09-01T00:00:00Z", "2026-11-20T16:05:01Z"];
    let outside = outside(Format::Stripe, None, &old);
    let older = EventSpan { events: 2, first: at(old[1]), last: at(old[0]) };
    let newer = EventSpan { events: 1, first: at(old[2]), last: at(old[2]) };
    assert_eq!((outside.older, outside.newer), (Some(older), Some(newer)));
    assert_eq!(
        outside.to_string(),
        "2 events are older than Stripe takes (from 2026-10-16T16:00:00Z): they are from \
         2026-09-01T00:00:00Z to 2026-10-16T15:59:59Z; 1 event is newer than Stripe takes \
         (up to 2026-11-20T16:05:00Z): they are from 2026-11-20T16:05:01Z to \
         2026-11-20T16:05:01Z"
    );
}

#[test]
fn orb_takes_its_grace_period_and_others_what_the_account_says() {
    assert!(outside(Format::Orb, None, &["2026-11-20T04:00:00Z"]).is_empty());
    assert!(!outside(Format::Orb, None, &["2026-11-20T03:59:59Z"]).is_empty());
    let long_ago = ["2020-01-01T00:00:00Z"];
    for format in [Format::Lago, Format::CloudEvents] {
        assert!(outside(format, None, &long_ago).is_empty());
        assert!(!outside(format, Some(34 * 24), &long_ago).is_empty());
    }
    assert!(outside(Format::Orb, Some(48), &["2026-11-19T04:00:00Z"]).is_empty());
}

#[test]
fn a_correction_has_the_time_of_its_request_while_the_receiver_takes_that() {
    let (request, soon, late) =
        ("2026-10-01T00:00:00Z", "2026-11-05T00:00:00Z", "2026-11-05T00:00:01Z");
    let time = |format: Format, made_at| {
        let time = format.window(None).time_of_correction(at(request), at(made_at));
        time.to_string()
    };
    assert_eq!(time(Format::Stripe, soon), request);
    assert_eq!(time(Format::Stripe, late), late);
    assert_eq!(time(Format::Orb, soon), soon);
    assert_eq!(time(Format::Orb, "2026-10-01T12:00:00Z"), request);
    assert_eq!(time(Format::Lago, late), request);
    assert_eq!(time(Format::CloudEvents, late), request);
}
