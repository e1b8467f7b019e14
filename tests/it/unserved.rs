//! Requests that nobody has served: each wait for a first token is told once, and the counter of
//! requests has what the records have, with those that came in a flood.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};

use serde_json::Value;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, EMBEDDINGS, EMBEDDINGS_ANSWER, HELLO, ROLE, STOP, STREAM_CHAT, USAGE,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{Unframed, answer, json_answer, post, read_message, stream_answer};
use crate::patience::patiently;

const WAIT: &str = "taximeter_first_token_wait_seconds";
const REQUESTS: &str = "taximeter_requests_total";

/// The labels and the value of each series of this name.
fn series(metrics: &str, name: &str) -> Vec<(BTreeMap<String, String>, f64)> {
    let lines = metrics.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
    let read = |line: &str| {
        let (labels, value) = line.rsplit_once("} ")?;
        let pairs = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
        let pairs =
            pairs.map(|(key, text)| (key.to_owned(), text.trim_end_matches('"').to_owned()));
        Some((pairs.collect(), value.parse().ok()?))
    };
    lines.map(|line| read(line).unwrap_or_else(|| panic!("a series: {line}"))).collect()
}

/// The sum of the series of this name by some of their labels; one that is absent is empty.
pub(crate) fn by<const N: usize>(
    metrics: &str,
    name: &str,
    keys: [&str; N],
) -> BTreeMap<[String; N], f64> {
    let mut sums = BTreeMap::new();
    for (labels, value) in series(metrics, name) {
        let of = keys.map(|key| labels.get(key).cloned().unwrap_or_default());
        *sums.entry(of).or_default() += value;
    }
    sums
}

pub(crate) fn expected<const N: usize>(sums: &[([&str; N], f64)]) -> BTreeMap<[String; N], f64> {
    sums.iter().map(|(key, value)| (key.map(str::to_owned), *value)).collect()
}

/// The waits by whether the request is a stream, and by what ended them.
fn waits(gateway: &Gateway) -> BTreeMap<[String; 2], f64> {
    let keys = ["taximeter_stream", "taximeter_outcome"];
    by(&gateway.metrics(), &format!("{WAIT}_count"), keys)
}

/// Answers a chat with these bytes, and waits until the gateway has settled it.
fn answered(gateway: &Gateway, engine: &Engine, body: &str, reply: &[u8]) -> u16 {
    let mut client = gateway.chat("Connection: close\r\n", body);
    engine.answer_once(reply);
    client.head().status()
}

/// An engine that answers every request with this.
fn engine_that_answers(reply: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut from, mut unread) = (&socket, Vec::new());
                while read_message(&mut from, &mut unread, Unframed::Empty).is_ok() {
                    let bytes = answer(reply, "application/json", "{}");
                    // The gateway may have gone.
                    let _ = std::io::Write::write_all(&mut &socket, &bytes);
                }
            });
        }
    });
    address
}

