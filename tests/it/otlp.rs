//! Metrics pushed by OTLP: the same numbers as `/metrics`, whatever the collector does.

use std::path::Path;

use opentelemetry_proto::tonic::metrics::v1::{AggregationTemporality, metric};

use crate::collector::{Collector, Pushed, attributes};
use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, json_answer};

const TAKEN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BUSY: &[u8] =
    b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const TOKENS: &str = "gen_ai.client.token.usage";

fn setup(engine: &Engine, otlp: &str) -> Setup {
    let telemetry = format!("telemetry: {{otlp: {{{otlp}}}}}");
    Setup::before(engine).upstream("dialect: openai").with(&telemetry)
}

fn by_http(engine: &Engine, collector: &Engine, more: &str) -> Gateway {
    setup(engine, &format!("endpoint: 'http://{}'{more}", collector.address())).start()
}

fn exchange(gateway: &Gateway, engine: &Engine) {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

/// The next push by HTTP, and who waits for an answer.
fn push(collector: &Engine) -> (Connection, Message, Pushed) {
    let (connection, request) = collector.request();
    let gzip = request.header("content-encoding") == Some("gzip");
    let pushed = Pushed::of(&request.body, gzip);
    (connection, request, pushed)
}

/// Takes pushes until one has the samples of so many requests.
fn await_samples(collector: &Engine, count: u64) -> (Message, Pushed) {
    loop {
        let (mut connection, request, pushed) = push(collector);
        connection.send(TAKEN);
        if pushed.samples(TOKENS).is_some_and(|samples| samples >= 2 * count) {
            assert_eq!(pushed.samples(TOKENS), Some(2 * count));
            return (request, pushed);
        }
    }
}

#[test]
fn a_collector_gets_by_http_what_a_scrape_shows() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let more = ", headers: {Api-Key: sk-otlp}, interval_seconds: 0.05";
    let gateway = by_http(&engine, &collector, more);
    exchange(&gateway, &engine);
    let (request, pushed) = await_samples(&collector, 1);
    assert_eq!(request.first_line, "POST /v1/metrics HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
    assert_eq!(request.header("content-encoding"), Some("gzip"));
    assert_eq!(request.header("api-key"), Some("sk-otlp"));
    assert_eq!(pushed.resource["service.name"], "taximeter");
    assert!(pushed.resource.contains_key("service.instance.id"));
    let tokens = pushed.metric(TOKENS).expect("it is there");
    assert_eq!(tokens.unit, "{token}");
    let Some(metric::Data::Histogram(tokens)) = &tokens.data else { panic!("{tokens:?}") };
    assert_eq!(tokens.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    let sums: f64 = tokens.data_points.iter().filter_map(|point| point.sum).sum();
    assert!((sums - 1100.0).abs() < f64::EPSILON, "{tokens:?}");
    let told = attributes(&tokens.data_points[0].attributes);
    assert_eq!(told["gen_ai.operation.name"], "chat");
    assert_eq!(told["server.port"], engine.address().port().to_string());
    assert!(!tokens.data_points[0].exemplars.is_empty());
    assert_eq!(pushed.count("taximeter.requests"), Some(1));
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"sent\"} ");
}

#[test]
fn a_collector_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = by_http(&engine, &collector, ", compression: none, interval_seconds: 2");
    exchange(&gateway, &engine);
    let (mut connection, ..) = push(&collector);
    connection.send(BUSY);
    drop(connection);
    let (mut connection, request, _) = push(&collector);
    assert_eq!(request.header("content-encoding"), None);
    connection.send(b"HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    gateway.await_metric("taximeter_otlp_faults_total{taximeter_otlp_signal=\"metrics\"} 1");
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"dropped\"} ");
    // The next round tells all of it again.
    await_samples(&collector, 1);
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"sent\"} ");
    gateway.await_event("otlp_failed");
}

#[test]
fn what_a_collector_rejects_of_a_push_is_counted() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let gateway = by_http(&engine, &collector, ", interval_seconds: 0.05");
    let (mut connection, ..) = push(&collector);
    // Partial success: 1 data point, "old".
    let partial = [&b"\x0a\x07\x08\x01\x12\x03old"[..]].concat();
    connection.send(&crate::http::answer("200 OK", "application/x-protobuf", partial));
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"rejected\"} 1\n");
    gateway.await_event("otlp_rejected");
}

