//! Records of requests that used nothing: each format's own rule for them.

use super::*;

/// What an engine refused before it used anything.
fn refused() -> Record {
    record(|record| {
        record["status"] = json!(429);
        record["end"] = json!("upstream_refused");
        record["error_type"] = json!("429");
        record["error"] = json!({"type": "tokens", "code": "rate_limit_exceeded"});
        record["response_model"] = Value::Null;
        record["finish_reasons"] = json!([]);
        record["usage"] = json!({"source": "none"});
        record["cost"] = json!({"currency": "USD", "amount": "0", "list_amount": "0",
            "price_id": "none", "price_match": null, "lines": []});
    })
}

#[test]
fn a_file_of_records_has_those_that_used_nothing_and_says_so() {
    let (rows, totals) = parquet(&[refused(), whole()]);
    let expected = [
        ("status", json!("429")),
        ("end", json!("upstream_refused")),
        ("error_type", json!("429")),
        ("error", json!(r#"{"type":"tokens","code":"rate_limit_exceeded"}"#)),
        ("usage_source", json!("none")),
        ("input_tokens", Value::Null),
        ("output_tokens", Value::Null),
        ("counted_input_tokens", Value::Null),
        ("passes", Value::Null),
        ("currency", json!("USD")),
        ("cost", json!("0.000000000000000000")),
        ("list_cost", json!("0.000000000000000000")),
        ("cost_unknown", Value::Null),
        ("cost_known", Value::Null),
    ];
    for (column, value) in expected {
        assert_eq!(rows[0][column], value, "{column}");
    }
    assert_eq!(rows[1]["usage_source"], "reported");
    assert_eq!((totals.requests, totals.unknown_cost_requests), (2, 0));
    assert_eq!(totals.sums["USD"].billed_cost, "0.001234".parse().unwrap());
}

#[test]
fn lines_of_records_have_those_that_used_nothing() {
    let record = refused();
    let line = lines(Format::Ndjson, std::slice::from_ref(&record)).remove(0);
    assert_eq!((&line["usage"]["source"], &line["cost"]["amount"]), (&json!("none"), &json!("0")));
    assert_eq!(serde_json::from_value::<Record>(line).unwrap(), record);
}
