//! Tests what is known of a cost that is unknown as a whole.

use rust_decimal::Decimal;
use taximeter_ledger::RecordCost;

use super::*;

/// A request with a price for all but one of the tools that it called.
fn known_in_part() -> Record {
    record(|record| {
        let mut known = record["cost"].take();
        known["at_least"] = json!(true);
        record["cost_known"] = known;
        record["cost_unknown"] = json!([{"reason": "no_rate", "of": "teleport_calls"}]);
        record["usage"]["units"] = json!({"teleport_calls": "2"});
    })
}

#[test]
fn what_is_known_of_a_cost_is_in_each_export_as_a_part() {
    let (whole, part) = (record(|_| {}), known_in_part());
    let amount = whole.cost.as_ref().unwrap().amount.normalize().to_string();
    let event = &lines(Format::CloudEvents, std::slice::from_ref(&part))[0][0]["data"];
    assert_eq!((&event["cost"], &event["cost_known"]), (&Value::Null, &json!(amount)));
    assert_eq!(event["currency"], "USD");
    let codes = |record: &Record| {
        let batches = lines(Format::Lago, std::slice::from_ref(record));
        let events = batches[0]["events"].as_array().unwrap().clone();
        let told =
            |event: &Value| (event["code"].clone(), event["precise_total_amount_cents"].clone());
        events.iter().map(told).collect::<Vec<_>>()
    };
    let mut expected = codes(&whole);
    expected.push((json!("teleport_calls"), Value::Null));
    assert_eq!(codes(&part), expected);
    let (rows, totals) = parquet(&[whole.clone(), part.clone()]);
    assert_eq!((&rows[1]["cost"], &rows[1]["currency"]), (&Value::Null, &Value::Null));
    assert_eq!(rows[1]["cost_known"], rows[0]["cost"]);
    assert_eq!(rows[1]["list_cost_known"], rows[0]["list_cost"]);
    assert_eq!(rows[1]["cost_known_lines"], rows[0]["cost_lines"]);
    assert_eq!(rows[1]["cost_known_currency"], "USD");
    let reasons = r#"[{"reason":"no_rate","of":"teleport_calls"}]"#;
    assert_eq!(rows[1]["cost_unknown"], reasons);
    let mut added = ExportTotals::default();
    added.add_request(&Record { seq: 7, ..whole.clone() }, 1).unwrap();
    added.add_request(&Record { seq: 8, ..part.clone() }, 1).unwrap();
    assert_eq!((totals.sums, totals.unknown_cost_requests), (added.sums.clone(), 1));
    assert_eq!(added.unknown_cost_requests, 1);
    let twice = amount.parse::<Decimal>().unwrap() * Decimal::TWO;
    assert_eq!(added.sums["USD"].billed_cost, twice);
    // A later price makes it whole: the item has what was missing.
    let before = part.cost_known.clone();
    let after = before.clone().map(|known| RecordCost {
        at_least: false,
        amount: known.amount + Decimal::ONE,
        ..known
    });
    let correction = Correction { before, after, ..correction(None, None) };
    added.add_correction(&correction);
    assert_eq!(added.unknown_cost_requests, 0);
    let items = BillItem::of_correction(&correction).unwrap();
    assert_eq!((items.len(), items[0].cost), (1, Decimal::ONE));
}

#[test]
fn what_has_no_price_is_counted_by_its_usage_and_what_is_unknown_is_left_out() {
    let unpriced = record(|record| {
        record["cost"] = Value::Null;
        record["usage"]["output_tokens"] = Value::Null;
        record["usage"]["units"] = json!({"web_search_requests": "2"});
    });
    let batches = lines(Format::Lago, &[unpriced]);
    let events = batches[0]["events"].as_array().unwrap().iter();
    let values: Vec<_> =
        events.map(|event| (event["code"].clone(), event["properties"]["value"].clone())).collect();
    let expected =
        [("input_tokens", "112"), ("cache_read_tokens", "700"), ("web_search_requests", "2")];
    assert_eq!(values, expected.map(|(code, value)| (json!(code), json!(value))));
}
