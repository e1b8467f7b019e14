//! The pages of sessions: what they say is what the API says, to the last digit, and everything in
//! them leads to its requests.

use serde_json::Value;

use super::{figure, links, page, resolved};
use crate::api::{BY_HEADER, await_store, list};
use crate::client::Client;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup};
use crate::http::{json_answer, post};

const CODEX: &str = "User-Agent: codex_exec/0.169.0 (Debian 12; x86_64)\r\nConnection: close\r\n";

/// One request of a session: tenant, agent, turn, what it is for, its input, and what the cache had.
type Asked = (&'static str, &'static str, &'static str, &'static str, u64, u64);

/// A session of `acme` with a sub-agent and a compaction, and one of the same name of `<b>zeta`.
const TASK: [Asked; 6] = [
    ("acme", "task", "t-1", "turn", 1_000, 0),
    ("acme", "sub", "s-1", "turn", 7_000, 500),
    ("acme", "sub", "s-1", "turn", 9_000, 7_000),
    ("acme", "task", "t-2", "turn", 40_000, 1_000),
    ("acme", "task", "t-2", "compaction", 41_000, 39_000),
    ("<b>zeta", "task", "t-1", "turn", 2_000, 0),
];

fn with_sessions() -> (Engine, Gateway) {
    let engine = Engine::start();
    let tenants = format!("tenants: {{{BY_HEADER}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    for (number, (tenant, agent, turn, kind, input, cached)) in TASK.iter().enumerate() {
        let mut headers = format!(
            "{CODEX}x-tenant-id: {tenant}\r\nsession-id: task\r\nthread-id: {agent}\r\n\
             x-codex-turn-metadata: {{\"turn_id\":\"{turn}\",\"request_kind\":\"{kind}\"}}\r\n"
        );
        if *agent != "task" {
            headers += "x-codex-parent-thread-id: task\r\n";
        }
        let body = r#"{"model":"gpt-4o-mini","input":"x"}"#;
        let mut client = Client::saying(gateway.address(), &post("/v1/responses", &headers, body));
        engine.answer_once(&json_answer(format!(
            r#"{{"id":"resp_{number}","object":"response","model":"gpt-4o-mini-2024-07-18",
            "status":"completed","output":[{{"type":"function_call","id":"fc_{number}",
            "call_id":"c","name":"<u>shell","arguments":"{{}}","status":"completed"}}],
            "usage":{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cached}}},
            "output_tokens":40,"total_tokens":{}}}}}"#,
            input + 40
        )));
        assert_eq!(client.answer().status(), 200, "{}", client.all());
    }
    await_store(&gateway);
    (engine, gateway)
}

fn session(gateway: &Gateway) -> Value {
    let told = gateway.admin("/api/v1/sessions/task?tenant=acme").json();
    list(&told["sessions"])[0].clone()
}

/// Where the links of a page lead, as paths of the admin address.
fn targets(path: &str, text: &str) -> Vec<String> {
    links(text).filter(|link| !link.starts_with('#')).map(|link| resolved(path, &link)).collect()
}

#[test]
fn the_list_is_that_of_the_api_and_leads_to_each_session() {
    let (_engine, gateway) = with_sessions();
    for (top, first) in [("cost", "acme"), ("latest", "&lt;b&gt;zeta"), ("length", "acme")] {
        let path = format!("/sessions?top={top}");
        let text = page(&gateway.admin(&path));
        let told = targets(&path, &text);
        let told = told.iter().find(|path| path.starts_with("/api/v1/sessions?")).expect("JSON");
        let told = gateway.admin(told).json();
        assert_eq!(list(&told["sessions"]).len(), 2);
        assert_eq!(told["total"]["cost"], Value::from(figure(&text, "data-total=\"cost\"")));
        let row = text.split_once("<tbody>").expect("rows").1.split_once("</tr>").expect("a row").0;
        assert!(row.contains(&format!("<td><bdi>{first}</bdi></td>")), "{top}: {row}");
        let opened: Vec<_> =
            targets(&path, &text).into_iter().filter(|to| to.starts_with("/session?")).collect();
        assert_eq!(opened.len(), 2, "{opened:?}");
        for (to, session) in opened.iter().zip(list(&told["sessions"])) {
            let text = page(&gateway.admin(to));
            assert_eq!(Value::from(figure(&text, "data-total=\"cost\"")), session["cost"]);
        }
    }
    let zeta = page(&gateway.admin("/sessions?tenant=%3Cb%3Ezeta"));
    assert!(!zeta.contains("<b>zeta") && !zeta.contains("<td><bdi>acme"), "{zeta}");
    let before = page(&gateway.admin("/sessions?span=last-month"));
    assert!(before.contains("No request of this period names a session."), "{before}");
}

