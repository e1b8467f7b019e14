//! Scrapers are told 0 once of series that are new to them, and models have their names after a start.

use crate::client::{Client, ask};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{answer, bare, json_answer};
use crate::patience::patiently;

const PROMETHEUS: &str =
    "User-Agent: Prometheus/2.42.0\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n";
const VMAGENT: &str = "User-Agent: vm_promscrape\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n";

/// What `/metrics` tells whoever sends these headers, on a connection of its own.
fn told(gateway: &Gateway, target: &str, headers: &str) -> String {
    let headers = format!("{headers}Connection: close\r\n");
    ask(gateway.admin_address(), &bare("GET", target, &headers)).text().to_owned()
}

/// A scraper that keeps its connection.
struct Scraper(Client);

impl Scraper {
    fn of(gateway: &Gateway) -> Self {
        Self(Client::connect(gateway.admin_address()))
    }

    fn told(&mut self, target: &str, headers: &str) -> String {
        self.0.send(&bare("GET", target, headers));
        self.0.answer().text().to_owned()
    }
}

/// The sum of a metric's samples; `None` if there are none.
fn sum(text: &str, name: &str) -> Option<f64> {
    let of = |line: &str| {
        let (series, value) = line.split(" # ").next()?.rsplit_once(' ')?;
        let is_it = series.split('{').next() == Some(name);
        is_it.then(|| value.parse::<f64>().expect("a number"))
    };
    text.lines().filter_map(of).reduce(|a, b| a + b)
}

fn exchange(gateway: &Gateway, engine: &Engine) {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn each_scraper_is_told_0_once_and_everybody_else_the_value() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    exchange(&gateway, &engine);
    gateway.await_metric("taximeter_requests_total{");
    let names = [
        "taximeter_requests_total",
        "gen_ai_server_request_duration_seconds_count",
        "gen_ai_server_request_duration_seconds_bucket",
        "taximeter_tokens_total",
    ];
    let open_metrics = format!("{VMAGENT}Accept: application/openmetrics-text\r\n");
    let mut scraper = Scraper::of(&gateway);
    for headers in [PROMETHEUS, &open_metrics] {
        let scrapes = [(); 2].map(|()| scraper.told("/metrics", headers));
        for name in names {
            let [first, second] = [&scrapes[0], &scrapes[1]].map(|text| sum(text, name));
            assert_eq!(first, Some(0.0), "{name}");
            assert!(second > Some(0.0), "{name}");
            let value = sum(&told(&gateway, "/metrics", ""), name);
            assert_eq!(second, value, "{name}");
        }
        assert!(sum(&scrapes[0], "taximeter_ledger_entries_total") > Some(0.0));
        assert_eq!(sum(&scrapes[0], "taximeter_ledger_healthy"), Some(1.0));
    }
    let name = "taximeter_requests_total";
    exchange(&gateway, &engine);
    let has_both = || (sum(&told(&gateway, "/metrics", ""), name) == Some(2.0)).then_some(());
    assert!(patiently(has_both).is_some());
    assert_eq!(sum(&scraper.told("/metrics", PROMETHEUS), name), Some(2.0), "it is not new");
    // Whoever asks for something else, or says another word, is another scraper.
    for target in ["/metrics?name[]=taximeter_requests", "/metrics?scraper=b"] {
        let values = [(); 2].map(|()| sum(&scraper.told(target, PROMETHEUS), name));
        assert_eq!(values, [Some(0.0), Some(2.0)], "{target}");
        // Nobody knows whether it has read what came on a connection that is gone.
        let lost = format!("{target}&lost=");
        let values = [(); 4].map(|()| sum(&told(&gateway, &lost, PROMETHEUS), name));
        assert_eq!(values, [Some(0.0), Some(0.0), Some(2.0), Some(2.0)], "{target}");
    }
}

/// The models that a scrape names for requests that failed.
fn failed_models(gateway: &Gateway) -> Vec<String> {
    let text = gateway.metrics();
    let failed = text.lines().filter(|line| {
        line.starts_with("taximeter_requests_total{") && line.contains("taximeter_fault=\"engine\"")
    });
    let model = |line: &str| {
        let (_, behind) = line.split_once("gen_ai_request_model=\"")?;
        Some(behind.split('"').next()?.to_owned())
    };
    failed.filter_map(model).collect()
}

/// Asks for a model, and fails at the engine.
fn fail(gateway: &Gateway, engine: &Engine, model: &str) {
    let body = CHAT.replace("gpt-4o-mini", model);
    assert!(body.contains(model));
    let mut client = gateway.chat("Connection: close\r\n", body);
    engine.answer_once(&answer("500 Broken", "application/json", "{}"));
    assert_eq!(client.answer().status(), 500);
}

#[test]
fn errors_about_a_model_that_was_served_before_a_restart_have_its_name() {
    let engine = Engine::start();
    let start = || Setup::before(&engine).upstream("dialect: openai");
    let mut gateway = start().start();
    exchange(&gateway, &engine);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let gateway = start().start_in(gateway.into_folder());
    let named = patiently(|| {
        fail(&gateway, &engine, "gpt-4o-mini");
        failed_models(&gateway).contains(&"gpt-4o-mini".to_owned()).then_some(())
    });
    assert!(named.is_some(), "{:?}", failed_models(&gateway));
    // A price for it is no reason.
    fail(&gateway, &engine, "gpt-4.1");
    let others = || failed_models(&gateway).contains(&"other".to_owned()).then_some(());
    assert!(patiently(others).is_some(), "{:?}", failed_models(&gateway));
    assert!(!failed_models(&gateway).contains(&"gpt-4.1".to_owned()));
}

#[test]
fn errors_about_a_model_that_the_configuration_names_have_its_name() {
    let engine = Engine::start();
    let upstream = "dialect: openai, models: [named-model, 'any-*']";
    let gateway = Setup::before(&engine).upstream(upstream).start();
    fail(&gateway, &engine, "named-model");
    fail(&gateway, &engine, "any-model");
    let found = patiently(|| Some(failed_models(&gateway)).filter(|models| models.len() == 2));
    assert_eq!(found.expect("two kinds of failures"), ["named-model", "other"]);
}
