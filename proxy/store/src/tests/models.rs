//! Tests of the models that were served.

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::RecordUsage;

use super::*;

/// A request for this model, and how it was answered.
fn asked(number: u32, model: &str, status: Option<u16>) -> Record {
    let whole = record(number);
    let is_served = status.is_some_and(|status| status < 400);
    Record {
        request_model: Some(model.to_owned()),
        response_model: is_served.then(|| format!("{model}-dated")),
        status,
        usage: if is_served { whole.usage } else { RecordUsage::default() },
        cost: whole.cost.filter(|_| is_served),
        ..record(number)
    }
}

#[test]
fn names_of_what_was_served_in_the_period_are_found_the_newest_first() {
    let (_dir, mut store) = open();
    let day = 24 * 3_600;
    catch_up(
        &mut store,
        &journal([
            asked(0, "old", Some(200)),
            asked(8 * day, "first", Some(200)),
            asked(8 * day + 1, "refused", Some(503)),
            asked(8 * day + 2, "last", Some(200)),
            asked(8 * day + 3, "first", Some(200)),
        ]),
    );
    let now = record(8 * day + 60).started_at;
    let since = now - SignedDuration::from_hours(7 * 24);
    let mut found = |since: Timestamp, max| store.models_served(since, now, max).unwrap();
    assert_eq!(found(since, 200), ["first", "first-dated", "last", "last-dated"]);
    assert_eq!(found(since, 3), ["first", "first-dated", "last"]);
    assert!(found(record(0).started_at, 200).contains(&"old".to_owned()));
}
