//! The console: pages that are whole, keep to their own files, say what the API says, and show
//! whatever names come as names.

mod sessions;
mod usage;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{BY_HEADER, await_store, list, metered, with};
use crate::client::ask;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, bare, json_answer, stream_answer};

/// Most bytes of a page.
const PAGE_BYTES_MAX: usize = 100 << 10;
/// What a browser asks for.
const BROWSER: &str = "Accept: text/html,application/xhtml+xml\r\n";
/// Elements that have no end.
const VOID: [&str; 5] = ["br", "meta", "link", "input", "img"];

/// The pages, and that of every record.
fn pages(gateway: &Gateway) -> Vec<String> {
    let mut pages: Vec<_> = [
        "/",
        "/?span=day&by=model",
        "/?span=week&by=upstream&zone=Asia%2FKolkata",
        "/?from=2020-01-01&to=2025-12-31&by=provider&tenant=acme&zone=America%2FNew_York",
        "/live",
        "/requests",
        "/requests?tenant=acme&model=&end=complete&order=oldest",
        "/sessions",
        "/sessions?span=week&top=latest&tenant=acme&zone=Asia%2FTokyo",
        "/usage",
        "/usage?span=day&by=label%3Ateam&tenant=acme",
        "/usage?by=upstream,model,tenant&zone=Asia%2FKolkata",
        "/bill",
        "/bill?month=2024-02&tenant=acme",
        "/prices",
        "/prices?contains=gpt",
        "/prices?model=gpt-4o-mini",
        "/upstreams",
        "/fleet",
    ]
    .map(str::to_owned)
    .into();
    let records = gateway.admin("/api/v1/records").json();
    let ids = list(&records["records"]).iter().map(|record| record["id"].as_str().expect("an id"));
    pages.extend(ids.map(|id| format!("/requests/{id}")));
    pages
}

/// A page, if it is one and whole; its text.
pub(super) fn page(answer: &Message) -> String {
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let policy = answer.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let text = answer.text();
    assert!(text.len() <= PAGE_BYTES_MAX, "{} bytes", text.len());
    assert!(text.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    let mut open = Vec::new();
    for tag in text.split('<').skip(2) {
        let (tag, _) = tag.split_once('>').expect("a tag that ends");
        let name = tag.split([' ', '\n']).next().expect("a name");
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "it ends what began last");
        } else {
            let inline = |word: &str| word.contains('=') && word.starts_with("on");
            let inline = tag.contains(" style=") || tag.split(' ').any(inline);
            assert!(!inline, "nothing inline: {tag}");
            for address in links(tag) {
                let own = address.starts_with("./") || address.starts_with("../");
                assert!(own || address.starts_with('#'), "only what is ours: {tag}");
            }
            if !VOID.contains(&name) {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty(), "everything ends: {open:?}");
    text.to_owned()
}

/// The addresses in a page, as they stand there.
fn links(page: &str) -> impl Iterator<Item = String> + '_ {
    let names = [" href=\"", " src=\"", " action=\"", " data-events=\""];
    names.into_iter().flat_map(|name| {
        let ends = page.split(name).skip(1).filter_map(|rest| rest.split_once('"'));
        ends.map(|(address, _)| address.replace("&amp;", "&"))
    })
}

/// Where a browser goes from a page at `path`.
fn resolved(path: &str, link: &str) -> String {
    let path = path.split_once('?').map_or(path, |(path, _)| path);
    let mut folders: Vec<_> = path.split('/').collect();
    folders.pop();
    let mut rest = link;
    while let Some((step, behind)) = rest.split_once('/').filter(|(step, _)| step.starts_with('.'))
    {
        if step == ".." {
            folders.pop();
        }
        rest = behind;
    }
    format!("{}/{rest}", folders.join("/"))
}

