//! A gateway that starts on a full volume where it has more to write than what it owes.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use taximeter_ledger::{Kind as EntryKind, Reader};
use tempfile::TempDir;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{json_answer, post};
use crate::patience::patiently;
use crate::segments;
use crate::volume::{Kind, Lacking, Volume};

const VOLUME_KIB: u64 = 12 << 10;
/// Requests before the volume is full.
const REQUESTS: usize = 3;

/// What a start finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// A new directory.
    Nothing,
    /// The last entry, the record of a request, is damaged.
    Damage,
    /// An entry behind the last one is whole, and nobody understands it.
    UnknownEntry,
}

#[test]
fn a_gateway_starts_in_a_new_directory_of_a_full_volume() {
    let test = a_gateway_starts_in_a_new_directory_of_a_full_volume;
    Kind::each(test, |kind| each(kind, Found::Nothing));
}

#[test]
fn a_gateway_starts_on_a_full_volume_where_damage_is_to_be_left_out() {
    let test = a_gateway_starts_on_a_full_volume_where_damage_is_to_be_left_out;
    Kind::each(test, |kind| each(kind, Found::Damage));
}

#[test]
fn a_gateway_starts_on_a_full_volume_where_entries_are_to_be_set_aside() {
    let test = a_gateway_starts_on_a_full_volume_where_entries_are_to_be_set_aside;
    Kind::each(test, |kind| each(kind, Found::UnknownEntry));
}

fn each(kind: Kind, found: Found) {
    start(kind, found, Lacking::Blocks, false);
    start(kind, found, Lacking::Inodes, true);
}

fn chat(gateway: &Gateway, engine: &Engine) {
    let mut client = gateway.chat("Connection: close\r\n", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().status(), 200);
}

fn start(kind: Kind, found: Found, lacking: Lacking, serves: bool) {
    let engine = Engine::start();
    let unavailable = if serves { "serve" } else { "refuse" };
    let ledger = format!(
        "ledger: {{unavailable: {unavailable}, durability: os, recovery: salvage}}\n\
         export: {{push: {{url: \"http://127.0.0.1:1/\"}}}}"
    );
    let setup = || Setup::before(&engine).upstream("dialect: openai").with(&ledger);
    let mut folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount(kind, folder.path(), VOLUME_KIB);
    if found != Found::Nothing {
        folder = left(&volume, setup(), folder, &engine);
        change(&folder.path().join("data"), found);
    }
    volume.leave_nothing(lacking);
    // The last block of the file that is there can have room for some entries. Then the next start
    // reads from behind them.
    let may_write = found == Found::UnknownEntry;
    // The second start finds what the first one could not write.
    for _ in 0..if may_write { 0 } else { 2 } {
        let gateway = volume.start(setup(), folder);
        assert_told(&gateway, kind);
        gateway.await_ready(if serves { 200 } else { 503 });
        if serves {
            chat(&gateway, &engine);
        } else {
            let answer = gateway.ask(&post("/v1/chat/completions", "", CHAT));
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.json()["error"]["code"], "ledger_unavailable", "{}", answer.text());
        }
        folder = gateway.kill();
    }
    let gateway = volume.start(setup(), folder);
    assert_told(&gateway, kind);
    let is_served = serves && !may_write;
    if is_served {
        chat(&gateway, &engine);
    }
    volume.empty(&gateway);
    if !may_write {
        gateway.await_event("ledger_recovered");
    }
    gateway.await_ready(200);
    chat(&gateway, &engine);
    assert_whole(gateway, found, 1 + usize::from(is_served));
}

/// It lives, and says why it cannot write.
fn assert_told(gateway: &Gateway, kind: Kind) {
    let failed = gateway.said_at_its_start("ledger_write_failed");
    let data = gateway.data_dir();
    let path = failed["path"].as_str().unwrap_or_default();
    assert!(path.starts_with(data.to_str().expect("UTF-8")), "{failed}");
    let (error, hint) =
        if kind == Kind::Limits { ("too large", "ulimit -f") } else { ("space", "df -i") };
    assert!(failed["error"].as_str().is_some_and(|it| it.contains(error)), "{failed}");
    assert!(failed["hint"].as_str().is_some_and(|it| it.contains(hint)), "{failed}");
    assert_eq!(gateway.admin("/healthz").status(), 200);
}