#[test]
fn a_collector_gets_by_grpc_and_tls_what_it_gets_by_http() {
    let (engine, collector) = (Engine::start(), Collector::start(true));
    let gateway = setup(
        &engine,
        &format!(
            "endpoint: 'https://localhost:{}', protocol: grpc, ca: '{}', headers: {{x-key: k}}, \
             interval_seconds: 0.2",
            collector.address.port(),
            collector.certificate.display()
        ),
    );
    let gateway = gateway.start();
    exchange(&gateway, &engine);
    collector.answer(&[("grpc-status", "14"), ("grpc-message", "busy")]);
    let call = collector.call();
    assert_eq!(call.path, "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export");
    assert_eq!(call.headers["content-type"], "application/grpc");
    assert_eq!(call.headers["te"], "trailers");
    assert_eq!(call.headers["grpc-encoding"], "gzip");
    assert_eq!(call.headers["x-key"], "k");
    while collector.call().pushed().samples(TOKENS) != Some(2) {}
    gateway.await_metric("taximeter_otlp_faults_total{taximeter_otlp_signal=\"metrics\"} 1");
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"sent\"} ");
}

#[test]
fn a_collector_that_asks_who_pushes_is_shown_a_certificate() {
    let engine = Engine::start();
    let collector = Collector::start_for_the_certified();
    let (certificate, key) = (collector.certificate.display(), collector.key());
    let endpoint = format!("https://localhost:{}", collector.address.port());
    let trusts = format!(
        "endpoint: '{endpoint}', protocol: grpc, ca: '{certificate}', interval_seconds: 0.1"
    );
    let stranger = setup(&engine, &trusts).start();
    stranger.await_metric("taximeter_otlp_faults_total{taximeter_otlp_signal=\"metrics\"} 1");
    drop(stranger);
    let shows = format!("{trusts}, cert: '{certificate}', key: '{}'", key.display());
    let gateway = setup(&engine, &shows).start();
    assert_eq!(collector.call().pushed().resource["service.name"], "taximeter");
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"sent\"} ");
}

#[test]
fn whoever_is_not_trusted_gets_nothing() {
    let (engine, collector) = (Engine::start(), Collector::start(true));
    let endpoint = format!("endpoint: 'https://localhost:{}'", collector.address.port());
    let gateway = setup(&engine, &format!("{endpoint}, protocol: grpc, interval_seconds: 0.05"));
    let gateway = gateway.start();
    gateway.await_metric("taximeter_otlp_faults_total{taximeter_otlp_signal=\"metrics\"} 1");
    exchange(&gateway, &engine);
}

#[test]
fn the_last_numbers_are_pushed_at_the_end() {
    let (engine, collector) = (Engine::start(), Collector::start(false));
    let endpoint = format!("endpoint: 'http://{}', protocol: grpc", collector.address);
    let mut gateway = setup(&engine, &format!("{endpoint}, interval_seconds: 3600")).start();
    exchange(&gateway, &engine);
    gateway.terminate();
    let pushed = collector.call().pushed();
    assert_eq!((pushed.samples(TOKENS), pushed.count("taximeter.requests")), (Some(2), Some(1)));
    assert!(gateway.exit().0.success());
}

#[test]
fn a_delta_tells_each_sample_once() {
    let (engine, collector) = (Engine::start(), Collector::start(false));
    let endpoint = format!("endpoint: 'http://{}', protocol: grpc", collector.address);
    let more = "interval_seconds: 0.05, temporality: delta";
    let mut gateway = setup(&engine, &format!("{endpoint}, {more}")).start();
    for _ in 0..3 {
        exchange(&gateway, &engine);
        while collector.call().pushed().samples(TOKENS) != Some(2) {}
    }
    gateway.terminate();
    assert!(gateway.exit().0.success());
}

