//! Tests of corrections that say what a request used.

use serde_json::{Value, json};
use taximeter_ledger::Record;

use crate::billed_request::BilledRequest;
use crate::export::{CloudEvent, ExportTotals, Format, RecordWriter};

use super::*;

const ID: &str = "0193e9a0-0000-8000-8000-000000000001";

/// A request whose answer goes on.
fn pending() -> Record {
    let usage = json!({"source": "unknown", "input_tokens": 9, "output_tokens": null,
        "flags": ["pending"], "cache_read_input_tokens": null, "cache_write_input_tokens": null,
        "reasoning_output_tokens": null, "modalities": null, "passes": null, "counted": null});
    serde_json::from_value(json!({
        "id": "0193e9a0-0000-7000-8000-000000000001", "request_id": "r", "attempt": 1,
        "gateway": "pod/0", "started_at": "2026-11-20T16:59:59.5Z",
        "ended_at": "2026-11-20T17:00:01Z", "tenant": "acme", "key_id": "prod",
        "identity": "api_key", "operation": "chat", "route": "/v1/responses", "stream": false,
        "upstream": "cloud", "provider": "openai", "request_model": "gpt-x",
        "response_id": "resp_1", "status": 200, "end": "complete", "usage": usage,
        "timing": {"output_chunks": 0, "duration": 1.5, "gateway": 0.0004},
    }))
    .unwrap()
}

fn completion(is_priced: bool) -> Correction {
    let after = json!({"currency": "USD", "amount": "0.5", "list_amount": "0.5",
        "price_id": "b@1#gpt-x", "lines": [
            {"meter": "input", "tokens": 100, "unit_price": "0.001", "amount": "0.1"},
            {"meter": "output", "tokens": 40, "unit_price": "0.01", "amount": "0.4"}]});
    serde_json::from_value(json!({
        "id": ID, "corrects": "0193e9a0-0000-7000-8000-000000000001",
        "started_at": "2026-11-20T16:59:59.5Z", "tenant": "acme",
        "made_at": "2026-11-20T17:09:00Z", "reason": "usage of the answer in the background",
        "after": is_priced.then_some(after),
        "completion": {"response_id": "resp_1", "response_model": "gpt-x-2026", "usage": {
            "source": "reported", "input_tokens": 100, "output_tokens": 40,
            "units": {"web_search_requests": "2"}}},
    }))
    .unwrap()
}

fn written(format: Format, is_priced: bool) -> (Vec<Value>, ExportTotals) {
    let (record, correction) = (pending(), completion(is_priced));
    let mut totals = ExportTotals::default();
    let mut writer = RecordWriter::new(format, Vec::new()).unwrap();
    totals.add_request(&record, writer.add(&record).unwrap()).unwrap();
    let row = BilledRequest::from(&record);
    writer.add_correction(&row, &correction, &mut totals).unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let events = text.lines().flat_map(|line| {
        let batch: Value = serde_json::from_str(line).unwrap();
        let events = batch.get("events").cloned().unwrap_or(batch);
        events.as_array().unwrap().clone()
    });
    (events.collect(), totals)
}

#[test]
fn the_event_of_a_pending_request_has_no_tokens_and_that_of_its_completion_has_all() {
    let (events, totals) = written(Format::CloudEvents, true);
    let [request, completed] = &events[..] else { panic!("{events:#?}") };
    assert_eq!(request["type"], "taximeter.request");
    assert!(request["data"].get("input_tokens").is_none(), "{request:#}");
    assert_eq!(
        completed,
        &json!({
            "specversion": "1.0", "id": ID, "source": "taximeter/bill",
            "type": "taximeter.completion", "subject": "acme", "time": "2026-11-20T16:59:59.5Z",
            "datacontenttype": "application/json",
            "data": {"tenant": "acme", "currency": "USD", "cost": "0.5", "list_cost": "0.5",
                     "corrects": "0193e9a0-0000-7000-8000-000000000001",
                     "made_at": "2026-11-20T17:09:00Z",
                     "reason": "usage of the answer in the background",
                     "model": "gpt-x-2026", "price_id": "b@1#gpt-x", "usage_source": "reported",
                     "input_tokens": 100, "output_tokens": 40, "web_search_requests": "2"},
        })
    );
    assert_eq!((totals.rows, totals.unknown_cost_requests), (2, 0));
}

#[test]
fn meters_get_the_quantities_of_a_completion_and_none_of_a_pending_request() {
    for (is_priced, amounts) in
        [(true, [json!("10"), json!("40")]), (false, [Value::Null, Value::Null])]
    {
        let (events, totals) = written(Format::Lago, is_priced);
        let told = |event: &Value| {
            let properties = &event["properties"];
            (event["code"].clone(), properties["value"].clone(), properties["key_id"].clone())
        };
        let told: Vec<_> = events.iter().take(2).map(told).collect();
        let expected = [("input_tokens", "100"), ("output_tokens", "40")];
        assert_eq!(told, expected.map(|(code, of)| (json!(code), json!(of), json!("prod"))));
        for (number, (event, amount)) in events.iter().zip(amounts).enumerate() {
            assert_eq!(event["transaction_id"], format!("{ID}:{number}"));
            assert_eq!(event.get("precise_total_amount_cents").unwrap_or(&Value::Null), &amount);
        }
        assert_eq!(totals.rows, events.len() as u64);
        assert_eq!(totals.unknown_cost_requests, i64::from(!is_priced));
        let (stripe, _) = written(Format::Stripe, is_priced);
        assert_eq!(stripe.len(), events.len());
        assert_eq!(stripe[1]["payload"]["value"], "40");
    }
}

#[test]
fn a_completion_without_a_price_is_an_event_without_money() {
    let correction = completion(false);
    let items = BillItem::of_correction(&correction).unwrap();
    let [item] = &items[..] else { panic!("{items:?}") };
    let event = serde_json::to_value(CloudEvent::of_item(item)).unwrap();
    assert_eq!(event["data"]["output_tokens"], 40);
    assert!(event["data"].get("cost").is_none() && event["data"].get("currency").is_none());
    let mut totals = ExportTotals::default();
    totals.add_item(item, 1).unwrap();
    assert_eq!(totals.rows, 1);
}
