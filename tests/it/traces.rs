//! Spans of requests: whose trace they are in, what they say, which are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;

use crate::client::Client;
use crate::collector::attributes;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup};
use crate::http::{LAST_CHUNK, Message, answer, bare, chunks, json_answer, post, stream_answer};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const ERROR: i32 = 2;

/// A gateway that pushes spans to `collector`; `traces` is what its file says of them.
pub(crate) fn gateway(engine: &Engine, collector: &Engine, traces: &str) -> Gateway {
    let otlp = format!(
        "otlp: {{endpoint: 'http://{}', compression: none, interval_seconds: 3600}}",
        collector.address()
    );
    Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("telemetry: {{{otlp}, traces: {traces}}}"))
        .start()
}

/// The next push of spans, by their names.
pub(crate) fn spans(collector: &Engine) -> BTreeMap<String, Span> {
    pushed(collector).into_iter().map(|span| (span.name.clone(), span)).collect()
}

/// The next push of spans.
fn pushed(collector: &Engine) -> Vec<Span> {
    let (mut connection, request) = collector.request();
    connection.send(TAKEN);
    assert_eq!(request.first_line, "POST /v1/traces HTTP/1.1");
    let pushed = ExportTraceServiceRequest::decode(&*request.body).expect("OTLP");
    let resources = pushed.resource_spans.into_iter();
    let spans = resources.flat_map(|resource| {
        assert!(resource.resource.is_some());
        resource.scope_spans.into_iter().flat_map(|scope| {
            assert_eq!(scope.scope.expect("a scope").name, "taximeter");
            scope.spans
        })
    });
    spans.collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn duration(span: &Span) -> u64 {
    span.end_time_unix_nano - span.start_time_unix_nano
}

/// Asks for a chat with these headers; what the engine got, and the client.
fn exchange(gateway: &Gateway, engine: &Engine, headers: &str) -> (Message, Message) {
    let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), CHAT);
    let (mut connection, request) = engine.request();
    connection.send(&json_answer(CHAT_ANSWER));
    (request, client.answer())
}

#[test]
fn a_stream_is_told_in_its_caller_s_trace_by_stages_that_add_up() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    let headers = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\ntracestate: a=1\r\n");
    let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), STREAM_CHAT);
    let (mut connection, request) = engine.request();
    connection.send(&stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE]));
    assert_eq!(client.answer().status(), 200);
    let spans = spans(&collector);
    let (server, call) = (&spans["POST /v1/chat/completions"], &spans["chat gpt-4o-mini"]);
    assert!(spans.values().all(|span| hex(&span.trace_id) == TRACE), "{spans:?}");
    assert_eq!((server.kind, call.kind), (SpanKind::Server as i32, SpanKind::Client as i32));
    assert_eq!(hex(&server.parent_span_id), CALLER);
    assert_eq!(call.parent_span_id, server.span_id);
    let told = format!("00-{TRACE}-{}-01", hex(&call.span_id));
    assert_eq!(request.header("traceparent"), Some(told.as_str()));
    assert_eq!(request.header("tracestate"), Some("a=1"));
    let below = |parent: &Span| {
        let children = spans.values().filter(|span| span.parent_span_id == parent.span_id);
        children.map(duration).sum::<u64>()
    };
    assert_eq!((below(server), below(call)), (duration(server), duration(call)), "{spans:?}");
    for stage in ["identify", "body", "route", "admit", "connect", "prefill", "stream", "settle"] {
        assert_eq!(spans[stage].kind, SpanKind::Internal as i32, "{stage}");
    }
    assert_eq!(spans.len(), 10);
    assert!(spans.values().all(|span| span.status.is_none()), "{spans:?}");
    let facing = attributes(&server.attributes);
    assert_eq!(facing["http.response.status_code"], "200");
    assert_eq!(facing["url.path"], "/v1/chat/completions");
    assert_eq!(facing["network.protocol.version"], "1.1");
    let generated = attributes(&call.attributes);
    for (key, value) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "gpt-4o-mini"),
        ("gen_ai.request.stream", "true"),
        ("gen_ai.response.finish_reasons", "stop"),
        ("gen_ai.usage.output_tokens", "100"),
        ("taximeter.usage.source", "reported"),
        ("taximeter.usage.input.source", "reported"),
        ("taximeter.usage.output.source", "reported"),
        ("taximeter.tenant", "default"),
        ("taximeter.currency", "USD"),
    ] {
        assert_eq!(generated.get(key).map(String::as_str), Some(value), "{key}: {generated:?}");
    }
    assert!(generated["gen_ai.response.time_to_first_chunk"].parse::<f64>().is_ok());
}

