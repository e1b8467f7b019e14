use std::collections::BTreeMap;

use bytes::Bytes;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use taximeter_ledger::{Correction, Record};

use super::*;
use crate::period::Period;

fn record(change: impl FnOnce(&mut Value)) -> Record {
    let mut record = json!({
        "id": "0193e9a0-0000-7000-8000-000000000001", "request_id": "r", "attempt": 1, "seq": 7,
        "gateway": "pod 1/0", "started_at": "2026-11-20T16:59:59.5Z",
        "ended_at": "2026-11-20T17:00:01Z", "tenant": "acme", "key_id": "prod",
        "identity": "api_key", "operation": "chat", "route": "/v1/chat/completions",
        "stream": true, "upstream": "cloud", "provider": "openai", "request_model": "gpt-x",
        "response_model": "gpt-x-2026", "response_id": null, "service_tier": null, "status": 200,
        "end": "complete", "error_type": null, "finish_reasons": ["stop"],
        "usage": {"source": "reported", "input_tokens": 812, "cache_read_input_tokens": 700,
                  "cache_write_input_tokens": null, "output_tokens": 96,
                  "reasoning_output_tokens": null, "modalities": null, "passes": null,
                  "counted": null},
        "timing": {"time_to_first_chunk": 0.04, "time_to_first_token": null,
                   "time_per_output_token": null, "output_chunks": 96, "longest_stall": null, "gaps": [94, 1],
                   "duration": 1.5, "gateway": 0.0004,
                   "stages": {"identify": 0.00001, "body": 0.00039}},
        "cost": {"currency": "USD", "amount": "0.0012340", "list_amount": "0.0012340",
                 "price_id": "b@1#gpt-x", "lines": [
                     {"meter": "input", "tokens": 112, "unit_price": "0.000002",
                      "amount": "0.000224"},
                     {"meter": "cache_read", "tokens": 700, "unit_price": "0.0000002",
                      "amount": "0.00014"},
                     {"meter": "output", "tokens": 87, "unit_price": "0.00001",
                      "amount": "0.00087"}]},
    });
    change(&mut record);
    serde_json::from_value(record).unwrap()
}

