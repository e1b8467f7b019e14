//! Samples of engines, GPUs and hosts: they outlive the gateway, and no request depends on them.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::fleet_past::{HOUR, Past, at, engine_text};
use crate::fleet_scraping::{Source, await_source, metrics, text};
use crate::gateway::{Gateway, Setup};
use crate::http::json_answer;
use crate::patience::patiently;

const RUNNING: &str = "taximeter.fleet.engine.requests_running";

/// Before an engine, with a source that is asked each five seconds, and its host.
fn setup(engine: &Engine, source: &Source) -> Setup {
    let fleet = format!("fleet: {{engines: off, hosts: {{scrape: [{:?}]}}}}", source.url());
    Setup::before(engine).upstream("dialect: openai").with(&fleet)
}

/// It has told something, and the gateway was asked to end after that.
fn remembered(engine: &Engine, source: &Source) -> TempDir {
    let mut gateway = setup(engine, source).start();
    await_source(&gateway, &source.url(), |source| source["state"] == "up");
    await_source(&gateway, "/proc", |host| host["asked"].as_u64() > Some(2));
    gateway.terminate();
    assert!(gateway.exit().0.success());
    gateway.into_folder()
}

/// The points of one series of a quantity, by the second.
fn points(gateway: &Gateway, quantity: &str) -> Vec<(i64, f64)> {
    let answer =
        gateway.admin(&format!("/api/v1/fleet/samples?quantity={quantity}&step=1&statistic=mean"));
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let answer = answer.json();
    let Some(series) = answer["series"].as_array().and_then(|all| all.first()) else {
        return Vec::new();
    };
    serde_json::from_value(series["points"].clone()).expect("points")
}

fn files(gateway: &Gateway, grid: &str) -> Vec<PathBuf> {
    let folder = gateway.data_dir().join("samples").join(grid);
    fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path()).collect()
}

#[test]
fn samples_outlive_a_stop_and_a_kill_and_are_there_once() {
    let (engine, source) = (Engine::start(), Source::saying(text(&metrics(7))));
    let gateway = setup(&engine, &source).start_in(remembered(&engine, &source));
    let before = points(&gateway, RUNNING);
    assert!(
        !before.is_empty() && before.iter().all(|(_, running)| (*running - 3.0).abs() < 1e-9),
        "{before:?}"
    );
    let host = points(&gateway, "system.memory.limit");
    assert!(host.len() >= 2 && host.iter().all(|(_, bytes)| *bytes > 0.0), "{host:?}");
    assert!(points(&gateway, "taximeter.fleet.engine.kv_cache_usage").is_empty(), "NaN is none");
    // What is half written when it is killed is nothing.
    fs::write(gateway.data_dir().join("samples/1s/2026-01-01T00-00.parquet.tmp"), "PAR1")
        .expect("write a file");
    let gateway = setup(&engine, &source).start_in(gateway.kill());
    assert_eq!(points(&gateway, RUNNING), before);
    assert!(
        files(&gateway, "1s").iter().all(|path| path.extension().is_some_and(|it| it == "parquet"))
    );
    assert_eq!(files(&gateway, "1m").len(), files(&gateway, "1s").len());
    let lines = gateway.metrics();
    let size =
        lines.lines().find_map(|line| line.strip_prefix("taximeter_fleet_memory_size_bytes "));
    assert!(
        size.and_then(|size| size.parse::<f64>().ok()).is_some_and(|size| size > 0.0),
        "{lines}"
    );
}

#[test]
fn samples_that_cannot_be_kept_are_told_and_no_request_feels_it() {
    let (engine, source) = (Engine::start(), Source::saying(text(&metrics(7))));
    let folder = remembered(&engine, &source);
    let samples = folder.path().join("data/samples");
    fs::remove_dir_all(&samples).expect("remove the samples");
    fs::write(&samples, "this is no folder").expect("write a file");
    let gateway = setup(&engine, &source).start_in(folder);
    let said = gateway.said_at_its_start("samples_not_kept");
    assert!(said["reason"].as_str().is_some_and(|why| why.contains("samples")), "{said}");
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    await_source(&gateway, &source.url(), |source| source["state"] == "up");
    assert!(points(&gateway, RUNNING).is_empty());
}