#[test]
fn the_stages_of_a_record_are_those_of_its_spans() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    for (body, answer) in [
        (STREAM_CHAT, stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE])),
        (CHAT, json_answer(CHAT_ANSWER)),
    ] {
        let mut client = gateway.chat("Connection: close\r\n", body);
        engine.answer_once(&answer);
        assert_eq!(client.answer().status(), 200);
        let streams = body == STREAM_CHAT;
        let record = gateway.records().into_iter().find(|record| record["stream"] == streams);
        let (record, spans) = (record.expect("its record"), spans(&collector));
        let stages = record["timing"]["stages"].as_object().expect("stages");
        let is_stage = |span: &&Span| span.kind == SpanKind::Internal as i32;
        assert_eq!(spans.values().filter(is_stage).count(), stages.len(), "{stages:?} {spans:?}");
        for (word, took) in stages {
            let span = Duration::from_nanos(duration(&spans[word]));
            let record = Duration::from_secs_f64(took.as_f64().expect("seconds"));
            // A span goes on until its record is in the kernel.
            let is_it = if word == "settle" {
                record <= span
            } else {
                record.abs_diff(span) <= Duration::from_micros(1)
            };
            assert!(is_it, "{word}: {record:?} {span:?}");
        }
    }
}

#[test]
fn a_trace_without_a_good_caller_begins_here_under_the_request_s_id() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    let bad = format!("traceparent: 00-{TRACE}-{CALLER}-zz\r\ntracestate: a=1\r\n");
    let twice = format!("traceparent: 00-{TRACE}-{CALLER}-01\r\n").repeat(2);
    for headers in ["", &bad, &twice] {
        let (request, answer) = exchange(&gateway, &engine, headers);
        let id = answer.header("x-taximeter-request-id").expect("an id").replace('-', "");
        let spans = spans(&collector);
        let server = &spans["POST /v1/chat/completions"];
        assert_eq!(
            (hex(&server.trace_id), hex(&server.parent_span_id)),
            (id.clone(), String::new())
        );
        let told = format!("00-{id}-{}-01", hex(&spans["chat gpt-4o-mini"].span_id));
        assert_eq!(request.header("traceparent"), Some(told.as_str()));
        assert_eq!(request.header("tracestate"), None);
    }
}

#[test]
fn without_spans_a_trace_s_headers_pass_untouched() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    for told in [format!("00-{TRACE}-{CALLER}-01"), "nonsense".to_owned()] {
        let headers = format!("TraceParent: {told}\r\ntracestate: a=1\r\n");
        let (request, _) = exchange(&gateway, &engine, &headers);
        assert_eq!(request.header("traceparent"), Some(told.as_str()));
        assert_eq!(request.header("tracestate"), Some("a=1"));
    }
}

#[test]
fn of_what_is_not_sampled_only_failures_are_kept() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{ratio: 0}");
    let unsampled = format!("traceparent: 00-{TRACE}-{CALLER}-00\r\n");
    for (headers, trace) in [("", None), (unsampled.as_str(), Some(TRACE))] {
        let (request, answer) = exchange(&gateway, &engine, headers);
        assert_eq!(answer.status(), 200);
        assert!(request.header("traceparent").is_some_and(|told| told.ends_with("-00")));
        let mut client = gateway.chat(&format!("{headers}Connection: close\r\n"), CHAT);
        let (mut connection, _) = engine.request();
        connection.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.answer().status(), 503);
        let spans = spans(&collector);
        let server = &spans["POST /v1/chat/completions"];
        assert!(trace.is_none_or(|trace| hex(&server.trace_id) == trace));
        for span in [server, &spans["chat gpt-4o-mini"]] {
            assert_eq!(span.status.as_ref().expect("failed").code, ERROR);
            assert_eq!(attributes(&span.attributes)["error.type"], "503");
        }
    }
    let gone = engine.address();
    drop(engine);
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    assert_eq!(client.answer().status(), 502, "{gone}");
    let spans = spans(&collector);
    let server = attributes(&spans["POST /v1/chat/completions"].attributes);
    assert_eq!(server["error.type"], "502");
    assert_eq!(
        server["taximeter.refusal.code"],
        attributes(&spans["chat gpt-4o-mini"].attributes)["error.type"]
    );
    assert!(!spans.contains_key("answer"), "{spans:?}");
}

