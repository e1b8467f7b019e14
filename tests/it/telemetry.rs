//! `/metrics`: both generations of the GenAI conventions, formats, examples, and limits.

use std::collections::BTreeSet;

use crate::client::{Client, ask};
use crate::engine::Engine;
use crate::fixtures::{
    CHAT, CHAT_ANSWER, DONE, EMBEDDINGS, EMBEDDINGS_ANSWER, HELLO, STOP, STREAM_CHAT, USAGE, WORLD,
    of_too_many_parts,
};
use crate::gateway::{Gateway, Setup};
use crate::http::{Message, answer, bare, json_answer, post, stream_answer};

const OPENMETRICS: &str = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3";

/// A gateway of this generation that has served a chat, a stream and embeddings.
fn after_rides(engine: &Engine, genai: &str) -> Gateway {
    let gateway = Setup::before(engine)
        .upstream("dialect: openai")
        .with(&format!("telemetry: {{genai: {genai}}}"))
        .start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, WORLD, STOP, USAGE, DONE]));
    client.answer();
    let request = post("/v1/embeddings", "Connection: close\r\n", EMBEDDINGS);
    let mut client = Client::saying(gateway.address(), &request);
    engine.answer_once(&json_answer(EMBEDDINGS_ANSWER));
    client.answer();
    gateway
}

/// A gateway of both generations, and of a tenant that callers without a credential are.
fn of_both_generations(engine: &Engine) -> Setup {
    let tenants = "tenants: {unknown: acme}";
    Setup::before(engine).upstream("dialect: openai").with("telemetry: {genai: both}").with(tenants)
}

/// What each operation is counted in, whether it fails or not.
const OPERATIONS: [&str; 4] = [
    "gen_ai_client_operation_duration_seconds_count",
    "gen_ai_client_inference_duration_seconds_count",
    "gen_ai_server_request_duration_seconds_count",
    "http_client_request_duration_seconds_count",
];

/// Holds that one operation was counted everywhere, and failed by this word.
fn assert_it_failed(gateway: &Gateway, error: &str) -> String {
    let (_, text) = scrape(gateway, "");
    let error = format!("error_type=\"{error}\"");
    for name in OPERATIONS {
        assert_eq!(sum(&text, name, &[&error]), Some(1.0), "{name} in {text}");
        assert_eq!(sum(&text, name, &[]), Some(1.0), "{name} in {text}");
    }
    text
}

/// The sum of all series of this name whose labels have all of these.
fn sum(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let lines = text.lines().filter(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
            && labels.iter().all(|label| line.contains(label))
    });
    lines.map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// Families whose name begins so.
fn families<'t>(text: &'t str, prefix: &str) -> BTreeSet<&'t str> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.filter_map(|rest| rest.split(' ').next());
    names.filter(|name| name.starts_with(prefix)).collect()
}

fn scrape(gateway: &Gateway, accept: &str) -> (String, String) {
    let answer = gateway.scrape(accept);
    assert_eq!(answer.status(), 200);
    (answer.header("content-type").unwrap_or_default().to_owned(), answer.text().to_owned())
}

#[test]
fn the_generation_of_v1_41_has_tokens_in_one_histogram() {
    let engine = Engine::start();
    let gateway = after_rides(&engine, "v1_41");
    let (_, text) = scrape(&gateway, "");
    assert_eq!(
        families(&text, "gen_ai_client_"),
        [
            "gen_ai_client_operation_duration_seconds",
            "gen_ai_client_operation_time_per_output_chunk_seconds",
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "gen_ai_client_token_usage",
        ]
        .into()
    );
    let tokens = |kind| sum(&text, "gen_ai_client_token_usage_sum", &[kind]);
    let types: BTreeSet<_> = text
        .lines()
        .filter(|line| line.starts_with("gen_ai_client_token_usage_sum"))
        .filter_map(|line| line.split("gen_ai_token_type=\"").nth(1)?.split('"').next())
        .collect();
    assert_eq!(types, ["input", "output"].into(), "cached tokens are no type of their own");
    assert_eq!(tokens("gen_ai_token_type=\"output\""), Some(200.0));
    let operations = |name| sum(&text, "gen_ai_client_operation_duration_seconds_count", &[name]);
    assert_eq!(operations("gen_ai_operation_name=\"chat\""), Some(2.0));
    assert_eq!(operations("gen_ai_operation_name=\"embeddings\""), Some(1.0));
}

