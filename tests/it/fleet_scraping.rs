//! The section `fleet`: engines, GPUs and hosts are asked again and again, whatever they answer, and no
//! request feels it.

use std::io::{Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, HELLO, ROLE, STREAM_CHAT};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, STREAM_HEAD, Unframed, answer, chunk, json_answer, read_message};
use crate::patience::{PATIENCE, patiently};

/// What an engine tells that has generated so many tokens.
pub(crate) fn metrics(tokens: u64) -> String {
    format!(
        "# TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\",model_name=\"m\"}} 3\n\
         # TYPE vllm:generation_tokens counter\n\
         vllm:generation_tokens_total{{engine=\"0\",model_name=\"m\"}} {tokens}\n\
         vllm:kv_cache_usage_perc{{engine=\"0\",model_name=\"m\"}} NaN\n\
         vllm:broken{{engine=\"0\" 1\n"
    )
}

pub(crate) fn text(body: &str) -> Vec<u8> {
    answer("200 OK", "text/plain; version=0.0.4", body)
}

/// A server that answers by a script: the request, how many there were before, and where to answer.
pub(crate) struct Source {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Message>>>,
    gone: Arc<AtomicBool>,
}

impl Source {
    pub(crate) fn start(
        script: impl Fn(&Message, usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind a source");
        let address = listener.local_addr().expect("its address");
        let (asked, gone) = (Arc::<Mutex<Vec<Message>>>::default(), Arc::<AtomicBool>::default());
        let (notes, left, script) = (asked.clone(), gone.clone(), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if left.load(SeqCst) {
                    return;
                }
                let (notes, script) = (notes.clone(), script.clone());
                std::thread::spawn(move || converse(stream, &notes, &*script));
            }
        });
        Self { address, asked, gone }
    }

    /// One that always gives this answer.
    pub(crate) fn saying(answer: Vec<u8>) -> Self {
        Self::start(move |_, _, stream| stream.write_all(&answer))
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Nobody listens there any more.
    fn vanish(&self) {
        self.gone.store(true, SeqCst);
        drop(TcpStream::connect(self.address));
    }
}

fn converse(
    mut stream: TcpStream,
    notes: &Mutex<Vec<Message>>,
    script: &dyn Fn(&Message, usize, &mut TcpStream) -> std::io::Result<()>,
) {
    stream.set_read_timeout(Some(PATIENCE)).expect("set the time limit");
    let mut unread = Vec::new();
    let Ok(request) = read_message(&mut stream, &mut unread, Unframed::Empty) else { return };
    let nth = {
        let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(Message { body: Vec::new(), headers: request.headers.clone(), ..request });
        notes.len() - 1
    };
    let request = {
        let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
        let Message { first_line, complete, .. } = &notes[nth];
        let (first_line, complete) = (first_line.clone(), *complete);
        Message { first_line, complete, headers: notes[nth].headers.clone(), body: Vec::new() }
    };
    // Who has read enough goes.
    let _ = script(&request, nth, &mut stream);
}

/// A gateway before an engine whose metrics nobody asks for, with these exporters of hosts.
fn beside(engine: &Engine, sources: &[&Source]) -> Gateway {
    let urls: Vec<_> = sources.iter().map(|source| format!("{:?}", source.url())).collect();
    let fleet =
        format!("fleet: {{engines: off, hosts: {{local: off, scrape: [{}]}}}}", urls.join(", "));
    Setup::before(engine).upstream("dialect: openai").with(&fleet).start()
}

/// Waits until a source is as it should be.
pub(crate) fn await_source(gateway: &Gateway, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let there = patiently(|| {
        let fleet = gateway.admin("/api/v1/fleet").json();
        last = fleet["sources"].as_array()?.iter().find(|one| one["name"] == name)?.clone();
        is_so(&last).then(|| last.clone())
    });
    there.unwrap_or_else(|| panic!("it is not so: {last:#}"))
}