#[test]
fn every_link_keeps_to_the_prefix_under_which_a_proxy_serves_the_console() {
    const PREFIX: &str = "/teams/taxi";
    let (_engine, gateway) = metered();
    let mut seen = BTreeSet::new();
    let mut asked = pages(&gateway);
    while let Some(path) = asked.pop() {
        if !seen.insert(path.clone()) || seen.len() > 200 {
            continue;
        }
        let answer = gateway.admin(&path);
        assert_eq!(answer.status(), 200, "{path}");
        if answer.header("content-type") != Some("text/html; charset=utf-8") {
            continue;
        }
        for link in links(answer.text()).filter(|link| !link.starts_with('#')) {
            let target = resolved(&format!("{PREFIX}{path}"), &link);
            let target = target.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{path}: {link}"));
            // Streams and files do not end, or are long.
            if target.starts_with("/api/v1/live/events") || target.starts_with("/api/v1/export") {
                assert!(answer.text().contains(&link.replace('&', "&amp;")));
            } else {
                asked.push(target.to_owned());
            }
        }
    }
    for expected in ["/", "/live", "/bill", "/console/style.css", "/metrics", "/api/v1/status"] {
        assert!(seen.contains(expected), "{expected} is linked: {seen:?}");
    }
    let script = gateway.admin("/console/live.js");
    assert!(!script.text().contains("\"/"), "its addresses are relative to itself");
    let html = "Accept: text/html\r\nConnection: close\r\n";
    for path in ["/nowhere", "/no/such/page", "/requests/0"] {
        let problem = ask(gateway.admin_address(), &bare("GET", path, html));
        assert!(problem.status() >= 400, "{path}");
        for link in links(problem.text()).filter(|link| !link.starts_with('#')) {
            let target = resolved(&format!("{PREFIX}{path}"), &link);
            let target = target.strip_prefix(PREFIX).unwrap_or_else(|| panic!("{path}: {link}"));
            assert_eq!(gateway.admin(target).status(), 200, "{path}: {link}");
        }
    }
}

/// The exact value behind the figure that is marked so.
fn figure<'a>(page: &'a str, mark: &str) -> &'a str {
    let rest = page.split_once(mark).expect("the mark").1;
    let value = rest.split_once("value=\"").expect("a value").1;
    value.split_once('"').expect("its end").0
}

#[test]
fn every_page_is_whole_and_keeps_to_its_own_files() {
    let (_engine, gateway) = metered();
    for path in pages(&gateway) {
        let answer = gateway.admin(&path);
        assert_eq!(answer.status(), 200, "{path}");
        page(&answer);
    }
    for (path, kind) in [
        ("/console/style.css", "text/css; charset=utf-8"),
        ("/console/live.js", "text/javascript; charset=utf-8"),
        ("/console/icon.svg", "image/svg+xml"),
    ] {
        let file = gateway.admin(path);
        assert_eq!((file.status(), file.header("content-type")), (200, Some(kind)));
        assert!(!file.text().contains("//fonts") && !file.text().contains("https://"), "{path}");
    }
}

#[test]
fn a_gateway_without_requests_has_pages_too() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for path in pages(&gateway) {
        let answer = gateway.admin(&path);
        assert_eq!(answer.status(), 200, "{path}");
        page(&answer);
    }
    let overview = page(&gateway.admin("/"));
    assert!(overview.contains("No request of this period is billed."));
}

#[test]
fn figures_are_those_of_the_api() {
    let (_engine, gateway) = metered();
    let usage = gateway.admin("/api/v1/usage?by=tenant").json();
    let (total, requests) = (&usage["total"], &usage["total"]["requests"]);
    for path in ["/", "/?zone=Europe%2FBerlin&by=model", "/?span=day", "/?span=week&by=upstream"] {
        let overview = page(&gateway.admin(path));
        let shown = |mark: &str| figure(&overview, &format!("data-{mark}")).to_owned();
        assert_eq!(Value::from(shown("total=\"billed\"")), total["billed_cost"], "{path}");
        for (mark, member) in [
            ("total=\"requests\"", "count"),
            ("total=\"input\"", "input_tokens"),
            ("total=\"output\"", "output_tokens"),
            ("source=\"reported\"", "reported"),
            ("source=\"counted\"", "counted"),
            ("source=\"unknown\"", "unknown_usage"),
        ] {
            assert_eq!(shown(mark), requests[member].to_string(), "{path} {member}");
        }
        for line in list(&usage["lines"]) {
            let name = line["keys"]["tenant"].as_str().expect("a tenant");
            let cost = figure(&overview, &format!("<bdi>{name}</bdi></a></th>"));
            assert_eq!(Value::from(cost), line["contracted_cost"], "{path} {name}");
        }
    }
    let bill = page(&gateway.admin("/bill"));
    assert_eq!(Value::from(figure(&bill, "data-total=\"billed\"")), total["billed_cost"]);
    assert!(bill.contains("<span data-status=\"provisional\">provisional: up to "), "{bill}");
    let zeta = page(&gateway.admin("/?tenant=zeta"));
    let of_zeta = gateway.admin("/api/v1/usage?tenant=zeta").json();
    let billed = Value::from(figure(&zeta, "data-total=\"billed\""));
    assert_eq!(billed, of_zeta["total"]["billed_cost"]);
}