#[test]
fn the_latest_generation_has_tokens_in_counters_by_modality() {
    let engine = Engine::start();
    let gateway = after_rides(&engine, "latest");
    let (_, text) = scrape(&gateway, "");
    let names = families(&text, "gen_ai_client_");
    for name in [
        "gen_ai_client_inference_duration_seconds",
        "gen_ai_client_inference_time_to_first_chunk_seconds",
        "gen_ai_client_inference_time_per_output_chunk_seconds",
        "gen_ai_client_inference_usage_input_tokens_total",
        "gen_ai_client_inference_usage_output_tokens_total",
        "gen_ai_client_inference_operation_input_tokens",
        "gen_ai_client_inference_operation_output_tokens",
        "gen_ai_client_embeddings_duration_seconds",
        "gen_ai_client_embeddings_operation_input_tokens",
    ] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    assert!(
        !names
            .iter()
            .any(|name| name.contains("token_usage") || name.contains("operation_duration"))
    );
    let output = "gen_ai_client_inference_usage_output_tokens_total";
    assert_eq!(sum(&text, output, &["gen_ai_token_modality=\"unknown\""]), Some(200.0));
    assert_eq!(sum(&text, output, &[]), Some(200.0));
    assert_eq!(sum(&text, "gen_ai_client_embeddings_duration_seconds_count", &[]), Some(1.0));
    assert_eq!(sum(&text, "gen_ai_client_inference_duration_seconds_count", &[]), Some(2.0));
}

#[test]
fn both_generations_stand_side_by_side_with_the_same_numbers() {
    let engine = Engine::start();
    let gateway = after_rides(&engine, "both");
    let (_, text) = scrape(&gateway, "");
    let of = |name, label| sum(&text, name, &[label]);
    assert_eq!(
        of("gen_ai_client_token_usage_sum", "gen_ai_token_type=\"output\""),
        of("gen_ai_client_inference_usage_output_tokens_total", ""),
    );
    assert_eq!(
        of("gen_ai_client_operation_duration_seconds_count", "\"chat\""),
        of("gen_ai_client_inference_duration_seconds_count", ""),
    );
    // What has one name is there once.
    assert_eq!(of("gen_ai_server_request_duration_seconds_count", ""), Some(3.0));
    assert_eq!(of("http_client_request_duration_seconds_count", ""), Some(3.0));
}

#[test]
fn a_request_that_an_engine_refuses_is_an_operation_that_failed() {
    let engine = Engine::start();
    let gateway = of_both_generations(&engine).start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&answer("429 Busy", "application/json", "{}"));
    assert_eq!(client.answer().status(), 429);
    gateway.await_metric("taximeter_void_reason=\"upstream_refused\"} 1");
    let text = assert_it_failed(&gateway, "429");
    // Nobody has served the model: its name is no label.
    assert!(!text.contains("gpt-4o-mini"), "{text}");
    let input = "gen_ai_client_inference_usage_input_tokens_total{";
    assert!(text.lines().any(|line| line.starts_with(input) && line.ends_with(" 0")), "{text}");
    assert_eq!(sum(&text, "gen_ai_client_token_usage_count", &[]), Some(0.0));
}

#[test]
fn a_request_that_never_reached_its_engine_is_an_operation_that_failed_by_its_cause() {
    let engine = Engine::start();
    let gateway = of_both_generations(&engine).start();
    drop(engine);
    assert_eq!(gateway.chat("Connection: close\r\n", CHAT).answer().status(), 502);
    assert_it_failed(&gateway, "upstream_connect");
}

#[test]
fn what_is_passed_on_without_a_record_is_a_request_to_its_engine_too() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let request = bare("GET", "/v1/models", "Connection: close\r\n");
    for status in ["200 OK", "404 Not Found"] {
        let mut client = Client::saying(gateway.address(), &request);
        engine.answer_once(&answer(status, "application/json", "{}"));
        client.answer();
    }
    drop(engine);
    assert_eq!(gateway.ask(&request).status(), 502);
    let text = gateway.metrics();
    let calls = |labels: &[&str]| {
        let of_models = [&["http_request_method=\"GET\"", "server_port="], labels].concat();
        sum(&text, "http_client_request_duration_seconds_count", &of_models)
    };
    assert_eq!(calls(&[]), Some(3.0), "{text}");
    assert_eq!(calls(&["http_response_status_code=\"200\""]), Some(1.0), "{text}");
    let refused = ["error_type=\"404\"", "http_response_status_code=\"404\""];
    assert_eq!(calls(&refused), Some(1.0), "{text}");
    assert_eq!(calls(&["error_type=\"upstream_connect\""]), Some(1.0), "{text}");
    assert_eq!(calls(&["http_response_status_code=\"502\""]), Some(0.0), "{text}");
}

