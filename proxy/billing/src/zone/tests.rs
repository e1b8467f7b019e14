use std::sync::LazyLock;

use jiff::civil::date;
use proptest::prelude::*;

use super::*;

/// All that are known.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| jiff::tz::db().available().map(|name| name.to_string()).collect());

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Its first instant, and the minutes it has.
fn day(name: &str, date: Date) -> (String, i64) {
    let zone = zone(name);
    let start = zone.start_of(date).unwrap();
    let end = zone.start_of(date.tomorrow().unwrap()).unwrap();
    (start.to_string(), end.duration_since(start).as_secs() / 60)
}

/// First instants of the units from `from` on, before `to`.
fn starts(zone: &Zone, unit: Unit, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
    let next = |at: &Timestamp| zone.next(unit, *at).filter(|next| *next < to);
    std::iter::successors(Some(from), next).collect()
}

#[test]
fn a_day_has_as_many_hours_as_its_clocks_have() {
    let told = |start: &str, minutes| (start.to_owned(), minutes);
    let berlin = |on| day("Europe/Berlin", on);
    assert_eq!(berlin(date(2026, 11, 20)), told("2026-11-19T23:00:00Z", 24 * 60));
    assert_eq!(berlin(date(2026, 3, 29)), told("2026-03-28T23:00:00Z", 23 * 60));
    assert_eq!(berlin(date(2026, 10, 25)), told("2026-10-24T22:00:00Z", 25 * 60));
    assert_eq!(day("Asia/Kathmandu", date(2028, 2, 29)), told("2028-02-28T18:15:00Z", 24 * 60));
    assert_eq!(day("America/St_Johns", date(2026, 12, 31)).0, "2026-12-31T03:30:00Z");
    assert_eq!(day("Australia/Lord_Howe", date(2026, 10, 4)).1, 23 * 60 + 30);
}

#[test]
fn a_day_begins_without_midnight_where_clocks_are_put_on_over_it() {
    // From 24:00 to 1:00, at midnight, and from 23:30 to 0:30.
    assert_eq!(
        day("America/Sao_Paulo", date(2018, 11, 4)),
        ("2018-11-04T03:00:00Z".to_owned(), 23 * 60)
    );
    assert_eq!(
        day("America/Toronto", date(1919, 3, 31)),
        ("1919-03-31T04:30:00Z".to_owned(), 23 * 60 + 30)
    );
}

#[test]
fn a_day_that_was_begun_goes_on_where_clocks_go_back_over_midnight() {
    let zone = zone("America/St_Johns");
    // At 0:01 it was 23:01 again.
    let back = at("2010-11-07T02:31:00Z");
    assert_eq!(zone.civil(back).to_string(), "2010-11-06T23:01:00");
    assert_eq!(zone.date_of(back), date(2010, 11, 7));
    assert_eq!(zone.begun(Unit::Day, back), at("2010-11-07T02:30:00Z"));
    assert_eq!(zone.begun(Unit::Hour, back), back);
}

#[test]
fn a_day_that_a_zone_never_had_is_empty() {
    assert_eq!(day("Pacific/Apia", date(2011, 12, 30)), ("2011-12-30T10:00:00Z".to_owned(), 0));
    let zone = zone("Pacific/Apia");
    assert_eq!(zone.date_of(at("2011-12-30T09:59:59Z")), date(2011, 12, 29));
    assert_eq!(zone.date_of(at("2011-12-30T10:00:00Z")), date(2011, 12, 31));
    assert_eq!(zone.next(Unit::Day, at("2011-12-30T09:00:00Z")), Some(at("2011-12-30T10:00:00Z")));
}

#[test]
fn an_hour_that_comes_twice_is_two_hours() {
    let zone = zone("Europe/Berlin");
    let hours = starts(&zone, Unit::Hour, at("2026-10-25T00:00:00Z"), at("2026-10-25T03:00:00Z"));
    let shown: Vec<_> = hours.iter().map(|hour| zone.minute(*hour)).collect();
    assert_eq!(
        shown,
        ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"]
    );
    assert_eq!(Zone::UTC.minute(at("2026-10-25T02:00:00Z")), "2026-10-25T02:00Z");
}

#[test]
fn clocks_that_are_put_within_an_hour_begin_another() {
    let zone = zone("Australia/Lord_Howe");
    let shown = |from: &str, to: &str| -> Vec<_> {
        let hours = starts(&zone, Unit::Hour, at(from), at(to));
        hours.iter().map(|hour| zone.civil(*hour).time().strftime("%H:%M").to_string()).collect()
    };
    // At 2:00 it is 1:30 again, and half a year later 2:30.
    let back = shown("2026-04-04T14:00:00Z", "2026-04-04T16:30:00Z");
    assert_eq!(back, ["01:00", "01:30", "02:00"]);
    let on = shown("2026-10-03T14:30:00Z", "2026-10-03T17:00:00Z");
    assert_eq!(on, ["01:00", "02:30", "03:00"]);
}

#[test]
fn only_names_of_places_with_rules_are_zones() {
    assert_eq!(zone("europe/berlin").to_string(), "Europe/Berlin");
    assert!(zone("UTC").is_utc() && Zone::default().is_utc());
    for name in ["", "Mars/Phobos", "+01:00", "CET-1CEST,M3.5.0,M10.5.0/3", "Etc/Unknown", "local"]
    {
        assert_eq!(name.parse::<Zone>(), Err(UnknownZone(name.to_owned())));
    }
}

#[test]
fn the_ends_of_the_calendar_are_no_fault() {
    for name in ["UTC", "Pacific/Apia", "America/St_Johns"] {
        for end in [Timestamp::MIN, Timestamp::MAX] {
            for unit in [Unit::Hour, Unit::Day, Unit::Month] {
                assert!(zone(name).begun(unit, end) <= end);
                assert!(zone(name).next(unit, end).is_none_or(|next| next > end));
            }
        }
    }
}

proptest! {
    #[test]
    fn hours_tile_days_and_days_tile_months_in_every_zone(
        name in prop::sample::select(NAMES.clone()),
        second in 0_i64..4_000_000_000,
    ) {
        let zone = zone(&name);
        let at = Timestamp::from_second(second).unwrap();
        for (small, large) in [(Unit::Day, Unit::Month), (Unit::Hour, Unit::Day)] {
            let (from, to) = (zone.begun(large, at), zone.next(large, at).unwrap());
            prop_assert!(from <= at && at < to);
            let starts = starts(&zone, small, from, to);
            for pair in starts.windows(2) {
                // Each is its own first instant, and ends where the next one begins.
                let last = pair[1].checked_sub(Span::new().nanoseconds(1)).unwrap();
                prop_assert_eq!(zone.begun(small, pair[0]), pair[0]);
                prop_assert_eq!(zone.begun(small, last), pair[0]);
                prop_assert_eq!(zone.next(small, last), Some(pair[1]));
                prop_assert_eq!(zone.begun(large, pair[1]), from);
            }
            prop_assert_eq!(zone.next(small, *starts.last().unwrap()), Some(to));
            prop_assert!(starts.contains(&zone.begun(small, at)));
        }
    }
}