#[test]
fn a_wait_for_a_first_token_is_told_once_whatever_ends_it() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    // The first token comes, however the stream ends.
    answered(&gateway, &engine, STREAM_CHAT, &stream_answer(&[HELLO, STOP, USAGE, DONE]));
    gateway.await_records(1);
    let (client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE, HELLO]);
    drop(client);
    gateway.await_records(2);
    // Clients leave before it: within the stream, and before the head of the answer.
    let (client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE]);
    drop(client);
    gateway.await_records(3);
    let client = gateway.chat("", STREAM_CHAT);
    let taken = engine.request();
    drop(client);
    gateway.await_records(4);
    drop(taken);
    // The engine refuses, says an error in place of a token, or breaks off.
    for status in ["429 Too Many Requests", "503 Service Unavailable"] {
        answered(&gateway, &engine, STREAM_CHAT, &answer(status, "application/json", "{}"));
    }
    let error = "data: {\"error\":{\"message\":\"full\",\"type\":\"overloaded_error\"}}\n\n";
    answered(&gateway, &engine, STREAM_CHAT, &stream_answer(&[error]));
    let (mut client, mut connection) = gateway.streaming(&engine, STREAM_CHAT, &[ROLE]);
    connection.send(b"zz");
    drop(connection);
    client.all();
    // Nobody waits for a token: the client asked for nonsense, or for no tokens.
    answered(&gateway, &engine, STREAM_CHAT, &answer("400 Bad Request", "application/json", "{}"));
    let wrong =
        "data: {\"error\":{\"message\":\"x\",\"type\":\"BadRequestError\",\"code\":400}}\n\n";
    answered(&gateway, &engine, STREAM_CHAT, &stream_answer(&[wrong]));
    let request = post("/v1/embeddings", "Connection: close\r\n", EMBEDDINGS);
    let mut client = Client::saying(gateway.address(), &request);
    engine.answer_once(&json_answer(EMBEDDINGS_ANSWER));
    client.answer();
    // Of an answer that is no stream, all comes at once.
    answered(&gateway, &engine, CHAT, &json_answer(CHAT_ANSWER));
    answered(&gateway, &engine, CHAT, &answer("500 No", "application/json", "{}"));
    let client = gateway.chat("", CHAT);
    let taken = engine.request();
    drop(client);
    gateway.await_records(14);
    drop(taken);
    let told = [
        (["", "failed"], 1.0),
        (["", "left"], 1.0),
        (["", "token"], 1.0),
        (["true", "failed"], 4.0),
        (["true", "left"], 2.0),
        (["true", "token"], 2.0),
    ];
    assert_eq!(waits(&gateway), expected(&told), "{}", gateway.metrics());
    // The conventions' own histogram has the successful ones alone.
    let metrics = gateway.metrics();
    let first = by(&metrics, "gen_ai_server_time_to_first_token_seconds_count", []);
    assert_eq!(first, expected(&[([], 1.0)]));
    // An engine that is not there.
    let address = Engine::start().address();
    let upstream = format!("name: e, url: \"http://{address}\", dialect: openai");
    let gateway = Setup::with_upstream(&upstream).start();
    assert_eq!(gateway.ask(&post("/v1/chat/completions", "", STREAM_CHAT)).status(), 502);
    gateway.await_records(1);
    assert_eq!(waits(&gateway), expected(&[(["true", "failed"], 1.0)]));
}

/// How many ended so: by end and class of status, of the records and of those that were summed.
fn on_record(gateway: &Gateway) -> BTreeMap<[String; 2], f64> {
    let mut counts = BTreeMap::new();
    let class = |status: &Value| status.as_u64().map(|status| format!("{}xx", status / 100));
    for record in gateway.records() {
        let end = record["end"].as_str().expect("an end").to_owned();
        *counts.entry([end, class(&record["status"]).unwrap_or_default()]).or_default() += 1.0;
    }
    let summed = gateway.admin("/api/v1/refusals").json();
    for row in summed["counts"].as_array().expect("counts") {
        if row["admitted"] == true {
            let end = if row["status"] == 429 { "upstream_refused" } else { "upstream_error" };
            let key = [end.to_owned(), class(&row["status"]).unwrap_or_default()];
            *counts.entry(key).or_default() += row["requests"].as_f64().expect("a number");
        }
    }
    counts
}

/// How many ended so, as the counter has it.
fn counted(gateway: &Gateway) -> BTreeMap<[String; 2], f64> {
    by(&gateway.metrics(), REQUESTS, ["taximeter_end", "taximeter_status_class"])
}

