use std::io;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use proptest::prelude::*;

use crate::{Config, ForwardCredential, Mistakes, Overrides, UnknownCaller};

const SMALL: &str = "upstreams: [{name: local, url: \"http://127.0.0.1:8000\"}]\n";

fn env(name: &str) -> Option<String> {
    match name {
        "MISSING" => None,
        "BROKEN" => Some("two\nlines of a secret".to_owned()),
        _ => Some(format!("value-of-{name}-0123456789")),
    }
}

fn read_file(path: &Path) -> io::Result<String> {
    match path.to_str() {
        Some("/etc/taximeter/prices.yaml") => Ok("models: []\n".to_owned()),
        Some("/etc/taximeter/more/") => Err(io::ErrorKind::IsADirectory.into()),
        Some("/run/secrets/openai") => Ok("sk-from-a-file\n".to_owned()),
        _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
    }
}

fn load(text: &str) -> Result<Config, Mistakes> {
    Config::from_yaml(text, "/etc/taximeter/taximeter.yaml", &env, &read_file)
}

fn mistakes(text: &str) -> String {
    let name = "taximeter.yaml";
    Config::from_yaml(text, name, &env, &read_file).expect_err("has mistakes").to_string()
}

const EVERY_KEY: &str = r#"
listen: "[::]:80"
admin: 0.0.0.0:9464
admin_token: ${env:ADMIN_TOKEN}
admin_tls: {cert: admin.crt, key: /tls/admin.key, client_ca: callers.pem}
data_dir: /data
workers: 2
upstreams:
  - name: local
    url: https://Engine.example:8443/base/v1/
    dialect: vllm
    provider: my-vllm
    models: ["a-*", b]
    usage: continuous
    credential: ${file:/run/secrets/openai}
    forward_credential: auto
    forward: {drop: [x-internal-*, Baggage]}
    recount: off
  - name: own
    url: "http://own"
    forward_credential: on
    on_client_left: drain
    gpu:
    - {type: H100, count: 2, hourly: 2.50 EUR, since: 2026-11-01, weights: {input: 1, output: 3}}
    - {type: H100, count: 0, hourly: 2.50 EUR, since: 2026-12-01}
    - {type: H200, hourly: 3 EUR, since: 2027-01-01}
tenants:
  unknown: guests
  keys:
    - id: k
      tenant: acme
      sha256: 0000000000000000000000000000000000000000000000000000000000000001
      labels: {team: search}
  header: {name: X-Tenant-Id, trusted_peers: [127.0.0.1, "10.1.2.3/8"]}
  list:
    - {name: acme, discount: [12.5 %, {rate: 15 %, since: 2026-12-01}], prices: prices.yaml, concurrency: 15}
    - {name: zeta, markup: "5%", allowance: {money: 5 EUR, tokens: {input: 1000000, output: 0}, since: 2026-11-01}}
tokenizers:
  [{models: ["llama-*"], path: /models/llama}, {path: qwen/tokenizer.json, estimated: on}]
prices:
  currency: EUR
  exchange: [{from: USD, rate: "0.92", since: 2026-11-01}, {from: USD, rate: 0.9}]
  book: builtin
  overrides: [prices.yaml, more/]
  unknown: refuse
billing: {zone: europe/berlin}
ledger: {durability: sync, recovery: salvage, unavailable: serve, records_keep_days: 31, dir_bytes_max: 966367641, store: "postgres://me:${env:POD}@db/bills?sslmode=require"}
export: {push: {url: "http://meter:8888/api/v1/events?x=1", token: t, batch_max: 7}}
telemetry:
  genai: both
  tenants_max: 7
  scope_labels: on
  native_histograms: on
  access_log: all
  otlp:
    endpoint: http://collector:4317
    protocol: grpc
    headers: {Api-Key: "${env:KEY}"}
    compression: none
    timeout_seconds: 5
    ca: ca.pem
    cert: otlp.crt
    key: otlp.key
    interval_seconds: 15
    temporality: delta
    histograms: exponential
    logs: on
  traces: {ratio: 0.25, always: {errors: off, slow_first_token_seconds: 2, stall_seconds: 0.5}}
  content: {capture: spans, bytes_max: 4096, redact: ["[0-9]{8}"], redact_known: off, tenants: [acme]}
