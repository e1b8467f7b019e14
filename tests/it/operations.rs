//! Running it: start, check, health, metrics, end.

use std::io::BufRead;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::client::ask;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup, binary, bounded, taximeter};
use crate::http::{bare, json_answer};

const EX_CONFIG: i32 = 64;
const EX_IN_USE: i32 = 75;

#[test]
fn a_bad_configuration_is_told_with_line_and_column_and_every_mistake() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("taximeter.yaml");
    std::fs::write(
        &file,
        "listen: 127.0.0.1:0\nlisten_to: nobody\nupstreams:\n  - {name: e, url: gopher://x}\n",
    )
    .expect("write the configuration");
    for command in [["check"].as_slice(), &["serve", "--config"]] {
        let output = bounded().args(command).arg(&file).output().expect("run taximeter");
        let said =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(EX_CONFIG), "{said}");
        assert!(said.contains("taximeter.yaml:2:1"), "{said}");
        assert!(said.contains("taximeter.yaml:4:"), "{said}");
        assert!(said.contains("listen_to") && said.contains("gopher"), "{said}");
    }
}

#[test]
fn a_good_configuration_passes_its_check_and_starts_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("taximeter.yaml");
    let data = folder.path().join("data");
    let text = format!(
        "data_dir: \"{}\"\nupstreams: [{{name: e, url: \"http://127.0.0.1:1\"}}]\n",
        data.display()
    );
    std::fs::write(&file, text).expect("write the configuration");
    let output = bounded().arg("check").arg(&file).output().expect("run taximeter");
    assert!(output.status.success(), "{output:?}");
    assert!(!data.exists());
}

#[test]
fn wrong_words_on_the_command_line_exit_2() {
    assert_eq!(taximeter(["drive"]).status.code(), Some(2));
    assert_eq!(taximeter(["serve", "--nonsense"]).status.code(), Some(2));
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let url = format!("http://{}", engine.address());
    let data_dir = gateway.data_dir();
    let output = bounded()
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", &url])
        .arg("--data-dir")
        .arg(&data_dir)
        .output()
        .expect("run taximeter");
    assert_eq!(output.status.code(), Some(EX_IN_USE), "{output:?}");
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

#[test]
fn health_and_readiness_are_told() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    assert_eq!(gateway.admin("/healthz").status(), 200);
    assert_eq!(gateway.admin("/readyz").status(), 200);
    assert_eq!(gateway.admin("/nothing").status(), 404);
}

#[test]
fn its_data_directory_is_all_that_it_writes_and_anybody_may_be_its_user() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine).upstream("dialect: openai").start_read_only();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(gateway.admin("/readyz").status(), 200);
    gateway.terminate();
    let (status, log) = gateway.exit();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    assert_eq!(gateway.record()["end"], "complete");
}

#[test]
fn heads_at_the_admin_address_have_the_limits_of_all_heads_and_a_reload_changes_them() {
    let engine = Engine::start();
    let setup = |limits: &str| Setup::before(&engine).with(&format!("limits: {{{limits}}}"));
    let gateway = setup("header_bytes_max: 8192, headers_max: 10, uri_bytes_max: 100").start();
    let ask = |target: &str, fields: &str| {
        let fields = format!("{fields}Connection: close\r\n");
        ask(gateway.admin_address(), &bare("GET", target, &fields)).status()
    };
    let head = |bytes: usize| {
        let own = bare("GET", "/readyz", "X: \r\nConnection: close\r\n").len();
        ask("/readyz", &format!("X: {}\r\n", "x".repeat(bytes - own)))
    };
    assert_eq!((head(8_192), head(8_193)), (200, 431));
    // Host and connection are there already.
    let fields = |count: usize| ask("/readyz", &"X: 1\r\n".repeat(count - 2));
    assert_eq!((fields(10), fields(11)), (200, 431));
    let target = |bytes: usize| ask(&format!("/readyz?{}", "x".repeat(bytes - 8)), "");
    assert_eq!((target(100), target(101)), (200, 414));
    gateway.rewrite(&setup("header_bytes_max: 65536"));
    gateway.await_event("config_reloaded");
    assert_eq!((head(65_536), head(65_537)), (200, 431));
}

