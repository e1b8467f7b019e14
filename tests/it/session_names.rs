//! What clients say of their sessions and should not: it is dropped and counted, or kept apart, whatever
//! the dialect.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT_ANSWER, MESSAGE_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, post};

const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";

/// A dialect: its route, a body, and what an engine answers.
struct Dialect {
    route: &'static str,
    body: Value,
    answer: String,
}

fn dialects() -> [Dialect; 6] {
    let chat = json!({"model": "gpt-4o-mini", "max_tokens": 9,
        "messages": [{"role": "user", "content": "Go"}]});
    let asked = |body: Value| {
        let mut body = body;
        body["model"] = "gpt-4o-mini".into();
        body
    };
    [
        Dialect {
            route: "/v1/chat/completions",
            body: chat.clone(),
            answer: CHAT_ANSWER.to_owned(),
        },
        Dialect {
            route: "/v1/responses",
            body: asked(json!({"input": "Go"})),
            answer: json!({"id": "resp_0", "model": "gpt-4o-mini", "status": "completed",
                "output": [], "usage": {"input_tokens": 5, "output_tokens": 4}})
            .to_string(),
        },
        Dialect { route: "/v1/messages", body: chat, answer: MESSAGE_ANSWER.to_owned() },
        Dialect {
            route: "/v1beta/models/gemini-2.5-flash:generateContent",
            body: json!({"contents": [{"role": "user", "parts": [{"text": "Go"}]}]}),
            answer: json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]},
                "finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 5,
                "candidatesTokenCount": 4, "totalTokenCount": 9}})
            .to_string(),
        },
        Dialect {
            route: "/v1/embeddings",
            body: asked(json!({"input": "Go"})),
            answer: json!({"object": "list", "data": [], "model": "gpt-4o-mini",
                "usage": {"prompt_tokens": 5, "total_tokens": 5}})
            .to_string(),
        },
        Dialect {
            route: "/v1/completions",
            body: asked(json!({"prompt": "Go"})),
            answer: json!({"id": "cmpl-1", "model": "gpt-4o-mini", "choices": [{"text": "Hi",
                "finish_reason": "stop", "index": 0}], "usage": {"prompt_tokens": 5,
                "completion_tokens": 4, "total_tokens": 9}})
            .to_string(),
        },
    ]
}

/// Sends a request with these headers and members.
fn send(gateway: &Gateway, engine: &Engine, dialect: &Dialect, (headers, members): (&str, &Value)) {
    let mut body = dialect.body.clone();
    for (name, member) in members.as_object().into_iter().flatten() {
        body[name] = member.clone();
    }
    let headers = format!("Connection: close\r\n{headers}");
    let mut client =
        Client::saying(gateway.address(), &post(dialect.route, &headers, body.to_string()));
    engine.answer_once(&json_answer(&dialect.answer));
    assert_eq!(client.answer().status(), 200, "{}", dialect.route);
}

/// So many records, in the order of their requests.
fn records(gateway: &Gateway, count: usize) -> Vec<Value> {
    let mut records = gateway.await_records(count);
    records.sort_by_key(|record| record["seq"].as_u64());
    assert_eq!(records.len(), count);
    records
}

fn setup(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai, recount: off").with(TENANTS)
}

/// Headers, members of the body, why the session is dropped, and which session is left.
fn bad() -> Vec<(String, Value, &'static str, Option<&'static str>)> {
    let long = "a".repeat(200);
    let huge = "a".repeat(1 << 20);
    let of = |session: &str| json!({"metadata": {"session_id": session}});
    let header = |value: &str| format!("session-id: {value}\r\n");
    let nothing = || json!({});
    vec![
        (header(&long), nothing(), "too_long", None),
        (header(&long) + "x-session-id: good\r\n", nothing(), "too_long", Some("good")),
        (String::new(), of(&huge), "too_long", None),
        (String::new(), of(&long), "too_long", None),
        (String::new(), of("one\ntwo"), "characters", None),
        (String::new(), of("one\u{0}two"), "characters", None),
        (String::new(), of("сессия"), "characters", None),
        (String::new(), of("会话"), "characters", None),
        (String::new(), of("\u{202e}one"), "characters", None),
        (header("сессия"), nothing(), "characters", None),
        (header("one two"), of("good"), "characters", Some("good")),
        (header("one") + &header("two"), nothing(), "disagreement", None),
        (header("one") + &header("two"), of("good"), "disagreement", Some("good")),
        ("x-codex-turn-metadata: {\"session_id\":\r\n".to_owned(), nothing(), "no_json", None),
        ("x-codex-turn-metadata: no json\r\n".to_owned(), of("good"), "no_json", Some("good")),
        (String::new(), json!({"metadata": {"user_id": "{\"session_id\":"}}), "no_json", None),
    ]
}

