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

/// A Python that has the package zstandard, so that it reads compressed files too. It is in
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
    lines.lines().map(|line| exact(serde_json::from_str(line).expect("JSON"))).collect()
}

/// The same without members that are `null`, and with whole microseconds in place of seconds.
/// `serde_json` reads the last bit of a number with a point as it likes.
fn exact(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let seconds = number.as_f64().unwrap_or_default();
            format!("{:.0} µs", seconds * 1e6).into()
        }
        Value::Array(values) => values.into_iter().map(exact).collect(),
        Value::Object(members) => {
            let with_values = members.into_iter().filter(|(_, value)| !value.is_null());
            with_values.map(|(name, value)| (name, exact(value))).collect()
        }
        other => other,
    }
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

fn assert_same(bytes: &[u8]) -> Vec<Value> {
    let (_folder, path) = written(bytes);
    let (ours, python) = (read(bytes), python("reader.py", &[&path], ""));
    for (ours, python) in ours.iter().zip(&python) {
        let ours = exact(ours.clone());
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
    let ours = carried.iter().map(|framed| exact(object(framed)));
    assert_eq!(python("reader.py", &["--open", &path], ""), ours.collect::<Vec<_>>());
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
            let python = python("reader.py", &[path.to_str().expect("UTF-8")], "");
            assert_eq!(python, ours.into_iter().map(exact).collect::<Vec<_>>());
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