#[test]
fn gaps_between_chunks_are_those_of_the_period_and_the_tenant_that_are_shown() {
    let engine = Engine::start();
    let tenants = format!("tenants: {{{BY_HEADER}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    for (tenant, events) in [
        ("acme", [HELLO, WORLD, WORLD, STOP, USAGE, DONE].as_slice()),
        ("zeta", &[HELLO, WORLD, STOP, USAGE, DONE]),
        ("zeta", &[HELLO, STOP, USAGE, DONE]),
    ] {
        let mut client =
            gateway.chat(&format!("x-tenant-id: {tenant}\r\nConnection: close\r\n"), STREAM_CHAT);
        engine.answer_once(&stream_answer(events));
        assert_eq!(client.answer().status(), 200);
    }
    await_store(&gateway);
    let told = gateway.records().into_iter().map(|record| {
        let gaps = record["timing"]["gaps"].as_array().map(Vec::as_slice).unwrap_or_default();
        gaps.iter().map(|gaps| gaps.as_u64().expect("a count")).sum::<u64>()
    });
    assert_eq!(told.collect::<Vec<_>>(), [2, 1, 0]);
    for (path, gaps) in
        [("/", "3"), ("/?tenant=acme", "2"), ("/?tenant=zeta", "1"), ("/?span=last-month", "0")]
    {
        assert_eq!(figure(&page(&gateway.admin(path)), "data-samples=\"gaps\""), gaps, "{path}");
    }
}

#[test]
fn the_timeline_of_a_request_is_the_stages_of_its_record_one_behind_the_other() {
    let (_engine, gateway) = metered();
    for record in gateway.records() {
        let id = record["id"].as_str().expect("an id");
        let text = page(&gateway.admin(&format!("/requests/{id}")));
        let number = |text: &str| text.parse::<f64>().expect("seconds");
        let rows = text.split("<tr data-stage=\"").skip(1).map(|row| {
            let (word, row) = row.split_once('"').expect("a word");
            let cells: Vec<_> = row.split("<data value=\"").skip(1).take(3).collect();
            let cells = cells.iter().map(|cell| number(cell.split('"').next().expect("a value")));
            (word.to_owned(), cells.collect::<Vec<_>>())
        });
        let rows: Vec<_> = rows.collect();
        let stages = record["timing"]["stages"].as_object().expect("stages");
        assert_eq!(rows.len(), stages.len(), "{stages:?}");
        let mut at = 0.0_f64;
        for (word, cells) in &rows {
            let [from, to, took] = cells[..] else { panic!("{word}: {cells:?}") };
            assert_eq!(stages[word].as_f64(), Some(took), "{word}");
            assert!((from - at).abs() < 1e-9 && (to - from - took).abs() < 1e-9, "{rows:?}");
            at = to;
        }
        assert!((number(figure(&text, "data-total=\"time\"")) - at).abs() < 1e-9);
        let settle = stages["settle"].as_f64().expect("seconds");
        let duration = record["timing"]["duration"].as_f64().expect("seconds");
        assert!((at - settle - duration).abs() < 2e-6, "{record}");
    }
}

#[test]
fn the_unknown_is_said_and_is_no_zero() {
    let (_engine, gateway) = metered();
    for record in gateway.records() {
        let path = format!("/requests/{}", record["id"].as_str().expect("an id"));
        let text = page(&gateway.admin(&path));
        let (_, cost) = text.split_once("class=\"digits\">").expect("the cost");
        match record["cost"]["amount"].as_str() {
            Some(_) => {
                let amount = figure(cost, "data-total=\"cost\"");
                let (shown, exact) = (amount.parse::<f64>(), record["cost"]["amount"].as_str());
                assert_eq!(shown.ok(), exact.and_then(|exact| exact.parse().ok()));
            }
            None => assert!(cost.starts_with("<span class=\"unknown\">unknown</span>"), "{cost}"),
        }
    }
    let overview = page(&gateway.admin("/"));
    assert!(overview.contains("Requests of unknown cost: <data value=\"1\">1</data>"));
}