#[test]
fn a_session_says_what_the_api_says_and_leads_to_each_of_its_requests() {
    let (_engine, gateway) = with_sessions();
    let told = session(&gateway);
    let path = "/session?name=task&tenant=acme";
    let text = page(&gateway.admin(path));
    for (mark, member) in [
        ("cost", "cost"),
        ("requests", "requests"),
        ("input", "input_tokens"),
        ("output", "output_tokens"),
    ] {
        let shown = figure(&text, &format!("data-total=\"{mark}\""));
        let exact = told[member].as_str().map_or_else(|| told[member].to_string(), str::to_owned);
        assert_eq!(shown, exact, "{member}");
    }
    let turns = list(&told["turns"]);
    assert_eq!(turns.len(), 3);
    for turn in turns {
        let row =
            text.split_once(&format!("<tr data-turn=\"{}\">", turn["number"])).expect("a row").1;
        let row = row.split_once("</tr>").expect("its end").0;
        assert!(row.contains(&format!("<data value={}>", turn["cost"])), "{row}");
        let ids: Vec<_> = list(&turn["request_ids"]).iter().map(|id| id.as_str()).collect();
        let linked = targets(path, row);
        let linked: Vec<_> = linked.iter().map(|to| to.strip_prefix("/requests/")).collect();
        assert_eq!(linked, ids);
    }
    let waste = text.split_once("data-waste=\"compaction\"").expect("waste").1;
    let request = targets(path, waste.split_once("</tr>").expect("its end").0);
    assert_eq!(list(&told["waste"])[0]["kind"], "compaction");
    let id = list(&list(&told["waste"])[0]["requests"])[0]["id"].as_str().expect("an id");
    assert_eq!(request, [format!("/requests/{id}")]);
    assert!(text.contains("<bdi>&lt;u&gt;shell</bdi>") && !text.contains("<u>"), "{text}");
    let of_sub = targets(path, &text);
    let of_sub = of_sub.iter().find(|to| to.contains("agent=sub")).expect("a link to its turns");
    let of_sub = page(&gateway.admin(of_sub.trim_end_matches("#turns")));
    assert_eq!(of_sub.matches("<tr data-turn=").count(), 1);
    // The form of the time zone names the session in a field.
    for to in targets(path, &text).into_iter().filter(|to| to != "/session") {
        assert_eq!(gateway.admin(to.trim_end_matches("#turns")).status(), 200, "{to}");
    }
}

#[test]
fn a_name_that_two_tenants_use_is_two_sessions_and_requests_lead_back_to_theirs() {
    let (_engine, gateway) = with_sessions();
    let both = page(&gateway.admin("/session?name=task"));
    assert!(both.contains("&lt;b&gt;zeta") && both.contains("<bdi>acme</bdi>"), "{both}");
    let mut seen = 0;
    for record in gateway.records() {
        let path = format!("/requests/{}", record["id"].as_str().expect("an id"));
        let text = page(&gateway.admin(&path));
        let to = targets(&path, &text);
        let to = to.iter().find(|to| to.starts_with("/session?")).expect("its session");
        let cost = gateway.admin(to);
        let requests = figure(cost.text(), "data-total=\"requests\"").to_owned();
        assert_eq!(requests, if record["tenant"] == "acme" { "5" } else { "1" });
        seen += 1;
    }
    assert_eq!(seen, TASK.len());
}