#[test]
fn a_damaged_file_is_told_and_put_aside_and_the_rest_is_kept() {
    let (engine, source) = (Engine::start(), Source::saying(text(&metrics(7))));
    let folder = remembered(&engine, &source);
    let seconds = folder.path().join("data/samples/1s");
    // Two files of an hour that is long over, of which one is hurt.
    let whole =
        fs::read_dir(&seconds).expect("a folder").next().expect("one").expect("a file").path();
    fs::copy(&whole, seconds.join("2026-01-01T00-00.parquet")).expect("copy");
    let mut hurt = fs::read(&whole).expect("read");
    hurt[100] ^= 1;
    fs::write(seconds.join("2026-01-01T00-01.parquet"), hurt).expect("write");
    let gateway = setup(&engine, &source).start_in(folder);
    let is_aside = || {
        let names: Vec<_> = files(&gateway, "1s");
        names.iter().any(|path| path.ends_with("2026-01-01T00-01.parquet.damaged")).then_some(())
    };
    assert!(patiently(is_aside).is_some(), "{:?}", files(&gateway, "1s"));
    let said: Value = gateway.await_event("samples_not_kept");
    assert!(said["reason"].as_str().is_some_and(|why| why.contains("T00-01.parquet")), "{said}");
    assert!(!points(&gateway, RUNNING).is_empty());
}

#[test]
fn a_kill_while_samples_are_put_together_loses_none_of_them_and_no_request() {
    const KILLS: u16 = 12;
    const SECONDS: i64 = 15;
    let engine = Engine::start();
    let setup = || {
        let fleet = "fleet: {engines: off, hosts: {local: off}}";
        Setup::before(&engine).upstream("dialect: openai").with(fleet)
    };
    let gateway = setup().start();
    let started = gateway.admin("/api/v1/status").json()["started_at"].clone();
    let started: Timestamp = started.as_str().and_then(|at| at.parse().ok()).expect("a time");
    // Hours that are over, each of sixty files that are to become one.
    let begin = started.as_second() - started.as_second().rem_euclid(HOUR) - 3 * HOUR;
    let mut folder = gateway.kill();
    let mut past = Past::of("http://engine:8000/metrics", &folder.path().join("data"));
    let seconds = || (0..2 * HOUR / SECONDS).map(|step| step * SECONDS);
    let waiting = |second: i64| second / SECONDS % 50;
    seconds().for_each(|second| past.tell(begin + second, &engine_text(waiting(second), second)));
    past.tell(begin + 2 * HOUR, &engine_text(0, 2 * HOUR));
    drop(past);

    let (_sender, nothing) = channel::<()>();
    for kill in 0..KILLS {
        let gateway = setup().start_in(folder);
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
        let _ = nothing.recv_timeout(Duration::from_millis(25) * kill.into());
        folder = gateway.kill();
    }
    let gateway = setup().start_in(folder);
    let is_merged = patiently(|| (files(&gateway, "1s").len() < 10).then_some(()));
    assert!(is_merged.is_some(), "{:?}", files(&gateway, "1s"));
    let asked = |hour: i64| {
        let [from, to] = [hour, hour + 1].map(|hour| at(begin + hour * HOUR));
        let answer = gateway.admin(&format!(
            "/api/v1/fleet/samples?quantity=taximeter.fleet.engine.requests_waiting&\
             statistic=mean&step=1&from={from}&to={to}"
        ));
        let points = answer.json()["series"][0]["points"].clone();
        serde_json::from_value::<Vec<(i64, f64)>>(points).expect("points")
    };
    let answered = [0, 1].into_iter().flat_map(asked);
    let answered: Vec<_> = answered.map(|(second, value)| (second - begin, value)).collect();
    let small = |number: i64| f64::from(i32::try_from(number).expect("a small number"));
    let expected: Vec<_> = seconds().map(|second| (second, small(waiting(second)))).collect();
    assert_eq!(answered, expected);
    let records = patiently(|| {
        let records = gateway.admin("/api/v1/records?limit=100").json();
        let count = records["records"].as_array().map_or(0, Vec::len);
        (count == usize::from(KILLS)).then_some(())
    });
    assert!(records.is_some(), "{}", gateway.admin("/api/v1/records?limit=100").text());
}
