//! Engines that cannot be reached: nobody listens, nobody knows the name, nobody answers.

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, MESSAGE};
use crate::gateway::{Setup, records};
use crate::http::{json_answer, post};
use crate::unused::{assert_unused, await_unused};

#[test]
fn an_engine_that_is_not_there_is_a_502_in_the_clients_own_form() {
    let address = Engine::start().address();
    let setup = format!("name: e, url: \"http://{address}\", dialect: openai");
    let gateway = Setup::with_upstream(&setup).start();

    let answer = gateway.ask(&post("/v1/chat/completions", "", CHAT));
    assert_eq!(answer.status(), 502);
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&"upstream_error".into(), &"upstream_connect".into())
    );
    let message = error["message"].as_str().expect("a message");
    assert!(!message.contains(&address.to_string()), "the engine's address is ours: {message}");

    gateway.await_voids("not_sent", 1);
    let record = &await_unused(&gateway, 1, "upstream_error", "upstream_connect")[0];
    assert_eq!(record["status"], 502, "{record}");

    let gateway = Setup::with_upstream(&setup).start();
    let answer = gateway.ask(&post("/v1/messages", "", MESSAGE));
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["type"], "error");
    assert!(answer.json()["error"]["message"].is_string());
    assert!(answer.json()["request_id"].is_string());
    gateway.await_voids("not_sent", 1);
    let record = &await_unused(&gateway, 1, "upstream_error", "upstream_connect")[0];
    assert_eq!(record["status"], 502, "{record}");
    gateway.await_metric("taximeter_cause=\"connect\",taximeter_upstream=\"e\"} 1");
}

#[test]
fn an_engine_that_stays_away_is_a_503_that_says_when_to_ask_again() {
    let address = Engine::start().address();
    let setup = format!("name: e, url: \"http://{address}\", dialect: openai");
    let gateway = Setup::with_upstream(&setup).start();
    assert_eq!(gateway.ask(&post("/v1/chat/completions", "", CHAT)).status(), 502);
    for _ in 0..2 {
        let answer = gateway.ask(&post("/v1/chat/completions", "", CHAT));
        assert_eq!(answer.status(), 503);
        let error = &answer.json()["error"];
        assert_eq!(
            (&error["type"], &error["code"]),
            (&"overloaded_error".into(), &"no_upstream".into())
        );
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let status = gateway.admin("/api/v1/status").json();
    let upstream = &status["upstreams"][0];
    assert_eq!((&upstream["health"], &upstream["failures"]), (&"failing".into(), &3.into()));
    assert_eq!(upstream["last_failure"]["cause"], "upstream_connect");
    assert_eq!(gateway.admin("/readyz").status(), 200, "it can still refuse well");
    gateway.await_voids("not_sent", 3);
    let told: Vec<_> = gateway
        .await_records(3)
        .iter()
        .inspect(|record| assert_unused(record))
        .map(|record| (record["status"].clone(), record["error_type"].clone()))
        .collect();
    let away = (503.into(), "no_upstream".into());
    assert_eq!(told, [(502.into(), "upstream_connect".into()), away.clone(), away]);

    let engine = Engine::at(address);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200, "who is back is asked");
}

#[test]
fn an_engine_whose_name_has_no_address_is_a_502() {
    // Longer than a name's parts may be, so nobody is asked for it.
    let name = "a".repeat(64);
    let setup = format!("name: e, url: \"http://{name}.invalid:8000\", dialect: openai");
    let gateway = Setup::with_upstream(&setup).start();
    let answer = gateway.ask(&post("/v1/chat/completions", "", CHAT));
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_connect");
    assert!(!answer.text().contains(&name), "the engine's name is ours: {answer:?}");
    gateway.await_voids("not_sent", 1);
    let record = &await_unused(&gateway, 1, "upstream_error", "upstream_connect")[0];
    assert_eq!(record["status"], 502, "{record}");
    gateway.await_metric("taximeter_cause=\"dns\",taximeter_upstream=\"e\"} 1");
}

#[test]
fn an_engine_that_cannot_be_reached_in_time_is_a_502() {
    let engine = Engine::start();
    let url = format!("https://{}", engine.address());
    let gateway = Setup::with_upstream(&format!("name: e, url: \"{url}\", dialect: openai"))
        .with("limits: {upstream_connect_timeout_seconds: 0.3}")
        .start();
    let mut client = gateway.chat("", CHAT);
    // It takes the connection, and does not speak TLS.
    let _connection = engine.accept();
    let answer = client.answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_connect");
    gateway.await_metric("taximeter_cause=\"timeout\",taximeter_upstream=\"e\"} 1");
    await_unused(&gateway, 1, "upstream_error", "upstream_connect");
}

#[test]
fn a_name_that_nobody_resolves_holds_up_who_asks_for_it_and_neither_others_nor_the_end() {
    let engine = Engine::start();
    let upstreams = format!(
        "name: lost, url: \"http://engine.example\", models: [lost]}}, \
         {{name: engine, url: \"http://{}\", dialect: openai",
        engine.address()
    );
    let mut gateway = Setup::with_upstream(&upstreams)
        .with("limits: {upstream_connect_timeout_seconds: 0.5, attempts_max: 1}")
        .start_without_names();
    let lost = r#"{"model":"lost","messages":[]}"#;
    let mut waiting: Vec<_> = (0..3).map(|_| gateway.chat("", lost)).collect();
    let mut other = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(other.answer().status(), 200);
    for client in &mut waiting {
        let answer = client.answer();
        let code = answer.json()["error"]["code"].as_str().map(str::to_owned);
        // Whether the others have been told by then is chance.
        let told = [(502, Some("upstream_connect")), (503, Some("no_upstream"))];
        assert!(told.contains(&(answer.status(), code.as_deref())), "{answer:?}");
    }
    let labels = r#"{taximeter_cause="timeout",taximeter_upstream="lost"}"#;
    gateway.await_metric(&format!("taximeter_upstream_connect_failures_total{labels} 3"));
    assert_eq!(gateway.admin("/healthz").status(), 200);
    gateway.terminate();
    assert_eq!(gateway.exit().0.code(), Some(0));
    let records = records(&gateway.data_dir());
    let (lost, served): (Vec<_>, Vec<_>) =
        records.iter().partition(|record| record["upstream"] == "lost");
    assert_eq!((lost.len(), served.len()), (3, 1), "{records:#?}");
    lost.into_iter().for_each(assert_unused);
}