fn quantity<'a>(source: &'a Value, list: &str, name: &str) -> &'a Value {
    let all = source[list].as_array().expect("a list");
    let found = all.iter().find(|one| one["name"] == format!("taximeter.fleet.engine.{name}"));
    found.unwrap_or_else(|| panic!("no {name}: {source:#}"))
}

/// One chat that is answered as if nothing else were there.
fn chat_passes(engine: &Engine, gateway: &Gateway) {
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let answer = client.answer();
    assert_eq!((answer.status(), answer.text()), (200, CHAT_ANSWER));
}

#[test]
fn the_engine_of_an_upstream_is_asked_with_its_own_key() {
    let source = Source::saying(text(&metrics(7)));
    let upstream = format!(
        "name: engine, url: \"http://{}\", dialect: openai, credential: key-of-ours",
        source.address
    );
    let gateway = Setup::with_upstream(&upstream).with("fleet: {}").start();
    let told = await_source(&gateway, &source.url(), |source| source["state"] == "up");
    let asked = source.asked.lock().unwrap();
    assert_eq!(asked[0].first_line, "GET /metrics HTTP/1.1");
    assert_eq!(asked[0].header("authorization"), Some("Bearer key-of-ours"));
    assert_eq!((&told["kind"], &told["upstreams"][0]), (&"engine".into(), &"engine".into()));
    assert_eq!((&told["programs"][0]["name"], &told["skipped_lines"]), (&"vllm".into(), &1.into()));
    let running = quantity(&told, "quantities", "requests_running");
    assert_eq!((&running["value"], &running["upstream"]), (&3.0.into(), &"engine".into()));
    assert_eq!(running["labels"]["gen_ai.request.model"], "m");
    let usage = quantity(&told, "unknown", "kv_cache_usage");
    assert_eq!(usage["why"], "its value is NaN");
    let layer = gateway.admin("/api/v1/fleet?layer=L1&limit=5").json();
    assert_eq!(layer["sources"][0]["quantities"], Value::Array(Vec::new()));
    assert_eq!(gateway.admin("/api/v1/fleet?limit=1").json()["more"], true);
    assert_eq!(gateway.admin("/api/v1/fleet?layer=L9").status(), 400);
}

#[test]
fn an_engine_is_asked_each_second_while_a_request_runs_and_its_restart_is_found() {
    let script = |request: &Message, nth: usize, stream: &mut TcpStream| {
        if request.first_line.starts_with("GET ") {
            // It begins anew at its third answer.
            let tokens = if nth < 3 { 1_000 + nth as u64 * 10 } else { nth as u64 };
            return stream.write_all(&text(&metrics(tokens)));
        }
        stream.write_all(STREAM_HEAD)?;
        stream.write_all(&chunk(ROLE))?;
        stream.write_all(&chunk(HELLO))?;
        // Until the gateway goes.
        stream.read(&mut [0]).map(drop)
    };
    let engine = Source::start(script);
    let upstream = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
    let fleet = "fleet: {hosts: {local: off}}";
    let gateway = Setup::with_upstream(&upstream).with(fleet).start();
    let idle = await_source(&gateway, &engine.url(), |source| source["state"] == "up");
    assert_eq!(idle["every"], 15.0);
    let _client = gateway.chat("", STREAM_CHAT);
    let busy = await_source(&gateway, &engine.url(), |source| source["resets"] == 1);
    assert_eq!((&busy["every"], &busy["failed"]), (&1.0.into(), &0.into()));
    let tokens = quantity(&busy, "quantities", "generation_tokens");
    assert_eq!(tokens["resets"], 1);
    let rate = tokens["rate"].as_f64();
    assert!(rate.is_none_or(|rate| rate >= 0.0), "{tokens}");
    // What was there once is unknown when its source has gone, with the reason.
    engine.vanish();
    let gone = await_source(&gateway, &engine.url(), |source| source["state"] == "stale");
    assert_eq!(gone["cause"], "connect");
    assert_eq!(gone["quantities"], Value::Array(Vec::new()));
    let why = quantity(&gone, "unknown", "generation_tokens")["why"].as_str().expect("a reason");
    assert!(
        why.starts_with("stale: the last value is ") && why.contains("cannot connect"),
        "{why}"
    );
}