#[test]
fn a_gateway_is_ready_whose_engine_is_away_for_it_can_say_so() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = nobody.local_addr().expect("its address");
    drop(nobody);
    let gateway = Setup::with_upstream(&format!("name: e, url: \"http://{address}\"")).start();
    for status in [502, 503] {
        assert_eq!(gateway.admin("/readyz").status(), 200);
        assert_eq!(gateway.chat("", CHAT).answer().status(), status);
    }
}

#[test]
fn metrics_follow_the_genai_conventions() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&crate::http::stream_answer(&[HELLO, STOP, USAGE, DONE]));
    client.answer();

    let answer = gateway.admin("/metrics");
    assert!(
        answer.header("content-type").is_some_and(|v| v.starts_with("text/plain")),
        "{answer:?}"
    );
    let text = answer.text();
    for name in [
        "gen_ai_client_token_usage_bucket",
        "gen_ai_client_operation_duration_seconds_bucket",
        "gen_ai_client_operation_time_to_first_chunk_seconds_bucket",
        "http_server_request_duration_seconds_bucket",
        "taximeter_requests_total",
        "taximeter_cost_total",
    ] {
        assert!(text.contains(&format!("\n{name}{{")), "{name} in {text}");
    }
    let output = text
        .lines()
        .filter(|l| l.starts_with("gen_ai_client_token_usage_sum{"))
        .filter(|l| l.contains("gen_ai_token_type=\"output\""))
        .filter_map(|l| l.rsplit(' ').next()?.parse::<f64>().ok())
        .sum::<f64>();
    assert!((output - 200.0).abs() < f64::EPSILON, "{text}");
    assert!(!text.contains("Where to?"));
}

#[test]
fn records_outlive_a_restart() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    client.answer();
    let before = gateway.records();
    let folder = gateway.kill();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start_in(folder);
    assert_eq!(gateway.records(), before);
}

#[test]
fn a_request_that_was_running_when_we_died_is_on_the_ledger() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let _both = gateway.streaming(&engine, STREAM_CHAT, &[HELLO]);
    let folder = gateway.kill();
    let gateway = Setup::before(&engine).upstream("dialect: openai").start_in(folder);
    let record = gateway.record();
    assert_eq!(record["end"], "gateway_died");
    assert_eq!(record["request_model"], "gpt-4o-mini");
}

#[test]
fn zero_configuration_serves_one_upstream() {
    let engine = Engine::start();
    let url = format!("http://{}", engine.address());
    let gateway = Gateway::by_flags(&["--upstream", &url]);
    let mut client = gateway.chat("", CHAT);
    engine.serve_until_answered(CHAT_ANSWER);
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    let record = gateway.record();
    assert_eq!(record["tenant"], "default");
    assert_eq!(record["usage"]["output_tokens"], 100);
}

#[test]
fn a_new_key_is_printed_once_and_works() {
    let output = taximeter(["keys", "new", "--tenant", "acme"]);
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let key = said.lines().next().expect("a key").to_owned();
    let entry = said.lines().find(|line| line.contains("sha256")).expect("an entry");
    let entry = entry.trim().trim_start_matches("- ");
    assert!(!entry.contains(&key), "{said}");

    let engine = Engine::start();
    let tenants = format!("tenants: {{unknown: refuse, keys: [{entry}]}}");
    let gateway = Setup::before(&engine).upstream("dialect: openai").with(&tenants).start();
    let mut client = gateway.chat(&format!("Authorization: Bearer {key}\r\n"), CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    assert_eq!(gateway.record()["tenant"], "acme");
}

#[test]
fn the_demo_runs_by_itself_and_ends_with_a_bill() {
    let output = taximeter(["demo", "--seconds", "2"]);
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.to_lowercase().contains("total") && said.contains("console"), "{said}");
}

