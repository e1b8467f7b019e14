//! `taximeter backup`: what it copies is a ledger that a gateway can start from.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use serde_json::{Value, json};

use crate::client::ask;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, bounded, records, taximeter};
use crate::http::{json_answer, post};
use crate::pacing;
use crate::patience::patiently;

/// Copies the ledger of a gateway into a folder, by an archive that is unpacked there.
fn by_archive(gateway: &Gateway, folder: &Path) {
    let mut backup = bounded();
    backup.args(["backup", "-", "--config"]).arg(gateway.config_file());
    let output = backup.output().expect("run taximeter");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::create_dir_all(folder).expect("a folder");
    let mut tar = Command::new("tar");
    let tar = tar.arg("-x").current_dir(folder).stdin(Stdio::piped());
    let mut child = tar.spawn().expect("run tar");
    child.stdin.take().expect("a pipe").write_all(&output.stdout).expect("write to tar");
    assert!(child.wait().expect("its status").success(), "tar reads another archive");
}

/// Copies it into a folder at once.
fn by_folder(gateway: &Gateway, folder: &Path) {
    let data = gateway.data_dir();
    let to = folder.to_str().expect("UTF-8");
    let output = taximeter(["backup", to, "--data-dir", data.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn verified(data_dir: &Path) {
    let output = taximeter(["verify", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn status(gateway: &Gateway) -> Value {
    serde_json::from_slice(&gateway.admin("/api/v1/status").body).expect("JSON")
}

fn ids(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["id"].as_str().expect("an id")).collect()
}

#[test]
fn a_copy_has_what_the_ledger_has_and_a_gateway_starts_from_it() {
    let engine = Engine::start();
    let setup = || Setup::before(&engine).upstream("dialect: openai");
    let exchange = |gateway: &Gateway| {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    };
    let gateway = setup().with("limits: {ledger_segment_bytes: 4096}").start();
    for _ in 0..12 {
        exchange(&gateway);
    }
    let all = gateway.await_records(12);
    for copy in [by_archive, by_folder] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        copy(&gateway, &data);
        verified(&data);
        assert_eq!(records(&data), all);
        let again = taximeter(["backup".as_ref(), data.as_os_str()]);
        assert!(!again.status.success(), "a folder that is not empty is written to");
        let id = |gateway: &Gateway| status(gateway)["ledger"]["id"].clone();
        let restored = setup().start_in(folder);
        assert_ne!(id(&restored), id(&gateway), "it is another ledger from here on");
        assert_eq!(status(&restored)["ledger"]["copy_of"], json!([id(&gateway)]));
        exchange(&restored);
        assert_eq!(restored.await_records(13).len(), 13);
        verified(&restored.data_dir());
    }
    assert_eq!(status(&gateway)["ledger"]["copy_of"], json!([]));
    exchange(&gateway);
    assert_eq!(gateway.await_records(13).len(), 13);
}

#[test]
fn a_copy_that_is_taken_under_load_is_whole_and_no_request_fails() {
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = || Setup::with_upstream(&upstream).with("limits: {ledger_segment_bytes: 65536}");
    let gateway = setup().start();
    let (address, over) = (gateway.address(), AtomicBool::new(false));
    let (asked, copies) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut asked = 0;
            while !over.load(Relaxed) {
                let request = post("/v1/chat/completions", "Connection: close\r\n", CHAT);
                assert_eq!(ask(address, &request).status(), 200);
                asked += 1;
            }
            asked
        });
        let some = || (gateway.records().len() >= 20).then_some(());
        assert!(patiently(some).is_some(), "nobody is served");
        let copies = [by_archive, by_folder, by_archive].map(|copy| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            copy(&gateway, &folder.path().join("data"));
            folder
        });
        over.store(true, Relaxed);
        (asking.join().expect("a client"), copies)
    });
    let all = gateway.await_records(asked);
    let all = ids(&all);
    for folder in copies {
        let copy = folder.path().join("data");
        let restored = records(&copy);
        assert!(restored.len() >= 20);
        let settled = restored.iter().filter(|record| record["end"] == "complete");
        assert!(settled.cloned().all(|record| all.contains(&ids(&[record])[0])));
        let output = taximeter(["verify", "--data-dir", copy.to_str().expect("UTF-8")]);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut wrong = said.lines().filter(|line| line.starts_with("wrong: "));
        // What was running then, whoever starts from the copy settles.
        assert!(wrong.all(|line| line.contains("is open and no gateway runs")), "{said}");
        let mut again = setup().start_in(folder);
        again.terminate();
        assert_eq!(again.exit().0.code(), Some(0));
        verified(&again.data_dir());
    }
    let last = tempfile::tempdir().expect("a temporary folder");
    let copy = last.path().join("data");
    by_archive(&gateway, &copy);
    verified(&copy);
    assert_eq!(bill(&copy), bill(&gateway.data_dir()));
}

/// What its tenants owe.
fn bill(data_dir: &Path) -> String {
    let data_dir = data_dir.to_str().expect("UTF-8");
    let output = taximeter(["bill", "--format", "csv", "--data-dir", data_dir]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
