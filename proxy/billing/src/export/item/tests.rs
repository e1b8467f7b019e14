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
    let mut writer =
        RecordWriter::new(format, format.window(None), Timestamp::UNIX_EPOCH, Vec::new()).unwrap();
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

/// The events of a completion that was made at this time.
fn completed(format: Format, made_at: &str) -> Vec<Value> {
    let (record, made_at) = (pending(), made_at.parse().unwrap());
    let correction = Correction { made_at, ..completion(true) };
    let window = format.window(None);
    let mut writer = RecordWriter::new(format, window, Timestamp::UNIX_EPOCH, Vec::new()).unwrap();
    let row = BilledRequest::from(&record);
    writer.add_correction(&row, &correction, &mut ExportTotals::default()).unwrap();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let batch: Value = serde_json::from_str(&text).unwrap();
    batch.get("events").unwrap_or(&batch).as_array().unwrap().clone()
}

#[test]
fn a_correction_that_comes_too_late_for_the_time_of_its_request_has_its_own() {
    let (request, late) = ("2026-11-20T16:59:59.5Z", "2026-12-26T00:00:00Z");
    let soon = "2026-11-21T00:00:00Z";
    let meters = completed(Format::Stripe, soon);
    assert_eq!(meters.len(), 2);
    assert!(meters.iter().all(|event| event["timestamp"] == request), "{meters:#?}");
    let meters = completed(Format::Stripe, late);
    assert!(meters.iter().all(|event| event["timestamp"] == late), "{meters:#?}");
    assert_eq!(meters[1]["identifier"], format!("{ID}:1"), "the id is the same");
    let orb = &completed(Format::Orb, late)[0];
    assert_eq!(
        (&orb["timestamp"], &orb["properties"]["request_at"]),
        (&json!(late), &json!(request))
    );
    let orb = &completed(Format::Orb, soon)[0];
    assert_eq!(
        (&orb["timestamp"], &orb["properties"]["request_at"]),
        (&json!(request), &Value::Null)
    );
    // No limit is known of these.
    assert_eq!(completed(Format::CloudEvents, late)[0]["time"], request);
    assert!(
        completed(Format::Lago, late)[0]["timestamp"].as_str().unwrap().starts_with("1795193999")
    );
}