#[test]
fn exponential_histograms_have_the_samples_that_a_scrape_shows_in_the_conventions_buckets() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let more = ", histograms: exponential, interval_seconds: 0.05";
    let gateway = by_http(&engine, &collector, more);
    exchange(&gateway, &engine);
    let told = loop {
        let (mut connection, _, pushed) = push(&collector);
        connection.send(TAKEN);
        if let Some(tokens) = pushed.metric(TOKENS) {
            break tokens.data.clone();
        }
    };
    let Some(metric::Data::ExponentialHistogram(tokens)) = told else { panic!("{told:?}") };
    assert_eq!(tokens.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    for point in &tokens.data_points {
        let buckets = point.positive.as_ref().expect("buckets");
        let counts = (buckets.offset..).zip(&buckets.bucket_counts);
        let (index, _) = counts.filter(|(_, count)| **count == 1).last().expect("a sample");
        let bound = |index: i32| 2_f64.powf(f64::from(index) * 2_f64.powi(-point.scale));
        let sample = point.sum.expect("a sum");
        assert!(bound(index) < sample && sample <= bound(index + 1), "{point:?}");
    }
    let text = gateway.metrics();
    assert!(text.contains("gen_ai_client_token_usage_bucket{"), "{text}");
    let refuses = gateway.scrape("application/vnd.google.protobuf");
    assert!(refuses.header("content-type").is_some_and(|form| form.starts_with("text/plain")));
}

#[test]
fn a_collector_that_is_not_there_costs_requests_nothing() {
    let (engine, gone) = (Engine::start(), Engine::start());
    let address = gone.address();
    drop(gone);
    let otlp =
        format!("endpoint: 'http://{address}', interval_seconds: 0.01, timeout_seconds: 0.1");
    let mut gateway = setup(&engine, &otlp).start();
    for _ in 0..20 {
        exchange(&gateway, &engine);
    }
    gateway.await_metric("{taximeter_otlp_signal=\"metrics\",taximeter_outcome=\"dropped\"} ");
    assert_eq!(gateway.admin("/readyz").status(), 200);
    gateway.terminate();
    assert!(gateway.exit().0.success());
}

#[test]
fn a_collector_that_takes_a_push_and_never_answers_costs_requests_nothing() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let otlp = format!("endpoint: 'http://{}', interval_seconds: 0.05", collector.address());
    let telemetry = format!(
        "{{otlp: {{{otlp}, timeout_seconds: 0.5, logs: on}}, traces: {{}}, access_log: all}}"
    );
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&format!("telemetry: {telemetry}"))
        .start();
    exchange(&gateway, &engine);
    // It holds this push until the end.
    let (_unanswered, ..) = collector.request();
    for _ in 0..20 {
        exchange(&gateway, &engine);
    }
    // Of metrics the next round tells more; spans and lines wait.
    let metrics = "taximeter_otlp_signal=\"metrics\"";
    gateway.await_metric(&format!("{{{metrics},taximeter_outcome=\"dropped\"}} "));
    for signal in ["traces", "logs"] {
        let signal = format!("taximeter_otlp_signal=\"{signal}\"");
        gateway.await_metric(&format!("taximeter_otlp_faults_total{{{signal}}} "));
        assert!(
            !gateway.metrics().contains(&format!("{{{signal},taximeter_outcome=\"dropped\"}}"))
        );
    }
    exchange(&gateway, &engine);
    assert_eq!(gateway.admin("/readyz").status(), 200);
}

#[test]
fn the_environment_says_where_to_push_and_what() {
    let (engine, collector) = (Engine::start(), Engine::start());
    let upstream = format!("http://{}", engine.address());
    let endpoint = format!("http://{}/base", collector.address());
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "50"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_LOGS_EXPORTER", "none"),
        ("OTEL_SERVICE_NAME", "gate"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
    ];
    let gateway = Gateway::by_flags_with(
        &["--upstream", &upstream],
        &environment.map(|(name, value)| (name, Path::new(value))),
    );
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.serve_until_answered(CHAT_ANSWER);
    assert_eq!(client.answer().status(), 200);
    loop {
        let (mut connection, request, pushed) = push(&collector);
        connection.send(TAKEN);
        assert_eq!(request.first_line, "POST /base/v1/metrics HTTP/1.1");
        assert_eq!(pushed.resource["service.name"], "gate");
        if pushed.samples("gen_ai.client.inference.duration") == Some(1) {
            assert_eq!(pushed.count("gen_ai.client.inference.usage.input_tokens"), Some(1000));
            assert_eq!(pushed.samples(TOKENS), None);
            return;
        }
    }
}
