//! The results of a batch, which complete it where its object says nothing.

use super::*;
use crate::encoded::{CODINGS, whole};

const FILE: &str = "/v1/files/file-2/content";

/// What pricing all records again would change.
fn again(gateway: &Gateway, prices: &[&str]) -> Value {
    let when = ["rerate", "--from", "2026-01-01", "--reason", "late", "--format", "json"];
    let said = words(gateway, &[&when, prices].concat());
    serde_json::from_slice(&said).expect("JSON")
}

#[test]
fn the_file_of_results_completes_a_batch_whose_object_says_nothing() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    let (one, two) = (chat("gpt-4o-mini", 600, 60), chat("gpt-4o-mini", 400, 40));
    let lines = [&one, FAILED, &two].concat();
    // Nobody has said yet what this file is.
    results(&gateway, &engine, FILE, &lines);
    look(&gateway, &engine, "", &batch("completed", "null"));
    // Another file, a part of the file, and one that was broken off.
    results(&gateway, &engine, "/v1/files/file-1/content", &lines);
    let part = answer("206 Partial Content", "application/octet-stream", &one);
    exchange(&gateway, &engine, &bare("GET", FILE, "Range: bytes=0-9\r\n"), &part);
    let mut cut = answer("200 OK", "application/octet-stream", &lines);
    cut.truncate(cut.len() - two.len());
    let mut client = Client::saying(gateway.address(), &bare("GET", FILE, ""));
    let (mut connection, _) = engine.request();
    connection.send(&cut);
    drop(connection);
    drop(client.try_answer());
    assert_eq!(billed(&gateway), unknown());
    // Fewer results than the object has counted.
    results(&gateway, &engine, FILE, &one);
    assert_eq!(billed(&gateway), unknown());
    results(&gateway, &engine, FILE, &lines);
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
    results(&gateway, &engine, FILE, &lines);
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
}

#[test]
fn results_may_come_after_a_restart_and_a_kill() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    let gateway = setup(&engine, "openai").start_in(gateway.kill());
    look(&gateway, &engine, "", &batch("completed", "null"));
    let lines = [chat("gpt-4o-mini", 600, 60), chat("gpt-4o-mini", 400, 40)].concat();
    results(&gateway, &engine, FILE, &lines);
    let gateway = setup(&engine, "openai").start_in(gateway.kill());
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
    look(&gateway, &engine, "", &batch("completed", USAGE));
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
}

#[test]
fn where_long_requests_have_another_price_each_of_them_is_priced() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    // More than 272,000 tokens, but in two requests that have fewer.
    let usage = USAGE.replace("1000,", "400000,").replace("1100", "400100");
    look(&gateway, &engine, "", &batch_of("gpt-5.4", "completed", &usage));
    assert_eq!(billed(&gateway), unknown());
    let lines = [chat("gpt-5.4", 200_000, 50), chat("gpt-5.4", 200_000, 50)].concat();
    results(&gateway, &engine, FILE, &lines);
    // 400,000 × 1.25 + 100 × 7.50 USD a million.
    assert_eq!(billed(&gateway), costs("0.50075", 400_000, 100));
    // Prices that come later know only the sum, from which this price cannot be told.
    let config = gateway.config_file();
    let again = again(&gateway, &["--config", config.to_str().expect("UTF-8")]);
    assert_eq!(
        (&again["corrected_requests"], &again["unpriced_requests"]),
        (&0.into(), &1.into()),
        "{again:#}"
    );
    assert_eq!(billed(&gateway), costs("0.50075", 400_000, 100));
}

#[test]
fn results_in_a_coding_are_read_and_pass_as_they_came() {
    for coding in CODINGS {
        let engine = Engine::start();
        let gateway = setup(&engine, "openai").start();
        begin(&gateway, &engine);
        let encoded = |text: &str, kind: &str| {
            let body = whole(coding, text);
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: {coding}\r\n\
                 Content-Length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat()
        };
        let accept = format!("Accept-Encoding: {coding}\r\n");
        let object = encoded(&batch("completed", "null"), "application/json");
        exchange(&gateway, &engine, &bare("GET", "/v1/batches/batch_1", &accept), &object);
        let lines = [chat("gpt-4o-mini", 600, 60), chat("gpt-4o-mini", 400, 40)].concat();
        let file = encoded(&lines, "application/octet-stream");
        exchange(&gateway, &engine, &bare("GET", FILE, &accept), &file);
        assert_eq!(billed(&gateway), costs(COST, 1000, 100), "{coding}");
    }
}

