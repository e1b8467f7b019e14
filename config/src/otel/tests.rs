use super::*;
use crate::content::Capture;
use crate::sampling::Always;

const AGGREGATION: &str = "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION";

fn config(yaml: &str, env: &dyn Fn(&str) -> Option<String>) -> Config {
    let text = format!("upstreams: [{{name: e, url: 'http://e'}}]\n{yaml}");
    let none = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let config = Config::from_yaml(&text, "/etc/t.yaml", env, &none);
    config.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn environment(variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> {
    move |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

fn otel(yaml: &str, variables: &[(&str, &str)]) -> (OtelSettings, Vec<IgnoredVariable>) {
    config(yaml, &|_| None).otel(&environment(variables))
}

fn metrics(yaml: &str, variables: &[(&str, &str)]) -> Option<MetricsExport> {
    let (otel, ignored) = otel(yaml, variables);
    assert_eq!(ignored, []);
    otel.metrics
}

fn place(export: &MetricsExport) -> (String, &str, OtlpProtocol) {
    let exporter = &export.exporter;
    (exporter.url.authority(), &exporter.url.prefix, exporter.protocol)
}

/// What of prompts and answers is told where, whether calls are events beyond that, and how many
/// variables were left out.
fn captured(yaml: &str, variables: &[(&str, &str)]) -> (Capture, bool, usize) {
    let env = environment(variables);
    let config = config(yaml, &env);
    let (otel, ignored) = config.otel(&env);
    (config.telemetry.content.capture, otel.events, ignored.len())
}

#[test]
fn the_environment_asks_for_content_where_the_file_says_nothing_of_it() {
    let captures = |file: &str, word: &str| {
        let (capture, _, ignored) = captured(file, &[(CAPTURE_VARIABLE, word)]);
        (capture, ignored)
    };
    for (word, expected) in [
        ("SPAN_ONLY", (Capture::Spans, 0)),
        ("span_and_event", (Capture::Both, 0)),
        ("true", (Capture::Spans, 0)),
        ("EVENT_ONLY", (Capture::Events, 0)),
        ("NO_CONTENT", (Capture::Off, 0)),
        ("", (Capture::Off, 0)),
        ("everywhere", (Capture::Off, 1)),
    ] {
        assert_eq!(captures("", word), expected, "{word}");
        assert_eq!(captures("telemetry: {content: {bytes_max: 900}}", word), expected, "{word}");
    }
    let of_file = |word: &str, told| {
        captures(&format!("telemetry: {{content: {{capture: {word}}}}}"), told).0
    };
    assert_eq!(of_file("off", "true"), Capture::Off);
    assert_eq!(of_file("events", "no_content"), Capture::Events);
}

#[test]
fn the_environment_says_whether_calls_are_events() {
    let file = "telemetry: {content: {capture: both}}";
    for (capture, event, expected) in [
        ("", "", (Capture::Off, false, 0)),
        ("", "true", (Capture::Off, true, 0)),
        ("span_only", "TRUE", (Capture::Spans, true, 0)),
        ("event_only", "", (Capture::Events, false, 0)),
        ("event_only", "False", (Capture::Off, false, 0)),
        ("span_and_event", "false", (Capture::Spans, false, 0)),
        ("span_and_event", "perhaps", (Capture::Both, false, 1)),
    ] {
        let variables = [(CAPTURE_VARIABLE, capture), (EVENT_VARIABLE, event)];
        assert_eq!(captured("", &variables), expected, "{capture} {event}");
    }
    assert_eq!(captured(file, &[(EVENT_VARIABLE, "false")]), (Capture::Both, false, 0));
}

#[test]
fn a_variable_of_the_standard_that_changes_nothing_is_told_with_what_stands_in_its_place() {
    for (name, instead) in UNSUPPORTED {
        let (_, ignored) = otel("", &[(name, "1")]);
        let why = Invalid::new("is not supported", *instead);
        assert_eq!(ignored, [IgnoredVariable { variable: (*name).to_owned(), why }]);
        assert_eq!(otel("", &[(name, "")]).1, []);
    }
    for (propagators, ignored) in [("tracecontext,baggage", 0), ("tracecontext", 0), ("b3", 1)] {
        assert_eq!(otel("", &[("OTEL_PROPAGATORS", propagators)]).1.len(), ignored);
    }
    assert_eq!(otel("", &[("OTEL_SDK_DISABLED", "yes")]).1.len(), 1);
}

#[test]
fn nothing_is_pushed_unless_somebody_says_where_to() {
    assert_eq!(metrics("", &[]), None);
    assert_eq!(metrics("telemetry: {otlp: {protocol: grpc}}", &[]), None);
    for off in ["none", "prometheus"] {
        let variables =
            [("OTEL_METRICS_EXPORTER", off), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")];
        assert_eq!(metrics("", &variables), None);
    }
    let file = "telemetry: {otlp: {endpoint: 'http://c:4318'}}";
    assert_eq!(metrics(file, &[("OTEL_SDK_DISABLED", "TRUE")]), None);
    assert!(metrics(file, &[("OTEL_METRICS_EXPORTER", "none")]).is_some());
    let local = metrics("", &[("OTEL_METRICS_EXPORTER", "otlp")]).unwrap();
    let http = OtlpProtocol::HttpProtobuf;
    assert_eq!(place(&local), ("localhost:4318".to_owned(), "/v1/metrics", http));
}

#[test]
fn the_endpoint_says_how_unless_the_protocol_does() {
    let (grpc, http) = (OtlpProtocol::Grpc, OtlpProtocol::HttpProtobuf);
    for (endpoint, protocol, told) in [
        ("http://c:4317", "", ("c:4317", "/", grpc)),
        ("http://c:4318/", "", ("c:4318", "/v1/metrics", http)),
        ("https://c/otlp", "", ("c", "/otlp/v1/metrics", http)),
        ("https://c", "grpc", ("c", "/", grpc)),
        ("http://c:4317", "http/protobuf", ("c:4317", "/v1/metrics", http)),
    ] {
        let told = (told.0.to_owned(), told.1, told.2);
        let variables =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)];
        assert_eq!(place(&metrics("", &variables).unwrap()), told);
        let protocol =
            if protocol.is_empty() { String::new() } else { format!(", protocol: {protocol}") };
        let file = format!("telemetry: {{otlp: {{endpoint: '{endpoint}'{protocol}}}}}");
        assert_eq!(place(&metrics(&file, &[]).unwrap()), told);
    }
    let own = [("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://c:4318/api/otlp?x=1")];
    let export = metrics("", &own).unwrap();
    assert_eq!(place(&export), ("c:4318".to_owned(), "/api/otlp?x=1", http));
}

#[test]
fn every_variable_is_read_and_the_one_for_metrics_wins() {
    let export = metrics(
        "",
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://own:4317"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%20b%2Cc, x-scope=t"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/all.pem"),
            ("OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE", "/own.pem"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/own.key"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "5000"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "DELTA"),
            (AGGREGATION, "BASE2_EXPONENTIAL_BUCKET_HISTOGRAM"),
        ],
    );
    let MetricsExport { exporter, interval, temporality, histograms } = export.unwrap();
    assert_eq!((interval.as_secs(), temporality), (5, Temporality::Delta));
    assert_eq!(histograms, HistogramBuckets::Exponential);
    assert_eq!((exporter.url.host.as_str(), exporter.protocol), ("own", OtlpProtocol::Grpc));
    assert_eq!((exporter.gzip, exporter.timeout.as_millis()), (false, 2500));
    assert_eq!(exporter.ca, Some(PathBuf::from("/ca.pem")));
    let (cert, key) = ("/own.pem".into(), "/own.key".into());
    assert_eq!(exporter.client, Some(ClientCertificate { cert, key }));
    let headers: Vec<_> = exporter.headers.iter().map(|(k, v)| (k.as_str(), v.expose())).collect();
    assert_eq!(headers, [("api-key", "a b,c"), ("x-scope", "t")]);
}

#[test]
fn a_key_of_the_file_wins_over_variables() {
    let yaml = "telemetry:
  genai: v1_41
  otlp:
    endpoint: http://file:4317
    protocol: http/protobuf
    headers: {Api-Key: two words}
    compression: none
    timeout_seconds: 3
    ca: ca.pem
    cert: own.pem
    key: own.key
    interval_seconds: 0.5
    temporality: delta
    histograms: exponential
";
    let others = [
        ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://env:4318"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/other"),
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/other"),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/other"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
        ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "cumulative"),
        (AGGREGATION, "explicit_bucket_histogram"),
        ("OTEL_SEMCONV_STABILITY_OPT_IN", "http,gen_ai_latest_experimental"),
    ];
    assert_eq!(otel(yaml, &others), otel(yaml, &[]));
    let export = otel(yaml, &[]).0.metrics.unwrap();
    assert_eq!(export.exporter.ca, Some(PathBuf::from("/etc/ca.pem")));
    let (cert, key) = ("/etc/own.pem".into(), "/etc/own.key".into());
    assert_eq!(export.exporter.client, Some(ClientCertificate { cert, key }));
    assert_eq!(export.exporter.headers["api-key"].expose(), "two words");
    assert_eq!((export.interval.as_millis(), export.temporality), (500, Temporality::Delta));
    assert_eq!(export.histograms, HistogramBuckets::Exponential);
}

#[test]
fn the_generation_is_the_file_s_or_what_is_opted_in() {
    let genai = |yaml, opted: &str| otel(yaml, &[("OTEL_SEMCONV_STABILITY_OPT_IN", opted)]).0.genai;
    assert_eq!(genai("", ""), GenAi::V1_41);
    assert_eq!(genai("", "http/dup, gen_ai_latest_experimental"), GenAi::Latest);
    assert_eq!(genai("telemetry: {genai: both}", "gen_ai_latest_experimental"), GenAi::Both);
}

#[test]
fn the_resource_is_the_file_s_over_the_environment_s() {
    let variables = [
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=a,k8s.pod.name=p%2C1,team=x"),
        ("OTEL_SERVICE_NAME", "gate"),
    ];
    let resource = otel("resource: {team: search}", &variables).0.resource;
    let told: Vec<_> = resource.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(told, ["k8s.pod.name=p,1", "service.name=gate", "team=search"]);
    assert_eq!(otel("", &[]).0.resource["service.name"], "taximeter");
}

#[test]
fn what_does_not_do_is_left_out_and_told_without_a_secret() {
    let (told, ignored) = otel(
        "telemetry: {otlp: {endpoint: 'http://c:4318'}}",
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key:hunter2"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "Host=hunter2"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "0"),
            ("OTEL_METRICS_EXPORTER", "console"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "none"),
            (AGGREGATION, "summary"),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=%zz"),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", "/alone.key"),
        ],
    );
    assert_eq!(told, otel("telemetry: {otlp: {endpoint: 'http://c:4318'}}", &[]).0);
    assert_eq!(ignored.len(), 12, "{ignored:#?}");
    assert!(!format!("{ignored:?}").contains("hunter2"));
}

