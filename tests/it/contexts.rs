//! Prompts of which a part is not in the request: what is not reported is known from what was said
//! before, or unknown. It is never a part.

use serde_json::Value;
use taximeter_ledger::Entry;

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, chunk, json_answer, post};
use crate::segments::{read, segments};

const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
const BETA: &str = "x-tenant-id: beta\r\n";
const NOBODY: &str = "";

/// What each conversation begins with: 5,000 tokens in, 400 out, of which 150 are reasoning.
const FIRST: &str = r#"{"model":"gpt-4o-mini","input":"Where to?"}"#;
const CONTEXT: u64 = 5_000 + 400 - 150;

fn setup(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with(TENANTS)
}

fn answer_to_first(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"response","model":"gpt-4o-mini-2024-07-18","status":"completed",
        "output":[{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"Station"}}]}}],
        "usage":{{"input_tokens":5000,"output_tokens":400,"total_tokens":5400,
        "output_tokens_details":{{"reasoning_tokens":150}}}}}}"#
    )
}

/// A whole exchange.
fn exchange(gateway: &Gateway, engine: &Engine, headers: &str, ask: &str, reply: &str) {
    let mut client = Client::saying(gateway.address(), &post("/v1/responses", headers, ask));
    engine.answer_once(&json_answer(reply));
    assert_eq!(client.answer().status(), 200);
}

/// The record of a stream that its client leaves after these events.
fn left(
    gateway: &Gateway,
    engine: &Engine,
    (route, headers, ask): (&str, &str, &str),
    events: &[&str],
) -> Value {
    let before = gateway.records().len();
    let mut client = Client::saying(gateway.address(), &post(route, headers, ask));
    let mut connection = engine.begin_stream();
    client.head();
    for event in events {
        connection.send(&chunk(event));
        client.expect(event);
    }
    drop(client);
    connection.assert_closed_by_gateway();
    gateway.await_records(before + 1).pop().expect("a record")
}

const CREATED: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":",
    r#"{"id":"resp_2","model":"gpt-4o-mini-2024-07-18","status":"in_progress","usage":null}}"#,
    "\n\n"
);
const TEXT: &str = concat!(
    "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",",
    r#""output_index":0,"content_index":0,"delta":"To the station"}"#,
    "\n\n"
);

