use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

/// All zones that are known.
static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| jiff::tz::db().available().map(|name| name.to_string()).collect());

#[test]
fn a_month_is_whole_and_half_open() {
    let leap = Period::month("2028-02").unwrap();
    assert_eq!(leap.from(), instant("2028-02-01").unwrap());
    assert_eq!(leap.to(), instant("2028-03-01").unwrap());
    assert!(leap.contains(leap.from()));
    assert!(leap.contains(instant("2028-02-29T23:59:59.999999Z").unwrap()));
    assert!(!leap.contains(leap.to()));
    assert_eq!(Period::month("2026-12").unwrap().to(), instant("2027-01-01").unwrap());
}

#[test]
fn a_period_is_its_whole_hours_and_what_is_cut_at_its_ends() {
    let shown = |from: &str, to: &str| {
        let period = Period::new(instant(from).unwrap(), instant(to).unwrap()).unwrap();
        period.by_hours().map(|part| {
            let minutes = |at: Timestamp| at.strftime("%H:%M").to_string();
            part.map_or(String::new(), |part| minutes(part.from()) + "-" + &minutes(part.to()))
        })
    };
    let day = shown("2026-11-20", "2026-11-21");
    assert_eq!(day, ["", "00:00-00:00", ""]);
    let cut = shown("2026-11-20T10:30:00Z", "2026-11-20T13:15:00Z");
    assert_eq!(cut, ["10:30-11:00", "11:00-13:00", "13:00-13:15"]);
    let short = shown("2026-11-20T10:30:00Z", "2026-11-20T11:15:00Z");
    assert_eq!(short, ["10:30-11:15", "", ""]);
    let inside = shown("2026-11-20T10:00:00Z", "2026-11-20T10:15:00Z");
    assert_eq!(inside, ["10:00-10:15", "", ""]);
}

#[test]
fn the_month_of_an_instant_is_by_utc() {
    let at = instant("2026-12-01T00:30:00+01:00").unwrap();
    assert_eq!(Period::month_of(at, &Zone::UTC), Period::month("2026-11"));
}

#[test]
fn what_is_no_month_or_time_says_how_to_write_one() {
    for text in ["", "2026", "2026-13", "2026-1", "26-11-0", "2026-11-01", "2026/11"] {
        assert!(Period::month(text).unwrap_err().to_string().contains("2026-11"), "{text}");
    }
    for text in ["", "yesterday", "2026-11-20T16:00:00", "2026-02-30", "2026-11"] {
        assert_eq!(instant(text), Err(PeriodError::Instant(text.to_owned())));
    }
}

#[test]
fn an_end_before_the_start_is_refused() {
    let (early, late) = (instant("2026-11-01").unwrap(), instant("2026-11-02").unwrap());
    assert!(Period::new(early, late).is_ok());
    assert!(matches!(Period::new(late, early), Err(PeriodError::Empty { .. })));
    assert!(matches!(Period::new(late, late), Err(PeriodError::Empty { .. })));
}

#[test]
fn a_month_is_shown_short_and_another_span_in_full() {
    assert_eq!(Period::month("2026-11").unwrap().to_string(), "2026-11");
    let week = Period::new(instant("2026-11-02").unwrap(), instant("2026-11-09").unwrap()).unwrap();
    assert_eq!(week.to_string(), "2026-11-02T00:00:00Z to 2026-11-09T00:00:00Z");
}

fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

#[test]
fn a_month_and_a_day_are_those_of_the_zone() {
    let berlin = zone("Europe/Berlin");
    let october = "2026-10".parse::<Month>().unwrap().period(&berlin).unwrap();
    let ends = [october.from(), october.to()].map(|end| end.to_string());
    assert_eq!(ends, ["2026-09-30T22:00:00Z", "2026-10-31T23:00:00Z"]);
    let at = instant("2026-09-30T22:30:00Z").unwrap();
    assert_eq!(Period::month_of(at, &berlin), Ok(october));
    let on = day("2026-10-25").unwrap();
    let long = Period::day(on, &berlin).unwrap();
    assert_eq!(long.to().duration_since(long.from()).as_hours(), 25);
    assert_eq!(Moment::Day(on).at(&berlin), Ok(long.from()));
}