fn traces(yaml: &str, variables: &[(&str, &str)]) -> Option<TracesExport> {
    let (otel, ignored) = otel(yaml, variables);
    assert_eq!(ignored, []);
    otel.traces
}

#[test]
fn spans_go_to_the_collector_of_a_file_only_if_it_says_so() {
    let endpoint = "otlp: {endpoint: 'http://c:4318'}";
    let file = format!("telemetry: {{{endpoint}}}");
    assert_eq!(traces(&file, &[]), None);
    let export = traces(&format!("telemetry: {{{endpoint}, traces: {{}}}}"), &[]).unwrap();
    assert_eq!(export.exporter.url.prefix, "/v1/traces");
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
    assert!(traces("", &[all]).is_some());
    assert_eq!(traces("", &[all, ("OTEL_TRACES_EXPORTER", "none")]), None);
    assert_eq!(traces(&file, &[all]), None);
    let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:4318/t");
    let export = traces(&file, &[all, own]).unwrap();
    assert_eq!((export.exporter.url.prefix.as_str(), export.exporter.url.port), ("/t", 4318));
    let export = traces(&file, &[all, ("OTEL_TRACES_EXPORTER", "otlp")]).unwrap();
    assert_eq!(export.exporter.url.authority(), "c:4318");
}

#[test]
fn the_sampler_is_the_file_s_or_the_environment_s() {
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
    let sampling = |yaml: &str, variables: &[(&'static str, &'static str)]| {
        traces(yaml, &[&[all], variables].concat()).unwrap().sampling
    };
    let usual = Sampling { ratio: Ratio::ALL, heeds_parent: true, always: Always::default() };
    assert_eq!(sampling("", &[]), usual);
    let half = ("OTEL_TRACES_SAMPLER_ARG", "0.5");
    for (name, heeds_parent) in [("traceidratio", false), ("parentbased_traceidratio", true)] {
        let read = sampling("", &[("OTEL_TRACES_SAMPLER", name), half]);
        assert_eq!(
            read,
            Sampling { ratio: Ratio::parse("0.5").unwrap(), heeds_parent, ..usual.clone() }
        );
    }
    assert_eq!(sampling("", &[("OTEL_TRACES_SAMPLER", "always_off")]).ratio, Ratio::NONE);
    let file = "telemetry: {otlp: {endpoint: 'http://c:4318'}, traces: {ratio: 0.25}}";
    let read = sampling(file, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    assert_eq!((read.ratio, read.heeds_parent), (Ratio::parse("0.25").unwrap(), false));
    let (_, ignored) = otel("", &[all, ("OTEL_TRACES_SAMPLER", "jaeger_remote")]);
    assert_eq!(ignored.len(), 1);
    let (_, ignored) = otel("", &[all, ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")]);
    assert_eq!(ignored.len(), 1, "it is told once");
}

fn logs(yaml: &str, variables: &[(&str, &str)]) -> Option<LogsExport> {
    let (otel, ignored) = otel(yaml, variables);
    assert_eq!(ignored, []);
    otel.logs
}

#[test]
fn log_lines_go_to_the_collector_of_a_file_only_if_it_says_so() {
    let file = |logs: &str| format!("telemetry: {{otlp: {{endpoint: 'http://c:4318'{logs}}}}}");
    assert_eq!(logs(&file(""), &[]), None);
    let export = logs(&file(", logs: on"), &[]).unwrap();
    assert_eq!(export.exporter.url.prefix, "/v1/logs");
    assert_eq!(export.interval.as_millis(), 1000);
    let wanted = ("OTEL_LOGS_EXPORTER", "otlp");
    assert!(logs(&file(""), &[wanted]).is_some());
    assert_eq!(logs(&file(", logs: off"), &[wanted]), None);
    let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
    assert!(logs("", &[all]).is_some());
    assert_eq!(logs("", &[all, ("OTEL_LOGS_EXPORTER", "none")]), None);
    let own = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://own:4317/");
    let export = logs("", &[all, own, ("OTEL_BLRP_SCHEDULE_DELAY", "50")]).unwrap();
    assert_eq!(export.exporter.url.authority(), "own:4317");
    assert_eq!((export.exporter.protocol, export.interval.as_millis()), (OtlpProtocol::Grpc, 50));
}
