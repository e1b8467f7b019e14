//! `docs/records.md` shows what streams of different engines become on record. The streams are
//! fixtures, the records are the real gateway's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::gateway::Setup;
use crate::http::{STREAM_HEAD, chunk, post, stream_answer};

/// A stream that is shown.
struct Shown {
    title: &'static str,
    fixture: &'static str,
    /// After how many events the client leaves.
    leaves_after: usize,
    upstream: &'static str,
    route: &'static str,
    request: &'static str,
}

/// It stays.
const NEVER: usize = usize::MAX;

const CHAT: &str = "/v1/chat/completions";

const SHOWN: [Shown; 5] = [
    Shown {
        title: "OpenAI",
        fixture: "openai/chat_usage.sse",
        leaves_after: NEVER,
        upstream: "dialect: openai, recount: off",
        route: CHAT,
        request: r#"{"model":"gpt-5.1","stream":true,"messages":[]}"#,
    },
    Shown {
        title: "Anthropic",
        fixture: "anthropic/messages_cache.sse",
        leaves_after: NEVER,
        upstream: "dialect: anthropic",
        route: "/v1/messages",
        request: r#"{"model":"claude-sonnet-4-6","max_tokens":64,"stream":true,"messages":[]}"#,
    },
    Shown {
        title: "xAI",
        fixture: "xai/chat_usage_event.sse",
        leaves_after: NEVER,
        upstream: "dialect: xai",
        route: CHAT,
        request: r#"{"model":"grok-4.5","stream":true,"messages":[]}"#,
    },
    Shown {
        title: "Perplexity",
        fixture: "perplexity/chat_reasoning_cost.sse",
        leaves_after: NEVER,
        upstream: "dialect: perplexity",
        route: CHAT,
        request: r#"{"model":"sonar-reasoning-pro","stream":true,"messages":[]}"#,
    },
    Shown {
        title: "vLLM, `usage: continuous`, client left",
        fixture: "vllm/chat_continuous_usage.sse",
        leaves_after: 2,
        upstream: "dialect: vllm, usage: continuous",
        route: CHAT,
        request: r#"{"model":"qwen","stream":true,"messages":[]}"#,
    },
];

/// What differs from run to run, or is the same for all.
const NOT_SHOWN: [&str; 16] = [
    "id",
    "request_id",
    "attempt",
    "seq",
    "gateway",
    "started_at",
    "ended_at",
    "tenant",
    "key_id",
    "identity",
    "labels",
    "upstream",
    "stream",
    "status",
    "timing",
    "resource",
];

/// The record that a stream becomes.
fn record(shown: &Shown) -> Value {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let stream = fs::read_to_string(Path::new(fixtures).join(shown.fixture)).unwrap();
    let events: Vec<_> = stream.split_inclusive("\n\n").collect();
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream(shown.upstream).start();
    let request = post(shown.route, "Connection: close\r\n", shown.request);
    let mut client = Client::saying(gateway.address(), &request);
    if shown.leaves_after >= events.len() {
        engine.answer_once(&stream_answer(&events));
        client.answer();
        return gateway.record();
    }
    let (mut connection, _) = engine.request();
    connection.send(STREAM_HEAD);
    read_and_leave(&mut connection, client, &events[..shown.leaves_after]);
    connection.assert_closed_by_gateway();
    gateway.await_records(1).remove(0)
}

/// The client reads each of these events, and leaves.
fn read_and_leave(engine: &mut Connection, mut client: Client, events: &[&str]) {
    client.head();
    for event in events {
        engine.send(&chunk(event));
        client.next_chunk();
    }
}

/// Members by the names on the way to them, without what is not shown.
fn flat(record: &Value) -> BTreeMap<String, String> {
    let mut members = BTreeMap::new();
    for (name, value) in record.as_object().unwrap() {
        match value {
            _ if NOT_SHOWN.contains(&name.as_str()) => {}
            Value::Null => {}
            Value::Object(parts) => {
                for (part, value) in parts.iter().filter(|(_, value)| !value.is_null()) {
                    for (at, value) in lines(value) {
                        members.insert(format!("{name}.{part}{at}"), value);
                    }
                }
            }
            value => {
                members.insert(name.clone(), plain(value));
            }
        }
    }
    members
}

/// The lines of a cost each by their meter; anything else as it is.
fn lines(value: &Value) -> Vec<(String, String)> {
    let line = |line: &Value| {
        let text = |name: &str| plain(&line[name]);
        Some((
            format!(" {}", line.get("meter")?.as_str()?),
            format!("{} × {} = {}", text("tokens"), text("unit_price"), text("amount")),
        ))
    };
    let lines = value.as_array().and_then(|lines| lines.iter().map(line).collect());
    lines.filter(|lines: &Vec<_>| !lines.is_empty()).unwrap_or(vec![(String::new(), plain(value))])
}

/// JSON, and texts as they are.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn page() -> String {
    let records: Vec<_> = SHOWN.iter().map(|shown| flat(&record(shown))).collect();
    let mut page = include_str!("record_docs.md").to_owned();
    let row = |name: &str, cells: &[String]| format!("| {name} | {} |\n", cells.join(" | "));
    let titles = SHOWN.map(|shown| shown.title.to_owned());
    page += &row("member", &titles);
    page += &row("---", &SHOWN.map(|_| "---".to_owned()));
    let mut names: Vec<_> = records.iter().flat_map(BTreeMap::keys).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let cell = |record: &BTreeMap<String, String>| {
            record.get(name).map(|value| format!("`{value}`")).unwrap_or_default()
        };
        page += &row(&format!("`{name}`"), &records.iter().map(cell).collect::<Vec<_>>());
    }
    page
}

#[test]
fn the_page_of_records_shows_what_the_gateway_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/records.md");
    let page = page();
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, &page).unwrap();
    }
    let stands = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(stands, page, "stale: INSTA_UPDATE=always cargo test writes docs/records.md");
}
