use jiff::Span;

use super::*;
use crate::period::{Month, instant};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn at(text: &str) -> Timestamp {
    instant(text).unwrap()
}

/// The end of November in UTC.
fn end() -> Timestamp {
    at("2026-12-01T00:00:00Z")
}

/// A gateway that said at `said` that what was admitted before `until` has ended.
fn gateway(name: &str, said: &str, until: &str) -> GatewayProgress {
    let settled = SettledUntil { at: at(said), until: at(until), request_max: HOUR };
    GatewayProgress {
        gateway: name.to_owned(),
        heard: settled.at,
        settled: Some(settled),
        is_running: false,
    }
}

fn idle(name: &str, said: &str) -> GatewayProgress {
    gateway(name, said, said)
}

/// The words for November at `now`.
fn november(gateways: &[GatewayProgress], now: &str) -> String {
    let period = Period::month("2026-11").unwrap();
    PeriodStatus::new(period, closing(end(), gateways, at(now)), at(now)).words(&Zone::UTC)
}

#[test]
fn a_period_closes_the_longest_request_time_after_its_end() {
    let past = idle("a", "2026-12-01T01:00:00Z");
    for (now, words) in [
        ("2026-11-30T23:59:59Z", "provisional: up to 2026-11-30 23:59"),
        ("2026-12-01T00:00:20Z", "provisional: closes at 2026-12-01 01:00"),
        ("2026-12-01T00:59:59Z", "provisional: closes at 2026-12-01 01:00"),
        ("2026-12-01T01:00:00Z", "final"),
        ("2031-01-01T00:00:00Z", "final"),
    ] {
        assert_eq!(november(std::slice::from_ref(&past), now), words, "{now}");
    }
    // The longest that held at any of the gateways.
    let mut long = idle("b", "2026-12-01T06:00:00Z");
    long.settled.as_mut().unwrap().request_max = HOUR * 6;
    let both = [past, long];
    assert_eq!(november(&both, "2026-12-01T02:00:00Z"), "provisional: closes at 2026-12-01 06:00");
    assert_eq!(
        november(&both, "2026-12-01T07:00:00Z"),
        "provisional: waits for a, which has written up to 2026-12-01 01:00"
    );
    let [_, long] = both;
    assert_eq!(
        november(&[idle("a", "2026-12-01T06:00:00Z"), long], "2026-12-01T07:00:00Z"),
        "final"
    );
}

#[test]
fn every_gateway_must_have_written_past_that_time() {
    let now = "2026-12-01T03:00:00Z";
    let past = idle("a", "2026-12-01T02:00:00Z");
    let before = idle("b", "2026-12-01T00:59:59Z");
    assert_eq!(
        november(&[past.clone(), before], now),
        "provisional: waits for b, which has written up to 2026-12-01 00:59"
    );
    // What a gateway writes that says nothing of open requests counts by its time.
    let unsaid = |heard| GatewayProgress { settled: None, ..idle("c", heard) };
    assert_eq!(november(&[past.clone(), unsaid("2026-12-01T01:00:00Z")], now), "final");
    assert_eq!(
        november(&[past, unsaid("2026-12-01T00:50:00Z")], now),
        "provisional: waits for c, which has written up to 2026-12-01 00:50"
    );
    assert_eq!(november(&[], now), "final", "a store that nobody feeds");
}

#[test]
fn an_open_request_of_the_period_keeps_it_open_and_a_later_one_does_not() {
    let now = "2026-12-01T03:00:00Z";
    let open = gateway("a", "2026-12-01T02:30:00Z", "2026-11-30T23:59:30Z");
    let waits = "provisional: waits for a, which has requests open since 2026-11-30 23:59";
    assert_eq!(november(&[open], now), waits);
    for until in ["2026-12-01T00:00:00Z", "2026-12-01T02:00:00Z"] {
        assert_eq!(november(&[gateway("a", "2026-12-01T02:30:00Z", until)], now), "final");
    }
}

