//! The journal as users meet it: what is known of a stream when the gateway dies, a damaged file, a
//! disk that is gone, files that are old.

use std::collections::HashSet;
use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use serde_json::{Value, json};
use taximeter_ledger::{Entry, Progress, Reader, SyncMark};
use tempfile::TempDir;

use crate::client::Client;
use crate::engine::{Connection, Engine};
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, ROLE, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::{Gateway, Setup, bounded, records};
use crate::http::{
    LAST_CHUNK, STREAM_HEAD, Unframed, chunk, json_answer, read_message, stream_answer,
};
use crate::patience::{Limit, START_MAX, patiently};
use crate::segments::{plain, plain_path, read, segments};

/// Waits until the journal says that its entries are on the disk up to this one: damage behind that
/// is what a power cut may leave.
fn await_sync(data_dir: &Path, seq: &Value) {
    let seq = seq.as_u64().expect("a number");
    let last = |segment: PathBuf| {
        let bytes = plain(&segment);
        let mut reader = Reader::new(None, u64::MAX);
        reader.feed(&bytes);
        let _ = reader.next_entry();
        SyncMark::last_in(&bytes, reader.header()?.ledger)
    };
    let synced = || segments(data_dir).into_iter().filter_map(last).max();
    let there = patiently(|| synced().filter(|synced| *synced >= seq));
    assert!(there.is_some(), "entry {seq} is not synced");
}

fn progress(data_dir: &Path) -> Vec<Progress> {
    let entries = segments(data_dir).into_iter().flat_map(|path| read(&path));
    let progress = entries.filter_map(|framed| match framed.entry() {
        Ok(Entry::Progress(progress)) => Some(*progress),
        _ => None,
    });
    progress.collect()
}

/// A stream that runs, up to these events: its client, and what the engine writes it with.
fn running(engine: &Engine, gateway: &Gateway, events: &[&str]) -> (Client, Connection) {
    let mut client = gateway.chat("", STREAM_CHAT);
    let (mut connection, _) = engine.request();
    connection.send(STREAM_HEAD);
    client.head();
    for event in events {
        connection.send(&chunk(event));
        client.next_chunk().expect("an event");
    }
    (client, connection)
}

fn before(engine: &Engine) -> Setup {
    Setup::before(engine).upstream("dialect: openai")
}

#[test]
fn a_stream_that_was_running_when_we_died_owes_what_it_had_used() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    let (_client, mut connection) = running(&engine, &gateway, &[ROLE, HELLO]);
    let data_dir = gateway.data_dir();
    let first = patiently(|| progress(&data_dir).pop()).expect("a first word of it");
    connection.send(&chunk(WORLD));
    let exact = || {
        let last = progress(&data_dir).pop()?;
        let is_exact = !json!(last.usage.flags).to_string().contains("estimated");
        (last.usage.output_tokens > first.usage.output_tokens && is_exact).then_some(last)
    };
    let last = patiently(exact).expect("another one, a second later");
    assert_eq!(last.usage.output_tokens, Some(3), "To the station");
    assert!(last.at >= first.at + SignedDuration::from_millis(900), "{first:?} {last:?}");

    let gateway = before(&engine).start_in(gateway.kill());
    let record = gateway.record();
    assert_eq!(record["end"], "gateway_died", "{record}");
    assert_eq!(record["usage"]["source"], "counted", "{record}");
    assert_eq!(record["usage"]["output_tokens"], 3, "{record}");
    let input = last.usage.input_tokens.expect("counted");
    assert_eq!(record["usage"]["input_tokens"], input, "{record}");
    assert_eq!(record["usage"]["flagged"]["output_tokens"], json!(["missing"]), "{record}");
    assert_eq!(record["response_model"], "gpt-4o-mini-2024-07-18", "{record}");
    let meters: Vec<_> =
        record["cost"]["lines"].as_array().expect("lines").iter().map(|it| &it["meter"]).collect();
    assert_eq!(meters, ["input", "output"], "{record}");
    // Nothing is open any longer.
    assert_eq!(before(&engine).start_in(gateway.kill()).records(), [record]);
}