#[test]
fn long_results_are_read_to_their_end() {
    let long = |input: u64, output: u64| {
        chat("gpt-4o-mini", input, output).replace("To the station", &"word ".repeat(100_000))
    };
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    look(&gateway, &engine, "", &batch("completed", "null"));
    results(&gateway, &engine, FILE, &[long(600, 60), long(400, 40)].concat());
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
    let gateway = setup(&engine, "mistral").start();
    begin(&gateway, &engine);
    let both = format!(r#""outputs":[{},{}],"usage":null"#, long(600, 60), long(400, 40));
    let inline = batch("completed", "null").replace(r#""usage":null"#, &both).replace('\n', "");
    look(&gateway, &engine, "", &inline);
    assert_eq!(billed(&gateway).1, Some(1000));
}

#[test]
fn an_object_that_names_no_model_leaves_the_price_to_the_results() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    let nameless = |status, usage| batch(status, usage).replace(r#""model""#, r#""motto""#);
    let made = json_answer(nameless("validating", "null"));
    exchange(&gateway, &engine, &post("/v1/batches", "", ASK), &made);
    look(&gateway, &engine, "", &nameless("completed", USAGE));
    assert_eq!(billed(&gateway), unknown());
    let lines = [chat("gpt-4o-mini", 600, 60), chat("gpt-4o-mini", 400, 40)].concat();
    results(&gateway, &engine, FILE, &lines);
    assert_eq!(billed(&gateway), costs(COST, 1000, 100));
}

#[test]
fn each_request_of_a_batch_is_priced_by_its_own_model() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    look(&gateway, &engine, "", &batch("completed", "null"));
    let lines = [chat("gpt-4.1", 1000, 100), chat("gpt-4o-mini", 1000, 100)].concat();
    results(&gateway, &engine, FILE, &lines);
    // 1,000 × 1 + 100 × 4 and 1,000 × 0.075 + 100 × 0.30 USD a million.
    assert_eq!(billed(&gateway), costs("0.001505", 2000, 200));
    let config = gateway.config_file();
    let again = again(&gateway, &["--config", config.to_str().expect("UTF-8")]);
    assert_eq!(
        (&again["corrected_requests"], &again["unpriced_requests"]),
        (&0.into(), &0.into()),
        "{again:#}"
    );
    let records = gateway.admin("/api/v1/records").json();
    let id = records["records"][0]["id"].as_str().expect("an id").to_owned();
    let found = gateway.admin(&format!("/api/v1/records/{id}")).json();
    let completion = &found["corrections"][0]["completion"];
    assert_eq!(completion["requests"], 2, "{found:#}");
    assert_eq!(completion["models"][1]["model"], "gpt-4o-mini", "{found:#}");
}

#[test]
fn results_of_a_model_without_a_price_cost_at_least_what_the_others_do() {
    let engine = Engine::start();
    let gateway = setup(&engine, "openai").start();
    begin(&gateway, &engine);
    look(&gateway, &engine, "", &batch("completed", "null"));
    let lines = [chat("gpt-4o-mini", 1000, 100), chat("made-up", 9, 9)].concat();
    results(&gateway, &engine, FILE, &lines);
    let (cost, input, _, unknown) = billed(&gateway);
    assert_eq!((cost, input, unknown), (COST.parse().ok(), Some(1009), 1.into()));
    // Prices that come later complete the cost.
    let prices = gateway.data_dir().join("prices.yaml");
    let row =
        "{model: made-up, rates: {input: 1, output: 1}, tiers: {batch: {input: 1, output: 1}}}";
    let book = format!("version: 2026-01-01\ncurrency: USD\nmodels:\n- {row}\n");
    std::fs::write(&prices, book).expect("write it");
    again(&gateway, &["--book", prices.to_str().expect("UTF-8")]);
    assert_eq!(billed(&gateway), costs("0.000123", 1009, 109));
}