#[test]
fn a_day_that_the_zone_never_had_is_refused() {
    let jumped = day("2011-12-30").unwrap();
    assert!(Period::day(jumped, &Zone::UTC).is_ok());
    let refused = Period::day(jumped, &zone("Pacific/Apia")).unwrap_err();
    assert_eq!(refused.to_string(), "there is no 2011-12-30 in Pacific/Apia");
    assert!(Period::day(Date::MAX, &Zone::UTC).is_err());
}

#[test]
fn a_name_is_that_of_the_zone_and_its_heading_has_the_instants() {
    let (berlin, utc) = (zone("Europe/Berlin"), Zone::UTC);
    let month = "2026-10".parse::<Month>().unwrap().period(&berlin).unwrap();
    assert_eq!(month.name(&berlin), "2026-10");
    let both = "2026-09-30T22:00:00Z to 2026-10-31T23:00:00Z";
    assert_eq!(month.heading(&berlin), format!("2026-10 (Europe/Berlin: {both})"));
    assert_eq!(month.heading(&utc), format!("{both} (UTC)"));
    let day = Period::day(day("2026-10-25").unwrap(), &utc).unwrap();
    assert_eq!(day.heading(&utc), "2026-10-25 (UTC)");
}

#[test]
fn a_period_is_cut_only_where_a_unit_begins_within_an_hour() {
    let month = Period::month("2026-11").unwrap();
    let parts = |name: &str, unit| month.parts(unit, &zone(name)).unwrap();
    for unit in [Unit::Hour, Unit::Day, Unit::Month] {
        assert_eq!(parts("UTC", unit), [month]);
        assert_eq!(parts("Europe/Berlin", unit), [month]);
    }
    assert_eq!(parts("Asia/Kolkata", Unit::Day).len(), 31);
    assert_eq!(parts("Asia/Kolkata", Unit::Hour).len(), 30 * 24 + 1);
    assert_eq!(parts("Asia/Kathmandu", Unit::Month).len(), 2);
}

#[test]
fn a_period_of_too_many_hours_is_refused() {
    let [from, to] = ["0001-01-01", "9000-01-01"].map(|end| instant(end).unwrap());
    let ages = Period::new(from, to).unwrap();
    assert_eq!(ages.parts(Unit::Hour, &Zone::UTC), Ok(vec![ages]));
    let refused = ages.parts(Unit::Hour, &zone("Europe/Berlin"));
    assert_eq!(refused, Err(PeriodError::TooLong { from, to }));
}

proptest! {
    #[test]
    fn parts_tile_the_period_and_split_no_hour_in_two(
        name in prop::sample::select(NAMES.clone()),
        from in 0_i64..4_000_000_000,
        length in 1_i64..4_000_000,
        unit in prop::sample::select(vec![Unit::Hour, Unit::Day, Unit::Month]),
    ) {
        let zone = zone(&name);
        let [from, to] = [from, from + length].map(|at| Timestamp::from_second(at).unwrap());
        let period = Period::new(from, to).unwrap();
        let parts = period.parts(unit, &zone).unwrap();
        prop_assert_eq!(parts[0].from(), from);
        prop_assert_eq!(parts[parts.len() - 1].to(), to);
        for pair in parts.windows(2) {
            prop_assert_eq!(pair[0].to(), pair[1].from());
            prop_assert_eq!(zone.begun(unit, pair[1].from()), pair[1].from());
        }
        // The first and last instant of each hour of UTC, as far as it is in a part.
        for part in parts.iter().take(50) {
            let hour = hour_of(part.from()).checked_add(SignedDuration::from_hours(1)).unwrap();
            let last = hour.min(part.to()).checked_sub(SignedDuration::from_nanos(1)).unwrap();
            prop_assert_eq!(zone.begun(unit, part.from()), zone.begun(unit, last));
        }
    }
}