#[test]
fn a_gateway_that_is_silent_for_a_day_is_named_and_not_waited_for() {
    let past = idle("a", "2026-12-01T23:50:00Z");
    let down = idle("b", "2026-11-30T23:50:00Z");
    let gateways = [past, down];
    assert_eq!(
        november(&gateways, "2026-12-01T23:49:59Z"),
        "provisional: waits for b, which has written up to 2026-11-30 23:50"
    );
    let named = "final; not waited for: b has been silent since 2026-11-30 23:50";
    assert_eq!(november(&gateways, "2026-12-01T23:50:00Z"), named);
    // Requests that were open when it fell silent are late as well.
    let mut open = gateways.clone();
    open[1].settled.as_mut().unwrap().until = at("2026-11-30T23:40:00Z");
    assert_eq!(november(&open, "2026-12-02T00:00:00Z"), named);
    let mut running = gateways;
    running[1].is_running = true;
    assert_eq!(
        november(&running, "2026-12-09T00:00:00Z"),
        "provisional: waits for b, which has written up to 2026-11-30 23:50"
    );
    running[1].is_running = false;
    running[1].heard = end() - GONE_AFTER;
    assert_eq!(november(&running, "2026-12-09T00:00:00Z"), "final", "it went long ago");
}

#[test]
fn many_silent_gateways_are_counted_in_words_and_listed_for_programs() {
    let down: Vec<_> = (0..5).map(|n| idle(&format!("pod-{n}"), "2026-11-20T10:00:00Z")).collect();
    let words = november(&down, "2026-12-05T00:00:00Z");
    assert!(
        words.starts_with("final; not waited for: pod-0 has been silent since 2026-11-20 10:00; ")
    );
    assert!(words.ends_with("; and 2 more"), "{words}");
    let Closing::Closed { silent } = closing(end(), &down, at("2026-12-05T00:00:00Z")) else {
        panic!("it is closed");
    };
    assert_eq!(silent.len(), 5);
}

#[test]
fn the_clock_of_who_asks_closes_nothing_that_a_running_gateway_has_not_written() {
    let mut written = idle("a", "2026-11-20T12:00:00Z");
    written.is_running = true;
    let waits = "provisional: waits for a, which has written up to 2026-11-20 12:00";
    assert_eq!(november(&[written], "2028-04-01T00:00:00Z"), waits);
    // Others that write know how late it is.
    let mut others = [idle("a", "2026-12-01T02:00:00Z"), idle("b", "2026-11-30T23:50:00Z")];
    let waits = "provisional: waits for b, which has written up to 2026-11-30 23:50";
    assert_eq!(november(&others, "2026-12-02T01:00:00Z"), waits);
    others[0] = idle("a", "2026-12-01T23:50:00Z");
    let silent = "final; not waited for: b has been silent since 2026-11-30 23:50";
    assert_eq!(november(&others, "2026-12-02T01:00:00Z"), silent);
    // And a clock that is behind closes nothing before its time.
    let past = [idle("a", "2026-12-01T02:00:00Z")];
    assert_eq!(november(&past, "2026-11-29T00:00:00Z"), "provisional: up to 2026-11-29 00:00");
    // A gateway that says what its clock says after that was set back has not written past the end.
    let back = idle("a", "2026-11-30T22:00:00Z");
    assert_eq!(
        november(&[back], "2026-12-01T03:00:00Z"),
        "provisional: waits for a, which has written up to 2026-11-30 22:00"
    );
}

