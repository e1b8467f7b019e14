//! The client's own credential, which goes on to the provider, and the keys of the gateway, which
//! never do.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, answer, bare, json_answer, post};
use crate::http2;
use crate::identity::{ACME, ZETA, keyed};

const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// A key as the command makes it, and its entry for the file.
struct Key {
    key: String,
    entry: String,
}

fn new_key() -> Key {
    let made = taximeter(["keys", "new", "--tenant", "acme", "--id", "acme-prod"]);
    let text = String::from_utf8(made.stdout).expect("UTF-8");
    let key = text.lines().next().expect("a key").to_owned();
    let entry = text.lines().last().expect("an entry").trim().trim_start_matches("- ").to_owned();
    Key { key, entry }
}

/// Sends a chat with these headers, which the engine answers; what the engine got.
fn asked(gateway: &Gateway, engine: &Engine, headers: &str) -> Message {
    let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), CHAT);
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200, "{headers}");
    got
}

/// The credentials that a request shows, in the order of `CREDENTIALS`.
fn shown(request: &Message) -> Vec<&str> {
    CREDENTIALS.iter().filter_map(|name| request.header(name)).collect()
}

#[test]
fn one_flag_is_enough_for_a_client_with_the_providers_key() {
    let engine = Engine::start();
    let url = format!("http://{}", engine.address());
    let gateway = Gateway::by_flags(&["--upstream", &url]);
    // The gateway asks at its start what the engine is, without anybody's key.
    let (mut connection, question) = engine.request();
    connection.send(&json_answer(r#"{"object":"list","data":[]}"#));
    drop(connection);
    assert_eq!(shown(&question), [""; 0]);
    for (headers, expected) in [
        ("Authorization: Bearer sk-theirs\r\n", &["Bearer sk-theirs"][..]),
        ("X-Api-Key: sk-ant-theirs\r\n", &["sk-ant-theirs"]),
        ("api-key: azure\r\n", &["azure"]),
        ("x-goog-api-key: AIza\r\n", &["AIza"]),
        ("Authorization: Basic bWU6cHc=\r\n", &["Basic bWU6cHc="]),
        ("Authorization: Bearer oauth\r\nX-Api-Key: sk-ant\r\n", &["Bearer oauth", "sk-ant"]),
        ("Cookie: session=1\r\n", &[]),
    ] {
        let got = asked(&gateway, &engine, headers);
        assert_eq!(shown(&got), expected, "{headers}");
        assert_eq!(got.header("cookie"), None);
    }
    for record in gateway.records() {
        assert_eq!(
            (&record["tenant"], &record["identity"]),
            (&"default".into(), &"unknown".into())
        );
    }
    let mut client = gateway.chat("Authorization: Bearer sk-wrong\r\n", CHAT);
    let refusal = r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#;
    engine.answer_once(&answer("401 Unauthorized", "application/json", refusal));
    let told = client.answer();
    assert_eq!((told.status(), told.text()), (401, refusal), "the provider's own words");
}

#[test]
fn a_credential_goes_on_as_the_upstream_says_and_a_reload_can_change_that() {
    let engine = Engine::start();
    let setup =
        |members: &str| Setup::before(&engine).upstream(&format!("dialect: openai{members}"));
    let theirs = "Authorization: Bearer sk-theirs\r\nx-api-key: sk-theirs\r\n";
    let gateway = setup("").start();
    let seen = |expected: &[&str]| {
        let got = asked(&gateway, &engine, theirs);
        assert_eq!(shown(&got), expected);
    };
    seen(&["Bearer sk-theirs", "sk-theirs"]);
    for (members, expected) in [
        (", forward_credential: off", &[][..]),
        (", forward_credential: on", &["Bearer sk-theirs", "sk-theirs"]),
        (", credential: sk-ours", &["Bearer sk-ours"]),
        (", forward_credential: auto, credential: sk-ours", &["Bearer sk-ours"]),
        (", forward_credential: off, credential: sk-ours", &["Bearer sk-ours"]),
        (", forward_credential: auto", &["Bearer sk-theirs", "sk-theirs"]),
    ] {
        gateway.rewrite(&setup(members));
        gateway.await_event("config_reloaded");
        seen(expected);
    }
}

#[test]
fn a_key_beside_the_clients_own_login_names_the_tenant_and_stays_here() {
    let engine = Engine::start();
    let Key { key, entry } = new_key();
    let mut gateway = keyed(&engine, &[&entry]).with("telemetry: {access_log: all}").start();
    let login = "Authorization: Bearer oauth-login\r\nx-api-key: sk-ant-other\r\n";
    let got = asked(&gateway, &engine, &format!("{login}X-Taximeter-Key: {key}\r\n"));
    assert_eq!(shown(&got), ["Bearer oauth-login", "sk-ant-other"]);
    assert!(!got.headers.iter().any(|(name, value)| name.contains("taximeter") || *value == key));
    let record = gateway.record();
    assert_eq!((&record["tenant"], &record["key_id"]), (&"acme".into(), &"acme-prod".into()));
    assert_eq!(record["identity"], "api_key");
    let wrong = format!("{login}x-taximeter-key: tax-wrong\r\n");
    for headers in [wrong.as_str(), "x-taximeter-key:\r\n", "X-Taximeter-Key: oauth-login\r\n"] {
        let refused = gateway.chat(headers, CHAT).answer();
        assert_eq!(refused.status(), 401, "{headers}");
        let error = &refused.json()["error"];
        assert_eq!(
            (&error["code"], &error["param"]),
            (&"invalid_api_key".into(), &"x-taximeter-key".into())
        );
    }
    let twice = format!("x-taximeter-key: {key}\r\n").repeat(2);
    assert_eq!(gateway.chat(&twice, CHAT).answer().status(), 400);
    // A wrong one is refused even if the other credential would be good.
    let both = format!("x-taximeter-key: tax-wrong\r\nAuthorization: Bearer {key}\r\n");
    assert_eq!(gateway.chat(&both, CHAT).answer().status(), 401);
    engine.assert_untouched();
    assert!(!gateway.metrics().contains(&key));
    gateway.terminate();
    let (_, log) = gateway.exit();
    let log = log.join("\n");
    assert!(
        !log.contains(&key) && !log.contains("oauth-login") && !log.contains("tax-wrong"),
        "{log}"
    );
    assert!(!log.contains("spoofed_header"), "it is the client's to send: {log}");
}

#[test]
fn a_key_of_ours_never_leaves_wherever_it_stands() {
    let engine = Engine::start();
    let Key { key, entry } = new_key();
    let gateway = keyed(&engine, &[&entry, ZETA]).upstream("forward_credential: on").start();
    let keyless =
        Setup::before(&engine).upstream("dialect: openai, forward_credential: on").start();
    let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
    let places: Vec<String> = CREDENTIALS
        .iter()
        .flat_map(|name| {
            let pairs = [format!("me:{key}"), format!("{key}:")].map(|pair| basic(&pair));
            let plain = [key.clone(), format!("Bearer {key}"), format!("bearer   {key}")];
            let values = pairs.into_iter().chain(plain).collect::<Vec<_>>();
            values.into_iter().map(move |value| format!("{name}: {value}\r\n"))
        })
        .chain([
            format!("Helicone-Auth: Bearer {key}\r\n"),
            format!("X-Portkey-Api-Key: {key}\r\n"),
            format!("Cookie: key={key}\r\n"),
            format!("Proxy-Authorization: Bearer {key}\r\n"),
        ])
        .collect();
    for place in &places {
        for (gateway, ours) in
            [(&gateway, format!("x-taximeter-key: {key}\r\n")), (&keyless, String::new())]
        {
            let got = asked(gateway, &engine, &format!("{ours}{place}"));
            assert!(!format!("{got:?}").contains(&key), "{place}: {got:?}");
            for (_, value) in &got.headers {
                let pair =
                    value.strip_prefix("Basic ").and_then(|pair| BASE64_STANDARD.decode(pair).ok());
                assert!(pair.is_none(), "{place}: {got:?}");
            }
        }
    }
    // One of another form is known by its hash.
    let other = format!("x-taximeter-key: {key}\r\nAuthorization: Bearer sk-zeta\r\n");
    assert_eq!(shown(&asked(&gateway, &engine, &other)), [""; 0]);
    // The one that identifies is removed from every header.
    let twice = format!("Authorization: Bearer {key}\r\nx-api-key: {key}\r\n");
    assert_eq!(shown(&asked(&gateway, &engine, &twice)), [""; 0]);
}

#[test]
fn a_key_in_the_query_counts_on_every_route() {
    let engine = Engine::start();
    let Key { key, entry } = new_key();
    let gateway = keyed(&engine, &[&entry])
        .upstream("forward_credential: on")
        .with("passthrough: on\ntelemetry: {access_log: all}")
        .start();
    for (target, seen) in [
        (format!("/v1/chat/completions?key={key}&a=b"), "/v1/chat/completions?a=b"),
        (format!("/v1/chat/completions?k%65y={key}"), "/v1/chat/completions"),
        (format!("/v1beta/models/m:generateContent?key={key}"), "/v1beta/models/m:generateContent"),
        (format!("/v1beta/files?x=1&key={key}"), "/v1beta/files?x=1"),
        (format!("/somewhere?api_key={key}"), "/somewhere"),
    ] {
        let request = post(&target, "Connection: close\r\n", CHAT);
        let mut client = Client::saying(gateway.address(), &request);
        let got = engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200, "{target}");
        assert_eq!(got.first_line, format!("POST {seen} HTTP/1.1"));
        assert_eq!(shown(&got), [""; 0], "{target}");
    }
    // A probe needs none, and shows none.
    let headers = format!("Authorization: Bearer {key}\r\nConnection: close\r\n");
    let probe = bare("GET", &format!("/health?key={key}"), &headers);
    let mut client = Client::saying(gateway.address(), &probe);
    let got = engine.answer_once(&json_answer("{}"));
    assert_eq!(client.answer().status(), 200);
    assert!(got.first_line == "GET /health HTTP/1.1" && shown(&got).is_empty(), "{got:?}");
    for target in ["/v1/chat/completions?key=tax-wrong", "/v1beta/files?key=AIza-unknown"] {
        assert_eq!(gateway.ask(&post(target, "", CHAT)).status(), 401, "{target}");
    }
    // No credential of ours, and none of the client's by any rule.
    let target = "/v1/chat/completions?key=of-something";
    let ours = format!("Authorization: Bearer {key}\r\nConnection: close\r\n");
    let mut client = Client::saying(gateway.address(), &post(target, &ours, CHAT));
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(got.first_line, format!("POST {target} HTTP/1.1"));
    for record in gateway.records() {
        assert_eq!(record["tenant"], "acme");
    }
}

#[test]
fn an_unknown_credential_goes_nowhere_where_there_are_keys() {
    let engine = Engine::start();
    for unknown in ["refuse", "walk-in"] {
        let gateway = Setup::before(&engine)
            .upstream("dialect: openai, forward_credential: on")
            .with(&format!("tenants: {{unknown: {unknown}, keys: [{ACME}]}}"))
            .start();
        for headers in [
            "Authorization: Bearer sk-unknown\r\n",
            "x-api-key: tax-revoked\r\n",
            "x-goog-api-key: AIza\r\n",
            "Authorization: Basic bWU6cHc=\r\n",
        ] {
            let refused = gateway.chat(headers, CHAT).answer();
            assert_eq!(refused.status(), 401, "{headers}");
            assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
        }
        engine.assert_untouched();
    }
}

#[test]
fn a_trusted_header_names_the_tenant_beside_the_clients_own_credential() {
    let engine = Engine::start();
    let header = "header: {name: x-tenant-id, trusted_peers: [127.0.0.0/8]}";
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("tenants: {{keys: [{ACME}], {header}}}"))
        .start();
    let theirs = "X-Tenant-Id: globex\r\nAuthorization: Bearer sk-theirs\r\n";
    assert_eq!(shown(&asked(&gateway, &engine, theirs)), ["Bearer sk-theirs"]);
    let ours = "X-Tenant-Id: globex\r\nAuthorization: Bearer sk-acme\r\n";
    assert_eq!(shown(&asked(&gateway, &engine, ours)), [""; 0]);
    let records = gateway.records();
    let tenants: Vec<_> = records.iter().map(|record| &record["tenant"]).collect();
    assert_eq!(tenants, ["globex", "acme"]);
}