#[test]
fn of_what_is_not_sampled_streams_that_begin_late_or_fall_silent_are_kept() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let always = "errors: off, slow_first_token_seconds: 2, stall_seconds: 2";
    let gateway = gateway(&engine, &collector, &format!("{{ratio: 0, always: {{{always}}}}}"));
    let of = |model: &str| STREAM_CHAT.replace("gpt-4o-mini", model);
    let rest = [chunks(&[WORLD, STOP, USAGE, DONE]).as_slice(), LAST_CHUNK].concat();
    let shown = [WORLD, STOP, DONE].concat();
    let (mut stalled, mut silent) = gateway.streaming(&engine, &of("stalled"), &[HELLO]);
    let mut late = gateway.chat("", of("late"));
    let (mut slow, _) = engine.request();
    // Last, since its connection is free behind it.
    let (mut quick, mut connection) = gateway.streaming(&engine, &of("quick"), &[HELLO]);
    connection.send(&rest);
    quick.expect(&shown);
    // Longer than either may take.
    let (_sender, nothing) = std::sync::mpsc::channel::<()>();
    let _ = nothing.recv_timeout(Duration::from_millis(2_500));
    slow.send(&stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE]));
    silent.send(&rest);
    late.answer();
    stalled.expect(&shown);
    let mut kept = BTreeMap::new();
    while !(kept.contains_key("chat late") && kept.contains_key("chat stalled")) {
        kept.extend(spans(&collector));
    }
    assert!(!kept.contains_key("chat quick"), "{kept:?}");
    assert!(kept.values().all(|span| span.status.is_none()), "{kept:?}");
}

#[test]
fn each_attempt_to_reach_an_engine_is_a_stage_of_its_call() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    drop(engine);
    assert_eq!(gateway.chat("Connection: close\r\n", CHAT).answer().status(), 502);
    let spans = pushed(&collector);
    let call = spans.iter().find(|span| span.name == "chat gpt-4o-mini").expect("a call");
    let stages: Vec<_> = spans.iter().filter(|span| span.parent_span_id == call.span_id).collect();
    let told = |span: &Span| {
        let told = attributes(&span.attributes);
        let of = |key: &str| told.get(key).cloned();
        (span.name.clone(), of("error.type"), of("http.request.resend_count"))
    };
    let connect = |cause: &str, resent: Option<&str>| {
        ("connect".to_owned(), Some(cause.to_owned()), resent.map(str::to_owned))
    };
    let told: Vec<_> = stages.iter().map(|span| told(span)).collect();
    assert_eq!(told, [connect("connect", None), connect("upstream_connect", Some("1"))]);
    assert!(stages.iter().all(|span| span.status.as_ref().is_some_and(|it| it.code == ERROR)));
    assert_eq!(stages.iter().map(|span| duration(span)).sum::<u64>(), duration(call));
}

#[test]
fn a_sample_leads_to_its_span() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    exchange(&gateway, &engine, "");
    let spans = spans(&collector);
    let server = &spans["POST /v1/chat/completions"];
    let text = gateway.scrape("application/openmetrics-text;version=1.0.0").text().to_owned();
    let (trace, span) = (hex(&server.trace_id), hex(&server.span_id));
    assert!(text.contains(&format!("trace_id=\"{trace}\",span_id=\"{span}\",")), "{text}");
}

#[test]
fn a_call_takes_as_long_by_its_metrics_as_by_its_span() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}, genai: both");
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    let (mut connection, _) = engine.request();
    connection.send(&stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE]));
    assert_eq!(client.answer().status(), 200);
    let spans = spans(&collector);
    let text = gateway.metrics();
    let told = |name: &str| {
        let name = format!("gen_ai_{name}_seconds_sum{{");
        let line = text.lines().find(|line| line.starts_with(&name)).expect("it is there");
        line.rsplit(' ').next().and_then(|told| told.parse::<f64>().ok()).expect("a number")
    };
    let call = &spans["chat gpt-4o-mini"];
    let took = Duration::from_nanos(duration(call)).as_secs_f64();
    let first = attributes(&call.attributes)["gen_ai.response.time_to_first_chunk"]
        .parse::<f64>()
        .expect("a number");
    for (name, span) in [
        ("client_operation_duration", took),
        ("client_inference_duration", took),
        ("client_operation_time_to_first_chunk", first),
        ("client_inference_time_to_first_chunk", first),
    ] {
        let metric = told(name);
        assert!((metric - span).abs() < 1e-6, "{name} is {metric}, and the span's {span}");
    }
    // Before the engine's server stands the gateway: what it takes itself is in there.
    let before = duration(&spans["POST /v1/chat/completions"]) - duration(call);
    assert!(before > 0 && told("server_request_duration") > took, "{spans:?}");
    assert!(told("server_time_to_first_token") > first, "{spans:?}");
}