fn lines(format: Format, records: &[Record]) -> Vec<Value> {
    let mut writer = RecordWriter::new(format, Vec::new()).unwrap();
    for record in records {
        writer.add(record).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_cloud_event_is_one_request() {
    let batches = lines(Format::CloudEvents, &[record(|_| {})]);
    let expected = json!([{
        "specversion": "1.0", "id": "0193e9a0-0000-7000-8000-000000000001",
        "source": "taximeter/pod%201/0", "type": "taximeter.request", "subject": "acme",
        "time": "2026-11-20T16:59:59.5Z", "datacontenttype": "application/json",
        "data": {"tenant": "acme", "key_id": "prod", "operation": "chat",
                 "route": "/v1/chat/completions", "upstream": "cloud", "provider": "openai",
                 "model": "gpt-x-2026", "end": "complete", "usage_source": "reported",
                 "input_tokens": 812, "cache_read_input_tokens": 700, "output_tokens": 96,
                 "currency": "USD", "cost": "0.001234", "list_cost": "0.001234"},
    }]);
    assert_eq!(batches, [expected]);
}

#[test]
fn stripe_gets_one_event_a_meter_with_texts_alone() {
    let batches = lines(Format::Stripe, &[record(|_| {})]);
    let events = batches[0]["events"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    assert_eq!(
        events[1],
        json!({"event_name": "cache_read_tokens",
               "identifier": "0193e9a0-0000-7000-8000-000000000001:1",
               "timestamp": "2026-11-20T16:59:59.5Z",
               "payload": {"stripe_customer_id": "acme", "value": "700", "model": "gpt-x-2026",
                           "provider": "openai"}})
    );
}

#[test]
fn lago_gets_one_event_a_meter_with_its_money() {
    let batches = lines(Format::Lago, &[record(|_| {})]);
    assert_eq!(
        batches[0]["events"][2],
        json!({"transaction_id": "0193e9a0-0000-7000-8000-000000000001:2",
               "external_subscription_id": "acme", "code": "output_tokens",
               "timestamp": "1795193999.500000", "precise_total_amount_cents": "0.087",
               "properties": {"value": "87", "model": "gpt-x-2026", "operation": "chat",
                              "provider": "openai", "key_id": "prod"}})
    );
}

#[test]
fn orb_gets_one_event_a_request_with_flat_properties() {
    let batches = lines(Format::Orb, &[record(|_| {})]);
    let event = &batches[0]["events"][0];
    assert_eq!(event["external_customer_id"], "acme");
    assert_eq!(event["idempotency_key"], "0193e9a0-0000-7000-8000-000000000001");
    let properties = event["properties"].as_object().unwrap();
    assert!(properties.values().all(|value| !value.is_object() && !value.is_array()));
}

fn correction(before: Option<(&str, &str)>, after: Option<(&str, &str)>) -> Correction {
    let cost = |cost: Option<(&str, &str)>| {
        cost.map(|(amount, currency)| {
            json!({"currency": currency, "amount": amount, "list_amount": amount,
                   "price_id": "b@2#gpt-x", "lines": []})
        })
    };
    serde_json::from_value(json!({
        "id": "0193e9a0-0000-7000-8000-0000000000c0",
        "corrects": "0193e9a0-0000-7000-8000-000000000001",
        "started_at": "2026-11-20T16:59:59.5Z", "tenant": "acme",
        "made_at": "2026-12-03T09:00:00Z", "reason": "late discount",
        "before": cost(before), "after": cost(after),
    }))
    .unwrap()
}

fn items(format: Format, items: &[Item<'_>]) -> Vec<Value> {
    let mut writer = RecordWriter::new(format, Vec::new()).unwrap();
    for item in items {
        writer.add_item(item).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_correction_is_an_event_of_what_it_changes() {
    let correction = correction(Some(("0.0012340", "USD")), Some(("0.001", "USD")));
    let changed = Item::of_correction(&correction).unwrap();
    let expected = json!([{
        "specversion": "1.0", "id": "0193e9a0-0000-7000-8000-0000000000c0",
        "source": "taximeter/bill", "type": "taximeter.correction", "subject": "acme",
        "time": "2026-11-20T16:59:59.5Z", "datacontenttype": "application/json",
        "data": {"tenant": "acme", "currency": "USD", "cost": "-0.000234",
                 "list_cost": "-0.000234", "corrects": "0193e9a0-0000-7000-8000-000000000001",
                 "made_at": "2026-12-03T09:00:00Z", "reason": "late discount",
                 "price_id": "b@2#gpt-x"},
    }]);
    assert_eq!(items(Format::CloudEvents, &changed), [expected]);
    let lago = &items(Format::Lago, &changed)[0]["events"][0];
    assert_eq!(
        (&lago["code"], &lago["precise_total_amount_cents"]),
        (&json!("correction"), &json!("-0.0234"))
    );
    let orb = &items(Format::Orb, &changed)[0]["events"][0];
    assert_eq!(orb["properties"]["cost"], "-0.000234");
    assert!(items(Format::Stripe, &changed).is_empty(), "Stripe has prices of its own");
}

#[test]
fn a_correction_between_currencies_is_two_events_and_one_of_nothing_is_none() {
    let exchanged = correction(Some(("2", "USD")), Some(("1.8", "EUR")));
    let both = Item::of_correction(&exchanged).unwrap();
    let told: Vec<_> = both.iter().map(|item| (&*item.id, item.currency, item.cost)).collect();
    let id = "0193e9a0-0000-7000-8000-0000000000c0";
    let usd = format!("{id}:USD");
    assert_eq!(told, [(&*usd, "USD", "-2".parse().unwrap()), (id, "EUR", "1.8".parse().unwrap())]);
    assert!(Item::of_correction(&correction(None, None)).unwrap().is_empty());
    let known = correction(None, Some(("1", "USD")));
    let mut tally = Tally { unknown_cost_requests: 1, ..Tally::default() };
    tally.add_correction(&known);
    assert_eq!((tally.corrections, tally.unknown_cost_requests), (1, 0));
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

#[test]
fn batches_are_no_larger_than_receivers_take() {
    let records: Vec<_> = (0..250).map(|_| record(|_| {})).collect();
    let sizes: Vec<_> = lines(Format::CloudEvents, &records)
        .iter()
        .map(|batch| batch.as_array().unwrap().len())
        .collect();
    assert_eq!(sizes, [100, 100, 50]);
    assert!(lines(Format::Orb, &[]).is_empty());
}

#[test]
fn ndjson_is_the_record_itself() {
    let record = record(|_| {});
    let read: Record =
        serde_json::from_value(lines(Format::Ndjson, std::slice::from_ref(&record))[0].clone())
            .unwrap();
    assert_eq!(read, record);
}

/// The cells of a row that are texts, whole numbers or null.
fn json_of(row: &parquet::record::Row) -> BTreeMap<String, Value> {
    let json = |field: &Field| match field {
        Field::Str(text) => json!(text),
        Field::Long(number) => json!(number),
        Field::Null => Value::Null,
        other => json!(other.to_string()),
    };
    row.get_column_iter().map(|(name, field)| (name.clone(), json(field))).collect()
}

#[test]
fn every_field_of_a_record_has_its_column() {
    let mut writer = RecordWriter::new(Format::Parquet, Vec::new()).unwrap();
    writer.add(&record(|_| {})).unwrap();
    let bare = record(|record| {
        record["cost"] = Value::Null;
        record["timing"]["stages"] = Value::Null;
        record["timing"]["gaps"] = Value::Null;
    });
    writer.add(&bare).unwrap();
    let reader = SerializedFileReader::new(Bytes::from(writer.finish().unwrap())).unwrap();
    let rows: Vec<_> =
        reader.get_row_iter(None).unwrap().map(|row| json_of(&row.unwrap())).collect();
    assert_eq!(rows[0]["tenant"], "acme");
    assert_eq!(rows[0]["input_tokens"], 812);
    assert_eq!(rows[0]["finish_reasons"], "[\"stop\"]");
    assert_eq!(rows[0]["response_id"], Value::Null);
    assert_eq!(rows[0]["price_id"], "b@1#gpt-x");
    assert_eq!(rows[0]["stages"], r#"{"identify":0.00001,"body":0.00039}"#);
    assert_eq!(rows[0]["gaps"], "[94,1]");
    assert_eq!((&rows[1]["stages"], &rows[1]["gaps"]), (&Value::Null, &Value::Null));
    assert_eq!((&rows[1]["cost"], &rows[1]["resource"]), (&Value::Null, &Value::Null));
}

#[test]
fn a_manifest_tells_files_sums_and_sequences() {
    let (now, period) =
        ("2026-12-01T00:00:00Z".parse().unwrap(), Period::month("2026-11").unwrap());
    let mut manifest = Manifest::new("ndjson", period, Some("acme"), now);
    for (seq, cost) in [(7, true), (9, true), (4, false)] {
        let record = record(|record| {
            record["seq"] = json!(seq);
            if !cost {
                record["cost"] = Value::Null;
            }
        });
        manifest.tally.add_request(&record, 1).unwrap();
    }
    let told: Value = serde_json::from_slice(&manifest.to_json().unwrap()).unwrap();
    assert_eq!(told["period"]["status"], "final");
    assert_eq!(told["sums"]["USD"], json!({"billed_cost": "0.002468", "list_cost": "0.002468"}));
    assert_eq!((&told["rows"], &told["unknown_cost_requests"]), (&json!(3), &json!(1)));
    assert_eq!(told["sequences"]["pod 1/0"], json!({"first": 4, "last": 9, "records": 3}));
}

#[test]
fn a_period_that_is_not_over_is_provisional() {
    let last = "2026-11-30T23:59:59.999999999Z".parse().unwrap();
    let manifest = Manifest::new("focus", Period::month("2026-11").unwrap(), None, last);
    assert_eq!(manifest.period.status, "provisional");
}