#[test]
fn the_demo_has_a_session_of_an_agent_and_says_how_to_see_why_it_cost_so_much() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data_dir = folder.path().to_str().expect("UTF-8");
    let output = taximeter(["demo", "--seconds", "1", "--data-dir", data_dir]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let command = said.split_once("taximeter sessions ").expect("a command").1;
    let words = command.lines().next().expect("its line").split(' ');
    let asked = ["sessions"].into_iter().chain(words);
    let table = taximeter(asked.clone());
    let text = String::from_utf8_lossy(&table.stdout);
    assert!(table.status.success() && text.contains("\n  explore-tests "), "{table:?}");
    let told: Value =
        serde_json::from_slice(&taximeter(asked.chain(["--json"])).stdout).expect("JSON");
    let names = |list: &str, member: &str| -> Vec<_> {
        let all = told[0][list].as_array().expect("a list");
        all.iter().map(|one| one[member].as_str().unwrap_or("-").to_owned()).collect()
    };
    assert_eq!(names("agents", "agent"), ["root", "explore-tests"]);
    assert_eq!(names("agents", "parent_agent"), ["-", "root"]);
    assert_eq!(names("waste", "kind"), ["retry", "compaction"]);
    assert!(told[0]["waste"][0]["sums"]["cost"].is_string(), "the broken answer is paid: {told}");
    assert!(told[0]["cache_read_share"].as_f64() > Some(0.5), "{told}");
}