#[test]
fn what_a_request_states_is_on_its_engine_s_span_in_each_generation() {
    let body = r#"{"model":"gpt-4o-mini","temperature":0.5,"top_k":40,"seed":-7,"max_tokens":9,
        "stop":["a","b"],"reasoning_effort":"low","response_format":{"type":"json_object"},
        "conversation":{"id":"c"},"prompt":{"id":"fares","version":"2"},
        "messages":[{"role":"user","content":"Where to?"}]}"#;
    for (genai, top_k) in
        [("v1_41", any_value::Value::DoubleValue(40.0)), ("latest", any_value::Value::IntValue(40))]
    {
        let newer = |value| Some(value).filter(|_| genai == "latest");
        let (engine, collector) = (Engine::start(), Engine::start());
        let gateway = gateway(&engine, &collector, &format!("{{}}, genai: {genai}"));
        let mut client = gateway.chat("Connection: close\r\n", body);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
        let spans = spans(&collector);
        let call = &spans["chat gpt-4o-mini"];
        let stated = attributes(&call.attributes);
        for (key, value) in [
            ("gen_ai.request.temperature", Some("0.5")),
            ("gen_ai.request.seed", Some("-7")),
            ("gen_ai.request.max_tokens", Some("9")),
            ("gen_ai.request.stop_sequences", Some("a,b")),
            ("gen_ai.output.type", Some("json")),
            ("gen_ai.conversation.id", Some("c")),
            ("gen_ai.request.reasoning.level", newer("low")),
            ("gen_ai.prompt.name", newer("fares")),
            ("gen_ai.prompt.version", newer("2")),
            ("gen_ai.request.top_p", None),
        ] {
            assert_eq!(stated.get(key).map(String::as_str), value, "{genai}: {key}: {stated:?}");
        }
        let found = call.attributes.iter().find(|pair| pair.key == "gen_ai.request.top_k");
        assert_eq!(found.and_then(|pair| pair.value.clone()?.value), Some(top_k), "{genai}");
    }
}

#[test]
fn what_only_openai_has_is_on_the_spans_of_its_engines_alone() {
    let body = r#"{"model":"gpt-4o-mini","service_tier":"flex","modalities":["text","audio"],
        "messages":[{"role":"user","content":"Where to?"}]}"#;
    let said = r#""service_tier":"default","system_fingerprint":"fp_44709d6fcb","object""#;
    let answer = CHAT_ANSWER.replace("\"object\"", said);
    for (dialect, told) in [("openai", true), ("vllm", false)] {
        let (engine, collector) = (Engine::start(), Engine::start());
        let otlp = format!("endpoint: 'http://{}', compression: none", collector.address());
        let gateway = Setup::before(&engine)
            .upstream(&format!("dialect: {dialect}"))
            .with(&format!("telemetry: {{otlp: {{{otlp}, interval_seconds: 3600}}, traces: {{}}}}"))
            .start();
        let mut client = gateway.chat("Connection: close\r\n", body);
        engine.answer_once(&json_answer(&answer));
        assert_eq!(client.answer().status(), 200);
        let call = attributes(&spans(&collector)["chat gpt-4o-mini"].attributes);
        for (key, value) in [
            ("openai.api.type", "chat_completions"),
            ("openai.request.service_tier", "flex"),
            ("openai.response.service_tier", "default"),
            ("openai.response.system_fingerprint", "fp_44709d6fcb"),
        ] {
            assert_eq!(call.get(key).map(String::as_str), told.then_some(value), "{key}: {call:?}");
        }
        assert_eq!(call["gen_ai.output.type"], "speech", "{dialect}");
    }
}