#[test]
fn a_tenant_header_that_is_refused_says_so() {
    let engine = Engine::start();
    let trusting = |peers: &str| {
        Setup::before(&engine)
            .upstream("dialect: openai")
            .with(&format!("tenants: {{header: {{name: x-team, trusted_peers: [{peers}]}}}}"))
            .start()
    };
    let refused = |gateway: &Gateway, headers: &str| {
        let told = gateway.chat(headers, CHAT).answer();
        let error = told.json()["error"].clone();
        (told.status(), error["code"].clone(), error["param"].clone(), error["message"].to_string())
    };
    let trusted = trusting("127.0.0.1");
    let long = format!("X-Team: {}\r\n", "x".repeat(129));
    for headers in [
        "X-Team: a/b\r\n",
        "X-Team: =cmd()\r\n",
        "X-Team:\r\n",
        "X-Team: a\r\nX-Team: a\r\n",
        &long,
    ] {
        let (status, code, param, message) = refused(&trusted, headers);
        assert_eq!(
            (status, code, param),
            (400, "invalid_value".into(), "x-team".into()),
            "{headers}"
        );
        assert!(message.contains("`x-team` names no tenant") && message.contains("1 to 128 bytes"));
    }
    let (status, code, param, message) = refused(&trusting("192.0.2.1"), "X-Team: acme\r\n");
    assert_eq!((status, code, param), (401, "missing_api_key".into(), "x-team".into()));
    assert!(message.contains("`tenants.header.trusted_peers`"), "{message}");
    let (status, code, param, _) = refused(&trusted, "");
    assert_eq!((status, code, param), (401, "missing_api_key".into(), "authorization".into()));
    engine.assert_untouched();
}

