//! A reader in Python, which is written from the page of the book on the format alone, reads what
//! the program writes as the program reads it: each kind of entry, what a newer version adds, and
//! what is left of a damaged file.

mod damage;
mod sample;
mod vector;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use taximeter_ledger::{Entry, FramedEntry, Kind, Reader};

use self::sample::{Segment, entries};
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, STREAM_CHAT};
use crate::gateway::Setup;
use crate::http::json_answer;
use crate::patience::patiently;
use crate::segments::{plain, segments};

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("journal_format").join(name)
}

/// A Python that has the package zstandard, which reads compressed files. It is in
/// `tests/.cache` once `tests/journal_format/run` has run, which sets the variable.
fn interpreter() -> Option<OsString> {
    std::env::var_os("TAXIMETER_TEST_PYTHON")
}

/// What a program in Python prints, a value for each line.
fn python(name: &str, arguments: &[&str], input: &str) -> Vec<Value> {
    let mut command = Command::new(interpreter().unwrap_or_else(|| "python3".into()));
    command.arg("-B").arg(program(name)).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run Python");
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writing = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().expect("its output");
    writing.join().expect("it is written");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The members whose values are times.
const TIMES: [&str; 6] = ["started_at", "ended_at", "at", "made_at", "minute", "until"];

/// The JSON of an entry in the form of the page: without what has no value, with microseconds in
/// place of times and seconds, and with modalities by one name each.
fn plainly(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().filter(|_| number.is_f64()).map_or_else(
            || value.clone(),
            |seconds| serde_json::from_str(&format!("{:.0}", seconds * 1e6)).expect("a number"),
        ),
        Value::Array(values) => values.iter().map(plainly).collect(),
        Value::Object(members) => {
            let own_id = members.get("id");
            let plain = members.iter().filter(|(_, value)| !value.is_null());
            let plain = plain.filter(|(name, id)| *name != "request_id" || Some(*id) != own_id);
            let plain = plain.map(|(name, value)| match name.as_str() {
                "cost_known" => ("cost".to_owned(), plainly(value)),
                "modalities" => (name.clone(), by_one_name(value)),
                time if TIMES.contains(&time) => (name.clone(), micros(value)),
                _ => (name.clone(), plainly(value)),
            });
            plain.collect()
        }
        other => other.clone(),
    }
}

fn micros(time: &Value) -> Value {
    let time: jiff::Timestamp = time.as_str().expect("a text").parse().expect("a time");
    time.as_microsecond().into()
}

fn by_one_name(modalities: &Value) -> Value {
    let sides = modalities.as_object().expect("an object").iter();
    let named = sides.flat_map(|(side, counts)| match counts {
        Value::Object(counts) => {
            let of = if side.starts_with("cache") { "_input" } else { "" };
            let named = |(name, count): (&String, &Value)| {
                (format!("{name}_{side}{of}_tokens"), count.clone())
            };
            counts.iter().map(named).collect()
        }
        count => vec![(side.clone(), count.clone())],
    });
    named.collect()
}

/// The entries of a whole segment, as objects with their numbers.
fn read(bytes: &[u8]) -> Vec<Value> {
    let mut reader = Reader::new(None, 0);
    reader.feed(bytes);
    let mut read = Vec::new();
    while let Some(framed) = reader.next_entry().expect("no fault") {
        read.push(object(&framed));
    }
    assert_eq!(reader.finish(), Ok(()));
    read
}

fn object(framed: &FramedEntry) -> Value {
    let entry = framed.entry().expect("it can be read");
    let mut object = serde_json::to_value(entry).expect("JSON");
    object["seq"] = framed.seq.into();
    object
}

fn written(bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("journal-00000000000000000001.tlj");
    std::fs::write(&path, bytes).expect("write the segment");
    let path = path.to_str().expect("UTF-8").to_owned();
    (folder, path)
}

/// What Python reads: the entries, and those that are carried over.
fn python_reads(path: &str) -> (Vec<Value>, Vec<Value>) {
    let read = python("reader.py", &[path], "").into_iter();
    read.partition(|entry| entry.get("index").is_none())
}

fn assert_same(bytes: &[u8]) -> Vec<Value> {
    let (_folder, path) = written(bytes);
    let (ours, (python, _)) = (read(bytes), python_reads(&path));
    for (ours, python) in ours.iter().map(plainly).zip(&python) {
        assert_eq!(&ours, python, "\n{ours:#}\n{python:#}");
    }
    assert_eq!(ours.len(), python.len());
    ours
}

