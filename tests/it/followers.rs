//! Commands that go on until somebody ends them end with whoever reads them, as in `| head`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::engine::Engine;
use crate::gateway::{Gateway, bounded};
use crate::patience::patiently;

/// Starts a command, reads a line of it if it is to have one, and leaves.
fn left(words: &[&str], reads: bool) -> Child {
    let mut command = bounded();
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("run taximeter");
    let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
    if reads {
        let mut line = String::new();
        assert!(out.read_line(&mut line).expect("a line") > 1);
    }
    child
}

#[track_caller]
fn assert_ends(mut child: Child) {
    let ended = patiently(|| child.try_wait().expect("its state"));
    let output = child.wait_with_output().expect("its end");
    assert!(ended.is_some_and(|status| status.success()), "{ended:?} {output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "it says nothing");
}

#[test]
fn who_follows_records_ends_with_its_reader_though_no_record_comes() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let mut client = gateway.chat("Connection: close\r\n", crate::fixtures::CHAT);
    engine.answer_once(&crate::http::json_answer(crate::fixtures::CHAT_ANSWER));
    client.answer();
    gateway.await_records(1);
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("a path");
    for reads in [true, false] {
        assert_ends(left(&["records", "--data-dir", data_dir, "--follow"], reads));
    }
}

#[test]
fn a_view_that_waits_for_its_second_look_ends_with_its_reader() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let admin = gateway.admin_address().to_string();
    assert_ends(left(&["top", "--once", "--every", "3600", "--admin", &admin], false));
}

#[test]
fn a_demo_ends_with_its_reader() {
    assert_ends(left(&["demo", "--seconds", "3600"], true));
}
