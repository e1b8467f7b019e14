//! Who asked: by credential only, and the credential stays here.

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, MESSAGE, MESSAGE_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{bare, json_answer, post};

/// `sk-acme`, by SHA-256.
pub(crate) const ACME: &str = "{id: acme-prod, tenant: acme, labels: {team: search},
      sha256: 5f8eee912cd7c0ccb238560e8a22e7f78909e6dac18288188f7f4ea35112700d}";
/// `sk-zeta`, by SHA-256.
pub(crate) const ZETA: &str = "{id: zeta-prod, tenant: zeta,
      sha256: 16422804d7f04dc09a09acd55df31a9eb7ebec480adfbac7c27c9916611c55dc}";

/// A gateway that only who has one of these keys may ask.
pub(crate) fn keyed(engine: &Engine, keys: &[&str]) -> Setup {
    let keys = keys.join(",\n      ");
    Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("tenants:\n  unknown: refuse\n  keys: [{keys}]"))
}

fn with_keys(engine: &Engine) -> Gateway {
    keyed(engine, &[ACME, ZETA]).start()
}

#[test]
fn each_clients_way_to_show_its_key_is_understood_and_no_engine_sees_it() {
    let engine = Engine::start();
    let gateway = with_keys(&engine);
    for header in [
        "Authorization: Bearer sk-acme",
        "x-api-key: sk-acme",
        "Api-Key: sk-acme",
        "authorization: bearer sk-acme",
    ] {
        let mut client = gateway.chat(&format!("{header}\r\nConnection: close\r\n"), CHAT);
        let request = engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200, "{header}");
        for name in ["authorization", "x-api-key", "api-key"] {
            assert_eq!(request.header(name), None, "{header}");
        }
    }
    let records = gateway.records();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record["tenant"], "acme");
        assert_eq!(record["key_id"], "acme-prod");
        assert_eq!(record["identity"], "api_key");
        assert_eq!(record["labels"]["team"], "search");
    }
}

#[test]
fn wrong_and_unknown_keys_get_one_answer_and_reach_no_engine() {
    let engine = Engine::start();
    let gateway = with_keys(&engine);
    let refusal = |headers: &str| {
        let answer = gateway.chat(&format!("x-request-id: r\r\n{headers}"), CHAT).answer();
        assert_eq!(answer.status(), 401, "{headers}");
        assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        answer.json()["error"].clone()
    };
    let wrong = refusal("Authorization: Bearer sk-wrong\r\n");
    assert_eq!(wrong["code"], "invalid_api_key");
    assert_eq!(refusal("Authorization: Bearer sk-acmf\r\n"), wrong);
    assert_eq!(refusal("x-api-key: sk-wrong\r\n"), wrong);
    assert_eq!(refusal("api-key: \r\n")["type"], wrong["type"]);
    let missing = refusal("");
    assert_eq!(missing["code"], "missing_api_key");
    assert_eq!(
        missing["message"], wrong["message"],
        "one text, so that nothing can be learnt from it"
    );
    engine.assert_untouched();
    assert!(gateway.records().is_empty());
}

#[test]
fn keys_of_two_tenants_at_once_are_refused() {
    let engine = Engine::start();
    let gateway = with_keys(&engine);
    for headers in [
        "Authorization: Bearer sk-acme\r\nx-api-key: sk-zeta\r\n",
        "Authorization: Bearer sk-acme\r\nAuthorization: Bearer sk-zeta\r\n",
    ] {
        let answer = gateway.chat(headers, CHAT).answer();
        assert_eq!(answer.status(), 400, "{answer:?}");
    }
    engine.assert_untouched();
}

#[test]
fn the_engine_is_shown_our_credential_in_its_own_way() {
    let engine = Engine::start();
    for (dialect, name, value) in [
        ("openai", "authorization", "Bearer sk-ours"),
        ("vllm", "authorization", "Bearer sk-ours"),
        ("anthropic", "x-api-key", "sk-ours"),
        ("azure", "api-key", "sk-ours"),
    ] {
        let gateway = Setup::before(&engine)
            .upstream(&format!("dialect: {dialect}, credential: sk-ours"))
            .start();
        let request = post("/v1/messages", "Authorization: Bearer sk-client\r\n", MESSAGE);
        let mut client = crate::client::Client::saying(gateway.address(), &request);
        let request = engine.answer_once(&json_answer(MESSAGE_ANSWER));
        assert_eq!(request.header(name), Some(value), "{dialect}: {request:?}");
        assert!(!request.headers.iter().any(|(_, v)| v.contains("sk-client")), "{request:?}");
        assert_eq!(client.answer().status(), 200);
    }
}