#[test]
fn an_upstream_is_healthy_while_it_answers_and_nothing_is_said_of_it_before() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let healthy = || {
        let text = gateway.metrics();
        let mut lines = text.lines().filter(|line| line.starts_with("taximeter_upstream_healthy{"));
        lines.next().map(|line| line.rsplit(' ').next().map(str::to_owned).expect("a value"))
    };
    assert_eq!(healthy(), None);
    for (status, told) in [("200 OK", "1"), ("503 Busy", "0"), ("400 No", "1"), ("429 Busy", "0")] {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&answer(status, "application/json", CHAT_ANSWER));
        client.answer();
        assert_eq!(healthy().as_deref(), Some(told), "{status}");
    }
    drop(engine);
    gateway.chat("Connection: close\r\n", CHAT).answer();
    assert_eq!(healthy().as_deref(), Some("0"));
}

#[test]
fn where_input_and_output_are_known_from_is_told_and_that_nobody_knows() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let long = of_too_many_parts(HELLO);
    for events in [vec![HELLO, WORLD, STOP, USAGE, DONE], vec![&long, STOP, DONE]] {
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
        engine.answer_once(&stream_answer(&events));
        client.answer();
    }
    gateway.await_records(2);
    let (_, text) = scrape(&gateway, "");
    for (kind, source) in
        [("input", "reported"), ("output", "reported"), ("input", "counted"), ("output", "unknown")]
    {
        let labels = [
            format!("gen_ai_token_type=\"{kind}\""),
            format!("taximeter_usage_source=\"{source}\""),
        ];
        let labels = labels.each_ref().map(String::as_str);
        let told = sum(&text, "taximeter_usage_sources_total", &labels);
        assert_eq!(told, Some(1.0), "{kind} {source}: {text}");
    }
    assert_eq!(sum(&text, "taximeter_usage_sources_total", &[]), Some(4.0), "{text}");
    let missing = sum(&text, "taximeter_usage_flags_total", &["taximeter_usage_flag=\"missing\""]);
    assert_eq!(missing, Some(1.0), "{text}");
}

/// Holds the series of a refusal against its answer: whose it was, where, and which request.
fn assert_refusal_is_told(gateway: &Gateway, refused: &Message, code: &str) {
    let (_, text) = scrape(gateway, OPENMETRICS);
    let status = format!("http_response_status_code=\"{}\"", refused.status());
    let whose = "taximeter_tenant=\"acme\"";
    let labels = [status.as_str(), "http_route=\"/v1/chat/completions\"", whose];
    let http = "http_server_request_duration_seconds";
    assert_eq!(sum(&text, &format!("{http}_count"), &labels), Some(1.0), "{text}");
    let id = refused.header("x-taximeter-request-id").expect("an id");
    let exemplar = format!(" # {{request_id=\"{id}\"}} ");
    let bucket = format!("{http}_bucket{{");
    let is_it = |line: &str| {
        line.starts_with(&bucket) && line.contains(&status) && line.contains(&exemplar)
    };
    assert!(text.lines().any(is_it), "{text}");
    let word = format!("taximeter_refusal_code=\"{code}\"");
    assert_eq!(sum(&text, "taximeter_refusals_total", &[&word, whose]), Some(1.0), "{text}");
}

#[test]
fn a_request_whose_engine_is_gone_is_told_with_its_tenant_its_route_and_an_example() {
    let engine = Engine::start();
    let gateway = of_both_generations(&engine).start();
    drop(engine);
    let refused = gateway.chat("Connection: close\r\n", CHAT).answer();
    assert_eq!(refused.status(), 502);
    assert_refusal_is_told(&gateway, &refused, "upstream_connect");
    let text = gateway.metrics();
    let voided = ["taximeter_void_reason=\"not_sent\"", "taximeter_tenant=\"acme\""];
    assert_eq!(sum(&text, "taximeter_voids_total", &voided), Some(1.0), "{text}");
}

