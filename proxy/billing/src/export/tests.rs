mod known;
mod unused;
mod window;

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use taximeter_ledger::{Correction, LedgerId, Record, Stage};

use super::*;
use crate::closing::{PeriodStatus, closing};
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
                 "price_id": "b@1#gpt-x", "price_match": "date", "lines": [
                     {"meter": "input", "tokens": 112, "unit_price": "0.000002", "amount": "0.000224"},
                     {"meter": "cache_read", "tokens": 700, "unit_price": "0.0000002",
                      "amount": "0.00014"},
                     {"meter": "output", "tokens": 87, "unit_price": "0.00001",
                      "amount": "0.00087"}]},
    });
    change(&mut record);
    serde_json::from_value(record).unwrap()
}

fn lines(format: Format, records: &[Record]) -> Vec<Value> {
    let mut writer =
        RecordWriter::new(format, format.window(None), Timestamp::UNIX_EPOCH, Vec::new()).unwrap();
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

fn items(format: Format, items: &[BillItem<'_>]) -> Vec<Value> {
    let mut writer =
        RecordWriter::new(format, format.window(None), Timestamp::UNIX_EPOCH, Vec::new()).unwrap();
    for item in items {
        writer.add_item(item).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_correction_is_an_event_of_what_it_changes() {
    let correction = correction(Some(("0.0012340", "USD")), Some(("0.001", "USD")));
    let changed = BillItem::of_correction(&correction).unwrap();
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
    let both = BillItem::of_correction(&exchanged).unwrap();
    let told: Vec<_> = both.iter().map(|item| (&*item.id, item.currency, item.cost)).collect();
    let id = "0193e9a0-0000-7000-8000-0000000000c0";
    let usd = format!("{id}:USD");
    assert_eq!(told, [(&*usd, "USD", "-2".parse().unwrap()), (id, "EUR", "1.8".parse().unwrap())]);
    assert!(BillItem::of_correction(&correction(None, None)).unwrap().is_empty());
    let known = correction(None, Some(("1", "USD")));
    let mut totals = ExportTotals { unknown_cost_requests: 1, ..ExportTotals::default() };
    totals.add_correction(&known);
    assert_eq!((totals.corrections, totals.unknown_cost_requests), (1, 0));
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

fn ledger() -> LedgerId {
    LedgerId("0193e9a0-0000-7000-8000-00000000000c".parse().unwrap())
}

/// Records as rows of a file that is read back, and what they add up to.
fn parquet(records: &[Record]) -> (Vec<BTreeMap<String, Value>>, ExportTotals) {
    let mut rows = RecordRows::new();
    for (seq, record) in (7..).zip(records) {
        rows.add(ledger(), &Record { seq, ..record.clone() }).unwrap();
    }
    assert_eq!(rows.len(), records.len());
    let totals = rows.take_totals();
    (read_back(&mut rows), totals)
}

/// The rows of a file that has these.
fn read_back(rows: &mut RecordRows) -> Vec<BTreeMap<String, Value>> {
    let mut writer = RecordsParquet::new(Vec::new()).unwrap();
    writer.add(rows).unwrap();
    assert!(rows.is_empty() && rows.bytes() == 0);
    let reader = SerializedFileReader::new(Bytes::from(writer.finish().unwrap())).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| json_of(&row.unwrap())).collect()
}

fn column(stage: Stage) -> String {
    format!("stage_{}", stage.as_str())
}

/// What a request may be part of, beside its tags.
const TOLD: [(&str, &str); 8] = [
    ("session", "s-1"),
    ("session_source", "header"),
    ("agent", "a-1"),
    ("parent_agent", "root"),
    ("client", "codex/0.169"),
    ("turn", "t-1"),
    ("end_user", "u-1"),
    ("kind", "title"),
];

/// With all that one may have.
fn whole() -> Record {
    record(|record| {
        TOLD.into_iter().for_each(|(member, value)| record[member] = json!(value));
        record["tags"] = json!({"team": "search"});
        record["request_id"] = json!("a \"quoted\" \u{1f980}\n");
        record["labels"] = json!({"team": "se\"arch"});
        record["tools"] = json!({"exec": 2});
        record["usage"]["sources"] = json!({"input_tokens": "reported"});
        record["usage"]["cache_write_input_tokens"] = json!(5);
        record["usage"]["cache_write_long_input_tokens"] = json!(4);
        record["usage"]["reasoning_output_tokens"] = json!(3);
        record["usage"]["modalities"] = json!({"audio_input_tokens": 2});
        record["usage"]["units"] = json!({"web_search_requests": "2"});
        record["usage"]["conditions"] = json!({"speed": "fast"});
        record["usage"]["counted"] = json!({"input_tokens": 811, "output_tokens": 95});
        record["usage"]["flagged"] = json!({"input_tokens": ["estimated"]});
        record["usage"]["flags"] = json!(["estimated"]);
        record["timing"]["longest_stall"] = json!(1.5e-7);
        record["reported_cost"] = json!("0.001");
        record["error"] = json!({"status": "429", "type": "busy"});
        record["resource"] = json!({"k8s.pod.name": "a-0"});
    })
}

/// Without all that one may do without.
fn bare() -> Record {
    record(|record| {
        record["cost"] = Value::Null;
        record["timing"]["stages"] = Value::Null;
        record["timing"]["gaps"] = Value::Null;
    })
}

/// The columns in which such a record has nothing.
fn absent() -> impl Iterator<Item = String> {
    let known = ["cost_known_currency", "cost_known", "list_cost_known", "cost_known_lines"];
    let known = known.into_iter().chain(["cost_known_price_id", "cost_known_price_match"]);
    let others = known.chain(["cost_unknown", "passes"]).map(str::to_owned);
    Stage::ALL[2..].iter().map(|stage| column(*stage)).chain(others)
}

#[test]
fn every_field_of_a_record_has_its_column() {
    let whole = whole();
    let (rows, _) = parquet(std::slice::from_ref(&whole));
    let lines = serde_json::to_string(&whole.cost.as_ref().unwrap().lines).unwrap();
    let expected = [
        ("id", json!("0193e9a0-0000-7000-8000-000000000001")),
        ("request_id", json!("a \"quoted\" \u{1f980}\n")),
        ("attempt", json!("1")),
        ("seq", json!(7)),
        ("gateway", json!("pod 1/0")),
        ("started_at", json!("2026-11-20 16:59:59.500000 +00:00")),
        ("ended_at", json!("2026-11-20 17:00:01.000000 +00:00")),
        ("tenant", json!("acme")),
        ("key_id", json!("prod")),
        ("identity", json!("api_key")),
        ("labels", json!(r#"{"team":"se\"arch"}"#)),
        ("operation", json!("chat")),
        ("route", json!("/v1/chat/completions")),
        ("stream", json!("true")),
        ("upstream", json!("cloud")),
        ("provider", json!("openai")),
        ("request_model", json!("gpt-x")),
        ("response_model", json!("gpt-x-2026")),
        ("response_id", json!(null)),
        ("service_tier", json!(null)),
        ("status", json!("200")),
        ("end", json!("complete")),
        ("error_type", json!(null)),
        ("error", json!(r#"{"status":"429","type":"busy"}"#)),
        ("finish_reasons", json!(r#"["stop"]"#)),
        ("usage_source", json!("reported")),
        ("usage_sources", json!(r#"{"input_tokens":"reported"}"#)),
        ("input_tokens", json!(812)),
        ("cache_read_input_tokens", json!(700)),
        ("cache_write_input_tokens", json!(5)),
        ("cache_write_long_input_tokens", json!(4)),
        ("output_tokens", json!(96)),
        ("reasoning_output_tokens", json!(3)),
        ("modalities", json!(r#"{"audio_input_tokens":2}"#)),
        ("units", json!(r#"{"web_search_requests":"2"}"#)),
        ("tools", json!(r#"{"exec":2}"#)),
        ("counted_input_tokens", json!(811)),
        ("counted_output_tokens", json!(95)),
        ("flags", json!(r#"["estimated"]"#)),
        ("time_to_first_chunk", json!("0.04")),
        ("time_to_first_token", json!(null)),
        ("time_per_output_token", json!(null)),
        ("output_chunks", json!(96)),
        ("longest_stall", json!("0.00000015")),
        ("gaps", json!("[94,1]")),
        ("duration", json!("1.5")),
        ("gateway_time", json!("0.0004")),
        ("stage_identify", json!("0.00001")),
        ("stage_body", json!("0.00039")),
        ("currency", json!("USD")),
        ("cost", json!("0.001234000000000000")),
        ("list_cost", json!("0.001234000000000000")),
        ("price_id", json!("b@1#gpt-x")),
        ("price_match", json!("date")),
        ("cost_lines", json!(lines)),
        ("reported_cost", json!("0.001")),
        ("resource", json!(r#"{"k8s.pod.name":"a-0"}"#)),
        ("conditions", json!(r#"{"speed":"fast"}"#)),
        ("flagged", json!(r#"{"input_tokens":["estimated"]}"#)),
        ("ledger", json!("0193e9a0-0000-7000-8000-00000000000c")),
        ("tags", json!(r#"{"team":"search"}"#)),
    ];
    let mut expected = BTreeMap::from(expected.map(|(column, value)| (column.to_owned(), value)));
    expected.extend(TOLD.map(|(column, value)| (column.to_owned(), json!(value))));
    expected.extend(absent().map(|column| (column, Value::Null)));
    assert_eq!(rows[0], expected);
}

#[test]
fn what_a_record_lacks_is_null() {
    let (rows, _) = parquet(&[whole(), bare()]);
    assert_eq!(rows[1]["seq"], 8);
    for absent in ["stage_identify", "gaps", "cost", "price_match", "resource", "flags"] {
        assert_eq!(rows[1][absent], Value::Null, "{absent}");
    }
}

#[test]
fn rows_are_tallied_as_their_records_are() {
    let (_, totals) = parquet(&[whole(), bare()]);
    let mut counted = ExportTotals::default();
    for (seq, record) in [(7, whole()), (8, bare())] {
        counted.add_request(&Record { seq, ..record }, 1).unwrap();
    }
    assert_eq!(totals, counted);
    let mut twice = totals.clone();
    twice.add_requests(&totals).unwrap();
    assert_eq!((twice.requests, twice.unknown_cost_requests), (4, 2));
    assert_eq!(twice.sums["USD"].billed_cost, "0.002468".parse().unwrap());
    assert_eq!(json!(twice.sequences["pod 1/0"]), json!({"first": 7, "last": 8, "records": 4}));
}

#[test]
fn a_count_that_no_column_can_hold_is_an_error() {
    let mut record = record(|_| {});
    record.usage.input_tokens = Some(u64::MAX);
    let told = RecordRows::new().add(ledger(), &record).unwrap_err().to_string();
    assert!(told.contains("a count is too large"), "{told}");
}

/// The stages of a row whose record has them so.
fn stages(micros: Value) -> Vec<Value> {
    let rows = parquet(&[record(|record| record["timing"]["stages"] = micros)]).0;
    Stage::ALL.into_iter().map(|stage| rows[0][&column(stage)].clone()).collect()
}

#[test]
fn each_stage_is_a_column_in_seconds() {
    let seconds =
        json!(["0E0", "0.000007", "0.00001", "0.999999", "1.0", null, "12.345678", null, "1.3134"]);
    let micros = json!([0, 7, 10, 999_999, 1_000_000, null, 12_345_678, null, 1_313_400]);
    assert_eq!(json!(stages(micros)), seconds);
    for none in [Value::Null, json!([]), json!({}), json!([null])] {
        assert!(stages(none.clone()).iter().all(Value::is_null), "{none}");
    }
}

#[test]
fn a_manifest_tells_files_sums_and_sequences() {
    let period = Period::month("2026-11").unwrap();
    let status = status_at("2026-12-01T01:00:00Z");
    let mut manifest = Manifest::new("ndjson", period, Some("acme"), status);
    for (seq, cost) in [(7, true), (9, true), (4, false)] {
        let record = record(|record| {
            record["seq"] = json!(seq);
            if !cost {
                record["cost"] = Value::Null;
            }
        });
        manifest.totals.add_request(&record, 1).unwrap();
    }
    let told: Value = serde_json::from_slice(&manifest.to_json().unwrap()).unwrap();
    assert_eq!(told["period"]["status"], "final");
    assert_eq!(told["sums"]["USD"], json!({"billed_cost": "0.002468", "list_cost": "0.002468"}));
    assert_eq!((&told["rows"], &told["unknown_cost_requests"]), (&json!(3), &json!(1)));
    assert_eq!(told["sequences"]["pod 1/0"], json!({"first": 4, "last": 9, "records": 3}));
}

/// The status of November at this time, in a store that nobody feeds.
fn status_at(now: &str) -> PeriodStatus {
    let (now, period) = (now.parse().unwrap(), Period::month("2026-11").unwrap());
    PeriodStatus::new(period, closing(period.to(), &[], now), now)
}

#[test]
fn a_period_that_is_not_closed_is_provisional() {
    for now in ["2026-11-30T23:59:59.999999999Z", "2026-12-01T00:59:59Z"] {
        let period = Period::month("2026-11").unwrap();
        let manifest = Manifest::new("focus", period, None, status_at(now));
        let told: Value = serde_json::from_slice(&manifest.to_json().unwrap()).unwrap();
        assert_eq!(told["period"]["status"], "provisional");
        assert_eq!(told["period"]["closes_at"], "2026-12-01T01:00:00Z");
    }
}
