//! The page of a session, from requests.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{End, RequestId, RequestKind};
use taximeter_sessions::{Price, Request, Session, SessionBuilder};

use super::turns::PAGE_TURNS;
use super::*;

/// Most bytes of a page.
const PAGE_BYTES_MAX: usize = 100 << 10;
/// Most bytes of what is around its main part.
const FRAME_BYTES_MAX: usize = 4 << 10;

/// A request with this number, a minute after the one before it.
fn request(number: u64, agent: &str, parent: Option<&str>) -> Request {
    let started_at: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
    let started_at = started_at + SignedDuration::from_mins(i64::try_from(number).unwrap());
    let id = format!("00000000-0000-7000-8000-{number:012}");
    Request {
        id: id.parse::<RequestId>().unwrap(),
        started_at,
        ended_at: started_at + SignedDuration::from_secs(2),
        end: End::Complete,
        status: Some(200),
        agent: Some(agent.to_owned()),
        parent_agent: parent.map(str::to_owned),
        turn: Some(format!("turn-of-{number}")),
        kind: None,
        client: Some("codex/0.169".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(1000 * (number + 1)),
        cache_read_input_tokens: Some(900 * number),
        output_tokens: Some(10),
        usage_is_unknown: false,
        is_free: false,
        price: cost("0.25"),
        time_to_first_token: Some(0.5),
        longest_stall: Some(0.25),
        tools: BTreeMap::new(),
        units: BTreeMap::new(),
    }
}

fn cost(amount: &str) -> Price {
    Price { known: Some(amount.parse().unwrap()), is_whole: true, currency: Some("USD".to_owned()) }
}

fn session(requests: impl IntoIterator<Item = Request>) -> Session {
    named("s-1", requests)
}

fn named(name: &str, requests: impl IntoIterator<Item = Request>) -> Session {
    let mut builder = SessionBuilder::default();
    requests.into_iter().for_each(|request| builder.add(request));
    builder.finish("acme", name).unwrap()
}

/// The page of a session at an address.
fn page(session: &Session, uri: &str, which: Which<'_>) -> String {
    let answer = SessionAnswer { sessions: Vec::new(), details_from: None, pending_entries: 0 };
    one(&answer, session, &View::of(uri), which).into_string()
}

fn first_page(session: &Session) -> String {
    page(session, "/session?name=s-1", Which { agent: None, page: None })
}

/// The text of a part of a page, without its elements.
fn words(page: &str) -> String {
    let mut is_text = true;
    let keep = |character: &char| {
        let shown = is_text && *character != '<';
        is_text = if is_text { *character != '<' } else { *character == '>' };
        shown
    };
    page.chars().filter(keep).collect()
}

/// A root with two sub-agents, a retry and a compaction.
fn task() -> Vec<Request> {
    let mut failed = request(2, "search", Some("root"));
    (failed.end, failed.status, failed.price) = (End::UpstreamError, Some(502), cost("1.5"));
    failed.turn = Some("s-1".to_owned());
    let mut again = request(3, "search", Some("root"));
    again.started_at = failed.ended_at + SignedDuration::from_secs(3);
    (again.input_tokens, again.turn) = (failed.input_tokens, failed.turn.clone());
    let mut dear = request(4, "write", Some("root"));
    dear.price = cost("8");
    (dear.input_tokens, dear.cache_read_input_tokens) = (Some(180_000), Some(9_000));
    dear.longest_stall = Some(4.5);
    dear.tools = [("exec".to_owned(), 3), ("read".to_owned(), 1)].into();
    let mut compaction = request(5, "root", None);
    (compaction.kind, compaction.price) = (Some(RequestKind::Compaction), cost("0.75"));
    vec![request(1, "root", None), failed, again, dear, compaction, request(6, "root", None)]
}

#[test]
fn what_made_it_dear_is_said_before_all_tables() {
    let page = first_page(&session(task()));
    let (first, rest) = page.split_once("<table>").unwrap();
    let first = words(first);
    for said in [
        "11.00",
        "The dearest agent is write: 8.0000 USD (72.7 %) for 1 request in 1 turn.",
        "The dearest turn is turn 3 of write: 8.0000 USD (72.7 %), with a context of 180,000 tokens. \
         The cache had 5 % of its input.",
        "Waste: 2.2500 USD (20.5 %) in 2 requests: retried 1.5000, compaction 0.7500.",
    ] {
        assert!(first.contains(said), "{said}: {first}");
    }
    let rest = words(rest);
    for said in ["exec × 3, read × 1", "compaction", "again in this request", "4.50 s", "1 failed"]
    {
        assert!(rest.contains(said), "{said}: {rest}");
    }
    let failed = "./requests/00000000-0000-7000-8000-000000000002\"";
    assert!(page.matches(failed).count() >= 2, "in its turn and as waste");
}

#[test]
fn agents_stand_below_the_one_that_they_work_for() {
    let page = first_page(&session(task()));
    let agents = page.split_once("id=\"agents\"").unwrap().1.split_once("</table>").unwrap().0;
    let order: Vec<_> = agents
        .split("<th scope=\"row\" class=\"indent-")
        .skip(1)
        .map(|row| {
            (&row[..1], words(row.split_once('>').unwrap().1.split_once("</th>").unwrap().0))
        })
        .collect();
    let expected = [("0", "root"), ("1", "└ search"), ("1", "└ write")];
    assert_eq!(order, expected.map(|(depth, name)| (depth, name.to_owned())));
}

#[test]
fn a_cost_that_nobody_knows_is_no_zero() {
    let mut unknown = request(1, "root", None);
    (unknown.price, unknown.input_tokens) = (Price::default(), None);
    let page = first_page(&session([unknown.clone()]));
    assert!(page.contains("<p class=\"digits\"><span class=\"unknown\">unknown</span>"), "{page}");
    let page = first_page(&session([unknown, request(2, "root", None)]));
    let digits = page.split_once("class=\"digits\">").unwrap().1;
    assert!(digits.starts_with("≥ <span data-total=\"cost\"><data value=\"0.25\">"), "{digits}");
    assert!(words(&page).contains("Requests of unknown cost: 1."));
}

#[test]
fn names_are_text_whatever_they_are() {
    let hostile = "<script>alert(1)</script>\"'><img src=x>";
    let mut all = task();
    for request in &mut all {
        request.turn = Some(hostile.to_owned());
        request.client = Some(hostile.to_owned());
        request.model = Some(hostile.to_owned());
        request.tools = [(hostile.to_owned(), 2)].into();
        request.price.currency = Some("<i>".to_owned());
        request.units = [(hostile.to_owned(), 1.into())].into();
    }
    all[3].agent = Some(hostile.to_owned());
    all[4].parent_agent = Some(format!("{hostile}2"));
    all[0].parent_agent = Some(hostile.to_owned());
    let session = named(hostile, all);
    for agent in [None, Some(hostile), Some("<i>nobody")] {
        let page = page(&session, "/session?name=x&zone=Asia/Tokyo", Which { agent, page: None });
        for element in ["<script", "<img", "<i>", "\"'>", "alert(1)</script>"] {
            assert!(!page.contains(element), "{element} in {page}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    }
    let names = choice(&[session.clone(), session], &View::of("/session?name=x")).into_string();
    assert!(!names.contains("<script"), "{names}");
}

#[test]
fn a_page_is_bounded_however_long_the_session_and_its_names_are() {
    let long = |number: u64| format!("{:/<120}{number:08}", "");
    let chain = (0..20_000_u64).map(|number| {
        let parent = number.checked_sub(1).map(long);
        let mut request = request(number % 1000, &long(number), parent.as_deref());
        request.id = format!("00000000-0000-7000-8000-{number:012}").parse().unwrap();
        request.turn = Some(long(number % 50));
        request.client = Some(long(number));
        request.model = Some(long(number));
        request.tools = (0..30).map(|tool| (format!("{}{tool:02}", "<".repeat(62)), 1)).collect();
        request.end = if number % 2 == 0 { End::ClientLeft } else { End::UpstreamError };
        request
    });
    let session = named(&long(0), chain);
    assert_eq!(session.agents.last().unwrap().depth, 19_999, "a chain");
    for page_number in [None, Some(1), Some(500), Some(2500)] {
        let which = Which { agent: None, page: page_number };
        let page = page(&session, "/session?name=x&zone=America/Argentina/Buenos_Aires", which);
        assert!(page.len() < PAGE_BYTES_MAX - FRAME_BYTES_MAX, "{} bytes", page.len());
    }
}

#[test]
fn every_turn_is_on_one_page_and_the_dearest_are_on_the_first() {
    let turns = PAGE_TURNS * 2 + 5;
    let dear = |number: u64| number.is_multiple_of(7);
    let all = (1..=turns as u64).map(|number| Request {
        price: cost(if dear(number) { "3" } else { "0.5" }),
        ..request(number, if number % 2 == 0 { "even" } else { "odd" }, None)
    });
    let session = session(all);
    let shown = |agent, number| {
        let page = page(&session, "/session?name=s-1", Which { agent, page: number });
        let rows = page.split("<tr data-turn=\"").skip(1);
        rows.map(|row| row.split_once('"').unwrap().0.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    let pages: Vec<_> = (1..=4).flat_map(|page| shown(None, Some(page))).collect();
    assert_eq!(pages, (1..=turns as u64).collect::<Vec<_>>());
    let dearest = shown(None, None);
    assert_eq!(dearest.len(), PAGE_TURNS);
    assert!(dearest.is_sorted());
    assert!((1..=turns as u64).filter(|number| dear(*number)).all(|turn| dearest.contains(&turn)));
    let even: Vec<_> = (1..=2).flat_map(|page| shown(Some("even"), Some(page))).collect();
    assert_eq!(even, (1..=turns as u64).filter(|turn| turn % 2 == 0).collect::<Vec<_>>());
}

#[test]
fn a_chart_has_few_columns_and_does_not_add_contexts_up() {
    let all = (1..=130).map(|number| {
        let agent = if number % 2 == 0 { "even" } else { "odd" };
        Request { input_tokens: Some(number * 10), ..request(number, agent, None) }
    });
    let page = first_page(&session(all));
    let chart = page.split_once("aria-label=\"Context by turn, in tokens\"").unwrap().1;
    let titles: Vec<_> = chart.split_once("</svg>").unwrap().0.split("<title>").skip(1).collect();
    assert_eq!(titles.len(), 130_usize.div_ceil(4));
    assert!(titles[0].starts_with("turns 1 to 4: 40 tokens<"), "{}", titles[0]);
    assert!(titles[32].starts_with("turns 129 to 130: 1.3k tokens<"), "{}", titles[32]);
    let cost = page.split_once("aria-label=\"Cost by turn\"").unwrap().1;
    assert!(cost.contains("<title>turns 1 to 4: 1 USD</title>"), "{cost}");
}

#[test]
fn a_link_leads_to_a_session_whatever_its_name_is() {
    let view = View::of("/requests/1?zone=UTC");
    assert_eq!(link(&view, "a&b", "../x:1"), "../session?name=..%2Fx%3A1&tenant=a%26b&zone=UTC");
}