#[test]
fn running_totals_of_the_engine_are_its_progress() {
    let engine = Engine::start();
    let setup =
        || Setup::before(&engine).upstream("dialect: vllm, provider: openai, usage: continuous");
    let gateway = setup().start();
    let total = r#","usage":{"prompt_tokens":1000,"total_tokens":1007,"completion_tokens":7,
        "prompt_tokens_details":{"cached_tokens":600}}}"#
        .replace('\n', "");
    let event = HELLO.replacen("}\n\n", &format!("{total}\n\n"), 1);
    let _open = running(&engine, &gateway, &[&event]);
    let data_dir = gateway.data_dir();
    let usage = patiently(|| progress(&data_dir).pop()).expect("progress").usage;
    assert_eq!((usage.input_tokens, usage.output_tokens), (Some(1000), Some(7)));
    let record = setup().start_in(gateway.kill()).record();
    let usage = &record["usage"];
    assert_eq!((&usage["source"], &usage["output_tokens"]), (&json!("reported"), &json!(7)));
    assert_eq!((&usage["cache_read_input_tokens"], &usage["flags"]), (&json!(600), &json!([])));
    // Like the prices of any other answer.
    let lines = record["cost"]["lines"].as_array().expect("lines");
    let tokens: Vec<_> = lines.iter().map(|line| (&line["meter"], &line["tokens"])).collect();
    let due = [("input", 400), ("cache_read", 600), ("output", 7)];
    let due = due.map(|(meter, tokens)| (json!(meter), json!(tokens)));
    assert_eq!(tokens, due.iter().map(|(meter, tokens)| (meter, tokens)).collect::<Vec<_>>());
}

#[test]
fn a_request_that_had_no_answer_when_we_died_owes_its_prompt_and_may_not_have_been_sent() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    let _client = gateway.chat("", CHAT);
    let (_connection, _) = engine.request();
    let record = before(&engine).start_in(gateway.kill()).record();
    assert_eq!(record["end"], "gateway_died", "{record}");
    let usage = &record["usage"];
    let tokens = CHAT.len().div_ceil(4);
    assert_eq!((&usage["source"], &usage["input_tokens"]), (&json!("counted"), &json!(tokens)));
    assert_eq!(usage["output_tokens"], 0, "{record}");
    let flags = json!(["estimated", "missing"]);
    assert_eq!(usage["flagged"], json!({"input_tokens": flags, "output_tokens": flags}));
    assert_eq!(usage["flags"], json!(["estimated", "missing", "maybe_unsent"]));
    let meters = record["cost"]["lines"].as_array().expect("a cost").iter();
    assert!(meters.map(|line| &line["meter"]).any(|meter| meter == "input"), "{record}");
}

#[test]
fn a_stream_over_which_the_gateway_stood_still_is_billed_once_and_whole() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    let (mut client, mut connection) = running(&engine, &gateway, &[ROLE, HELLO]);
    gateway.stand_still();
    for event in [WORLD, STOP, USAGE, DONE] {
        connection.send(&chunk(event));
    }
    connection.send(LAST_CHUNK);
    gateway.go_on();
    while client.next_chunk().is_some_and(|chunk| !chunk.is_empty()) {}
    let record = gateway.record();
    let source = &record["usage"]["source"];
    assert_eq!((&record["end"], source), (&json!("complete"), &json!("reported")));
    let timing = record["timing"].as_object().expect("times").values();
    assert!(timing.filter_map(Value::as_f64).all(|time| time >= 0.0), "{record}");
    assert!(record["started_at"].as_str() <= record["ended_at"].as_str(), "{record}");
    assert_eq!(before(&engine).start_in(gateway.kill()).records(), [record]);
}