#[test]
fn what_the_demo_says_to_ask_is_answered() {
    let mut demo = Command::new(binary())
        .args(["demo", "--keep", "--seconds", "1"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start the demo");
    let said = std::io::BufReader::new(demo.stdout.take().expect("its standard output"));
    let mut lines = said.lines().map(|line| line.expect("a line"));
    let request = lines.find(|line| line.trim_start().starts_with("curl ")).expect("a request");
    let request = format!("{request}\n{}", lines.next().expect("its end"));
    let script = format!("{request} --silent --show-error --fail --max-time 20");
    let answer = Command::new("sh").args(["-c", &script]).output().expect("run a shell");
    demo.kill().expect("kill the demo");
    demo.wait().expect("reap the demo");
    let text = String::from_utf8_lossy(&answer.stdout);
    assert!(answer.status.success() && text.contains("chat.completion"), "{request}: {answer:?}");
}

#[test]
fn tokens_of_a_text_and_of_a_request_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("text");
    std::fs::write(&file, "To the station").expect("write the text");
    let output = taximeter(["count", "--model", "gpt-4o-mini", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.starts_with("3 tokens"), "{output:?}");
    std::fs::write(&file, CHAT).expect("write the request");
    let output = taximeter(["count", "--model", "gpt-4o-mini", file.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("request"), "{output:?}");
}

#[test]
fn the_price_book_shows_what_a_model_costs_and_says_when_it_does_not_know() {
    let output = taximeter(["prices", "show", "gpt-4o-mini"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("0.15") && said.contains("0.075"),
        "{output:?}"
    );
    assert_eq!(taximeter(["prices", "show", "home-grown"]).status.code(), Some(1));
    let output = taximeter(["prices", "list"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("claude-sonnet-4-5"), "{output:?}");
}

#[test]
fn the_simulated_engine_answers_a_gateway() {
    let mut simulated = Command::new(binary())
        .args(["simulate", "--listen", "127.0.0.1:0", "--prefill-ms", "1", "--gap-ms", "1"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("start the engine");
    let mut line = String::new();
    let stdout = simulated.stdout.take().expect("its standard output");
    std::io::BufReader::new(stdout).read_line(&mut line).expect("a line");
    let url =
        line.split_whitespace().find(|word| word.starts_with("http://")).expect("its address");
    let gateway = Setup::with_upstream(&format!("name: e, url: \"{url}\", dialect: vllm")).start();
    let answer = gateway.chat("", STREAM_CHAT).answer();
    let record = gateway.record();
    simulated.kill().expect("kill the engine");
    simulated.wait().expect("reap the engine");
    assert!(answer.text().ends_with(DONE), "{answer:?}");
    assert_eq!(record["usage"]["source"], "reported");
    assert_eq!(record["usage"]["output_tokens"], 64);
}

#[test]
fn whether_a_gateway_is_well_can_be_asked_without_another_program() {
    let engine = Engine::start();
    let mut gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with("limits: {drain_grace_seconds: 30}")
        .start();
    let admin = gateway.admin_address().to_string();
    let ask = |words: &[&str]| {
        let said = taximeter([&["healthy"], words].concat());
        (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    let well = (Some(0), String::new());
    assert_eq!(ask(&["--admin", &admin]), well);
    assert_eq!(ask(&["--admin", &admin, "--ready"]), well);
    gateway.terminate();
    gateway.await_event("leaving");
    assert_eq!(ask(&["--admin", &admin]), well);
    let (code, why) = ask(&["--admin", &admin, "--ready"]);
    assert!(code == Some(1) && why.contains("503") && why.contains("draining"), "{why}");
    gateway.terminate();
    gateway.exit();
    let (code, why) = ask(&["--admin", &admin]);
    assert!(code == Some(1) && why.contains(&admin), "{why}");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("taximeter.yaml");
    let upstreams = "upstreams: [{name: a, url: \"http://127.0.0.1:1\"}]";
    std::fs::write(&file, format!("admin: {admin}\n{upstreams}\n")).expect("write it");
    let file = file.to_str().expect("a path");
    let (code, why) = ask(&["--config", file]);
    assert!(code == Some(1) && why.contains(&admin), "the address of the file: {why}");
    std::fs::write(file, "admin: nowhere\n").expect("write it");
    assert_eq!(ask(&["--config", file]).0, Some(EX_CONFIG));
}

#[test]
fn the_admin_address_of_the_environment_wins_over_the_files_and_is_where_health_is_asked() {
    let engine = Engine::start();
    let gateway = Setup::before(&engine).start_with(&[("TAXIMETER_ADMIN", "127.0.0.2:0")]);
    let admin = gateway.admin_address();
    assert_eq!(admin.ip().to_string(), "127.0.0.2", "the file has 127.0.0.1");
    let file = gateway.config_file();
    for words in [["healthy"].as_slice(), &["healthy", "--ready"]] {
        let mut asking = bounded();
        asking.args(words).env("TAXIMETER_ADMIN", admin.to_string()).env("TAXIMETER_CONFIG", &file);
        let asked = asking.output().expect("run taximeter");
        assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    }
}

#[test]
fn signals_during_a_start_are_heard() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let book = folder.path().join("prices.yaml");
    let made = Command::new("mkfifo").arg(&book).status().expect("run mkfifo");
    assert!(made.success());
    let file = folder.path().join("taximeter.yaml");
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: {:?}\nprices: {{overrides: [{book:?}]}}\n\
         upstreams: [{{url: \"http://127.0.0.1:1\"}}]\n",
        folder.path().join("data")
    );
    std::fs::write(&file, yaml).expect("write it");
    let mut serve = Command::new("timeout");
    let serve = serve.args(["--signal=KILL", "60"]).arg(binary());
    let serve = serve.arg("serve").arg("--config").arg(&file).stderr(Stdio::piped());
    let gateway = serve.spawn().expect("start it");
    // It opens the book, and waits for what is in it.
    let _book = std::fs::OpenOptions::new().write(true).open(&book).expect("its reader");
    let signal = |name: &str| {
        let id = gateway.id().to_string();
        let said = Command::new("kill").args([name, &id]).status().expect("run kill");
        assert!(said.success(), "it is gone");
    };
    signal("-HUP");
    signal("-TERM");
    let ended = gateway.wait_with_output().expect("its end");
    assert_eq!(ended.status.code(), Some(0));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("\"event\":\"start_given_up\""), "{said}");
}