#[test]
fn a_name_that_is_none_is_dropped_and_counted_in_every_dialect() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let mut counts = BTreeMap::<&str, u64>::new();
    let mut expected = Vec::new();
    for dialect in dialects() {
        for (headers, members, cause, session) in bad() {
            send(&gateway, &engine, &dialect, (&headers, &members));
            *counts.entry(cause).or_default() += 1;
            let shown = members.to_string().chars().take(99).collect::<String>();
            expected.push((session, format!("{} {headers} {shown}", dialect.route)));
        }
    }
    let records = records(&gateway, expected.len());
    for (record, (session, of)) in records.iter().zip(expected) {
        assert_eq!(record["session"].as_str(), session, "{of}");
    }
    for (cause, count) in counts {
        gateway.await_metric(&format!(
            "taximeter_dimensions_dropped_total{{taximeter_cause=\"{cause}\",\
             taximeter_dimension=\"session\"}} {count}\n"
        ));
    }
    // Nothing of it is anywhere.
    let text = Value::from(records).to_string();
    assert!(!text.contains("one") && !text.contains("aaaa"), "{text}");
}

#[test]
fn an_agent_that_is_its_own_parent_has_none_and_that_is_counted_in_every_dialect() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let names = [
        ["session_id", "s-1", "agent_id", "a", "parent_agent_id", "a"],
        ["session_id", "s-2", "agent_id", "b", "parent_agent_id", "c"],
        // The two have started each other.
        ["session_id", "s-2", "agent_id", "c", "parent_agent_id", "b"],
    ];
    for dialect in dialects() {
        let own = "x-session-id: s-1\r\nx-agent-id: a\r\nx-parent-agent-id: a\r\n";
        send(&gateway, &engine, &dialect, (own, &json!({})));
        for [a, b, c, d, e, f] in names {
            let members = json!({"metadata": {a: b, c: d, e: f}});
            send(&gateway, &engine, &dialect, ("", &members));
        }
    }
    let all = records(&gateway, 4 * dialects().len());
    for of_dialect in all.chunks(4) {
        for record in &of_dialect[..2] {
            let told = ["session", "agent", "parent_agent"].map(|name| record[name].as_str());
            assert_eq!(told, [Some("s-1"), Some("a"), None], "{}", record["route"]);
        }
        assert_eq!(of_dialect[2]["parent_agent"], "c");
        assert_eq!(of_dialect[3]["parent_agent"], "b");
    }
    gateway.await_metric(&format!(
        "taximeter_dimensions_dropped_total{{taximeter_cause=\"own_parent\",\
         taximeter_dimension=\"parent_agent\"}} {}\n",
        2 * dialects().len()
    ));
    // There is a tree all the same.
    let session = opened(&gateway, "s-2", &[]);
    let agents = session[0]["agents"].as_array().expect("agents");
    let in_turn = agents.iter().filter(|agent| agent["parent_state"] == "cycle").count();
    assert_eq!((agents.len(), in_turn > 0), (2, true), "{session:#}");
}

/// The session of this name as the command opens it: one for each tenant.
fn opened(gateway: &Gateway, session: &str, words: &[&str]) -> Value {
    let place =
        ["--json", "--data-dir", gateway.data_dir().to_str().expect("UTF-8")].map(str::to_owned);
    let words = ["sessions", session].into_iter().chain(words.iter().copied());
    let told = taximeter(words.map(str::to_owned).chain(place));
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    serde_json::from_slice(&told.stdout).expect("JSON")
}

