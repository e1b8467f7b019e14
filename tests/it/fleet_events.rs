//! Changes of engines, GPUs and of what the gateway rests on become events, also if nobody looked while
//! they happened.

use std::fs;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::engine::Engine;
use crate::fleet_scraping::{Source, await_source, text};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{answer, json_answer};
use crate::patience::patiently;

/// An engine that says what is in there: its metrics, and the answer where its version is.
fn engine_saying(said: &Arc<Mutex<(String, String)>>) -> Source {
    let said = said.clone();
    Source::start(move |request, _, stream| {
        let (model, version) = said.lock().expect("what it says").clone();
        match request.first_line.as_str() {
            "GET /metrics HTTP/1.1" => stream.write_all(&text(&engine(&model))),
            "GET /version HTTP/1.1" => {
                stream.write_all(&json_answer(format!("{{\"version\":\"{version}\"}}")))
            }
            _ => stream.write_all(&answer("404 Not Found", "text/plain", "what?")),
        }
    })
}

fn engine(model: &str) -> String {
    format!(
        "# TYPE vllm:num_requests_running gauge\n\
         vllm:num_requests_running{{engine=\"0\",model_name=\"{model}\"}} 3\n\
         # TYPE vllm:generation_tokens counter\n\
         vllm:generation_tokens_total{{engine=\"0\",model_name=\"{model}\"}} 7\n"
    )
}

/// What an exporter tells of one GPU, of this pod.
fn gpu(pod: &str) -> Vec<u8> {
    let labels = format!(
        "gpu=\"0\",UUID=\"GPU-1\",device=\"nvidia0\",modelName=\"NVIDIA H100\",Hostname=\"node-1\",\
         DCGM_FI_DRIVER_VERSION=\"580.95.05\",namespace=\"llm\",pod=\"{pod}\""
    );
    text(&format!(
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{{{labels}}} 90\n\
         # TYPE DCGM_FI_DEV_POWER_USAGE gauge\nDCGM_FI_DEV_POWER_USAGE{{{labels}}} 412.4\n"
    ))
}