/// Compares what the file carries over to its checkpoint. How many entries that is.
fn assert_same_open(bytes: &[u8]) -> usize {
    let (_folder, path) = written(bytes);
    let mut reader = Reader::new(None, 1).carrying();
    reader.feed(bytes);
    let first = reader.next_entry().expect("no fault").expect("an entry");
    let carried = reader.take_carried().unwrap_or_default();
    assert!(carried.is_empty() || first.kind == Kind::Checkpoint);
    let ours = carried.iter().zip(1_u64..).map(|(framed, index)| {
        let mut entry = plainly(&object(framed));
        (entry["index"], entry["count"]) = (index.into(), carried.len().into());
        entry
    });
    assert_eq!(python_reads(&path).1, ours.collect::<Vec<_>>());
    carried.len()
}

#[test]
fn a_reader_in_python_reads_every_kind_of_entry_as_we_do() {
    let mut segment = Segment::new();
    // Strings that have numbers are used again, by other kinds of entries too.
    for _ in 0..3 {
        entries().iter().for_each(|entry| segment.append(entry));
    }
    let ours = assert_same(&segment.bytes());
    let kinds: std::collections::BTreeSet<_> =
        ours.iter().filter_map(|entry| entry["entry"].as_str()).collect();
    assert_eq!(kinds.len(), 7, "{kinds:?}");
    let expected: Vec<_> = (0..3).flat_map(|_| entries()).collect();
    let expected = expected.iter().map(|entry| serde_json::to_value(entry).expect("JSON"));
    for (mut ours, expected) in ours.into_iter().zip(expected) {
        ours.as_object_mut().expect("an object").remove("seq");
        assert_eq!(ours, expected);
    }
}

#[test]
fn what_a_newer_version_adds_is_skipped_by_both() {
    let mut segment = Segment::new();
    for entry in entries() {
        segment.append_with_more(&entry);
        segment.append_unknown();
    }
    segment.append(&entries()[0]);
    let ours = assert_same(&segment.bytes());
    let expected: Vec<_> = entries().into_iter().chain(entries().into_iter().take(1)).collect();
    let expected = expected.iter().map(|entry| serde_json::to_value(entry).expect("JSON"));
    for (mut ours, expected) in ours.into_iter().zip(expected) {
        ours.as_object_mut().expect("an object").remove("seq");
        assert_eq!(ours, expected);
    }
}

#[test]
fn what_a_gateway_has_compressed_is_read_in_python_as_here() {
    let engine = Engine::start();
    let upstream = "dialect: openai";
    let setup = Setup::before(&engine).upstream(upstream);
    let gateway = setup.with("limits: {ledger_segment_bytes: 4096}").start();
    // Open all the time, so the files carry it over.
    let _open = gateway.chat("", STREAM_CHAT);
    let _connection = engine.request();
    for _ in 0..60 {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    }
    let compressed = || {
        let all = segments(&gateway.data_dir()).into_iter();
        let compressed: Vec<_> =
            all.filter(|path| path.extension().is_some_and(|it| it == "zst")).collect();
        (compressed.len() > 1).then_some(compressed)
    };
    let mut carried = 0;
    for path in patiently(compressed).expect("closed files are compressed") {
        let bytes = plain(&path);
        let ours = assert_same(&bytes);
        carried += assert_same_open(&bytes);
        assert!(ours.len() > 10, "{ours:?}");
        if interpreter().is_some() {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let plain = folder.path().join("plain");
            let paths = [&path, &plain].map(|path| path.to_str().expect("UTF-8"));
            assert_eq!(python("plain.py", &paths, ""), [Value::Null; 0]);
            assert_eq!(std::fs::read(plain).expect("read it"), bytes);
        }
    }
    assert!(carried > 0);
}

#[test]
fn marks_and_a_table_of_strings_are_read_in_python_as_here() {
    let mut segment = Segment::new();
    for entry in entries().iter().chain(&entries()) {
        segment.append(entry);
        segment.mark();
    }
    // A segment that goes on inside a block begins with the strings so far. Where a checkpoint comes
    // first, they would not be needed.
    let is_of_a_request = |entry: &Entry| !matches!(entry, Entry::Checkpoint(_));
    let entries: Vec<_> = entries().into_iter().filter(is_of_a_request).collect();
    entries.iter().chain(&entries).for_each(|entry| segment.append(entry));
    let more = segment.go_on(&entries);
    assert_same(&segment.bytes());
    let read = assert_same(&more);
    assert_eq!(read.len(), entries.len());
}