receipts: off
passthrough: true
forward: {drop: []}
cors: {origins: ["https://App.example:443", "*"]}
fleet: {engines: ["http://e:1"], gpus: {scrape: ["http://g:1"], assigned: [{upstream: own, ids: [GPU-1]}]}, hosts: {local: off, local_interval_seconds: 0.1, scrape: ["http://h:1"]}}
resource: {k8s.pod.name: "${env:POD}"}
limits: {header_bytes_max: 9000, uri_bytes_max: 8000, drain_seconds: 0.25, drain_grace_seconds: 0, http2_streams_max: 5}
"#;

#[test]
fn every_key_of_the_schema_is_read() {
    let config = load(EVERY_KEY).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let mut shown = format!("{config:#?}");
    // `reference/holds.rs` reads every limit.
    shown.truncate(shown.find("limits: ").unwrap());
    assert_snapshot!(shown);
    assert_eq!(config.limits.drain.as_millis(), 250);
    assert!(config.limits.drain_grace.is_zero());
    assert_eq!((config.limits.header_bytes_max, config.limits.http2_streams_max), (9000, 5));
    assert_eq!(config.upstreams[1].forward_credential, ForwardCredential::On);
    assert_eq!(config.upstreams[0].credential.as_ref().unwrap().expose(), "sk-from-a-file");
}

#[test]
fn an_editor_takes_what_can_be_read_and_marks_what_cannot() {
    let schema = Config::json_schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults = |text: &str| -> Vec<String> {
        let file: serde_json::Value = serde_saphyr::from_str(text).unwrap();
        validator.iter_errors(&file).map(|error| error.instance_path().to_string()).collect()
    };
    let none: [&str; 0] = [];
    for good in [EVERY_KEY, SMALL, "upstreams: [{name: 7, url: 'http://a', recount: off}]"] {
        assert_eq!(faults(good), none, "{good}");
    }
    for (wrong, place) in [
        ("lisen: 127.0.0.1:1", ""),
        ("workers: 0", "/workers"),
        ("workers: many", "/workers"),
        ("ledger: {durability: never}", "/ledger/durability"),
        ("receipts: 1", "/receipts"),
        ("limits: {drain_seconds: 86401}", "/limits/drain_seconds"),
        ("tenants: {keys: {id: a}}", "/tenants/keys"),
        ("tenants: {keys: [{id: a, tenant: b}]}", "/tenants/keys/0"),
    ] {
        assert!(faults(&format!("{SMALL}{wrong}")).contains(&place.to_owned()), "{wrong}");
    }
    assert_eq!(faults("{}"), [""], "without upstreams");
    for reference in ["workers: ${env:WORKERS}", "receipts: '${file:on}'"] {
        assert_eq!(faults(&format!("{SMALL}{reference}")), none, "{reference}");
    }
    let about = &schema["properties"]["ledger"]["properties"]["records_keep_days"]["description"];
    let said = "The days for which Taximeter keeps the records of requests; bills need none of them. \
                While the clock is more than a day ahead of the newest entry, it removes none because \
                of this, until the clock was steady for a day. Default: 400.";
    assert_eq!(about, said);
}

#[test]
fn one_upstream_is_enough() {
    let config = load(SMALL).unwrap();
    assert_eq!(config.tenants.unknown, UnknownCaller::Tenant("default".to_owned()));
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert!(config.upstreams[0].serves("any/model:at-all"));
}

#[test]
fn callers_without_a_credential_are_refused_once_there_are_keys() {
    let text = format!("{SMALL}tenants: {{keys: []}}");
    assert_eq!(load(&text).unwrap().tenants.unknown, UnknownCaller::Refuse);
}