#[test]
fn the_engines_ids_decide_nothing_whether_they_repeat_or_lack() {
    const ID: &str = "\"id\":\"chatcmpl-1\",";
    let engine = Engine::start();
    let gateway = before(&engine).start();
    for id in [ID, ID, "\"id\":\"\",", "\"id\":null,", ""] {
        let mut client = gateway.chat("", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER.replacen(ID, id, 1)));
        assert_eq!(client.answer().status(), 200);
    }
    let records = gateway.await_records(5);
    let ids: HashSet<_> = records.iter().map(|record| record["id"].to_string()).collect();
    assert_eq!(ids.len(), 5, "{records:#?}");
    assert!(records.iter().all(|record| record["cost"] == records[0]["cost"]), "{records:#?}");
}

#[test]
fn all_that_was_open_when_we_died_is_settled_before_the_next_gateway_listens() {
    const OPEN: usize = 300;
    let engine = Engine::start();
    let gateway = before(&engine).start();
    let _open: Vec<_> = (0..OPEN).map(|_| running(&engine, &gateway, &[HELLO])).collect();
    let folder = gateway.kill();
    let started = Limit::begin();
    let gateway = before(&engine).start_in(folder);
    assert!(started.is_within(START_MAX), "a start took too long");
    let records = gateway.await_records(OPEN);
    assert!(records.iter().all(|record| record["end"] == "gateway_died"), "{records:#?}");
    assert!(records.iter().all(|record| record["cost"] != Value::Null), "{records:#?}");
}

#[test]
fn a_request_of_less_than_a_second_is_two_entries() {
    let engine = Engine::start();
    let mut gateway = before(&engine).start();
    let mut client = gateway.chat("Connection: close\r\n", STREAM_CHAT);
    engine.answer_once(&stream_answer(&[ROLE, HELLO, STOP, USAGE, DONE]));
    client.answer();
    gateway.terminate();
    gateway.exit();
    let kinds: Vec<_> = segments(&gateway.data_dir())
        .iter()
        .flat_map(|path| read(path))
        .map(|framed| format!("{:?}", framed.kind))
        .collect();
    assert_eq!(kinds, ["Reserve", "Post", "Checkpoint"]);
}

/// Serves so many requests.
fn serve(engine: &Engine, gateway: &Gateway, requests: usize) {
    for _ in 0..requests {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
}

#[test]
fn a_damaged_journal_starts_nothing_until_it_is_to_be_salvaged() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    serve(&engine, &gateway, 3);
    let all = gateway.records();
    await_sync(&gateway.data_dir(), &all[2]["seq"]);
    let folder = gateway.kill();
    let data_dir = folder.path().join("data");
    // A store that is new knows nothing of what was lost.
    for file in ["store.sqlite", "store.sqlite-wal", "store.sqlite-shm"] {
        let _ = fs::remove_file(data_dir.join(file));
    }
    let segment = segments(&data_dir).pop().expect("a segment");
    let damaged = read(&segment).into_iter().find(|framed| framed.seq == all[1]["seq"]);
    let offset = damaged.expect("the second post").offset;
    let mut bytes = fs::read(&segment).expect("the segment");
    bytes[usize::try_from(offset).expect("an offset") + 100] ^= 1;
    fs::write(&segment, &bytes).expect("damage the segment");

    let output = before(&engine).refused_in(&folder);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let path = segment.display().to_string();
    for word in [&path, &format!("byte {offset}"), "expected 0x", "ledger.recovery: salvage"] {
        assert!(said.contains(word), "{word:?} is missing: {said}");
    }
    assert_eq!(fs::read(&segment).expect("the segment"), bytes, "nothing was changed");

    let gateway = before(&engine).with("ledger: {recovery: salvage}").start_in(folder);
    let is_told = |line| line == "taximeter_ledger_entries_lost_total 1";
    assert!(gateway.metrics().lines().any(is_told), "{}", gateway.metrics());
    serve(&engine, &gateway, 1);
    let records = gateway.await_records(4);
    let ids: Vec<_> = records.iter().map(|record| &record["id"]).collect();
    assert!(ids.contains(&&all[0]["id"]) && ids.contains(&&all[2]["id"]), "{records:#?}");
    // Its reservation is whole: what it used is not known any more.
    let lost = records.iter().find(|record| record["id"] == all[1]["id"]).expect("a record");
    assert_eq!((&lost["end"], &lost["cost"]), (&"gateway_died".into(), &Value::Null));
    let folder = gateway.kill();
    assert_eq!(before(&engine).start_in(folder).records().len(), 4);
}