fn follow_up(member: &str) -> String {
    format!(r#"{{"model":"gpt-4o-mini","stream":true,"input":"And then?",{member}}}"#)
}

fn left_response(gateway: &Gateway, engine: &Engine, headers: &str, member: &str) -> Value {
    let ask = follow_up(member);
    left(gateway, engine, ("/v1/responses", headers, &ask), &[CREATED, TEXT])
}

fn flags(record: &Value) -> Vec<&str> {
    let flags = record["usage"]["flags"].as_array().expect("flags");
    flags.iter().filter_map(Value::as_str).collect()
}

fn assert_unknown(record: &Value) {
    let usage = &record["usage"];
    assert!(usage["input_tokens"].is_null(), "{record:#}");
    assert_eq!(
        (&usage["source"], &usage["sources"]["input_tokens"]),
        (&"unknown".into(), &"unknown".into())
    );
    assert!(usage["counted"]["input_tokens"].is_null(), "{record:#}");
    assert!(flags(record).contains(&"context"), "{record:#}");
    assert!(record["cost"].is_null(), "{record:#}");
}

/// What the earlier response tells, and a few tokens more.
fn assert_estimated(record: &Value) {
    let usage = &record["usage"];
    let input = usage["input_tokens"].as_u64().expect("an estimate");
    assert!((CONTEXT + 1..CONTEXT + 20).contains(&input), "{record:#}");
    assert_eq!(usage["source"], "counted");
    for flag in ["context", "estimated", "missing"] {
        assert!(flags(record).contains(&flag), "{flag}: {record:#}");
    }
    assert!(record["cost"].is_object(), "{record:#}");
}

#[test]
fn a_client_that_leaves_is_charged_for_what_was_said_before() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    exchange(&gateway, &engine, NOBODY, FIRST, &answer_to_first("resp_1"));
    let record = left_response(&gateway, &engine, NOBODY, r#""previous_response_id":"resp_1""#);
    assert_estimated(&record);
    let output = record["usage"]["output_tokens"].as_u64().expect("a count");
    assert!((1..10).contains(&output), "{record:#}");
    // The same without a word of an earlier one.
    let record = left_response(&gateway, &engine, NOBODY, r#""store":true"#);
    assert!(record["usage"]["input_tokens"].as_u64() < Some(30), "{record:#}");
    assert!(!flags(&record).contains(&"context"));
}

#[test]
fn a_conversation_tells_what_was_said_in_it_last() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    for conversation in [r#""conversation":"conv_1""#, r#""conversation":{"id":"conv_1"}"#] {
        let ask = format!(r#"{{"model":"gpt-4o-mini","input":"Where to?",{conversation}}}"#);
        exchange(&gateway, &engine, NOBODY, &ask, &answer_to_first("resp_1"));
    }
    for conversation in [r#""conversation":{"id":"conv_1"}"#, r#""conversation":"conv_1""#] {
        assert_estimated(&left_response(&gateway, &engine, NOBODY, conversation));
    }
    assert_unknown(&left_response(&gateway, &engine, NOBODY, r#""conversation":"conv_2""#));
}

#[test]
fn a_conversation_that_was_changed_or_compacted_is_unknown() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = r#"{"model":"gpt-4o-mini","input":"Where to?","conversation":"conv_1"}"#;
    let compacted = r#"{"id":"resp_1","status":"completed","model":"gpt-4o-mini-2024-07-18",
        "output":[{"type":"compaction","encrypted_content":"x"}],
        "usage":{"input_tokens":5000,"output_tokens":400,"total_tokens":5400}}"#;
    let item = r#"{"items":[{"type":"message","role":"user","content":"And back."}]}"#;
    let changes = [
        post("/v1/conversations/conv_1/items?include=x", "", item),
        bare("DELETE", "/v1/conversations/conv_1/items/msg_1", ""),
        bare("DELETE", "/v1/conversations/conv_1", ""),
        post("/v1/responses", "", ask),
    ];
    for (change, reply) in changes.into_iter().zip(["{}", "{}", "{}", compacted]) {
        exchange(&gateway, &engine, NOBODY, ask, &answer_to_first("resp_1"));
        let mut client = Client::saying(gateway.address(), &change);
        engine.answer_once(&json_answer(reply));
        assert_eq!(client.answer().status(), 200);
        assert_unknown(&left_response(&gateway, &engine, NOBODY, r#""conversation":"conv_1""#));
    }
    // What only asks for it, or says something of it, changes nothing.
    exchange(&gateway, &engine, NOBODY, ask, &answer_to_first("resp_1"));
    for look in [
        bare("GET", "/v1/conversations/conv_1/items", ""),
        post("/v1/conversations/conv_1", "", r#"{"metadata":{"topic":"fares"}}"#),
        post("/v1/conversations/conv_2/items", "", item),
    ] {
        let mut client = Client::saying(gateway.address(), &look);
        engine.answer_once(&json_answer("{}"));
        assert_eq!(client.answer().status(), 200);
    }
    assert_estimated(&left_response(&gateway, &engine, NOBODY, r#""conversation":"conv_1""#));
}

#[test]
fn what_did_not_go_by_here_is_unknown_and_so_is_what_others_said() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    exchange(&gateway, &engine, NOBODY, FIRST, &answer_to_first("resp_1"));
    for (headers, member) in [
        (NOBODY, r#""previous_response_id":"resp_9""#),
        (BETA, r#""previous_response_id":"resp_1""#),
        (NOBODY, r#""prompt":{"id":"pmpt_1","version":"2"}"#),
        (NOBODY, r#""prompt":{"id":"pmpt_1"},"previous_response_id":"resp_1""#),
        (NOBODY, r#""tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]"#),
        (NOBODY, r#""instructions":"Be brief.","conversation":"conv_1""#),
    ] {
        assert_unknown(&left_response(&gateway, &engine, headers, member));
    }
    // A response of which nobody knows the usage tells nothing to the next one.
    assert_unknown(&left_response(&gateway, &engine, NOBODY, r#""previous_response_id":"resp_2""#));
}

#[test]
fn what_is_reported_is_billed_whatever_the_context() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = r#"{"model":"gpt-4o-mini","input":"And then?","previous_response_id":"resp_9"}"#;
    exchange(&gateway, &engine, NOBODY, ask, &answer_to_first("resp_1"));
    let record = gateway.record();
    assert_eq!(record["usage"]["input_tokens"], 5_000);
    assert_eq!(record["usage"]["source"], "reported");
    assert!(!flags(&record).contains(&"context"), "{record:#}");
    // And it is the context of the next one.
    assert_estimated(&left_response(
        &gateway,
        &engine,
        NOBODY,
        r#""previous_response_id":"resp_1""#,
    ));
}

#[test]
fn a_response_in_the_background_is_a_context_once_it_is_completed() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = r#"{"model":"gpt-4o-mini","input":"Where to?","background":true}"#;
    let queued = r#"{"id":"resp_1","model":"gpt-4o-mini","status":"queued","usage":null}"#;
    exchange(&gateway, &engine, NOBODY, ask, queued);
    let member = r#""previous_response_id":"resp_1""#;
    assert_unknown(&left_response(&gateway, &engine, NOBODY, member));
    let mut client = Client::saying(gateway.address(), &bare("GET", "/v1/responses/resp_1", ""));
    engine.answer_once(&json_answer(answer_to_first("resp_1")));
    assert_eq!(client.answer().status(), 200);
    assert_estimated(&left_response(&gateway, &engine, NOBODY, member));
}

#[test]
fn a_context_survives_a_reload_and_is_forgotten_by_a_restart() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    exchange(&gateway, &engine, NOBODY, FIRST, &answer_to_first("resp_1"));
    gateway.rewrite(&setup(&engine).with("receipts: off"));
    gateway.await_event("config_reloaded");
    let member = r#""previous_response_id":"resp_1""#;
    assert_estimated(&left_response(&gateway, &engine, NOBODY, member));
    let gateway = setup(&engine).start_in(gateway.kill());
    assert_unknown(&left_response(&gateway, &engine, NOBODY, member));
}

#[test]
fn other_routes_know_no_part_either() {
    const CHAT: &str = "/v1/chat/completions";
    const MESSAGES: &str = "/v1/messages";
    const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let chat = concat!(
        "data: {\"id\":\"c\",\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,",
        "\"delta\":{\"content\":\"To the\"}}]}\n\n"
    );
    let message = concat!(
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,",
        "\"delta\":{\"type\":\"text_delta\",\"text\":\"To the\"}}\n\n"
    );
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"To the\"}]}}]}\n\n";
    let asked = |part: &str| {
        format!(
            r#"{{"model":"gpt-4o-mini","stream":true,"messages":[{{"role":"user","content":[{part}]}}]}}"#
        )
    };
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    for (route, ask, event) in [
        (CHAT, asked(r#"{"type":"file","file":{"file_id":"f"}}"#), chat),
        (
            CHAT,
            asked(r#"{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}"#),
            chat,
        ),
        (
            CHAT,
            asked(r#"{"type":"text","text":"x"}"#)
                .replace("\"stream\"", "\"data_sources\":[{\"type\":\"azure_search\"}],\"stream\""),
            chat,
        ),
        (CHAT, asked(r#"{"type":"text","text":"x"}"#).replace("gpt-4o-mini", "@preset/mail"), chat),
        (
            MESSAGES,
            asked(r#"{"type":"document","source":{"type":"url","url":"https://e.org/a.pdf"}}"#),
            message,
        ),
        (
            MESSAGES,
            asked(r#"{"type":"text","text":"x"}"#)
                .replace("\"stream\"", "\"container\":\"c\",\"stream\""),
            message,
        ),
        (
            GEMINI,
            r#"{"contents":[{"parts":[{"text":"x"}]}],"cachedContent":"cachedContents/1"}"#
                .to_owned(),
            gemini,
        ),
        (
            GEMINI,
            r#"{"contents":[{"parts":[{"fileData":{"fileUri":"gs://a"}}]}]}"#.to_owned(),
            gemini,
        ),
    ] {
        assert_unknown(&left(&gateway, &engine, (route, NOBODY, &ask), &[event]));
    }
    // An image of unknown size is estimated, and the rest is there.
    let image = asked(r#"{"type":"image_url","image_url":{"url":"https://e.org/a.png"}}"#);
    let record = left(&gateway, &engine, (CHAT, NOBODY, &image), &[chat]);
    assert!(record["usage"]["input_tokens"].as_u64() > Some(700), "{record:#}");
    assert!(flags(&record).contains(&"estimated"), "{record:#}");
}

#[test]
fn a_gateway_that_is_killed_knows_no_part_either() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = follow_up(r#""previous_response_id":"resp_9""#);
    let client = Client::saying(gateway.address(), &post("/v1/responses", "", &ask));
    let (_connection, _) = engine.request();
    let gateway = setup(&engine).start_in(gateway.kill());
    drop(client);
    assert_unknown(&gateway.record());
}

/// The amount that the latest reservation holds back.
fn reserved(gateway: &Gateway) -> Option<f64> {
    let entries = segments(&gateway.data_dir()).into_iter().flat_map(|path| read(&path));
    let mut reserves = entries.filter_map(|framed| match framed.entry() {
        Ok(Entry::Reserve(reserve)) => Some(reserve),
        _ => None,
    });
    let amount = reserves.next_back().expect("a reservation").amount?;
    Some(amount.to_string().parse().expect("an amount"))
}

#[test]
fn a_reservation_holds_back_the_context_or_has_no_bound() {
    /// USD for a token of input.
    const INPUT_PRICE: f64 = 0.000_000_15;
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    exchange(&gateway, &engine, NOBODY, FIRST, &answer_to_first("resp_1"));
    for (member, context) in [
        (r#""previous_response_id":"resp_1""#, Some(5_400.0)),
        (r#""store":true"#, Some(0.0)),
        (r#""previous_response_id":"resp_9""#, None),
        (r#""prompt":{"id":"pmpt_1"}"#, None),
        (r#""tools":[{"type":"web_search"}]"#, None),
    ] {
        let ask = follow_up(&format!("{member},\"max_output_tokens\":1"))
            .replace("true,\"input", "false,\"input");
        let mut client = Client::saying(gateway.address(), &post("/v1/responses", "", &ask));
        let (mut connection, _) = engine.request();
        let amount = reserved(&gateway);
        connection.send(&json_answer(answer_to_first("resp_3")));
        client.answer();
        match context {
            None => assert_eq!(amount, None, "{member}"),
            Some(context) => {
                let amount = amount.unwrap_or_else(|| panic!("no bound: {member}"));
                let least = context * INPUT_PRICE;
                // The length of the body, and the dearest tier.
                assert!(least <= amount && amount < 2.0 * (least + 0.0001), "{member}: {amount}");
            }
        }
    }
}