#[test]
fn flags_alone_give_the_same_as_the_smallest_file() {
    let mut file = load(SMALL).unwrap();
    file.upstreams[0].name = "upstream".to_owned();
    assert_eq!(Config::zero("http://127.0.0.1:8000/v1").unwrap(), file);
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = r#"# a comment
listen: 8080
lisen: 0.0.0.0:80
admin: 0.0.0.0:9464
workers: many
upstream: []
upstreams:
  - url: ftp://engine
    dialect: vlm
    models: []
  - {name: local, name: other, url: "http://127.0.0.1/v1/chat/completions", models: x}
  - {name: local, url: "http://user:hunter2@host", credential: "${env:MISSING}"}
  - {name: both, url: "http://a", credential: sk-123, forward_credential: on, on_client_left: wait}
tenants:
  keys:
    - {id: acme, tenant: a/b, sha256: 9f86d0}
    - {id: acme, tenant: "=cmd()", sha256: [1], labels: {team:}}
  header: {name: authorization, trusted_peers: [anyone]}
  jwt: {issuer: "https://login.example"}
tokenizers: [{models: []}, {path: "", estimate: on}]
prices: {currency: EURO, overrides: [nowhere.yaml, 7], exchange: [{from: BTC}]}
billing: {zone: Mars/Phobos, timezone: UTC}
ledger: {durability: perhaps, recovery: maybe, records_keep_days: 36501, store: "mysql://host/bills"}
export: {push: {batch_max: 0, token: "two words"}}
telemetry: {genai: v1_40, tenants_max: 0, access_log: some, otlp: {endpoint: "collector:4317", headers: {host: secret}, cert: own.pem, temporality: up, histograms: round}, content: {capture: yes, bytes_max: 7, redact: ["(", "x*"], tenants: ["a/b"]}}
limits: {drain_seconds: 0, header_bytes_max: 100, uri_bytes_max: 70000, body_bytes_max: 2000000000, http2_window_bytes: 2147483648,
         json_depth_max: 65537, attempts_max: 11, count_bytes_max: 67108865,
         series_per_metric_max: 9, log_field_bytes_max: 63, log_lines_per_kind_per_second_max: 0, requests_per_tenant_max: 0}
"#;
    assert_snapshot!(mistakes(text));
}