#[test]
fn what_is_no_metrics_is_stated_and_a_request_beside_it_passes() {
    let inside = Source::saying(text(&metrics(1)));
    let redirect =
        format!("HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", inside.url());
    let page = answer("200 OK", "text/html", "<!doctype html><title>Welcome</title>");
    let coded = |coding: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-encoding: {coding}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    };
    let bad = [
        ("status", "401", Source::saying(answer("401 Unauthorized", "text/plain", "who are you"))),
        ("status", "404", Source::saying(answer("404 Not Found", "text/plain", ""))),
        ("status", "503", Source::saying(answer("503 Unavailable", "text/plain", ""))),
        ("redirect", "not followed", Source::saying(redirect.into_bytes())),
        ("not_metrics", "HTML", Source::saying(page)),
        ("not_metrics", "JSON", Source::saying(json_answer(r#"{"error":"no"}"#))),
        ("not_metrics", "empty", Source::saying(text(""))),
        ("no_program", "no metrics of a program", Source::saying(text("go_goroutines 7\n"))),
        ("encoding", "too large once it is decoded", Source::saying(coded("gzip", &bomb()))),
        ("encoding", "not what it says", Source::saying(coded("gzip", b"plain"))),
        ("encoding", "cannot be read", Source::saying(coded("snappy", b"x"))),
        ("broken", "breaks off", Source::saying(half())),
        ("broken", "not HTTP", Source::saying(b"220 mail.example ESMTP\r\n".to_vec())),
        ("timeout", "no whole answer", Source::start(drip)),
    ];
    let engine = Engine::start();
    let sources: Vec<_> = bad.iter().map(|(_, _, source)| source).collect();
    let gateway = beside(&engine, &sources);
    chat_passes(&engine, &gateway);
    for (cause, why, source) in &bad {
        let told = await_source(&gateway, &source.url(), |source| source["cause"] != Value::Null);
        assert_eq!(told["cause"], *cause, "{told:#}");
        assert!(told["why"].as_str().expect("a reason").contains(why), "{told:#}");
        assert_eq!((&told["state"], &told["age"]), (&"failing".into(), &Value::Null), "{told:#}");
        assert_eq!(told["quantities"], Value::Array(Vec::new()));
    }
    chat_passes(&engine, &gateway);
    assert_eq!(inside.asked(), 0);
    let useless = &bad[0].2;
    let rarely = |source: &Value| source["asked"] == 3 && source["every"] == 300.0;
    await_source(&gateway, &useless.url(), rarely);
}

#[test]
fn an_answer_without_an_end_is_read_as_far_as_its_bound() {
    let endless = Source::start(|_, _, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")?;
        stream.write_all(metrics(1).as_bytes())?;
        // Many lines at once: a byte at a time would take longer than an answer may.
        for block in 0_u64.. {
            let line = |nth: u64| {
                let reason = block * 10_000 + nth;
                format!(
                    "vllm:request_success_total{{model_name=\"m\",finished_reason=\"{reason}\"}} 1\n"
                )
            };
            stream.write_all((0..10_000).map(line).collect::<String>().as_bytes())?;
        }
        Ok(())
    });
    let engine = Engine::start();
    let gateway = beside(&engine, &[&endless]);
    let told = await_source(&gateway, &endless.url(), |source| source["state"] == "up");
    assert_eq!(told["cut"], true);
    assert_eq!(quantity(&told, "quantities", "requests_running")["value"], 3.0);
    assert!(told["left_out"].as_u64().expect("a number") > 10_000, "{}", told["left_out"]);
    assert!(told["every"].as_f64().expect("a time") > 15.0, "{}", told["every"]);
    chat_passes(&engine, &gateway);
    assert!(gateway.memory() < 512 << 20, "{}", gateway.memory());
}

#[test]
fn sources_come_and_go_with_the_configuration() {
    let (first, second) = (Source::saying(text(&metrics(1))), Source::saying(text(&metrics(2))));
    let engine = Engine::start();
    let gateway = beside(&engine, &[]);
    let setup = |source: &Source| {
        let urls = format!("{:?}", source.url());
        let fleet = format!("fleet: {{engines: [{urls}], hosts: {{local: off}}}}");
        Setup::before(&engine).upstream("dialect: openai").with(&fleet)
    };
    assert_eq!(gateway.admin("/api/v1/fleet").json()["sources"], Value::Array(Vec::new()));
    gateway.rewrite(&setup(&first));
    await_source(&gateway, &first.url(), |source| source["state"] == "up");
    gateway.rewrite(&setup(&second));
    await_source(&gateway, &second.url(), |source| source["state"] == "up");
    assert_eq!(gateway.admin("/api/v1/fleet").json()["sources"].as_array().unwrap().len(), 1);
    assert!(first.asked.lock().unwrap()[0].header("authorization").is_none());
}

#[test]
fn the_host_and_an_engine_are_shown_by_the_command_and_by_metrics() {
    let source = Source::saying(text(&metrics(7)));
    let engine = Engine::start();
    let url = source.url();
    let fleet = format!("fleet: {{engines: [{url:?}], hosts: {{local_interval_seconds: 0.1}}}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&fleet).start();
    let host = await_source(&gateway, "/proc", |host| {
        host["state"] == "up" && host["asked"].as_u64() > Some(3)
    });
    assert_eq!((&host["every"], &host["kind"]), (&0.1.into(), &"host".into()));
    let told: Vec<_> = host["quantities"].as_array().expect("a list").iter().collect();
    for name in ["system.cpu.time", "system.memory.limit", "system.network.io"] {
        assert!(told.iter().any(|one| one["name"] == name), "{name}");
    }
    await_source(&gateway, &url, |source| source["state"] == "up");
    let admin = format!("http://{}", gateway.admin_address());
    let shown = taximeter(["fleet", "--admin", &admin, "--layer", "l3"]);
    let table = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    assert!(table.contains("/proc") && table.contains("system.memory.limit"), "{table}");
    assert!(!table.contains("requests_running"), "{table}");
    let shown = taximeter(["fleet", "--admin", &admin, "--json"]);
    let fleet: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(fleet["sources"].as_array().expect("a list").len(), 2);
    let lines = gateway.metrics();
    for line in [
        format!(
            "taximeter_fleet_source_up{{taximeter_fleet_source=\"{url}\",taximeter_kind=\"engine\"}} 1"
        ),
        "taximeter_fleet_source_stale{taximeter_fleet_source=\"/proc\",taximeter_kind=\"host\"} 0"
            .to_owned(),
        format!(
            "taximeter_fleet_engine_requests_running{{gen_ai_request_model=\"m\",\
             taximeter_fleet_engine=\"0\",taximeter_fleet_source=\"{url}\"}} 3"
        ),
    ] {
        assert!(lines.lines().any(|is| is == line), "{line}\n{lines}");
    }
    assert!(
        !lines.contains("taximeter_fleet_engine_kv_cache_usage"),
        "what is unknown has no series"
    );
    drop(gateway);
    assert_eq!(taximeter(["fleet", "--admin", &admin]).status.code(), Some(69));
}

/// 64 MiB of zeros.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let zeros = vec![b'0'; 1 << 20];
    for _ in 0..64 {
        encoder.write_all(&zeros).expect("to memory");
    }
    encoder.finish().expect("to memory")
}

/// An answer that says that it is longer than it is.
fn half() -> Vec<u8> {
    let body = metrics(1);
    let length = body.len() + 100;
    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// A byte now and then.
fn drip(_: &Message, _: usize, stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")?;
    stream.set_read_timeout(Some(std::time::Duration::from_millis(100)))?;
    for byte in metrics(1).bytes().cycle() {
        stream.write_all(&[byte])?;
        // Waits, and sees when nobody reads any more.
        if matches!(stream.read(&mut [0]), Ok(0)) {
            break;
        }
    }
    Ok(())
}
