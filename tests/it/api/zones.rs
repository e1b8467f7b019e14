//! Months, days and hours of any zone: the same sums as the bill of that zone.

use std::collections::BTreeSet;

use serde_json::Value;

use super::description::Description;
use super::{bill, list, metered, metered_with};
use crate::engine::Engine;
use crate::gateway::Gateway;

/// The first line's value of a dimension.
fn first(usage: &Value, dimension: &str) -> String {
    usage["lines"][0]["keys"][dimension].as_str().expect("a text").to_owned()
}

#[test]
fn in_every_zone_usage_adds_up_to_the_bill_of_that_zone() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let mut days = BTreeSet::new();
    // The first two are 25 hours apart: never on the same day.
    for zone in ["Pacific/Pago_Pago", "Pacific/Kiritimati", "Asia/Kolkata", "UTC"] {
        for by in ["month,tenant", "day,tenant", "hour,model"] {
            let usage = gateway.admin(&format!("/api/v1/usage?by={by}&zone={zone}"));
            let usage = description.checked("/api/v1/usage", &usage);
            let bill = bill(&gateway, &["--by", by, "--zone", zone]);
            assert_eq!(usage["period"]["zone"], zone);
            assert_eq!(usage["period"]["from"], bill["period"]["from"], "the month of {zone}");
            assert_eq!(usage["total"]["billed_cost"], bill["total"]["cost"]);
            let (lines, rows) = (list(&usage["lines"]), list(&bill["rows"]));
            assert_eq!((lines.len(), rows.len()), (2, 2), "{zone} {by}");
            for (line, row) in lines.iter().zip(rows) {
                for name in by.split(',') {
                    assert_eq!(line["keys"][name], row[name], "{zone}");
                }
                assert_eq!(line["contracted_cost"], row["cost"]);
            }
            if by.starts_with("day") {
                days.insert(first(&usage, "day"));
            }
        }
    }
    assert!(days.len() > 1, "{days:?}");
}

#[test]
fn days_are_those_of_the_zone_that_is_asked_for_or_configured() {
    let (_engine, gateway) = metered_with("billing: {zone: Pacific/Kiritimati}");
    let usage = gateway.admin("/api/v1/usage?by=day").json();
    assert_eq!(usage["period"]["zone"], "Pacific/Kiritimati");
    let there = first(&usage, "day");
    let here = first(&gateway.admin("/api/v1/usage?by=day&zone=Pacific/Pago_Pago").json(), "day");
    assert!(here < there);
    for (query, count) in [
        (format!("from={there}"), 4),
        (format!("to={there}"), 0),
        (format!("month={}", &there[..7]), 4),
        (format!("from={there}&zone=Pacific/Pago_Pago"), 0),
        (format!("to={there}&zone=Pacific/Pago_Pago"), 4),
    ] {
        let page = gateway.admin(&format!("/api/v1/records?{query}")).json();
        assert_eq!(list(&page["records"]).len(), count, "{query}");
    }
}

#[test]
fn a_period_that_the_store_would_be_asked_too_often_for_is_refused() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    // A few more hours than the store is asked for at once. Hours of Kolkata begin within those of
    // UTC, which are what the store adds up by.
    let query = "/api/v1/usage?from=2024-01-01&to=2025-03-01&by=hour";
    let answer = gateway.admin(&format!("{query}&zone=Asia/Kolkata"));
    assert_eq!(answer.status(), 422);
    description.checked("/api/v1/usage", &answer);
    let answer = gateway.admin(&format!("{query}&zone=Europe/Berlin"));
    assert_eq!(answer.status(), 200);
}
