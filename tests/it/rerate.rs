//! `taximeter rerate`: a period priced again, by corrections that change nothing.

use std::fs::File;
use std::path::Path;
use std::process::Output;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, stream_answer};

const TENANTS: &str = "tenants: {unknown: acme}\n";
/// With what `acme` should have had from the first.
const DISCOUNT: &str = "upstreams: [{name: engine, url: \"http://127.0.0.1:1\"}]\n\
                        tenants: {unknown: acme, list: [{name: acme, discount: 50 %}]}\n";

/// A gateway that runs and has served two requests of `acme`, of 0.00018 USD each.
fn two_rides(engine: &Engine) -> Gateway {
    let gateway = Setup::before(engine).upstream("dialect: openai").with(TENANTS).start();
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[HELLO, STOP, USAGE, DONE]));
    client.answer();
    gateway
}

fn folder(gateway: &Gateway) -> std::path::PathBuf {
    gateway.data_dir().parent().expect("a folder").to_owned()
}

fn run(folder: &Path, command: &str, words: &[&str]) -> Output {
    let data_dir = folder.join("data");
    let data_dir = data_dir.to_str().expect("UTF-8");
    taximeter([command, "--data-dir", data_dir].iter().chain(words))
}

/// Since long before any test, until now.
fn rerate(folder: &Path, words: &[&str]) -> Output {
    let words: Vec<_> = ["--from", "2026-01-01"].iter().chain(words).copied().collect();
    run(folder, "rerate", &words)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let file = folder.join(name);
    std::fs::write(&file, text).expect("write it");
    file.to_str().expect("UTF-8").to_owned()
}

fn owed(folder: &Path) -> Decimal {
    let words = ["--from", "2026-01-01", "--by", "tenant", "--format", "json"];
    let bill = json(&run(folder, "bill", &words));
    assert_eq!(bill["total"]["requests"], 2, "{bill:#}");
    bill["total"]["cost"].as_str().expect("money").parse().expect("a decimal")
}

fn money(text: &str) -> Decimal {
    text.parse().expect("a decimal")
}

#[test]
fn the_same_prices_change_nothing() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let config = folder.join("taximeter.yaml");
    let config = config.to_str().expect("UTF-8");
    let output = rerate(&folder, &["--config", config, "--reason", "to see"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("No cost changes."), "{}", said(&output));
}

#[test]
fn a_dry_run_shows_what_would_change_and_writes_nothing() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let config = written(&folder, "discount.yaml", DISCOUNT);
    let output = rerate(&folder, &["--config", &config, "--dry-run"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    for part in ["acme", "gpt-4o-mini", "0.00036", "0.00018", "-0.00018", "USD", "2 requests would"]
    {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!folder.join("data/corrections").exists());
    assert_eq!(owed(&folder), money("0.00036"));
}

#[test]
fn corrections_follow_each_other_and_the_records_stay() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let records = gateway.records();
    let config = written(&folder, "discount.yaml", DISCOUNT);
    let words = ["--config", &config, "--reason", "late discount", "--format", "json"];
    let first = json(&rerate(&folder, &words));
    assert_eq!((&first["corrected_requests"], &first["dry_run"]), (&2.into(), &false.into()));
    assert_eq!(first["rows"][0]["difference"], "-0.00018", "{first:#}");
    assert_eq!(owed(&folder), money("0.00018"));
    let again = json(&rerate(&folder, &words));
    assert_eq!(again["corrected_requests"], 0, "{again:#}");

    // 600 × 1 + 400 × 0 + 100 × 2 USD a million, from what was in force.
    let book = written(
        &folder,
        "book.yaml",
        "models:\n- model: gpt-4o-mini\n  rates: {input: 1, cache_read: 0, output: 2}\n",
    );
    let words = ["--book", &book, "--reason", "typo", "--format", "json", "--tenant", "acme"];
    let second = json(&rerate(&folder, &words));
    assert_eq!(second["rows"][0]["before"], "0.00018", "{second:#}");
    assert_eq!(second["rows"][0]["after"], "0.0016", "{second:#}");
    assert_eq!(owed(&folder), money("0.0016"));
    assert_eq!(gateway.records(), records);

    let verified = run(&folder, "verify", &[]);
    let said = said(&verified);
    assert!(verified.status.success(), "{said}");
    assert!(said.contains("4 corrections") && said.contains("acme 0.0016 USD"), "{said}");
}

#[test]
fn requests_are_priced_again_by_the_terms_of_their_admission() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let corrected = |versions: &str| {
        let config = written(&folder, "dated.yaml", &DISCOUNT.replace("50 %", versions));
        let words = ["--config", &config, "--reason", "late", "--format", "json"];
        json(&rerate(&folder, &words))["corrected_requests"].as_u64().expect("a number")
    };
    assert_eq!(corrected("[50 %, {rate: 75 %, since: 2999-01-01}]"), 2);
    assert_eq!(owed(&folder), money("0.00018"));
    assert_eq!(corrected("[75 %, {rate: 50 %, since: 2026-01-01}]"), 0);
    assert_eq!(corrected("[{rate: 50 %, since: 2999-01-01}]"), 2);
    assert_eq!(owed(&folder), money("0.00036"));
}

#[test]
fn only_what_was_asked_for_is_priced_again_and_what_has_no_price_keeps_its_cost() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let free = "models:\n- {model: gpt-4o-mini, provider: nobody, rates: {input: 0, output: 0}}\n";
    let config = written(&folder, "discount.yaml", DISCOUNT);
    for narrowed in [["--tenant", "zeta"], ["--model", "gpt-4o"]] {
        let words: Vec<_> =
            ["--config", &config, "--dry-run"].into_iter().chain(narrowed).collect();
        assert!(said(&rerate(&folder, &words)).contains("No cost changes."), "{narrowed:?}");
    }
    let book = written(&folder, "free.yaml", free);
    let kept = json(&rerate(&folder, &["--book", &book, "--dry-run", "--format", "json"]));
    assert_eq!(kept["corrected_requests"], 0, "{kept:#}");
}

#[test]
fn what_is_missing_wrong_or_in_use_is_said_before_anything_is_written() {
    let engine = Engine::start();
    let gateway = two_rides(&engine);
    let folder = folder(&gateway);
    let config = written(&folder, "discount.yaml", DISCOUNT);
    let code = |words: &[&str]| rerate(&folder, words).status.code();
    assert_eq!(code(&["--config", &config]), Some(2), "no reason");
    assert_eq!(code(&["--reason", "x"]), Some(2), "no prices");
    let broken = written(&folder, "broken.yaml", "models:\n- {model: m}\n");
    assert_eq!(code(&["--book", &broken, "--reason", "x"]), Some(64));
    assert_eq!(code(&["--config", &broken, "--reason", "x"]), Some(64));
    let lost = rerate(&folder, &["--config", &config, "--reason", "x", "--lost", "pod-7/0"]);
    assert_eq!(lost.status.code(), Some(2), "nobody shares its store");
    assert!(said(&lost).contains("--lost works only with a shared database"), "{lost:?}");
    let corrections = folder.join("data/corrections");
    std::fs::create_dir_all(&corrections).expect("a folder");
    let lock = File::create(corrections.join("journal.lock")).expect("the lock");
    lock.lock().expect("lock it");
    assert_eq!(code(&["--config", &config, "--reason", "x"]), Some(75));
    assert_eq!(owed(&folder), money("0.00036"));
}