#[test]
fn names_are_shown_as_names_whatever_they_are() {
    let engine = Engine::start();
    let tenants = format!("tenants: {{{BY_HEADER}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    let long = "<b>".repeat(100_000);
    // What is asked for has no control characters and is short; what answers may be anything.
    for (asked, answered) in [
        ("<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
        ("\\\"><script>alert(2)</script>", "\\\"><script>alert(2)</script>"),
        ("reversed", "\\u202egnp.elif\\u0000\\u001b[31m"),
        ("שלום <i>", "שלום <i>"),
        ("long", &long),
    ] {
        let mut client = gateway.chat(
            "x-tenant-id: acme&co'\r\nx-request-id: <u>id</u>\r\n",
            CHAT.replace("gpt-4o-mini", asked),
        );
        engine.answer_once(&json_answer(CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", answered)));
        assert_eq!(client.answer().status(), 200);
    }
    await_store(&gateway);
    let mut paths = pages(&gateway);
    paths.extend(
        [
            "/?by=model",
            "/usage?by=model",
            "/usage?tenant=%3Cb%3E%3Ci%3E&by=label%3A%3Cscript%3E",
            "/requests?model=%3Cimg+src%3Dx%3E&key=%3Ci%3E&label=%3Cu%3E%3D&without=key",
            "/bill?tenant=%3Cb%3E",
        ]
        .map(str::to_owned),
    );
    for path in paths {
        let text = page(&gateway.admin(&path));
        for hostile in ["<img src=x", "<b><b>", "<i>", "<u>", "\u{202e}", "\u{1b}", "<script>"] {
            assert!(!text.contains(hostile), "{path} has {hostile}");
        }
    }
    let overview = page(&gateway.admin("/?by=model"));
    assert!(overview.contains("<bdi>&lt;img src=x onerror=alert(1)&gt;</bdi>"));
    assert!(overview.contains("<bdi>\u{fffd}gnp.elif\u{fffd}\u{fffd}[31m</bdi>"));
    assert!(overview.contains("<bdi>acme&amp;co'</bdi>"));
}

#[test]
fn what_cannot_be_shown_is_said_on_a_page_to_people_and_as_a_problem_to_programs() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    for (path, status, said) in [
        ("/nothing", 404, "the admin address has no /nothing"),
        ("/requests/1", 404, "there is no record"),
        ("/?zone=Mars", 400, "Europe/Berlin"),
        ("/?span=century", 400, "last-month"),
        ("/?by=colour", 400, "upstream"),
        ("/?colour=red", 400, "colour"),
        ("/?from=2026-11-02&to=2026-11-01", 400, "not after its start"),
        ("/?from=1990-01-01&to=2026-01-01", 422, "shorter period"),
        ("/bill?month=1", 400, "2026-11"),
        ("/requests?limit=101", 400, "from 1 to 100"),
        ("/requests?label=team", 400, "team=search"),
        ("/sessions?top=cheapest", 400, "cost, length, latest"),
        ("/session", 400, "the name of a session"),
        ("/session?name=nobody", 404, "there is no session"),
        ("/session?name=nobody&page=0", 400, "from 1 to"),
        ("/usage?by=colour", 400, "label:NAME"),
    ] {
        let shown = with(&gateway, path, BROWSER);
        assert_eq!(shown.status(), status, "{path}");
        assert!(page(&shown).contains(said), "{path}: {}", shown.text());
        let problem = gateway.admin(path);
        assert_eq!(problem.header("content-type"), Some("application/problem+json"), "{path}");
        assert_eq!(problem.json()["status"], status);
    }
    let api = with(&gateway, "/api/v1/usage?month=x", BROWSER);
    assert_eq!(api.header("content-type"), Some("application/problem+json"));
}

#[test]
fn where_there_is_a_token_pages_need_it_and_say_so() {
    let engine = Engine::start();
    let token = "admin_token: correct-horse-battery";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(token).start();
    let basic = format!("{BROWSER}Authorization: Basic OmNvcnJlY3QtaG9yc2UtYmF0dGVyeQ==\r\n");
    for path in [
        "/",
        "/live",
        "/requests",
        "/requests/1",
        "/sessions",
        "/session?name=x",
        "/usage",
        "/bill",
        "/prices",
        "/upstreams",
        "/fleet",
    ] {
        let refused = with(&gateway, path, BROWSER);
        assert_eq!(refused.status(), 401, "{path}");
        assert!(page(&refused).contains("admin_token"));
        let challenges = refused.headers.iter().filter(|(name, _)| name == "www-authenticate");
        assert_eq!(challenges.count(), 2, "{path}");
        assert_ne!(with(&gateway, path, &basic).status(), 401, "{path}");
    }
    assert_eq!(with(&gateway, "/console/style.css", "").status(), 200, "for the page above");
    assert_eq!(with(&gateway, "/console/../api/v1/status", "").status(), 404, "no way around");
}

#[test]
fn pages_of_requests_follow_each_other() {
    let (_engine, gateway) = metered();
    let (mut path, mut seen) = ("/requests?limit=1&zone=Asia%2FTokyo".to_owned(), BTreeSet::new());
    loop {
        let text = page(&gateway.admin(&path));
        let row = text.split_once("<tbody>").expect("rows").1;
        let id = row.split_once("/requests/").expect("a link").1;
        assert!(seen.insert(id.split_once('?').expect("its zone").0.to_owned()), "each once");
        let Some((_, next)) = text.split_once("rel=\"next\" href=\"") else { break };
        path = resolved(&path, &next.split_once('"').expect("its end").0.replace("&amp;", "&"));
        assert!(path.contains("zone=Asia%2FTokyo"), "{path}");
    }
    assert_eq!(seen.len(), 4);
}