/// What a gateway leaves that was killed after some requests. Its store is removed, so that all in it
/// comes from the journal.
fn left(volume: &Volume, setup: Setup, folder: TempDir, engine: &Engine) -> TempDir {
    let gateway = volume.start(setup, folder);
    for _ in 0..REQUESTS {
        chat(&gateway, engine);
    }
    gateway.await_records(REQUESTS);
    let folder = gateway.kill();
    for file in fs::read_dir(folder.path().join("data")).expect("the data directory") {
        let path = file.expect("a file").path();
        if path.to_string_lossy().contains("store.sqlite") {
            fs::remove_file(path).expect("remove the store");
        }
    }
    folder
}

/// Changes the end of the journal.
fn change(data: &Path, found: Found) {
    let segment = segments::segments(data).pop().expect("a segment");
    let mut bytes = fs::read(&segment).expect("a segment");
    let mut reader = Reader::new(None, 1);
    reader.feed(&bytes);
    let framed = std::iter::from_fn(|| reader.next_entry().expect("a whole segment"));
    let last = framed.last().expect("an entry");
    if found == Found::Damage {
        assert_eq!(last.kind, EntryKind::Post);
        let at = usize::try_from(last.offset).expect("short");
        bytes[at + 30] ^= 1;
        return fs::write(&segment, bytes).expect("write a segment");
    }
    let (payload, seed) = (b"?", crc32c::crc32c(last.ledger.0.as_bytes()));
    let seq = u32::try_from(last.seq + 1).expect("short");
    let check = crc32c::crc32c_append(seed, payload);
    let head = [&[1, 0, 0, EntryKind::Void as u8], &seq.to_le_bytes()[..], &check.to_le_bytes()];
    let head = head.concat();
    let chain = crc32c::crc32c_append(reader.last_frame().chain, &head);
    let mut file = OpenOptions::new().append(true).open(&segment).expect("a segment");
    let frame = [&head[..], &chain.to_le_bytes(), payload].concat();
    file.write_all(&frame).expect("write a frame");
}

/// All is there once there is room, and no more than that.
fn assert_whole(mut gateway: Gateway, found: Found, served: usize) {
    let data = gateway.data_dir();
    let ended = |records: &[serde_json::Value], end: &str| {
        records.iter().filter(|record| record["end"] == end).count()
    };
    let (before, died) = match found {
        Found::Nothing => (0, 0),
        // Its record is gone, so nobody knows that it has ended.
        Found::Damage => (REQUESTS - 1, 1),
        Found::UnknownEntry => (REQUESTS, 0),
    };
    let records = gateway.await_records(before + died + served);
    assert_eq!(
        (ended(&records, "complete"), ended(&records, "gateway_died")),
        (before + served, died)
    );
    let set_aside = || fs::read_dir(data.join("rejected")).map_or(0, Iterator::count);
    if found == Found::UnknownEntry {
        assert!(patiently(|| (set_aside() == 1).then_some(())).is_some(), "it is not set aside");
    }
    // The cursor of the receiver is there too, so that nothing is removed that it lacks.
    assert!(patiently(|| data.join("push.json").exists().then_some(())).is_some());
    gateway.terminate();
    let (status, said) = gateway.exit();
    assert!(status.success(), "{said:#?}");
    let verified = taximeter(["verify", "--data-dir", data.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&verified.stdout);
    let expected = match found {
        Found::Nothing => "Nothing is wrong.",
        // Its segment may have gone for room: the store has what could be read.
        Found::Damage if !said.contains(" entries, 1 to ") => "Nothing is wrong.",
        Found::Damage => "wrong: entry",
        Found::UnknownEntry => "cannot be read",
    };
    assert!(said.contains(expected), "{found:?}: {said}");
}