/// The data directory is gone for a while, as a disk that was unmounted.
fn without_a_disk(gateway: &Gateway, what: impl FnOnce()) {
    let data_dir = gateway.data_dir();
    let away = data_dir.with_extension("away");
    fs::rename(&data_dir, &away).expect("take the directory away");
    what();
    fs::rename(&away, &data_dir).expect("bring it back");
}

#[test]
fn a_ledger_that_cannot_be_written_refuses() {
    let engine = Engine::start();
    let gateway = before(&engine).start();
    serve(&engine, &gateway, 1);
    without_a_disk(&gateway, || {
        for _ in 0..3 {
            let answer = gateway.chat("Connection: close\r\n", CHAT).answer();
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.json()["error"]["code"], "ledger_unavailable");
        }
        assert_eq!(gateway.admin("/readyz").status(), 503);
        assert_eq!(gateway.admin("/healthz").status(), 200, "it lives all the same");
        engine.assert_untouched();
    });
    let ready = || (gateway.admin("/readyz").status() == 200).then_some(());
    patiently(ready).expect("ready again");
    serve(&engine, &gateway, 1);
    let records = gateway.await_records(2);
    assert!(records.iter().all(|record| record["end"] == "complete"), "{records:#?}");
}

#[test]
fn a_ledger_that_cannot_be_written_may_serve_and_writes_later() {
    let engine = Engine::start();
    let gateway = before(&engine).with("ledger: {unavailable: serve}").start();
    serve(&engine, &gateway, 1);
    without_a_disk(&gateway, || {
        serve(&engine, &gateway, 3);
        assert_eq!(gateway.admin("/readyz").status(), 200);
        gateway.await_metric("taximeter_ledger_healthy 0");
    });
    gateway.await_metric("taximeter_ledger_healthy 1");
    let written = gateway.await_records(4);
    assert!(written.iter().all(|record| record["end"] == "complete"), "{written:#?}");
    assert!(written.is_sorted_by_key(|record| record["seq"].as_u64()), "{written:#?}");
    // What was queued is on the disk.
    let folder = gateway.kill();
    assert_eq!(records(&folder.path().join("data")).len(), 4);
}

#[test]
fn a_ledger_whose_queue_is_full_refuses_although_it_should_serve() {
    let engine = willing_engine();
    let sections = "ledger: {unavailable: serve}\nlimits: {ledger_queue_bytes_max: 6000}";
    let upstream = format!("name: e, url: \"http://{engine}\", dialect: openai");
    let gateway = Setup::with_upstream(&upstream).with(sections).start();
    let status = || gateway.chat("Connection: close\r\n", CHAT).answer().status();
    assert_eq!(status(), 200);
    without_a_disk(&gateway, || {
        // The engine may close a connection while the next request is on its way.
        let served = (0..20).take_while(|_| status() != 503).count();
        assert!((1..20).contains(&served), "{served}");
        assert_eq!((status(), gateway.admin("/readyz").status()), (503, 503));
    });
    let ready = || (gateway.admin("/readyz").status() == 200).then_some(());
    patiently(ready).expect("ready again");
    assert_eq!(status(), 200);
}

/// An engine that answers whatever it is asked.
fn willing_engine() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind the engine");
    let address = listener.local_addr().expect("the engine's address");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            if read_message(&mut stream, &mut Vec::new(), Unframed::Empty).is_ok() {
                let _ = stream.write_all(&json_answer(CHAT_ANSWER));
            }
        }
    });
    address
}

const SMALL_FILES: &str = "limits: {ledger_segment_bytes: 4096}";

/// A ledger of ninety requests in several files, whose gateway was killed; and their records.
fn in_small_files(engine: &Engine) -> (TempDir, Vec<Value>) {
    let gateway = before(engine).with(SMALL_FILES).start();
    serve(engine, &gateway, 90);
    let all = gateway.records();
    let folder = gateway.kill();
    assert!(segments(&folder.path().join("data")).len() > 3);
    (folder, all)
}

