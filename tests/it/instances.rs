//! Who tells a number: each gateway is an instance of its own, whatever host it shares.

use crate::collector::Pushed;
use crate::engine::Engine;
use crate::gateway::{Gateway, Setup};

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// The id of its ledger.
fn ledger(gateway: &Gateway) -> String {
    let status = gateway.admin("/api/v1/status").json();
    status["ledger"]["id"].as_str().expect("it has one").to_owned()
}

/// The instance that a scrape names.
fn scraped(gateway: &Gateway) -> String {
    let metrics = gateway.metrics();
    let target = metrics.lines().find(|line| line.starts_with("target_info{")).expect("a target");
    let (_, rest) = target.split_once("service_instance_id=\"").expect("an instance");
    rest.split('"').next().expect("its end").to_owned()
}

#[test]
fn two_gateways_of_one_host_are_two_instances_and_each_is_the_same_after_a_restart() {
    let engine = Engine::start();
    let (one, other) = (Gateway::before(&engine), Gateway::before(&engine));
    let of_one = scraped(&one);
    assert_eq!((&of_one, scraped(&other)), (&ledger(&one), ledger(&other)));
    assert_ne!(of_one, scraped(&other));
    let again = Setup::before(&engine).start_in(one.into_folder());
    assert_eq!(scraped(&again), of_one);
}

#[test]
fn every_signal_names_the_ledger_as_its_instance() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let otlp = format!("endpoint: 'http://{}', interval_seconds: 0.05", collector.address());
    let telemetry = format!("telemetry: {{otlp: {{{otlp}, logs: on}}, traces: {{}}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&telemetry).start();
    let expected = ledger(&gateway);
    let mut client = gateway.chat("Connection: close\r\n", crate::fixtures::CHAT);
    engine.answer_once(&crate::http::json_answer(crate::fixtures::CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let mut left = vec!["POST /v1/metrics", "POST /v1/traces", "POST /v1/logs"];
    while !left.is_empty() {
        let (mut connection, request) = collector.request();
        connection.send(TAKEN);
        left.retain(|signal| !request.first_line.starts_with(signal));
        // All three messages begin alike: what they tell, and in it who does.
        let gzip = request.header("content-encoding") == Some("gzip");
        let body = crate::collector::unpacked(&request.body, gzip);
        let text = String::from_utf8_lossy(&body);
        assert!(text.contains(&expected), "{}: {text}", request.first_line);
        if request.first_line.starts_with("POST /v1/metrics") {
            let pushed = Pushed::of(&request.body, gzip);
            assert_eq!(pushed.resource["service.instance.id"], expected);
        }
    }
}

#[test]
fn an_instance_that_is_configured_is_told_in_place_of_the_ledger() {
    let engine = Engine::start();
    let named = Setup::before(&engine).with("resource: {service.instance.id: mine}").start();
    assert_eq!(scraped(&named), "mine");
    let given = [("OTEL_RESOURCE_ATTRIBUTES", "service.instance.id=theirs")];
    assert_eq!(scraped(&Setup::before(&engine).start_with(&given)), "theirs");
}