/// All events of a kind, the newest first.
fn events(gateway: &Gateway, kind: &str) -> Vec<Value> {
    let answer = gateway.admin(&format!("/api/v1/fleet/events?kind={kind}"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    answer.json()["events"].as_array().expect("a list").clone()
}

fn await_event(gateway: &Gateway, kind: &str) -> Value {
    let found = patiently(|| events(gateway, kind).first().cloned());
    found.unwrap_or_else(|| panic!("no {kind}: {}", gateway.admin("/api/v1/fleet/events").text()))
}

#[test]
fn an_engine_that_has_changed_while_the_gateway_was_killed_is_told() {
    let said = Arc::new(Mutex::new(("a".to_owned(), "0.32.0".to_owned())));
    let source = engine_saying(&said);
    let upstream = format!("name: own, url: \"http://{}\", dialect: openai", source.address);
    let setup = || Setup::with_upstream(&upstream).with("fleet: {hosts: {local: off}}");
    let gateway = setup().start();
    let told = await_source(&gateway, &source.url(), |one| one["versions"][0]["of"] == "engine");
    assert_eq!(told["versions"][0]["version"], "0.32.0");
    let known = gateway.data_dir().join("samples/events/known.json");
    let is_known = || fs::read_to_string(&known).ok().filter(|text| text.contains("vLLM 0.32.0"));
    assert!(patiently(is_known).is_some(), "what is known is kept soon");
    let folder = gateway.kill();
    *said.lock().expect("what it says") = ("b".to_owned(), "0.33.0".to_owned());
    let gateway = setup().start_in(folder);
    let version = await_event(&gateway, "engine_version");
    assert_eq!(
        (&version["subject"], &version["before"], &version["after"]),
        (&source.url().into(), &"vLLM 0.32.0".into(), &"vLLM 0.33.0".into())
    );
    let model = await_event(&gateway, "engine_model");
    assert_eq!((&model["before"], &model["after"]), (&"a".into(), &"b".into()));
    let concerned = model["about"].as_array().expect("whom it concerns");
    assert!(concerned.contains(&"own".into()), "{model}");
    // Events outlive a kill, and none is told twice.
    let gateway = setup().start_in(gateway.kill());
    await_source(&gateway, &source.url(), |one| one["versions"][0]["of"] == "engine");
    let again = [events(&gateway, "engine_version"), events(&gateway, "engine_model")];
    assert_eq!(again, [vec![version], vec![model]]);
    let admin = gateway.admin_address().to_string();
    let quantity = "taximeter.fleet.engine.requests_running";
    let shown = taximeter(["fleet", "history", quantity, "--admin", &admin]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("engine_model: the engine at"), "{shown}");
    let page = gateway.admin("/fleet");
    let page = page.text();
    assert!(page.contains("is vLLM 0.33.0 now, and was vLLM 0.32.0"), "{page}");
}

#[test]
fn a_gpu_that_moves_to_another_pod_is_told_with_both() {
    let pod = Arc::new(Mutex::new("a".to_owned()));
    let moving = pod.clone();
    let source = Source::start(move |_, _, stream| {
        let pod = moving.lock().expect("its pod").clone();
        stream.write_all(&gpu(&pod))
    });
    let fleet = format!(
        "resource: {{k8s.namespace.name: llm, k8s.pod.name: b}}\n\
         fleet: {{engines: off, hosts: {{local: off}}, gpus: {{scrape: [{:?}]}}}}",
        source.url()
    );
    let engine = Engine::start();
    let setup = |others: &str| {
        Setup::before(&engine).upstream(&format!("dialect: openai{others}")).with(&fleet)
    };
    let gateway = setup("").start();
    let told = await_source(&gateway, &source.url(), |one| one["state"] == "up");
    assert_eq!(told["versions"][0]["version"], "580.95.05");
    *pod.lock().expect("its pod") = "b".to_owned();
    let moved = await_event(&gateway, "gpu_owner");
    assert_eq!(moved["text"], "GPU-1 is given to llm/b now, and was to llm/a");
    let about = gateway.admin("/api/v1/fleet/events?subject=llm/a").json();
    assert_eq!(about["events"][0], moved);
    let lines = fs::read_dir(gateway.data_dir().join("samples/events")).expect("a folder");
    let lines = lines.map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"));
    assert!(lines.into_iter().any(|text| text.lines().any(|line| line.contains("llm/b now"))));
    // The GPU is of the gateway's own pod now. Another engine in there claims it, too.
    let second = "}, {name: second, url: \"http://127.0.0.1:9\", models: [other]";
    let join = |gateway: &Gateway| gateway.admin("/api/v1/fleet").json()["joins"].clone();
    assert_eq!(join(&gateway)[0]["gpus"]["links"][0]["to"], "GPU-1");
    let known = gateway.data_dir().join("samples/events/known.json");
    let is_claimed = || {
        let known = fs::read_to_string(&known).ok()?;
        known.contains("\"gpu_claimed\",\"GPU-1\",\"engine\"").then_some(())
    };
    assert!(patiently(is_claimed).is_some(), "{}", join(&gateway));
    gateway.rewrite(&setup(second));
    let claimed = await_event(&gateway, "gpu_claimed");
    assert_eq!(claimed["text"], "GPU-1 is claimed by engine, second");
    assert_eq!(join(&gateway)[1]["doubts"][0], "GPU-1 is also of the upstream `engine`");
    // It is given to a pod that serves none of them: both claims end at once.
    *pod.lock().expect("its pod") = "c".to_owned();
    let ended = patiently(|| {
        let newest = events(&gateway, "gpu_claimed").first().cloned()?;
        newest["text"].as_str()?.contains("no longer").then_some(newest)
    });
    let ended = ended.unwrap_or_else(|| panic!("{}", join(&gateway)));
    assert_eq!(ended["text"], "GPU-1 is no longer claimed by engine, second");
    assert!(ended["about"].as_array().is_some_and(|about| about.contains(&"second".into())));
}

#[test]
fn another_configuration_and_other_prices_are_told_and_a_secret_is_not() {
    let prices = |price: u8| {
        format!(
            "version: 2026-11-20\nmodels:\n  - {{model: m, rates: {{input: {price}, output: 9}}}}\n"
        )
    };
    let files = tempfile::tempdir().expect("a folder");
    let (book, key) = (files.path().join("prices.yaml"), files.path().join("key"));
    fs::write(&book, prices(1)).expect("write the prices");
    fs::write(&key, "one").expect("write the key");
    let engine = Engine::start();
    let setup = |tenant: &str| {
        Setup::before(&engine)
            .upstream(&format!("dialect: openai, credential: \"${{file:{}}}\"", key.display()))
            .with(&format!("tenants: {{unknown: {tenant}}}\nprices: {{overrides: {book:?}}}"))
            .with("fleet: {engines: off, hosts: {local: off}}")
    };
    let gateway = setup("acme").start();
    let known = gateway.data_dir().join("samples/events/known.json");
    let is_known = || fs::read_to_string(&known).ok().filter(|text| text.contains("prices.yaml"));
    assert!(patiently(is_known).is_some(), "what is known is kept soon");
    fs::write(&book, prices(3)).expect("write the prices");
    let changed = await_event(&gateway, "prices");
    assert_eq!(changed["subject"], book.display().to_string());
    assert!(changed["before"].is_string() && changed["after"].is_string(), "{changed}");
    fs::write(&key, "two").expect("write the key");
    let secret = await_event(&gateway, "configuration");
    assert_eq!(secret["subject"], key.display().to_string());
    assert_eq!((&secret["before"], &secret["after"]), (&Value::Null, &Value::Null));
    // What has changed while nobody looked.
    let folder = gateway.kill();
    let gateway = setup("blue").start_in(folder);
    let is_own = |one: &Value| one["subject"] == gateway.config_file().display().to_string();
    let own = patiently(|| events(&gateway, "configuration").into_iter().find(is_own));
    assert!(own.is_some_and(|own| own["before"].is_string()));
    assert_eq!(events(&gateway, "prices"), [changed]);
    let text = fs::read_to_string(&known).expect("what is known");
    assert!(!text.contains("/key"), "{text}");
}

#[test]
fn samples_are_bounded_where_nothing_is_read_any_more() {
    let engine = Engine::start();
    let with = |fleet: &str| Setup::before(&engine).upstream("dialect: openai").with(fleet);
    let mut gateway = with("fleet: {engines: off}").start();
    await_source(&gateway, "/proc", |one| one["state"] == "up");
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    let old = folder.path().join("data/samples/1s/2020-01-01.parquet.damaged");
    fs::write(&old, "PAR1").expect("write a file");
    let gateway = with("").start_in(folder);
    assert!(patiently(|| (!old.exists()).then_some(())).is_some(), "it is older than two days");
    assert!(gateway.data_dir().join("samples/1s").read_dir().expect("a folder").next().is_some());
}