#[test]
fn the_clients_credential_is_handed_on_where_the_operator_says_so() {
    let engine = Engine::start();
    let gateway =
        Setup::before(&engine).upstream("dialect: openai, forward_credential: on").start();
    let mut client = gateway.chat("Authorization: Bearer sk-client\r\n", CHAT);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.header("authorization"), Some("Bearer sk-client"));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn a_tenant_header_is_believed_from_trusted_peers() {
    let engine = Engine::start();
    let tenants =
        "tenants: {unknown: refuse, header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(tenants).start();
    let mut client = gateway.chat("X-Tenant-Id: acme\r\n", CHAT);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(request.header("x-tenant-id"), None);
    assert_eq!(client.answer().status(), 200);
    let record = gateway.record();
    assert_eq!((&record["tenant"], &record["identity"]), (&"acme".into(), &"header".into()));
}

#[test]
fn a_tenant_header_is_not_believed_from_anyone_else_and_never_passed_on() {
    let engine = Engine::start();
    let tenants =
        "tenants: {unknown: nobody, header: {name: x-tenant-id, trusted_peers: [192.0.2.0/24]}}";
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(tenants).start();
    let mut client = gateway.chat("x-tenant-id: acme\r\nX_Tenant_Id: acme\r\n", CHAT);
    let request = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert!(!request.headers.iter().any(|(_, value)| value == "acme"), "{request:?}");
    assert_eq!(client.answer().status(), 200);
    assert_eq!(gateway.record()["tenant"], "nobody");
}

#[test]
fn no_header_of_ours_or_of_who_asks_can_be_dropped_by_naming_it_as_hop_by_hop() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("tenants: {header: {name: x-team, trusted_peers: [127.0.0.1]}}")
        .start();
    let names = ["Authorization", "x-api-key", "x-request-id", "host", "content-length"];
    let ours =
        ["traceparent", "tracestate", "x-tenant-id", "x-taximeter-receipt", "X-Taximeter-Key"];
    let configured = ["x-team", "X_Team"];
    for name in names.iter().chain(&ours).chain(&configured) {
        let headers = format!("X-Team: acme\r\nConnection: x-hop, {name}\r\n");
        let answer = gateway.chat(&headers, CHAT).answer();
        assert_eq!((answer.status(), answer.header("connection")), (400, Some("close")), "{name}");
        assert_eq!(answer.json()["error"]["code"], "bad_framing", "{name}");
    }
    let count = names.len() + ours.len() + configured.len();
    gateway.await_metric(&format!(
        "taximeter_bad_framing_total{{taximeter_cause=\"connection\"}} {count}"
    ));
    engine.assert_untouched();
}

#[test]
fn whoever_asks_without_a_key_is_the_tenant_that_the_operator_named() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("tenants: {unknown: walk-in}")
        .start();
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let record = gateway.record();
    assert_eq!((&record["tenant"], &record["identity"]), (&"walk-in".into(), &"unknown".into()));
}

#[test]
fn listing_models_needs_a_key_as_well() {
    let engine = Engine::start();
    let gateway = with_keys(&engine);
    assert_eq!(gateway.ask(&bare("GET", "/v1/models", "")).status(), 401);
    engine.assert_untouched();
}

#[test]
fn no_key_appears_in_the_log_the_metrics_or_on_disk() {
    let engine = Engine::start();
    let mut gateway = with_keys(&engine);
    gateway.chat("Authorization: Bearer sk-secret-one\r\n", CHAT).answer();
    let mut client = gateway.chat("Authorization: Bearer sk-acme\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let metrics = gateway.metrics();
    assert!(!metrics.contains("sk-") && !metrics.contains("Where to?"), "{metrics}");
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert!(status.success());
    let refused = log.iter().find(|line| line.contains(r#""event":"auth_refused""#)).expect("told");
    // The first characters of its SHA-256 are all that is told of one.
    assert!(refused.contains(r#""key_sha256":"1ae59d29""#), "{refused}");
    for file in std::fs::read_dir(gateway.data_dir()).expect("the data directory") {
        let path = file.expect("a file").path();
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("sk-acme") && !text.contains("Where to?"), "{}", path.display());
    }
    let log = log.join("\n");
    assert!(!log.contains("sk-") && !log.contains("Where to?"), "{log}");
}