#[test]
fn limits_that_contradict_each_other_are_reported_at_the_one_in_the_file() {
    let limits = |limits: &str| mistakes(&format!("{SMALL}limits: {{{limits}}}"));
    assert_snapshot!(limits("header_bytes_max: 9000, uri_bytes_max: 9001"), @r#"
    taximeter.yaml:2:49: limits.uri_bytes_max: "9001" is too large
       2 | limits: {header_bytes_max: 9000, uri_bytes_max: 9001}
         |                                                 ^^^^ expected at most `header_bytes_max`, which is 9000
    1 problem; nothing was started
    "#);
    assert_snapshot!(limits("bodies_total_bytes_max: 1000"), @r#"
    taximeter.yaml:2:34: limits.bodies_total_bytes_max: "1000" is too small
       2 | limits: {bodies_total_bytes_max: 1000}
         |                                  ^^^^ expected at least `body_bytes_max`, which is 33554432
    1 problem; nothing was started
    "#);
    assert!(load(&format!("{SMALL}limits: {{uri_bytes_max: 65536}}")).is_ok());
}

#[test]
fn running_usage_is_asked_only_of_engines_that_have_it() {
    let text = "upstreams:
  - {name: a, url: 'http://a', usage: continuous}
  - {name: b, url: 'http://b', usage: token_ids, dialect: sglang}
  - {name: c, url: 'http://c', usage: token_ids, dialect: openai}
  - {name: d, url: 'http://d', usage: always, dialect: vllm}
";
    assert_snapshot!(mistakes(text), @r#"
    taximeter.yaml:4:39: upstreams[2].usage: "token_ids" is not supported by the dialect openai
       4 |   - {name: c, url: 'http://c', usage: token_ids, dialect: openai}
         |                                       ^^^^^^^^^ expected final, or the dialect vllm, sglang or auto
    taximeter.yaml:5:39: upstreams[3].usage: "always" is not allowed here
       5 |   - {name: d, url: 'http://d', usage: always, dialect: vllm}
         |                                       ^^^^^^ expected final, continuous or token_ids
    2 problems; nothing was started
    "#);
}

#[test]
fn terms_and_gpus_fit_together_and_the_currency_of_the_bills() {
    let text = "upstreams:
  - {name: a, url: 'http://a', gpu: {type: H100, hourly: 2.50 EUR, weights: {input: 0, output: 0}}}
  - {name: b, url: 'http://b', gpu: {count: -1, hourly: 2.50, since: today}}
tenants:
  list:
    - {name: acme, discount: 10 %, markup: 5 %}
    - {name: acme, discount: 110 %, prices: nowhere.yaml}
    - {discount: 10, allowance: {money: EUR 5, tokens: {inputs: 1, output: -1, audio_seconds: 3}}}
    - {name: zeta, allowance: {money: 5 EUR, token: 3}}
";
    assert_snapshot!(mistakes(text));
}

#[test]
fn versions_are_in_the_order_of_their_days() {
    let text = "upstreams:
  - {name: a, url: 'http://a', gpu: []}
  - name: b
    url: 'http://b'
    gpu:
    - {type: H100, hourly: 2 USD}
    - {type: H100, hourly: 3 USD, since: 2026-11-01}
    - {type: H100, hourly: 4 USD, since: 2026-11-01}
    - {type: H100, hourly: 5 USD, since: 2026-10-01}
    - {type: H100, hourly: 6 USD}
tenants:
  list:
    - {name: a, discount: [10 %, 20 %, {rate: 30, since: 2026-12-01}]}
    - {name: b, discount: [10 %, {rate: 0 %, since: 2026-12-01}], markup: {rate: 5 %, since: 2026-12-01}}
    - {name: c, discount: [10 %, {rate: 20 %, since: 2026-12-01}], markup: [{rate: 5 %, since: 2026-11-01}]}
    - {name: d, allowance: {money: 5 USD, since: 2026-11-15}}
";
    assert_snapshot!(mistakes(text));
}

#[test]
fn text_that_is_no_yaml_is_one_mistake() {
    assert_snapshot!(mistakes("listen: 127.0.0.1:80\nupstreams: [{name: a, url: b]\n"), @r#"
    taximeter.yaml:2:13: mismatched bracket '{' closed by ']'
       2 | upstreams: [{name: a, url: b]
         |             ^ expected valid YAML
    1 problem; nothing was started
    "#);
    assert_snapshot!(mistakes("upstreams: &a [*a]\n"), @r#"
    taximeter.yaml:1:16: an alias is not supported here
       1 | upstreams: &a [*a]
         |                ^^ expected the value itself, written out
    1 problem; nothing was started
    "#);
    assert_snapshot!(mistakes("a: 1\n---\nb: 2\n"), @r#"
    taximeter.yaml:2:1: a second document is not supported here
       2 | ---
         | ^^^ expected one document in the file
    1 problem; nothing was started
    "#);
    assert_snapshot!(mistakes("- a\n"), @r#"
    taximeter.yaml:1:1: the file: is a list
       1 | - a
         | ^ expected a map of keys and values
    1 problem; nothing was started
    "#);
}

#[test]
fn an_empty_file_says_what_is_needed() {
    assert_snapshot!(mistakes(""), @r#"
    taximeter.yaml:1:1: upstreams: is missing
       1 | 
         | ^ add the key `upstreams` to this map
    1 problem; nothing was started
    "#);
    assert_snapshot!(mistakes("# nothing yet\n"), @r#"
    taximeter.yaml:1:1: upstreams: is missing
       1 | # nothing yet
         | ^ add the key `upstreams` to this map
    1 problem; nothing was started
    "#);
}

#[test]
fn no_secret_is_ever_shown() {
    for text in [
        "upstreams: [{name: a, url: 'http://a', credential: hunter2, colour: red}]",
        "upstreams: [{name: a, url: 'http://a', credental: hunter2}]",
        "upstreams: [{name: a, url: 'http://a', credential: hunter2, credential: hunter2}]",
        "upstreams: [{name: a, url: 'http://a', credential: [hunter2]}]",
        "upstreams: [{name: a, url: 'http://me:hunter2@a'}]",
        "upstreams: [{name: a, url: 'http://a', credential: 'hunter2}]",
        "tenants: {keys: [{id: a, tenant: a, sha256: hunter2}]}",
        "ledger: {store: 'postgres://me:hunter2@host/bills'}",
        "ledger: {store: 'postgres://me:hunter2@host/bills?sslmode=off', colour: red}",
        "ledger: {store: 'postgres://me:hunter2@', durability: none}",
        "admin: 0.0.0.0:1\nadmin_token: hunter2\nupstreams: []",
        "upstreams: [{name: a, url: 'http://a', credential: '${env:BROKEN}'}]",
    ] {
        let shown = mistakes(text);
        assert!(!shown.contains("hunter2") && !shown.contains("lines of a secret"), "{shown}");
    }
}

#[test]
fn flags_are_checked_like_the_file() {
    let overrides = Overrides {
        listen: Some("80".to_owned()),
        admin: Some("10.0.0.1:9464".to_owned()),
        upstream: Some("127.0.0.1:8000".to_owned()),
        data_dir: Some(String::new()),
    };
    assert_snapshot!(load(SMALL).unwrap().with(&overrides).unwrap_err(), @r#"
    --listen: "80" is not an address with a port
      expected an address and a port, such as 127.0.0.1:8080 or [::1]:8080
    --data-dir: "" is not a path
      expected a path
    --upstream: "127.0.0.1:8000" has no scheme
      expected http://… or https://…
    --admin: "10.0.0.1:9464" can be reached from other machines
      expected a loopback address, or `admin_token`, `admin_tokens` that may read, or `admin_tls` with `client_ca` in the file
    4 problems; nothing was started
    "#);
    assert_snapshot!(Config::zero("http://me:hunter2@host").unwrap_err(), @r#"
    --upstream: the value has credentials in it
      expected the secret in the key `credential`
    1 problem; nothing was started
    "#);
}

#[test]
fn flags_win_over_the_file() {
    let overrides = Overrides {
        listen: Some("0.0.0.0:80".to_owned()),
        upstream: Some("http://other".to_owned()),
        ..Overrides::default()
    };
    let config = load(SMALL).unwrap().with(&overrides).unwrap();
    assert_eq!((config.listen.first().port(), config.admin.first().port()), (80, 9464));
    assert_eq!(config.upstreams.len(), 1);
    assert_eq!(config.upstreams[0].url.host, "other");
}

#[test]
fn a_line_too_long_for_a_screen_is_cut_around_the_mistake() {
    let text = format!("{SMALL}resource: {{label: {}, label: a, b: c}}", "x".repeat(250));
    assert_snapshot!(mistakes(&text), @r#"
    taximeter.yaml:2:271: resource.label: is given twice
       2 | xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, label: *, b: c}
         |                                                             ^^^^^ expected each key once
    1 problem; nothing was started
    "#);
}

#[test]
fn thousands_of_mistakes_are_counted_but_not_shown() {
    let text: String = (0..5000).map(|key| format!("key-{key}: 1\n")).collect();
    let shown = mistakes(&text);
    assert!(
        shown.ends_with("5001 problems; the first 100 are shown; nothing was started"),
        "{shown}"
    );
}

fn examples() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/examples");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.is_file());
    files.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_example_is_valid() {
    let examples = examples();
    assert!(examples.len() >= 5);
    for (path, text) in examples {
        if let Err(mistakes) = Config::from_yaml(&text, &path.to_string_lossy(), &env, &read_file) {
            panic!("{mistakes}");
        }
    }
}

/// Whatever the text, it is read or its mistakes are, and each mistake is at a place in it.
fn holds(text: &str) {
    let Err(mistakes) = load(text) else { return };
    assert!(!mistakes.shown().is_empty());
    let lines: Vec<&str> = text.split('\n').collect();
    for mistake in mistakes.shown() {
        let position = mistake.position.as_ref().unwrap();
        let line =
            lines.get(position.line - 1).unwrap_or_else(|| panic!("{mistake:?} in {text:?}"));
        assert!(position.column <= line.chars().count() + 1, "{mistake:?} in {text:?}");
    }
    assert!(mistakes.to_string().lines().all(|line| line.chars().all(|c| !c.is_control())));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".*") {
        holds(&text);
    }

    #[test]
    fn any_text_of_yaml_characters_is_read_or_refused(
        text in "[\\[\\]{}:,\\-\"'#&*!|>%@$ \na-c0-9é\r\t]{0,200}",
    ) {
        holds(&text);
    }

    #[test]
    fn an_example_with_a_part_cut_out_or_doubled_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        len in 0..40_usize,
        instead in prop::sample::select(vec!["", "\n", "{", ": ", "\u{0}", "é", "- "]),
    ) {
        let examples = examples();
        let text = &which.get(&examples).1;
        let from = text.floor_char_boundary(from.index(text.len()));
        let to = text.ceil_char_boundary((from + len).min(text.len()));
        holds(&format!("{}{instead}{}", &text[..from], &text[to..]));
        holds(&format!("{}{}", &text[..to], &text[from..]));
    }
}

#[test]
fn one_file_of_prices_needs_no_list() {
    let text = format!("{SMALL}prices: {{overrides: prices.yaml}}");
    let prices = load(&text).unwrap().prices;
    assert_eq!(prices.overrides, [Path::new("/etc/taximeter/prices.yaml")]);
}

#[test]
fn exchange_rates_are_of_other_currencies_and_one_a_day() {
    let text = format!(
        "{SMALL}prices:
  currency: EUR
  exchange:
  - {{from: EUR, rate: 1}}
  - {{from: USD, rate: 0.92}}
  - {{from: USD, rate: 0.93}}
  - {{from: USD, rate: 0, since: soon}}
  - {{from: JPY, rate: -0.0062}}
"
    );
    assert_snapshot!(mistakes(&text));
}