#[test]
fn a_request_of_a_tenant_that_has_too_many_is_told_with_its_tenant_its_route_and_an_example() {
    let engine = Engine::start();
    let gateway = of_both_generations(&engine).with("limits: {requests_per_tenant_max: 1}").start();
    let (_client, _connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let refused = gateway.chat("Connection: close\r\n", CHAT).answer();
    assert_eq!(refused.status(), 429);
    assert_refusal_is_told(&gateway, &refused, "concurrency_limited");
}

#[test]
fn openmetrics_shows_the_trace_and_the_request_behind_a_sample() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let headers = format!("Connection: close\r\ntraceparent: 00-{trace}-b7ad6b7169203331-01\r\n");
    let mut client = gateway.chat(&headers, CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    let id = client.answer().header("x-taximeter-request-id").expect("an id").to_owned();
    let (content_type, text) = scrape(&gateway, OPENMETRICS);
    assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(text.ends_with("\n# EOF\n"));
    let exemplar = format!(" # {{trace_id=\"{trace}\",request_id=\"{id}\"}} ");
    for name in ["gen_ai_client_operation_duration_seconds", "http_server_request_duration_seconds"]
    {
        let bucket = format!("{name}_bucket{{");
        let mut buckets = text.lines().filter(|line| line.starts_with(&bucket));
        assert!(buckets.any(|line| line.contains(&exemplar)), "{name}: {text}");
    }
    let (content_type, text) = scrape(&gateway, "");
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!text.contains(" # {"));
}

#[test]
fn the_scope_is_on_every_series_where_it_is_asked_for_and_what_emits_in_one() {
    let engine = Engine::start();
    let scope = "telemetry: {scope_labels: on}";
    let setup = Setup::before(&engine).with("resource: {k8s.pod.name: pod-7}");
    let (_, text) = scrape(&setup.with(scope).start(), "");
    let series: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(series[0].starts_with("target_info{k8s_pod_name=\"pod-7\",service_instance_id="));
    assert!(series[1..].iter().all(|line| line.contains("{otel_scope_name=\"taximeter\"")));
    let plain = Setup::before(&engine).start();
    assert!(!scrape(&plain, "").1.contains("otel_scope_"));
    for (genai, schema) in
        [("v1_41", Some("1.41.1")), ("latest", Some("gen-ai-dev/1.42.0-dev")), ("both", None)]
    {
        let gateway = Setup::before(&engine)
            .with(&format!("telemetry: {{genai: {genai}, scope_labels: on}}"))
            .start();
        let (_, text) = scrape(&gateway, "");
        let is_series = |line: &&str| !line.starts_with('#') && !line.starts_with("target_info");
        let series = text.lines().filter(is_series);
        let url =
            |schema| format!("otel_scope_schema_url=\"https://opentelemetry.io/schemas/{schema}\"");
        for line in series {
            let told = line.contains("otel_scope_schema_url");
            assert!(schema.map_or(!told, |schema| line.contains(&url(schema))), "{genai}: {line}");
        }
    }
}

#[test]
fn names_that_clients_choose_become_no_labels_and_those_of_engines_only_so_many() {
    const ASKED: usize = 300;
    const MODELS_MAX: usize = 200;
    let engine = Engine::start();
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai, recount: off")
        .with("tenants: {header: {name: x-tenant-id, trusted_peers: [127.0.0.1]}}")
        .with("telemetry: {tenants_max: 3}")
        .start();
    let exchange = |model: &str, tenant: usize, answered: &[u8]| {
        let body = CHAT.replace("gpt-4o-mini", model);
        let mut client =
            gateway.chat(&format!("X-Tenant-Id: t{tenant}\r\nConnection: close\r\n"), body);
        engine.answer_once(answered);
        client.answer();
    };
    for nth in 0..ASKED {
        exchange(&format!("guess-{nth}"), nth, &answer("404 No", "application/json", "{}"));
    }
    for nth in 0..ASKED {
        let model = format!("served-{nth}");
        let answered = CHAT_ANSWER.replace("gpt-4o-mini-2024-07-18", &model);
        exchange(&model, nth, &json_answer(answered));
    }
    let (_, text) = scrape(&gateway, "");
    assert!(!text.contains("guess-"), "{text}");
    let values = |key: &str| -> BTreeSet<&str> {
        let quoted = |line| str::split(line, key).nth(1)?.split('"').nth(1);
        text.lines().filter_map(quoted).collect()
    };
    let tenants = values("taximeter_tenant=");
    assert_eq!(tenants, ["t0", "t1", "t2", "other"].into(), "{text}");
    let models = values("gen_ai_request_model=");
    assert!(models.len() <= MODELS_MAX + 1 && models.contains("other"), "{}", models.len());
}

