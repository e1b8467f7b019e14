//! `docs/reference/records.md` shows what streams of different engines become on record, and
//! explains every member. The streams are fixtures, the records are the real gateway's.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;
use taximeter_tests::generated::is_fresh;

use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::Setup;
use crate::http::{chunk, post, stream_answer};

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

const SHOWN: [Shown; 7] = [
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
        title: "Anthropic's tools",
        fixture: "anthropic/messages_agent_tools.sse",
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
        title: "vLLM",
        fixture: "vllm/chat_continuous_usage.sse",
        leaves_after: 2,
        upstream: "dialect: vllm, usage: continuous",
        route: CHAT,
        request: r#"{"model":"qwen","stream":true,"messages":[]}"#,
    },
    Shown {
        title: "TGI",
        fixture: "tgi/generate_stream_error.sse",
        leaves_after: NEVER,
        upstream: "dialect: tgi",
        route: "/generate_stream",
        request: r#"{"inputs":"Where to?"}"#,
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

/// Members that are named by their own members.
const GROUPS: [&str; 3] = ["usage", "timing", "cost"];

fn stream(shown: &Shown) -> String {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    fs::read_to_string(Path::new(fixtures).join(shown.fixture)).unwrap()
}

fn events(stream: &str) -> impl Iterator<Item = &str> {
    stream.split_inclusive("\n\n")
}

/// The record that a stream becomes.
fn record(shown: &Shown) -> Value {
    let stream = stream(shown);
    let events: Vec<_> = events(&stream).collect();
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream(shown.upstream).start();
    let request = post(shown.route, "Connection: close\r\n", shown.request);
    let mut client = Client::saying(gateway.address(), &request);
    if shown.leaves_after == NEVER {
        engine.answer_once(&stream_answer(&events));
        client.answer();
        return gateway.record();
    }
    let mut connection = engine.begin_stream();
    client.head();
    for event in &events[..shown.leaves_after] {
        connection.send(&chunk(event));
        client.next_chunk();
    }
    drop(client);
    connection.assert_closed_by_gateway();
    gateway.await_records(1).remove(0)
}

/// Members by the names on the way to them.
fn members(record: &Value) -> BTreeMap<String, Value> {
    let mut members = BTreeMap::new();
    for (name, value) in record.as_object().unwrap() {
        match value {
            Value::Object(parts) if GROUPS.contains(&name.as_str()) => {
                let parts = parts.iter();
                members
                    .extend(parts.map(|(part, value)| (format!("{name}.{part}"), value.clone())));
            }
            Value::Null if GROUPS.contains(&name.as_str()) => {}
            value => {
                members.insert(name.clone(), value.clone());
            }
        }
    }
    members
}

/// What stands in a cell of the table.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Array(lines) if lines.iter().any(|line| line.get("meter").is_some()) => {
            lines.iter().map(cost_line).collect::<Vec<_>>().join("<br>")
        }
        Value::Object(parts) if !parts.is_empty() => {
            let part = |(name, value): (&String, &Value)| format!("{name}: {}", cell(value));
            parts.iter().map(part).collect::<Vec<_>>().join("<br>")
        }
        value => format!("`{}`", plain(value)),
    }
}

fn cost_line(line: &Value) -> String {
    let quantity = if line["tokens"].is_null() { "quantity" } else { "tokens" };
    let [meter, quantity, price, amount] =
        ["meter", quantity, "unit_price", "amount"].map(|name| plain(&line[name]));
    format!("{meter}: {quantity} × {price} = {amount}")
}

/// JSON, and texts as they are.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What the engine says of usage while the client is there, as it stands.
fn said(shown: &Shown) -> String {
    let stream = stream(shown);
    let heard: String = events(&stream).take(shown.leaves_after).collect();
    let found = heard.split("\"usage\":").skip(1).filter(|rest| rest.starts_with('{'));
    let objects = found.map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        values.next().unwrap().unwrap().get()
    });
    format!("```json\n{}\n```", objects.collect::<Vec<_>>().join("\n"))
}

fn table(records: &[BTreeMap<String, Value>], names: &[&str]) -> String {
    let row = |name: &str, cells: &[String]| format!("| {name} | {} |\n", cells.join(" | "));
    let mut table = row("member", &SHOWN.map(|shown| shown.title.to_owned()));
    table += &row("---", &SHOWN.map(|_| "---".to_owned()));
    for name in names {
        let group = name.split('.').next().unwrap();
        let cells = records.iter().map(|record| record.get(*name).map(cell).unwrap_or_default());
        let cells: Vec<_> = cells.collect();
        if !NOT_SHOWN.contains(&group) && cells.iter().any(|cell| !cell.is_empty()) {
            table += &row(&format!("`{name}`"), &cells);
        }
    }
    table
}

fn page() -> String {
    let mut page = include_str!("record_docs.md").to_owned();
    let records: Vec<_> = SHOWN.iter().map(|shown| members(&record(shown))).collect();
    // In the order in which they are explained, and none is there that is not.
    let explained = include_str!("record_docs.md").lines().filter(|line| line.starts_with("| `"));
    let first_cells = explained.map(|line| line.split(" | ").next().unwrap());
    let names: Vec<_> = first_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let all: BTreeSet<_> = records.iter().flat_map(BTreeMap::keys).map(String::as_str).collect();
    assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), all, "explained, and there");
    for shown in &SHOWN {
        page = page.replace(&format!("{{{}}}", shown.title), &said(shown));
    }
    page.replace("{records}", &table(&records, &names))
}

#[test]
fn the_page_of_records_shows_what_the_gateway_writes() {
    assert_eq!(is_fresh("docs/reference/records.md", |_| page()), Ok(()));
}

/// The members of a type in the reference of the API, and the types that they have.
fn described<'a>(api: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let Some((_, section)) = api.split_once(&format!("\n## {name}\n")) else { return Vec::new() };
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once("` | ")).collect()
}

#[test]
fn the_page_of_records_names_each_member_that_the_api_describes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("the page");
    let (api, page) = (read("api.md"), read("records.md"));
    let is_named = |name: &str| {
        ["`", "."].iter().any(|before| {
            ["`", "."].iter().any(|behind| page.contains(&format!("{before}{name}{behind}")))
        })
    };
    let mut missing = Vec::new();
    let types = [
        "Record",
        "RecordUsage",
        "RecordTiming",
        "Stages",
        "RecordCost",
        "RecordLine",
        "RecordError",
        "UnknownCost",
        "Counted",
        "Pass",
    ];
    for name in types {
        let members = described(&api, name);
        assert!(!members.is_empty(), "{name}");
        missing.extend(members.into_iter().map(|(member, _)| member).filter(|it| !is_named(it)));
    }
    assert_eq!(missing, Vec::<&str>::new());
}