#[test]
fn young_files_go_early_where_there_is_little_room_and_nothing_is_missing() {
    let engine = Engine::start();
    let (folder, all) = in_small_files(&engine);
    let data_dir = folder.path().join("data");
    let old = segments(&data_dir);
    // So much that what a start writes is little beside it.
    fs::write(data_dir.join("something else"), vec![0; 4 << 20]).expect("fill the directory");
    let sections = format!("ledger: {{dir_bytes_max: {}}}\n{SMALL_FILES}", room(&data_dir, 88));
    let gateway = before(&engine).with(&sections).start_in(folder);
    let oldest = plain_path(&old[0]);
    let is_oldest = |path: &PathBuf| plain_path(path) == oldest;
    let gone = patiently(|| (!segments(&data_dir).iter().any(is_oldest)).then_some(()));
    assert!(gone.is_some(), "the oldest file stays");
    assert_eq!(gateway.admin("/readyz").status(), 200);
    assert_eq!(gateway.records(), all);
}

#[test]
fn a_directory_that_takes_what_it_may_refuses_until_it_takes_less() {
    const MOST: usize = 8 << 20;
    let engine = Engine::start();
    let gateway = before(&engine).with(&format!("ledger: {{dir_bytes_max: {MOST}}}")).start();
    serve(&engine, &gateway, 1);
    let more = gateway.data_dir().join("something else");
    fs::write(&more, vec![0; MOST]).expect("fill the directory");
    assert_eq!(gateway.await_event("ledger_full")["level"], "critical");
    assert_eq!(gateway.admin("/readyz").status(), 503);
    let refusal = gateway.chat("", CHAT).answer();
    assert_eq!(refusal.status(), 503);
    assert_eq!(refusal.json()["error"]["code"], "ledger_unavailable");
    gateway.await_metric("taximeter_ledger_healthy 0");
    gateway.await_metric(&format!("taximeter_ledger_size_max_bytes {MOST}"));
    fs::remove_file(more).expect("make room");
    gateway.await_event("ledger_has_room");
    assert_eq!(gateway.admin("/readyz").status(), 200);
    serve(&engine, &gateway, 1);
    assert_eq!(gateway.await_records(2).len(), 2);
}

/// What a directory may take of which this part in a hundred is taken.
fn room(dir: &Path, percent: u64) -> u64 {
    fn taken(dir: &Path) -> u64 {
        let entries = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry"));
        entries
            .map(|entry| match entry.metadata().expect("it is there") {
                metadata if metadata.is_dir() => taken(&entry.path()),
                metadata => metadata.blocks() * 512,
            })
            .sum()
    }
    taken(dir) * 100 / percent
}

#[test]
fn a_command_that_is_given_the_configuration_finds_the_ledger_of_its_gateway() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
    gateway.record();
    let config = gateway.config_file();
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let run = |words: &[&str], data_dir: Option<&Path>| {
        let mut command = bounded();
        command.current_dir(elsewhere.path()).args(words).arg("--config").arg(&config);
        command.envs(data_dir.map(|dir| ("TAXIMETER_DATA_DIR", dir)));
        let output = command.output().expect("run taximeter");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let commands: [(&[&str], &str); 4] = [
        (&["records"], "\"output_tokens\":100"),
        (
            &["bill", "--from", "2026-01-01", "--format", "csv", "--by", "tenant"],
            ",default,1,1000,400,100,",
        ),
        (&["verify"], "1 records"),
        (&["rerate", "--from", "2026-01-01", "--dry-run"], "No cost changes."),
    ];
    for (words, told) in commands {
        let (code, said) = run(words, None);
        assert!(code == Some(0) && said.contains(told), "{words:?}: {said}");
        // Who names another directory means it.
        let (code, said) = run(words, Some(&elsewhere.path().join("nothing")));
        assert!(code != Some(0) && !said.contains(told), "{words:?}: {code:?} {said}");
    }
}