#[test]
fn the_counter_of_requests_has_what_the_records_have_and_who_is_to_blame() {
    let engine = Engine::start();
    let both = format!(
        "name: theirs, url: 'http://{0}', dialect: openai, models: [gpt-4o-mini]}}, \
         {{name: ours, url: 'http://{0}', dialect: openai, credential: sk-ours",
        engine.address()
    );
    let gateway = Setup::with_upstream(&both).start();
    answered(&gateway, &engine, CHAT, &json_answer(CHAT_ANSWER));
    let (client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    drop(client);
    gateway.await_records(2);
    let of_ours = CHAT.replace("gpt-4o-mini", "m");
    for status in ["400 No", "401 No", "402 No", "403 No", "404 No", "429 No", "529 No"] {
        for body in [CHAT, &of_ours] {
            answered(&gateway, &engine, body, &answer(status, "application/json", "{}"));
        }
    }
    gateway.await_records(16);
    assert_eq!(counted(&gateway), on_record(&gateway), "{}", gateway.metrics());
    let keys = ["taximeter_fault", "taximeter_status_class"];
    let blamed = [
        (["", "2xx"], 1.0),
        (["client", "2xx"], 1.0),
        // 400 and 404 of both, and 401, 402 and 403 with the client's credential.
        (["client", "4xx"], 7.0),
        (["engine", "4xx"], 2.0),
        (["engine", "5xx"], 2.0),
        // 402 and 403 with our credential go on to the client, and 401 does not.
        (["gateway", "4xx"], 2.0),
        (["gateway", "5xx"], 1.0),
    ];
    assert_eq!(by(&gateway.metrics(), REQUESTS, keys), expected(&blamed));
}

#[test]
fn a_flood_that_leaves_few_records_is_counted_in_full() {
    let address = engine_that_answers("429 Too Many Requests");
    let upstream = format!("name: e, url: \"http://{address}\", dialect: openai");
    let gateway = Setup::with_upstream(&upstream).keeping_connections().start();
    let listen = gateway.address();
    let ask = move || {
        let mut client = Client::connect(listen);
        for _ in 0..50 {
            client.send(&post("/v1/chat/completions", "", CHAT));
            assert_eq!(client.answer().status(), 429);
        }
    };
    let mut asked = 0.0;
    // However slow the machine is, one of these is a flood.
    let is_summed = patiently(|| {
        std::thread::scope(|scope| (0..10).for_each(|_| drop(scope.spawn(ask))));
        asked += 500.0;
        let told = gateway.admin("/api/v1/refusals").json();
        (told["total"].as_u64() > Some(0)).then_some(())
    });
    assert!(is_summed.is_some(), "{asked} requests were no flood");
    let all = expected(&[(["upstream_refused", "4xx"], asked)]);
    let is_told = patiently(|| (counted(&gateway) == all).then_some(()));
    assert!(is_told.is_some(), "{:?} of {asked}", counted(&gateway));
    let agrees = patiently(|| (on_record(&gateway) == all).then_some(()));
    assert!(agrees.is_some(), "{:?}", on_record(&gateway));
    assert_eq!(waits(&gateway), expected(&[(["", "failed"], asked)]));
}

#[test]
fn what_was_open_when_the_gateway_died_is_counted_by_the_next_start() {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let gateway = setup().start();
    // Its model is known because it was served before.
    assert_eq!(answered(&gateway, &engine, CHAT, &json_answer(CHAT_ANSWER)), 200);
    let served = expected(&[(["complete", "2xx"], 1.0)]);
    let is_stored = patiently(|| (on_record(&gateway) == served).then_some(()));
    assert!(is_stored.is_some(), "{:?}", on_record(&gateway));
    let (_client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let gateway = setup().start_in(gateway.kill());
    let died = expected(&[(["gateway_died", ""], 1.0)]);
    let is_told = patiently(|| (counted(&gateway) == died).then_some(()));
    assert!(is_told.is_some(), "{:?}", counted(&gateway));
    let on_record = on_record(&gateway);
    assert_eq!(on_record, died.into_iter().chain(served).collect());
    let models = by(&gateway.metrics(), REQUESTS, ["gen_ai_request_model"]);
    assert_eq!(models, expected(&[(["gpt-4o-mini"], 1.0)]));
}

#[test]
fn a_limit_of_the_gateway_is_told_apart_and_is_no_request_of_an_engine() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai, models: [gpt-4o-mini]")
        .with("limits: {bodies_total_bytes_max: 1048576, body_bytes_max: 1048576}")
        .start();
    // One body that is not whole takes nearly all of the room.
    let long = "x".repeat(1_000_000);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
         Content-Length: 1000020\r\n\r\n{{\"user\":\"{long}"
    );
    let _open = Client::saying(gateway.address(), head.as_bytes());
    let is_held = patiently(|| {
        let held = gateway.admin("/api/v1/status").json()["requests"]["bodies_bytes"].as_u64();
        (held >= Some(1_000_000)).then_some(())
    });
    assert!(is_held.is_some(), "{}", gateway.metrics());
    let body = format!("{{\"model\":\"m\",\"messages\":[],\"user\":\"{}\"}}", "y".repeat(200_000));
    assert_eq!(gateway.ask(&post("/v1/chat/completions", "", body)).status(), 503);
    let limits = by(&gateway.metrics(), "taximeter_limits_refusals_total", ["taximeter_kind"]);
    assert_eq!(limits, expected(&[(["bodies_total_bytes_max"], 1.0)]));
    assert_eq!(counted(&gateway), BTreeMap::new());
}
