//! The page *Usage*: its figures are those of the API and of the bill, each line leads to its
//! requests, and names of keys and labels are shown as names.

use serde_json::Value;
use taximeter_tests::postgres::Server;

use super::{figure, page};
use crate::api::{Description, TERMS, await_store, bill, list};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;

/// The label with a comma in its name.
const CENTRE: &str = r"label:cost\, centre";
/// What the page is asked to split by.
const SPLITS: [&str; 7] =
    ["key", "key,tenant", "label:team", CENTRE, "model", "tenant", "upstream,label:team,model"];
const BASE: &str = "sk-test-";

/// A gateway with three keys of two tenants. Two keys have labels; the fourth caller has no key.
fn with_keys(more: &str) -> (Engine, Gateway) {
    let engine = Engine::start();
    let key = |id: &str, tenant: &str, labels: &str| {
        let hash = sha256(&format!("{BASE}{id}"));
        format!("    - {{id: {id}, tenant: {tenant}, sha256: \"{hash}\", labels: {labels}}}\n")
    };
    let keys = [
        key("prod", "acme", r#"{team: search, "cost, centre": "<b>42</b>"}"#),
        key("batch", "acme", r#"{team: ads}"#),
        key("zeta-1", "zeta", "{}"),
    ];
    let tenants =
        format!("tenants:\n  unknown: guest\n  keys:\n{}  {TERMS}\n{more}", keys.concat());
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    let unpriced = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "home-grown");
    for (id, answer) in [
        (Some("prod"), CHAT_ANSWER),
        (Some("prod"), CHAT_ANSWER),
        (Some("batch"), CHAT_ANSWER),
        (Some("batch"), &unpriced),
        (Some("zeta-1"), CHAT_ANSWER),
        (None, CHAT_ANSWER),
    ] {
        let header = id.map(|id| format!("Authorization: Bearer {BASE}{id}\r\n"));
        let mut client = gateway.chat(&header.unwrap_or_default(), CHAT);
        engine.answer_once(&json_answer(answer));
        assert_eq!(client.answer().status(), 200);
    }
    await_store(&gateway);
    (engine, gateway)
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// The rows of a table's body.
fn rows(page: &str) -> Vec<&str> {
    let (_, body) = page.split_once("<tbody>").expect("a table");
    let (body, _) = body.split_once("</tbody>").expect("its end");
    body.split("<tr>").skip(1).collect()
}

/// The exact values of a row, from the left.
fn values(row: &str) -> Vec<&str> {
    row.split("<data value=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Holds the page against the usage API and the bill, for one split.
fn figures_agree(gateway: &Gateway, by: &str) {
    let text = page(&gateway.admin(&format!("/usage?by={}", encoded(by))));
    let usage = gateway.admin(&format!("/api/v1/usage?by={}", encoded(by)));
    let usage = Description::of(gateway).checked("/api/v1/usage", &usage);
    let billed = bill(gateway, &["--by", by]);
    let (rows, lines) = (rows(&text), list(&usage["lines"]));
    assert_eq!((rows.len(), list(&billed["rows"]).len()), (lines.len(), lines.len()), "{by}");
    for ((row, line), billed) in rows.iter().zip(lines).zip(list(&billed["rows"])) {
        let sums = &line["requests"];
        let mut told = vec![line["contracted_cost"].as_str().map(str::to_owned)];
        let counts =
            ["count", "input_tokens", "cache_read_input_tokens", "output_tokens", "unknown_cost"];
        told.extend(counts.map(|count| Some(sums[count].to_string())));
        let told: Vec<_> = told.into_iter().flatten().collect();
        assert_eq!(values(row), told, "{by}: {line}");
        assert_eq!(billed["cost"], line["contracted_cost"], "{by}");
        assert_eq!(billed["requests"], sums["count"], "{by}");
        for (name, value) in line["keys"].as_object().expect("keys") {
            assert_eq!(&billed[name], value, "{by}");
        }
    }
    assert_eq!(
        Value::from(figure(&text, "data-total=\"contracted\"")),
        usage["total"]["contracted_cost"],
        "{by}"
    );
    let (_, link) = text.split_once("data-api=\"usage\" href=\".").expect("a link to the API");
    let link = link.split('"').next().expect("its end").replace("&amp;", "&");
    assert_eq!(gateway.admin(&link).json()["lines"], usage["lines"], "{link}");
    let (_, link) = text.split_once("<a download href=\".").expect("a link to the export");
    let link = link.split('"').next().expect("its end").replace("&amp;", "&");
    let csv = gateway.admin(&link);
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"), "{link}");
    assert!(csv.text().lines().count() > lines.len(), "{link}: {}", csv.text());
}

#[test]
fn usage_by_key_and_label_is_that_of_the_api_and_the_bill() {
    let (_engine, gateway) = with_keys("");
    for by in SPLITS {
        figures_agree(&gateway, by);
    }
    let of_acme = page(&gateway.admin("/usage?by=key&tenant=acme"));
    assert_eq!(rows(&of_acme).len(), 2, "acme has two keys");
}

#[test]
fn a_store_in_postgresql_tells_the_same_usage() {
    let server = Server::start(&[]).expect("a PostgreSQL server");
    let url = server.url(&server.database().expect("a database"));
    let (_engine, gateway) = with_keys(&format!("ledger: {{store: \"{url}\"}}"));
    for by in ["key,tenant", "label:team", CENTRE] {
        figures_agree(&gateway, by);
    }
}

#[test]
fn each_line_leads_to_its_requests() {
    let (_engine, gateway) = with_keys("");
    for by in SPLITS {
        let text = page(&gateway.admin(&format!("/usage?by={}", encoded(by))));
        for row in rows(&text) {
            let (_, link) = row.split_once("<a href=\".").expect("a link");
            let link = link.split('"').next().expect("its end").replace("&amp;", "&");
            assert!(link.starts_with("/requests?"), "{link}");
            let found = page(&gateway.admin(&link));
            let requests: usize =
                values(row)[usize::from(values(row).len() > 5)].parse().expect("a count");
            assert_eq!(found.matches("<a href=\"./requests/").count(), requests, "{by}: {link}");
        }
    }
}

#[test]
fn records_are_found_by_key_and_label() {
    let (_engine, gateway) = with_keys("");
    let description = Description::of(&gateway);
    for (query, count) in [
        ("key=prod", 2),
        ("key=prod&tenant=zeta", 0),
        ("label=team%3Dads", 2),
        ("label=team%3D", 0),
        ("label=cost,%20centre%3D%3Cb%3E42%3C/b%3E", 2),
        ("without=key", 1),
        ("without=label:team", 2),
        ("without=label:team,key", 1),
        (r"without=label:cost%5C,%20centre", 4),
    ] {
        let found = gateway.admin(&format!("/api/v1/records?{query}"));
        let found = description.checked("/api/v1/records", &found);
        assert_eq!(list(&found["records"]).len(), count, "{query}");
    }
}

#[test]
fn a_cost_that_is_unknown_is_no_zero() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let mut client = gateway.chat("", CHAT.replace("gpt-4o-mini", "home-grown"));
    engine.answer_once(&json_answer(CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", "home-grown")));
    assert_eq!(client.answer().status(), 200);
    await_store(&gateway);
    let text = page(&gateway.admin("/usage?by=model"));
    let (_, total) = text.split_once("data-total=\"contracted\">").expect("a total");
    assert!(total.starts_with("<span class=\"unknown\">unknown</span>"), "{total}");
    assert_eq!(values(rows(&text)[0]), ["1", "1000", "400", "100", "1"]);
}

#[test]
fn names_of_labels_are_names_and_have_a_link() {
    let (_engine, gateway) = with_keys("");
    let text = page(&gateway.admin("/usage"));
    assert!(text.contains("<bdi>cost, centre</bdi>"), "{text}");
    let (_, link) = text.split_once("href=\"./usage?by=label%3Acost").expect("a link");
    let link = link.split('"').next().expect("its end");
    let split = page(&gateway.admin(&format!("/usage?by=label%3Acost{link}")));
    assert!(split.contains("<bdi>&lt;b&gt;42&lt;/b&gt;</bdi>"), "{split}");
    assert!(!split.contains("<b>42"), "{split}");
    assert!(split.contains("<span class=\"none\">none</span>"), "requests without the label");
}

#[test]
fn a_period_without_requests_says_so_and_a_split_that_makes_no_sense_is_refused() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let empty = page(&gateway.admin("/usage?span=last-month"));
    assert!(empty.contains("No request of this period is billed."), "{empty}");
    assert!(empty.contains("No request of this period has a label."), "{empty}");
    for by in ["day", "meter", "key,key", "label:a,label:b", "label:", "colour"] {
        let refused = gateway.admin(&format!("/usage?by={by}"));
        let problem = refused.json();
        assert_eq!((refused.status(), &problem["parameter"]), (400, &"by".into()), "{by}");
        assert!(problem["allowed"].as_str().is_some_and(|names| names.contains("label:NAME")));
    }
    let beyond = page(&gateway.admin("/usage?page=2"));
    assert!(beyond.contains("No request of this period is billed."), "{beyond}");
    assert_eq!(gateway.admin("/usage?page=0").status(), 400);
}

#[test]
fn more_lines_than_a_page_holds_follow_on_further_pages() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let models = 61;
    for model in 0..models {
        let asked = CHAT.replace("gpt-4o-mini", &format!("m{model}"));
        let answer = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", &format!("m{model}"));
        let mut client = gateway.chat("Connection: close\r\n", asked);
        engine.answer_once(&json_answer(answer));
        assert_eq!(client.answer().status(), 200);
    }
    await_store(&gateway);
    let first = page(&gateway.admin("/usage?by=model"));
    assert_eq!(rows(&first).len(), 60);
    assert!(!first.contains("rel=\"prev\""), "{first}");
    let (_, next) = first.split_once("rel=\"next\" href=\".").expect("a next page");
    let next = next.split('"').next().expect("its end").replace("&amp;", "&");
    let second = page(&gateway.admin(&next));
    assert_eq!((rows(&second).len(), next.as_str()), (1, "/usage?by=model&page=2"));
    assert!(second.contains("rel=\"prev\" href=\"./usage?by=model\""), "{second}");
    assert!(!second.contains("rel=\"next\""), "{second}");
}