#[test]
fn one_name_of_two_tenants_is_two_sessions_in_every_dialect() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    for dialect in dialects() {
        for tenant in ["acme", "beta", "beta"] {
            let headers = format!("x-tenant-id: {tenant}\r\nx-session-id: same\r\n");
            send(&gateway, &engine, &dialect, (&headers, &json!({})));
        }
    }
    let all = records(&gateway, 3 * dialects().len());
    let sessions = opened(&gateway, "same", &[]);
    let counts = sessions.as_array().expect("two").iter();
    let counts: Vec<_> = counts.map(|it| json!([it["tenant"], it["requests"]])).collect();
    assert_eq!(counts, [json!(["acme", 6]), json!(["beta", 12])]);
    for (tenant, requests) in [("acme", 6), ("beta", 12)] {
        let one = opened(&gateway, "same", &["--tenant", tenant]);
        let shown = (one.as_array().map(Vec::len), &one[0]["requests"]);
        assert_eq!(shown, (Some(1), &json!(requests)));
        let ids = one[0]["turns"].as_array().expect("turns").iter();
        let ids = ids.flat_map(|turn| turn["request_ids"].as_array().expect("ids").clone());
        let ids: Vec<_> = ids.collect();
        let of = |record: &Value| record["tenant"] == tenant && ids.contains(&record["id"]);
        assert_eq!(all.iter().filter(|record| of(record)).count(), ids.len());
    }
}

#[test]
fn a_turn_that_comes_before_its_session_is_in_none_in_every_dialect() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let turns = [
        (None, "t-1"),
        (Some("s-1"), "t-1"),
        // The same turn of another session is another one.
        (Some("s-2"), "t-1"),
        (Some("s-1"), "t-2"),
    ];
    for dialect in dialects() {
        for (session, turn) in turns {
            let session = session.map(|session| format!("x-session-id: {session}\r\n"));
            let headers = format!("x-turn-id: {turn}\r\n{}", session.unwrap_or_default());
            send(&gateway, &engine, &dialect, (&headers, &json!({})));
        }
    }
    let count = dialects().len();
    for of_dialect in records(&gateway, 4 * count).chunks(4) {
        for (record, (session, turn)) in of_dialect.iter().zip(turns) {
            assert_eq!((record["session"].as_str(), &record["turn"]), (session, &json!(turn)));
        }
    }
    for (session, requests, turns) in [("s-1", 2 * count, 2), ("s-2", count, 1)] {
        let told = &opened(&gateway, session, &[])[0];
        let found = (&told["requests"], told["turns"].as_array().map(Vec::len));
        assert_eq!(found, (&json!(requests), Some(turns)), "{told:#}");
    }
}

#[test]
fn a_chain_to_a_response_of_another_tenant_or_of_nobody_is_a_session_of_its_own() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let [_, responses, ..] = dialects();
    let mut sent = 0;
    let mut ask = |tenant: &str, headers: &str, after: &str, id: &str| {
        let answer = responses.answer.replace("resp_0", id);
        let dialect = Dialect { route: responses.route, body: responses.body.clone(), answer };
        let headers = format!("x-tenant-id: {tenant}\r\n{headers}");
        let members = json!({"previous_response_id": after});
        let members = if after.is_empty() { json!({}) } else { members };
        send(&gateway, &engine, &dialect, (&headers, &members));
        sent += 1;
        let record = records(&gateway, sent).pop().expect("its record");
        record["session"].as_str().map(str::to_owned)
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(ask("acme", "session-id: mine\r\n", "", "resp_a"), some("mine"));
    assert_eq!(ask("acme", "", "resp_a", "resp_b"), some("mine"));
    // Whose response it is, is not told to others: they begin with its name.
    assert_eq!(ask("beta", "", "resp_b", "resp_c"), some("resp_b"));
    assert_eq!(ask("beta", "", "resp_c", "resp_d"), some("resp_b"));
    assert_eq!(ask("beta", "", "resp_of_nobody", "resp_e"), some("resp_of_nobody"));
    // What goes on before its response has come is of the same session as what goes on later.
    assert_eq!(ask("beta", "", "resp_late", "resp_f"), some("resp_late"));
    assert_eq!(ask("acme", "", "resp_c", "resp_g"), some("resp_c"));
    // An id that is no name is none.
    assert_eq!(ask("acme", "", "resp \n", "resp_h"), None);
    assert_eq!(ask("acme", "", &"r".repeat(1 << 20), "resp_i"), None);
    let mine = opened(&gateway, "mine", &[]);
    assert_eq!((mine.as_array().map(Vec::len), &mine[0]["requests"]), (Some(1), &json!(2)));
    let other = opened(&gateway, "resp_b", &[]);
    assert_eq!((&other[0]["tenant"], &other[0]["requests"]), (&json!("beta"), &json!(2)));
}
