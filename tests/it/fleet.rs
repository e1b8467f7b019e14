//! `taximeter fleet read`: what the metrics at a URL or in a file say.

use std::process::Output;

use serde_json::Value;

use crate::engine::Engine;
use crate::gateway::{binary, taximeter};
use crate::http::{Message, answer};

const METRICS: &str = "\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine=\"0\",model_name=\"m\"} 3.0
vllm:num_requests_waiting{engine=\"0\",model_name=\"m\"} NaN
vllm:broken{engine=\"0\" 1
";

/// Runs the command for a URL of an engine that gives one answer: how it ended, and what was asked.
fn read(path: &str, answer: &[u8], flags: &[&str]) -> (Output, Message) {
    // Built before the engine waits for it.
    binary();
    let engine = Engine::start();
    let url = format!("http://{}{path}", engine.address());
    let words: Vec<_> = ["fleet", "read", &url].into_iter().chain(flags.iter().copied()).collect();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| taximeter(&words));
        let (mut connection, asked) = engine.request();
        // One that has read enough hears no more of it.
        let _ = connection.try_send(answer);
        drop(connection);
        (run.join().expect("it ran"), asked)
    })
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|said| String::from_utf8_lossy(said));
    format!("{out}{err}")
}

#[test]
fn the_metrics_of_an_engine_become_quantities() {
    let text = answer("200 OK", "text/plain; version=0.0.4", METRICS);
    let (output, asked) = read("", &text, &["--json"]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(asked.first_line, "GET /metrics HTTP/1.1");
    assert!(asked.header("authorization").is_none());
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["programs"][0]["name"], "vllm");
    let running = &document["quantities"][0];
    assert_eq!(running["name"], "taximeter.fleet.engine.requests_running");
    assert_eq!(running["value"], 3.0);
    assert_eq!(running["from"], "vllm:num_requests_running");
    let unknown = document["unknown"].as_array().expect("a list");
    let waiting = unknown.iter().find(|is| is["name"] == "taximeter.fleet.engine.requests_waiting");
    assert_eq!(waiting.expect("it is told")["why"], "its value is NaN");
    assert_eq!(document["skipped"]["lines"][0]["line"], 4);
}

#[test]
fn a_path_and_a_query_are_asked_as_they_are() {
    let text = answer("200 OK", "text/plain", METRICS);
    let (output, asked) = read("/federate?match[]=up", &text, &[]);
    assert_eq!(asked.first_line, "GET /federate?match[]=up HTTP/1.1");
    assert!(said(&output).contains("requests_running = 3 {request}"), "{}", said(&output));
}

#[test]
fn a_redirect_is_not_followed() {
    let inside = Engine::start();
    let to = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{}/metrics\r\ncontent-length: 0\r\n\r\n",
        inside.address()
    );
    let (output, _) = read("/metrics", to.as_bytes(), &[]);
    assert_eq!(output.status.code(), Some(69));
    assert!(said(&output).contains("redirects are not followed"), "{}", said(&output));
    inside.assert_untouched();
}

#[test]
fn an_answer_that_is_no_metrics_is_told() {
    let (output, _) = read("/", &answer("200 OK", "text/html", "<html>\n</html>\n"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("is a page in HTML, and not metrics"), "{}", said(&output));
    let (output, _) = read("/", &answer("404 Not Found", "text/plain", "no"), &[]);
    assert_eq!(output.status.code(), Some(69));
    assert!(said(&output).contains("it answers 404 Not Found"), "{}", said(&output));
}

#[test]
fn an_endless_answer_ends() {
    let mut endless = b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999\r\n\r\n".to_vec();
    endless.extend(b"vllm:num_requests_running 1\n".repeat(600_000));
    let (output, _) = read("/metrics", &endless, &[]);
    assert_eq!(output.status.code(), Some(69));
    assert!(said(&output).contains("too long"), "{}", said(&output));
}