#[test]
fn paths_and_methods_that_nobody_knows_become_no_labels_and_words_of_engines_only_so_many() {
    const ERRORS_MAX: usize = 50;
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    for nth in 0..ERRORS_MAX + 10 {
        for (method, path) in [("GET", format!("/v1/guess-{nth}")), ("BREW", "/v1/tea".to_owned())]
        {
            let request = bare(method, &path, "Connection: close\r\n");
            assert_eq!(ask(gateway.address(), &request).status(), 404);
        }
        let error = format!("data: {{\"error\":{{\"message\":\"m\",\"code\":\"odd_{nth}\"}}}}\n\n");
        let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
        engine.answer_once(&stream_answer(&[HELLO, &error]));
        client.answer();
    }
    let (_, text) = scrape(&gateway, "");
    assert!(!text.contains("guess-") && !text.contains("BREW") && !text.contains("tea"), "{text}");
    let name = "http_server_request_duration_seconds_count{";
    let unknown: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(name) && !line.contains("http_route="))
        .collect();
    assert_eq!(unknown.len(), 2, "{unknown:?}");
    assert!(unknown.iter().any(|line| line.contains("http_request_method=\"_OTHER\"")));
    let errors: BTreeSet<_> = text
        .lines()
        .filter(|line| line.starts_with("gen_ai_client_operation_duration_seconds_count{"))
        .filter_map(|line| line.split("error_type=\"").nth(1)?.split('"').next())
        .collect();
    assert!(errors.contains("odd_0") && errors.contains("_OTHER"), "{errors:?}");
    assert_eq!(errors.len(), ERRORS_MAX + 1, "{errors:?}");
}

#[test]
fn a_hundred_scrapes_at_once_are_answered_or_shed() {
    let engine = Engine::start();
    let gateway = after_rides(&engine, "both");
    let request = bare("GET", "/metrics", "Connection: close\r\n");
    let admin = gateway.admin_address();
    let mut scrapes: Vec<_> = (0..100).map(|_| Client::saying(admin, &request)).collect();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    for scrape in &mut scrapes {
        let answer = scrape.answer();
        assert!([200, 503].contains(&answer.status()), "{answer:?}");
        assert!(answer.status() == 503 || answer.text().contains("taximeter_requests_total{"));
    }
    assert_eq!(gateway.admin("/metrics").status(), 200);
}

#[test]
fn what_has_not_happened_is_told_as_zero_and_the_process_is_watched() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start();
    let (_, text) = scrape(&gateway, "");
    for name in ["taximeter_ledger_entries_lost_total", "taximeter_store_faults_total"] {
        assert!(families(&text, name).contains(name), "{name}");
        assert_eq!(sum(&text, name, &[]), Some(0.0), "{name}");
    }
    for name in ["process_memory_usage_bytes", "process_open_fds"] {
        assert!(sum(&text, name, &[]) > Some(0.0), "{name}");
    }
    for mode in ["user", "system"] {
        let label = format!("cpu_mode=\"{mode}\"");
        let is_told = |line: &str| line.starts_with("process_cpu_time_") && line.contains(&label);
        assert!(text.lines().any(is_told), "{mode}");
    }
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    gateway.await_metric("\ntaximeter_store_lag 0\n");
}

#[test]
fn requests_that_run_are_counted_until_their_answers_have_ended() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let active = |gateway: &Gateway| {
        let labels = ["http_request_method=\"POST\"", "url_scheme=\"http\""];
        sum(&gateway.metrics(), "http_server_active_requests", &labels)
    };
    let (client, connection) = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    assert_eq!(active(&gateway), Some(1.0));
    drop((client, connection));
    let ended = crate::patience::patiently(|| (active(&gateway) == Some(0.0)).then_some(()));
    assert!(ended.is_some(), "{}", gateway.metrics());
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    assert_eq!(active(&gateway), Some(0.0));
}
