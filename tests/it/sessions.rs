//! What clients of agents say of their sessions is on records, whatever becomes of the gateway. The
//! requests have the headers and members that these clients send.

use serde_json::{Value, json};

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, MESSAGE_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{json_answer, post};

const TENANTS: &str =
    "tenants: {unknown: acme, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
const CODEX: &str = "user-agent: codex_exec/0.169.0 (Debian 12; x86_64)\r\n";
const CLAUDE: &str = "user-agent: claude-cli/2.1.331 (external, sdk-cli)\r\n";
const OPENCODE: &str = "user-agent: opencode/1.18.33 ai-sdk/provider-utils/4.0\r\n";
const COPILOT: &str = "user-agent: OpenAI/JS 6.1.0\r\nx-initiator: agent\r\n";

fn setup(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai").with(TENANTS)
}

fn response(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"response","model":"gpt-4o-mini-2024-07-18","status":"completed",
        "output":[{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"Hi"}}]}}],
        "usage":{{"input_tokens":50,"output_tokens":4,"total_tokens":54}}}}"#
    )
}

fn exchange(
    gateway: &Gateway,
    engine: &Engine,
    (route, headers, body): (&str, &str, &str),
    answer: &str,
) {
    let mut client = Client::saying(gateway.address(), &post(route, headers, body));
    engine.answer_once(&json_answer(answer));
    assert_eq!(client.answer().status(), 200, "{}", client.all());
}

/// What a record says of its session, in the order of these names.
fn said(record: &Value) -> Value {
    const NAMES: [&str; 9] = [
        "session",
        "session_source",
        "agent",
        "parent_agent",
        "turn",
        "kind",
        "client",
        "end_user",
        "tags",
    ];
    let all = record.as_object().expect("an object").iter();
    all.filter(|(name, _)| NAMES.contains(&name.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Route, headers, body, and what the record says.
fn requests(session: &str) -> Vec<(&'static str, String, String, Value)> {
    let sub = format!("{session}-sub");
    let claude = format!(
        r#"{{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{{"role":"user","content":"x"}}],
        "metadata":{{"user_id":"{{\"device_id\":\"d\",\"account_uuid\":\"a\",\"session_id\":\"{session}\"}}"}}}}"#
    );
    let codex = format!(
        r#"{{"model":"gpt-4o-mini","input":"x","prompt_cache_key":"{session}",
        "client_metadata":{{"turn_id":"t-1"}}}}"#
    );
    let keyed = format!(r#"{{"model":"gpt-4o-mini","input":"x","prompt_cache_key":"{session}"}}"#);
    let generic = format!(
        r#"{{"model":"gpt-4o-mini","metadata":{{"session_id":"{session}"}},"messages":[]}}"#
    );
    vec![
        (
            "/v1/responses",
            format!(
                "{CODEX}session-id: {session}\r\nthread-id: {session}\r\n\
                 x-codex-turn-metadata: {{\"turn_id\":\"t-1\",\"workspaces\":{{\"/home\":{{}}}},\"request_kind\":\"prewarm\"}}\r\n"
            ),
            codex.clone(),
            json!({"session": session, "session_source": "header", "agent": "root", "turn": "t-1",
                   "kind": "prewarm", "client": "codex/0.169"}),
        ),
        (
            "/v1/responses",
            format!(
                "{CODEX}session-id: {session}\r\nthread-id: {sub}\r\n\
                 x-codex-parent-thread-id: {session}\r\n"
            ),
            codex,
            json!({"session": session, "session_source": "header", "agent": sub,
                   "parent_agent": "root", "turn": "t-1", "client": "codex/0.169"}),
        ),
        (
            "/v1/messages",
            format!(
                "{CLAUDE}x-claude-code-session-id: {session}\r\nx-claude-code-agent-id: a1\r\n"
            ),
            claude.clone(),
            json!({"session": session, "session_source": "header", "agent": "a1",
                   "client": "claude-code/2.1"}),
        ),
        (
            "/v1/messages?beta=true",
            CLAUDE.to_owned(),
            claude,
            json!({"session": session, "session_source": "body", "client": "claude-code/2.1"}),
        ),
        (
            "/v1/chat/completions",
            format!("{OPENCODE}x-session-id: {sub}\r\nx-parent-session-id: {session}\r\n"),
            CHAT.to_owned(),
            json!({"session": session, "session_source": "header", "agent": sub,
                   "parent_agent": "root", "client": "opencode/1.18"}),
        ),
        (
            "/v1/responses",
            COPILOT.to_owned(),
            keyed,
            json!({"session": session, "session_source": "body", "client": "copilot-cli"}),
        ),
        (
            "/v1/chat/completions",
            String::new(),
            generic,
            json!({"session": session, "session_source": "body"}),
        ),
        ("/v1/chat/completions", "user-agent: curl/8.5\r\n".to_owned(), CHAT.to_owned(), json!({})),
    ]
}