#[test]
fn days_and_months_of_any_zone_close_by_the_same_rule() {
    for (zone, month, end) in [
        ("UTC", "2026-02", "2026-03-01T00:00:00Z"),
        ("UTC", "2028-02", "2028-03-01T00:00:00Z"),
        ("UTC", "2026-12", "2027-01-01T00:00:00Z"),
        ("Europe/Berlin", "2026-03", "2026-03-31T22:00:00Z"),
        ("Europe/Berlin", "2026-10", "2026-10-31T23:00:00Z"),
        ("Asia/Kathmandu", "2026-11", "2026-11-30T18:15:00Z"),
        ("America/Sao_Paulo", "2018-10", "2018-11-01T03:00:00Z"),
    ] {
        let zone: Zone = zone.parse().unwrap();
        let period = month.parse::<Month>().unwrap().period(&zone).unwrap();
        assert_eq!(period.to(), at(end), "{zone} {month}");
        let closes_at = period.to() + HOUR;
        let second = Span::new().seconds(1);
        for (said, now, is_closed) in [
            (closes_at, closes_at, true),
            (closes_at, closes_at - second, false),
            (closes_at - second, closes_at, false),
        ] {
            let gateways = [idle("a", &said.to_string())];
            let found = closing(period.to(), &gateways, now);
            assert_eq!(matches!(found, Closing::Closed { .. }), is_closed, "{zone} {month} {said}");
        }
    }
    // The day on which clocks go back has 25 hours, and the one on which they go forward 23.
    for (date, end) in
        [("2026-10-25", "2026-10-25T23:00:00Z"), ("2026-03-29", "2026-03-29T22:00:00Z")]
    {
        let day = Period::day(date.parse().unwrap(), &"Europe/Berlin".parse().unwrap()).unwrap();
        assert_eq!(day.to(), at(end));
    }
}

#[test]
fn programs_read_the_same_in_members() {
    let period = Period::month("2026-11").unwrap();
    let json = |gateways: &[GatewayProgress], now: &str| {
        let status = PeriodStatus::new(period, closing(end(), gateways, at(now)), at(now));
        serde_json::to_value(status).unwrap()
    };
    let past = [idle("a", "2026-12-01T02:00:00Z")];
    assert_eq!(json(&past, "2026-12-01T02:00:00Z"), serde_json::json!({"status": "final"}));
    let soon = serde_json::json!({"status": "provisional", "closes_at": "2026-12-01T01:00:00Z"});
    assert_eq!(json(&past, "2026-12-01T00:00:20Z"), soon);
    let open = [gateway("a", "2026-12-01T02:00:00Z", "2026-11-30T23:00:00Z")];
    let waits = serde_json::json!({"status": "provisional", "waits_for": [{
        "gateway": "a", "written_until": "2026-12-01T02:00:00Z", "open_since": "2026-11-30T23:00:00Z"
    }]});
    assert_eq!(json(&open, "2026-12-01T02:00:00Z"), waits);
    let silent = serde_json::json!({"status": "final", "silent": [
        {"gateway": "a", "since": "2026-12-01T02:00:00Z"}
    ]});
    assert_eq!(json(&open, "2026-12-02T02:00:00Z"), silent);
}

#[test]
fn what_of_a_period_is_not_there_any_more_is_said_behind_its_status() {
    let period = Period::month("2026-11").unwrap();
    let now = at("2026-12-05T00:00:00Z");
    let whole = PeriodStatus::new(period, closing(end(), &[], now), now);
    assert_eq!(whole.gone_words(&Zone::UTC), None);
    let lost = |requests| Some(LostRequests { before: at("2026-11-04T12:30:00Z"), requests });
    for (details, lost, words) in [
        (Some("2026-11-03T00:00:00Z"), None, "details until 2026-11-03"),
        (None, lost(1), "1 request is lost that ended before 2026-11-04 12:30"),
        (
            Some("2026-11-03T00:00:00Z"),
            lost(40),
            "details until 2026-11-03; 40 requests are lost that ended before 2026-11-04 12:30",
        ),
    ] {
        let status = whole.clone().without(details.map(at), lost);
        assert_eq!(status.gone_words(&Zone::UTC).as_deref(), Some(words));
        assert_eq!(status.words(&Zone::UTC), format!("final; {words}"));
        let json = serde_json::to_value(&status).unwrap();
        assert_eq!(json.get("details_from").is_some(), details.is_some(), "{json}");
        assert_eq!(json.get("lost").is_some(), lost.is_some(), "{json}");
    }
    let berlin: Zone = "Europe/Berlin".parse().unwrap();
    let status = whole.without(Some(at("2026-11-03T00:00:00Z")), None);
    assert_eq!(status.words(&berlin), "final; details until 2026-11-03 01:00");
}