#[test]
fn a_key_on_http2_is_as_one_on_http1() {
    let engine = Engine::start();
    let Key { key, entry } = new_key();
    let gateway = keyed(&engine, &[&entry]).start();
    let runtime = http2::runtime();
    let mut sender = runtime.block_on(http2::connect(gateway.address()));
    let mut request = http2::request(CHAT);
    for (name, value) in [("x-taximeter-key", key.as_str()), ("authorization", "Bearer sk-theirs")]
    {
        request.headers_mut().insert(name, value.parse().expect("a value"));
    }
    let answer = runtime.spawn(sender.send_request(request));
    let got = engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(runtime.block_on(answer).expect("the client").expect("an answer").status(), 200);
    assert_eq!(shown(&got), ["Bearer sk-theirs"]);
    assert_eq!(got.header("x-taximeter-key"), None);
    let mut wrong = http2::request(CHAT);
    wrong.headers_mut().insert("x-taximeter-key", "tax-wrong".parse().expect("a value"));
    let answer = runtime.block_on(sender.send_request(wrong)).expect("an answer");
    assert_eq!(answer.status(), 401);
    assert_eq!(gateway.record()["tenant"], "acme");
}

#[test]
fn a_credential_that_would_cross_the_internet_in_the_clear_is_told_at_the_start() {
    let engine = Engine::start();
    let far = Setup::with_upstream("name: far, url: \"http://engine.example\"").start();
    let told = far.said_at_its_start("credential_unencrypted");
    assert_eq!(told["upstream"], Value::from("far"));
    let near = Setup::before(&engine).upstream("dialect: openai").start();
    assert!(!near.has_said("credential_unencrypted"));
    assert_eq!(near.ask(&bare("GET", "/nowhere", "")).status(), 404);
}
