//! What alerts compare with, and the pages about them, which a gateway has itself.

use crate::engine::Engine;
use crate::fixtures::{HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup};
use crate::patience::patiently;
use crate::tls_clients::Papers;

/// The value of a series, by what its line begins with.
fn value(gateway: &Gateway, series: &str) -> Option<f64> {
    let metrics = gateway.metrics();
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

/// Seconds since 1970.
fn now() -> f64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.expect("a time after 1970").as_secs_f64()
}

#[test]
fn times_and_limits_that_alerts_compare_with_are_told() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let limits = "limits: {request_timeout_seconds: 1234}\nledger: {records_keep_days: 31}";
    let more = format!("{}\n{limits}", papers.tls(""));
    let before = now();
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&more).start();
    let started = value(&gateway, "taximeter_start_time_seconds").expect("a start");
    assert!((before - 1.0..=now()).contains(&started), "{started}");
    assert_eq!(value(&gateway, "taximeter_requests_age_max_seconds"), Some(1234.0));
    assert_eq!(value(&gateway, "taximeter_ledger_details_to_keep"), Some(31.0));
    // No day has left the tables, so nobody knows what one takes.
    assert_eq!(value(&gateway, "taximeter_ledger_details_days_held"), None);
    let book = value(&gateway, "taximeter_prices_date_seconds{taximeter_kind=\"builtin\"}");
    let book = book.expect("the date of the book");
    assert!(book % 86_400.0 == 0.0 && (1.7e9..now() + 86_400.0).contains(&book), "{book}");
    let of_certificate = |bound: &str| {
        let series = format!("taximeter_tls_{bound}_seconds{{taximeter_kind=\"listen\"}}");
        value(&gateway, &series).expect("a time")
    };
    assert!(of_certificate("not_before") < before && of_certificate("not_after") > before);
    // The directory has more room than what it takes now.
    let left = patiently(|| value(&gateway, "taximeter_ledger_room_left_bytes"));
    assert!(left.is_some_and(|bytes| bytes > 0.0), "{left:?}");
}

#[test]
fn the_age_of_the_oldest_open_request_is_told_until_it_ends() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let oldest = || value(&gateway, "taximeter_requests_oldest_age_seconds").expect("an age");
    assert_eq!(oldest().to_bits(), 0);
    let (client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let first = oldest();
    assert!(first > 0.0 && patiently(|| (oldest() > first).then_some(())).is_some());
    drop(client);
    gateway.await_records(1);
    assert!(patiently(|| (oldest().to_bits() == 0).then_some(())).is_some());
}

#[test]
fn a_page_about_an_alert_opens_without_a_token_and_nothing_else_does() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).with("admin_token: correct-horse-battery").start();
    let page = gateway.admin("/runbooks/TaximeterDown.md");
    assert_eq!((page.status(), page.text().lines().next()), (200, Some("# TaximeterDown")));
    for (path, status) in [
        ("/runbooks/TaximeterNothing.md", 404),
        ("/runbooks/..%2f..%2fmetrics", 404),
        ("/runbooks/../metrics", 404),
        ("/metrics", 401),
    ] {
        assert_eq!(gateway.admin(path).status(), status, "{path}");
    }
}