#[test]
fn tokens_are_on_spans_by_modality_in_the_latest_generation() {
    let detailed = "\"cached_tokens\":400,\"cached_tokens_details\":{\"text_tokens\":400}";
    let detailed = format!("{detailed},\"audio_tokens\":70,\"text_tokens\":930");
    let answer = CHAT_ANSWER.replace("\"cached_tokens\":400", &detailed);
    for genai in ["v1_41", "latest"] {
        let (engine, collector) = (Engine::start(), Engine::start());
        let gateway = gateway(&engine, &collector, &format!("{{}}, genai: {genai}"));
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(&answer));
        assert_eq!(client.answer().status(), 200);
        let call = attributes(&spans(&collector)["chat gpt-4o-mini"].attributes);
        assert_eq!(call["gen_ai.usage.input_tokens"], "1000", "{call:?}");
        for (part, tokens) in [
            ("text.input_tokens", Some("930")),
            ("audio.input_tokens", Some("70")),
            ("image.input_tokens", None),
        ] {
            let told = call.get(&format!("gen_ai.usage.{part}")).map(String::as_str);
            assert_eq!(told, tokens.filter(|_| genai == "latest"), "{genai}: {part}: {call:?}");
        }
    }
}

#[test]
fn a_request_that_is_on_no_ledger_and_meets_no_engine_has_the_span_of_its_call_too() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    drop(engine);
    let request = bare("GET", "/v1/models", "Connection: close\r\n");
    assert_eq!(gateway.ask(&request).status(), 502);
    let spans = spans(&collector);
    let (server, call) = (&spans["GET /v1/models"], &spans["GET"]);
    assert_eq!((call.kind, &call.parent_span_id), (SpanKind::Client as i32, &server.span_id));
    let (asked, called) = (attributes(&server.attributes), attributes(&call.attributes));
    assert_eq!(asked["http.response.status_code"], "502");
    assert_eq!(called["error.type"], "upstream_connect", "{called:?}");
    assert_eq!(called.get("http.response.status_code"), None, "no engine has said so");
}

#[test]
fn a_request_that_is_on_no_ledger_has_the_span_that_its_engine_was_told() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{}");
    for (status, error) in [("200 OK", None), ("404 Not Found", Some("404"))] {
        let request = "GET /v1/models?key=s HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n";
        let mut client = Client::saying(gateway.address(), request.as_bytes());
        let (mut connection, request) = engine.request();
        connection.send(&answer(status, "application/json", "{}"));
        client.answer();
        let all = pushed(&collector);
        let named = |name: &str| all.iter().find(|span| span.name == name).expect("a span");
        let (server, call) = (named("GET /v1/models"), named("GET"));
        let told = format!("-{}-01", hex(&call.span_id));
        assert!(request.header("traceparent").is_some_and(|parent| parent.ends_with(&told)));
        assert_eq!(call.kind, SpanKind::Client as i32);
        let below = all.iter().filter(|span| span.parent_span_id == server.span_id);
        assert_eq!(below.map(duration).sum::<u64>(), duration(server), "{all:?}");
        let said = attributes(&call.attributes);
        assert_eq!(said["url.full"], format!("http://{}/v1/models", engine.address()));
        assert_eq!(said["http.response.status_code"], status[..3]);
        assert_eq!(said.get("error.type").map(String::as_str), error);
        assert_eq!(call.status.as_ref().map(|status| status.code), error.map(|_| ERROR));
    }
}

#[test]
fn a_client_that_leaves_before_anything_is_reserved_has_a_span() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = gateway(&engine, &collector, "{ratio: 0}, access_log: errors");
    let whole = post("/v1/chat/completions", "", CHAT);
    drop(Client::saying(gateway.address(), &whole[..whole.len() - 10]));
    let spans = spans(&collector);
    assert_eq!(spans.len(), 1, "{spans:?}");
    let server = &spans["POST /v1/chat/completions"];
    let told = attributes(&server.attributes);
    assert_eq!(told["error.type"], "client_disconnect", "{told:?}");
    assert!(!told.contains_key("http.response.status_code"), "{told:?}");
    assert_eq!(server.status.as_ref().expect("failed").code, ERROR);
    let line = gateway.await_event("request");
    assert_eq!(line["error_type"], "client_disconnect", "{line}");
    let counted = gateway.metrics().lines().any(|line| {
        line.starts_with("http_server_request_duration_seconds_count{")
            && line.contains("error_type=\"client_disconnect\"")
            && line.ends_with(" 1")
    });
    assert!(counted, "{}", gateway.metrics());
}
