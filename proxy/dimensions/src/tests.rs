//! Requests as clients send them, and requests that nobody should send.

use std::collections::BTreeMap;

use proptest::prelude::*;
use taximeter_ledger::{Dimensions, RequestKind, SessionSource};
use taximeter_meter::Wire;
use taximeter_request::RequestReader;

use super::*;

const CODEX: &str = "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.169.0)";
const CLAUDE: &str = "claude-cli/2.1.331 (external, sdk-cli)";
const OPENCODE: &str = "opencode/1.18.33 ai-sdk/provider-utils/4.0.0 runtime/bun/1.3.0";

fn told_by(settings: &Settings, headers: &[(&str, &str)], body: &str) -> Found {
    let names = Names::new(settings);
    let reading = names.read_headers(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
    let mut reader = RequestReader::json(Wire::Responses);
    reader.note(reading.noted().clone());
    reader.push(body.as_bytes()).unwrap();
    let facts = reader.finish().unwrap();
    reading.finish(&facts.notes, facts.user.as_deref())
}

fn keeping() -> Settings {
    Settings { end_users: Keep::Keep, ..Settings::default() }
}

fn told(headers: &[(&str, &str)], body: &str) -> Found {
    told_by(&keeping(), headers, body)
}

/// The dimensions, of a request of which nothing is dropped.
fn dimensions(headers: &[(&str, &str)], body: &str) -> Dimensions {
    let told = told(headers, body);
    assert_eq!(told.dropped, [], "{headers:?} {body}");
    told.dimensions.map(|told| *told).unwrap_or_default()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn of_session(session: &str, source: SessionSource, client: &str) -> Dimensions {
    Dimensions {
        session: some(session),
        session_source: Some(source),
        client: Some(client.to_owned()).filter(|client| !client.is_empty()),
        ..Dimensions::default()
    }
}

#[test]
fn codex_names_the_roots_session_its_threads_and_turns() {
    let turn = r#"{"turn_id":"t1","workspaces":{"/home/anna":{}},"request_kind":"prewarm"}"#;
    let body = r#"{"prompt_cache_key":"root-1","client_metadata":{"turn_id":"t1","x":"y"}}"#;
    let root = [
        ("user-agent", CODEX),
        ("session-id", "root-1"),
        ("thread-id", "root-1"),
        ("x-client-request-id", "root-1"),
        ("originator", "codex_exec"),
        ("x-codex-turn-metadata", turn),
    ];
    let expected = of_session("root-1", SessionSource::Header, "codex/0.169");
    let expected = Dimensions { turn: some("t1"), ..expected };
    let (agent, kind) = (some("root"), Some(RequestKind::Prewarm));
    assert_eq!(dimensions(&root, body), Dimensions { agent, kind, ..expected.clone() });
    let sub_agent = [
        ("user-agent", CODEX),
        ("session-id", "root-1"),
        ("thread-id", "thread-2"),
        ("x-codex-parent-thread-id", "root-1"),
        ("x-openai-subagent", "collab_spawn"),
    ];
    let (agent, parent_agent) = (some("thread-2"), some("root"));
    assert_eq!(dimensions(&sub_agent, body), Dimensions { agent, parent_agent, ..expected });
    // Where its headers are lost, its body tells.
    let bare = dimensions(&[("user-agent", CODEX)], r#"{"prompt_cache_key":"root-1"}"#);
    assert_eq!(bare, of_session("root-1", SessionSource::Body, "codex/0.169"));
}

#[test]
fn the_body_of_codex_names_the_session_where_its_head_does_not_or_the_configuration_says_so() {
    let body = r#"{"prompt_cache_key":"k","client_metadata":{"session_id":"s","thread_id":"t"}}"#;
    let session = |settings: &Settings, head: &str| {
        let found = told_by(settings, &[("user-agent", CODEX), ("session-id", head)], body);
        let told = *found.dimensions.unwrap();
        assert_eq!(told.agent, some("t"), "{head}");
        (told.session.unwrap(), told.session_source.unwrap())
    };
    let (of_head, of_body) = (SessionSource::Header, SessionSource::Body);
    assert_eq!(session(&keeping(), "root-1"), ("root-1".to_owned(), of_head));
    for bad in ["", "a b", "a\nb", "é", &"x".repeat(200)] {
        assert_eq!(session(&keeping(), bad), ("s".to_owned(), of_body), "{bad}");
    }
    let of_file = vec![Place::Body(crate::table::CACHE_KEY.to_owned())];
    let settings = Settings { session: of_file, ..keeping() };
    assert_eq!(session(&settings, "root-1"), ("k".to_owned(), of_body));
}

#[test]
fn a_cache_key_names_the_session_of_no_other_client() {
    let body = r#"{"prompt_cache_key":"my-prefix"}"#;
    for agent in ["OpenAI/Python 3.57.0", OPENCODE, "curl/8.5"] {
        assert_eq!(dimensions(&[("user-agent", agent)], body).session, None, "{agent}");
    }
    let copilot = [
        ("user-agent", "OpenAI/JS 6.1.0"),
        ("x-initiator", "agent"),
        ("x-interaction-type", "conversation-subagent"),
    ];
    let expected = of_session("my-prefix", SessionSource::Body, "copilot-cli");
    assert_eq!(dimensions(&copilot, body), Dimensions { agent: some("subagent"), ..expected });
}

#[test]
fn claude_code_names_its_session_in_a_header_or_in_an_opaque_member() {
    let user = r#"{"metadata":{"user_id":"{\"device_id\":\"d\",\"account_uuid\":\"a\",\"session_id\":\"s-1\"}"}}"#;
    let main = [("user-agent", CLAUDE), ("x-app", "cli"), ("x-claude-code-session-id", "s-1")];
    let expected = of_session("s-1", SessionSource::Header, "claude-code/2.1");
    assert_eq!(dimensions(&main, user), expected);
    let sub_agent = [
        ("x-claude-code-session-id", "s-1"),
        ("x-claude-code-agent-id", "a-2"),
        ("x-claude-code-parent-agent-id", "a-1"),
        ("user-agent", CLAUDE),
    ];
    let (agent, parent_agent) = (some("a-2"), some("a-1"));
    assert_eq!(dimensions(&sub_agent, user), Dimensions { agent, parent_agent, ..expected });
    let by_body = of_session("s-1", SessionSource::Body, "claude-code/2.1");
    assert_eq!(dimensions(&[("user-agent", CLAUDE)], user), by_body);
    let older = r#"{"metadata":{"user_id":"user_0f_account__session_s-0"}}"#;
    let expected = of_session("s-0", SessionSource::Body, "claude-code/2.0");
    assert_eq!(dimensions(&[("user-agent", "claude-cli/2.0.30 (external, cli)")], older), expected);
}

#[test]
fn a_sub_agent_of_opencode_belongs_to_the_session_that_started_it() {
    let root = [("user-agent", OPENCODE), ("x-session-id", "s1"), ("x-session-affinity", "s1")];
    let expected = of_session("s1", SessionSource::Header, "opencode/1.18");
    assert_eq!(dimensions(&root, "{}"), Dimensions { agent: some("root"), ..expected.clone() });
    assert_eq!(told(&root, "{}").lineage, Lineage::Own);
    let sub_agent = [
        ("user-agent", OPENCODE),
        ("x-session-id", "s2"),
        ("x-session-affinity", "s2"),
        ("session-id", "s2"),
        ("x-parent-session-id", "s1"),
        ("x-opencode-request", "msg_1"),
    ];
    let expected = Dimensions { parent_agent: some("root"), turn: some("msg_1"), ..expected };
    assert_eq!(dimensions(&sub_agent, "{}"), Dimensions { agent: some("s2"), ..expected });
    assert_eq!(told(&sub_agent, "{}").lineage, Lineage::Parent);
    let kilo = [("user-agent", "Kilo-Code/7.7.7"), ("x-session-id", "s1")];
    assert_eq!(dimensions(&kilo, "{}").client, some("kilo-code/7.7"));
}

#[test]
fn names_that_many_programs_use_count_in_a_stated_order() {
    let body = r#"{"metadata":{"session_id":"b1","conversation_id":"b2"},"session_id":"b3"}"#;
    let headers = [
        ("baggage", "session.id=h9"),
        ("x-litellm-trace-id", "h8"),
        ("helicone-session-id", "h7"),
        ("x-session-affinity", "h4"),
        ("session_id", "h3"),
        ("x-agnt-session-id", "h2"),
        ("x-session-id", "h1"),
        ("session-id", "h0"),
    ];
    let session = |headers: &[(&str, &str)], body| dimensions(headers, body).session;
    for (left, expected) in [(8, "h0"), (7, "h1"), (6, "h2"), (5, "h3"), (4, "h4"), (3, "b1")] {
        assert_eq!(session(&headers[..left], body).as_deref(), Some(expected), "{left}");
    }
    for (left, expected) in [(3, "h7"), (2, "h8"), (1, "h9")] {
        assert_eq!(session(&headers[..left], "{}").as_deref(), Some(expected), "{left}");
    }
    for (body, expected) in [
        (r#"{"metadata":{"sessionId":"b"}}"#, Some("b")),
        (r#"{"metadata":{"thread_id":"b"}}"#, Some("b")),
        (r#"{"session_id":"b"}"#, Some("b")),
        (r#"{"litellm_session_id":"b"}"#, Some("b")),
        (r#"{"metadata":{"id":"b"},"id":"b","conversation":"c"}"#, None),
    ] {
        assert_eq!(session(&[], body).as_deref(), expected, "{body}");
    }
}

#[test]
fn what_would_count_less_than_a_good_value_is_neither_read_nor_told() {
    let body = r#"{"metadata":{"session_id":"not a name"}}"#;
    let headers = [("x-session-id", "h1"), ("session_id", "also none")];
    assert_eq!(dimensions(&headers, body).session.as_deref(), Some("h1"));
    let told = told(&[("x-session-id", "no name"), ("session_id", "h2")], body);
    assert_eq!(told.dropped, [(Dimension::Session, Dropped::Characters)]);
    assert_eq!(told.dimensions.unwrap().session.as_deref(), Some("h2"));
}

#[test]
fn an_end_user_is_whom_the_body_names() {
    let user = |headers: &[(&str, &str)], body| dimensions(headers, body).end_user;
    for (body, expected) in [
        (r#"{"user":"Анна"}"#, Some("Анна")),
        (r#"{"user":"a","safety_identifier":"b"}"#, Some("b")),
        (r#"{"metadata":{"user_id":"anna@example.org"}}"#, Some("anna@example.org")),
        (r#"{"metadata":{"user_id":"{\"session_id\":\"s\"}"}}"#, None),
        (r#"{"user":""}"#, None),
    ] {
        assert_eq!(user(&[], body).as_deref(), expected, "{body}");
    }
    assert_eq!(user(&[("helicone-user-id", "h")], r#"{"user":"a"}"#), some("a"));
    assert_eq!(user(&[("helicone-user-id", "h")], "{}"), some("h"));
}

#[test]
fn what_says_nothing_is_nothing() {
    let headers = [
        ("host", "x"),
        ("user-agent", "curl/8.5.0"),
        ("content-type", "application/json"),
        ("x-request-id", "r"),
        ("x-session-id", ""),
    ];
    let body = r#"{"model":"m","metadata":{"x":"y"},"input":[{"session_id":"no"}]}"#;
    assert_eq!(told(&headers, body), Found::default());
}

#[test]
fn what_cannot_be_taken_is_dropped_and_the_next_place_counts() {
    let huge = "a".repeat(1 << 20);
    let long = format!(r#"{{"metadata":{{"session_id":"{huge}"}}}}"#);
    let session = |headers: &[(&str, &str)], body: &str| {
        let told = told(headers, body);
        (told.dimensions.and_then(|told| told.session), told.dropped)
    };
    let dropped = |why| vec![(Dimension::Session, why)];
    for (value, why) in [
        (huge.as_str(), Dropped::TooLong),
        ("a\nb", Dropped::Characters),
        ("сессия", Dropped::Characters),
        ("a b", Dropped::Characters),
    ] {
        let headers = [("session-id", value), ("x-session-id", "good")];
        assert_eq!(session(&headers[..1], "{}"), (None, dropped(why)));
        assert_eq!(session(&headers, "{}"), (some("good"), dropped(why)));
    }
    assert_eq!(session(&[], &long), (None, dropped(Dropped::TooLong)));
    let twice = [("x-session-id", "a"), ("x-session-id", "b"), ("session_id", "c")];
    assert_eq!(session(&twice, "{}"), (some("c"), dropped(Dropped::Disagreement)));
    assert_eq!(session(&[("session-id", "a"), ("session-id", "a")], "{}"), (some("a"), vec![]));
    let twice = r#"{"session_id":"a","session_id":"b"}"#;
    assert_eq!(session(&[], twice), (None, dropped(Dropped::Disagreement)));
    let no_json = r#"{"metadata":{"user_id":"{\"session_id\":"}}"#;
    assert_eq!(session(&[], no_json), (None, dropped(Dropped::NoJson)));
    let names = Names::new(&keeping());
    let reading = names.read_headers([("session-id", &[0xff, 0xfe][..])].into_iter());
    assert_eq!(reading.finish(&[], None).dropped, dropped(Dropped::Characters));
}

#[test]
fn an_agent_is_not_its_own_parent() {
    let headers = [
        ("x-claude-code-session-id", "s"),
        ("x-claude-code-agent-id", "a"),
        ("x-claude-code-parent-agent-id", "a"),
    ];
    let own = told(&headers, "{}");
    assert_eq!(own.dropped, [(Dimension::ParentAgent, Dropped::OwnParent)]);
    let dimensions = own.dimensions.unwrap();
    assert_eq!((dimensions.agent, dimensions.parent_agent), (some("a"), None));
    let headers = [("user-agent", OPENCODE), ("x-session-id", "s"), ("x-parent-session-id", "s")];
    let dimensions = told(&headers, "{}").dimensions.unwrap();
    assert_eq!((dimensions.session, dimensions.agent), (some("s"), some("root")));
    assert_eq!(dimensions.parent_agent, None);
}

#[test]
fn names_are_kept_hashed_or_left_out() {
    let headers = [
        ("user-agent", CODEX),
        ("session-id", "root-1"),
        ("thread-id", "thread-2"),
        ("x-codex-parent-thread-id", "root-1"),
    ];
    let body = r#"{"user":"anna","client_metadata":{"turn_id":"t1"}}"#;
    let with = |sessions, end_users, hasher| {
        let settings = Settings { sessions, end_users, hasher, ..Settings::default() };
        told_by(&settings, &headers, body).dimensions.map(|told| *told).unwrap_or_default()
    };
    let hasher = Hasher::new(b"secret").unwrap();
    let hashed = with(Keep::Hash, Keep::Hash, Some(hasher.clone()));
    assert_eq!(hashed.session, Some(hasher.session("root-1")));
    assert_eq!(hashed.agent, Some(hasher.session("thread-2")));
    assert_eq!(hashed.parent_agent, some("root"));
    assert_eq!(hashed.turn, Some(hasher.session("t1")));
    assert_eq!(hashed.end_user, Some(hasher.end_user("anna")));
    assert_eq!(hashed.client, some("codex/0.169"));
    let client = Dimensions { client: some("codex/0.169"), ..Dimensions::default() };
    assert_eq!(with(Keep::Off, Keep::Off, Some(hasher)), client);
    // Nothing is kept plain that should be hashed.
    assert_eq!(with(Keep::Hash, Keep::Hash, None), client);
}

#[test]
fn a_configuration_adds_places_that_come_first_and_names_tags() {
    let header = |name: &str| Place::header(name).unwrap();
    let settings = Settings {
        session: vec![header("x-my-run"), Place::body("run.id").unwrap()],
        client: vec![header("x-my-client")],
        tags: BTreeMap::from([
            ("job".to_owned(), vec![header("x-job"), Place::body("prompt_cache_key").unwrap()]),
            ("team".to_owned(), vec![Place::body("user").unwrap()]),
        ]),
        ..keeping()
    };
    let body = r#"{"run":{"id":"r2"},"user":"Anna B","prompt_cache_key":"k","x-other":"x"}"#;
    let headers = [("session-id", "s"), ("x-my-client", "own/1"), ("x-my-run", "r1"), ("x-o", "x")];
    let all = told_by(&settings, &headers, body).dimensions.unwrap();
    assert_eq!((all.session, all.client), (some("r1"), some("own/1")));
    let tags = [("job", "k"), ("team", "Anna B")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!((all.tags, all.end_user), (BTreeMap::from(tags), some("Anna B")));
    let by_body = told_by(&settings, &headers[..2], body).dimensions.unwrap();
    assert_eq!((by_body.session, by_body.session_source), (some("r2"), Some(SessionSource::Body)));
    let long = "x".repeat(TAG_BYTES_MAX + 1);
    let dropped = told_by(&settings, &[("x-job", &long)], "{}").dropped;
    assert_eq!(dropped, [(Dimension::Tag(0), Dropped::TooLong)]);
    // The ninth tag is not read.
    let tags = (0..9).map(|tag| (format!("t{tag}"), vec![header("x-t")])).collect();
    let all = told_by(&Settings { tags, ..keeping() }, &[("x-t", "1")], "{}").dimensions.unwrap();
    assert_eq!(all.tags.len(), TAGS_MAX);
}

proptest! {
    #[test]
    fn whatever_is_sent_names_are_short_and_of_few_characters(
        headers in prop::collection::vec((
            prop::sample::select(vec![
                "session-id", "x-session-id", "x-parent-session-id", "thread-id", "user-agent",
                "x-claude-code-agent-id", "x-codex-turn-metadata", "baggage", "x-initiator",
            ]),
            prop_oneof!["[ -~]{0,140}", "\\PC{0,40}", "[a-c]", Just(CODEX.to_owned())],
        ), 0..6),
        user in "\\PC{0,140}",
    ) {
        let names = Names::new(&keeping());
        let all = || headers.iter().map(|(name, value)| (*name, value.as_bytes()));
        let told = names.read_headers(all()).finish(&[], Some(&user));
        let dimensions = told.dimensions.clone().unwrap_or_default();
        let Dimensions { session, agent, parent_agent, turn, .. } = &*dimensions;
        for value in [session, agent, parent_agent, turn].into_iter().flatten() {
            prop_assert_eq!(name(value), Ok(Some(&**value)));
        }
        prop_assert!(agent.is_none() || agent != parent_agent || agent.as_deref() == Some("root"));
        prop_assert_eq!(session.is_some(), dimensions.session_source.is_some());
        prop_assert!(dimensions.end_user.is_none_or(|user| user.len() <= END_USER_BYTES_MAX));
        prop_assert_eq!(names.read_headers(all()).finish(&[], Some(&user)), told);
    }
}