#[test]
fn two_sessions_of_each_client_are_on_records_also_after_a_kill() {
    let engine = Engine::start();
    let setup = || setup(&engine).keeping_connections();
    let gateway = setup().start();
    let all: Vec<_> = ["s-1", "s-2"].into_iter().flat_map(requests).collect();
    for (route, headers, body, _) in &all {
        let answer = match *route {
            "/v1/responses" => response("resp_0"),
            "/v1/chat/completions" => CHAT_ANSWER.to_owned(),
            _ => MESSAGE_ANSWER.to_owned(),
        };
        let headers = format!("Connection: close\r\n{headers}");
        exchange(&gateway, &engine, (route, &headers, body), &answer);
    }
    let mut records = gateway.await_records(all.len());
    records.sort_by_key(|record| record["seq"].as_u64());
    for ((route, headers, _, expected), record) in all.iter().zip(&records) {
        assert_eq!(&said(record), expected, "{route} {headers}");
    }
    // One that runs when the gateway is killed has what it said.
    let session = format!("{CODEX}session-id: s-3\r\n");
    let _open = Client::saying(gateway.address(), &post("/v1/chat/completions", &session, CHAT));
    let _connection = engine.request();
    let gateway = setup().start_in(gateway.kill());
    let mut again = gateway.await_records(all.len() + 1);
    again.sort_by_key(|record| record["seq"].as_u64());
    let died = again.pop().expect("a record");
    assert_eq!((&died["end"], &died["session"]), (&json!("gateway_died"), &json!("s-3")));
    assert_eq!(again, records);
}

#[test]
fn what_goes_on_from_a_response_has_its_session_and_no_other_tenants() {
    let engine = Engine::start();
    let gateway = setup(&engine).start();
    let ask = |tenant: &str, headers: &str, member: &str, id: &str| {
        let before = gateway.records().len();
        let headers = format!("Connection: close\r\nx-tenant-id: {tenant}\r\n{headers}");
        let body = format!(r#"{{"model":"gpt-4o-mini","input":"x"{member}}}"#);
        exchange(&gateway, &engine, ("/v1/responses", &headers, &body), &response(id));
        said(&gateway.await_records(before + 1)[before])
    };
    let derived = |session: &str| json!({"session": session, "session_source": "derived"});
    assert_eq!(ask("acme", "", "", "resp_1"), json!({}));
    let after = |id: &str| format!(r#","previous_response_id":"{id}""#);
    assert_eq!(ask("acme", "", &after("resp_1"), "resp_2"), derived("resp_1"));
    assert_eq!(ask("acme", "", &after("resp_2"), "resp_3"), derived("resp_1"));
    assert_eq!(ask("beta", "", &after("resp_3"), "resp_4"), derived("resp_3"));
    assert_eq!(ask("acme", "", r#","conversation":"conv_1""#, "resp_5"), derived("conv_1"));
    let named = ask("acme", "x-session-id: own\r\n", &after("resp_3"), "resp_6");
    assert_eq!(named, json!({"session": "own", "session_source": "header"}));
    assert_eq!(ask("acme", "", &after("resp_6"), "resp_7"), derived("own"));
}

#[test]
fn what_cannot_be_taken_is_counted_and_end_users_are_hashed_with_a_key_of_the_gateway() {
    let engine = Engine::start();
    let gateway = setup(&engine)
        .with("dimensions: {session: [{header: x-my-run}], tags: [{name: team, body: metadata.team}]}")
        .start();
    let ask = |headers: &str, member: &str| {
        let before = gateway.records().len();
        let headers = format!("Connection: close\r\n{headers}");
        let body = format!(r#"{{"model":"gpt-4o-mini","messages":[]{member}}}"#);
        exchange(&gateway, &engine, ("/v1/chat/completions", &headers, &body), CHAT_ANSWER);
        said(&gateway.await_records(before + 1)[before])
    };
    let user = |member: &str| ask("", member)["end_user"].as_str().map(str::to_owned);
    let (anna, same) =
        (user(r#","user":"anna@example.org""#), user(r#","user":"anna@example.org""#));
    assert_eq!(anna.as_ref().map(String::len), Some(32));
    assert_eq!(anna, same);
    assert_ne!(anna, user(r#","user":"bob""#));
    assert!(gateway.data_dir().join("names.key").exists());
    let both = "x-my-run: r1\r\nsession-id: s\r\n";
    let tags = json!({"session": "r1", "session_source": "header", "tags": {"team": "Команда"}});
    assert_eq!(ask(both, r#","metadata":{"team":"Команда"}"#), tags);
    let long = "a".repeat(129);
    assert_eq!(ask(&format!("session-id: {long}\r\n"), ""), json!({}));
    assert_eq!(ask("session-id: a b\r\n", ""), json!({}));
    assert_eq!(ask("session-id: a\r\nsession-id: b\r\n", ""), json!({}));
    let huge = format!(r#","metadata":{{"session_id":"{}"}}"#, "a".repeat(1 << 20));
    assert_eq!(ask("", &huge), json!({}));
    for (cause, count) in [("too_long", 2), ("characters", 1), ("disagreement", 1)] {
        gateway.await_metric(&format!(
            "taximeter_dimensions_dropped_total{{taximeter_cause=\"{cause}\",taximeter_dimension=\"session\"}} {count}"
        ));
    }
}
