//! A disk that fills under load, and has room again.

use std::collections::BTreeSet;
use std::path::Path;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STREAM_CHAT};
use crate::gateway::{Gateway, Setup, taximeter};
use crate::http::{Message, json_answer, post};
use crate::pacing;
use crate::patience::patiently;
use crate::volume::{Kind, Lacking, Volume};

/// Room for some hundred requests: the store needs more than the journal.
const DISK_BYTES: usize = 256 << 10;
/// More requests than there is room for.
const REQUESTS_MAX: usize = 2_000;

/// Requests that a full volume is seen to refuse.
const REFUSED_MAX: usize = 20;

/// Room of a volume, and what is left of it for a start: less than SQLite needs for the index of its
/// log, more than it writes before it maps that.
const VOLUME_KIB: u64 = 12 << 10;
const LEFT_KIB: [u64; 4] = [0, 9, 11, 13];

/// Streams and whole answers in turn, each under a name of its own.
fn exchange(gateway: &Gateway, number: usize) -> (String, Message) {
    let request_id = format!("request-{number}");
    let headers = format!("x-request-id: {request_id}\r\n");
    let body = if number.is_multiple_of(4) { STREAM_CHAT } else { CHAT };
    let request = post("/v1/chat/completions", &headers, body);
    let answer = Client::saying(gateway.address(), &request).answer();
    if answer.status() == 200 {
        assert!(answer.complete);
        assert!(body == CHAT || answer.text().ends_with(DONE), "{}", answer.text());
    }
    (request_id, answer)
}

/// Ends the gateway; the ledger has these requests, each once, and nothing is wrong with it.
fn assert_billed(mut gateway: Gateway, expected: &BTreeSet<String>) {
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let records = gateway.records();
    let billed: BTreeSet<_> =
        records.iter().filter_map(|r| r["request_id"].as_str().map(str::to_owned)).collect();
    assert_eq!((&billed, records.len()), (expected, expected.len()));
    assert!(records.iter().all(|record| record["end"] == "complete"));
    let folder = gateway.into_folder();
    let data_dir = folder.path().join("data");
    let verified = taximeter(["verify", "--data-dir", data_dir.to_str().expect("UTF-8")]);
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[test]
fn a_full_disk_refuses_until_there_is_room_and_bills_all_that_was_answered() {
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let gateway = Setup::with_upstream(&upstream).start_on_disk_of(DISK_BYTES);
    let mut answered = BTreeSet::new();
    let refusal = (0..REQUESTS_MAX).find_map(|number| {
        let (request_id, answer) = exchange(&gateway, number);
        if answer.status() != 200 {
            return Some(answer);
        }
        answered.insert(request_id);
        None
    });
    let refusal = refusal.expect("the disk never was full");
    assert_eq!(refusal.status(), 503);
    assert_eq!(refusal.json()["error"]["code"], "ledger_unavailable", "{}", refusal.text());
    assert!(answered.len() > 20, "it never worked");
    gateway.await_ready(503);
    let sent = engine.log().len();
    assert_eq!(exchange(&gateway, REQUESTS_MAX).1.status(), 503);
    assert_eq!(engine.log().len(), sent, "what is refused is not sent");

    gateway.enlarge_disk();
    gateway.await_ready(200);
    for number in REQUESTS_MAX + 1..REQUESTS_MAX + 20 {
        let (request_id, answer) = exchange(&gateway, number);
        assert_eq!(answer.status(), 200);
        answered.insert(request_id);
    }
    assert_billed(gateway, &answered);
}

#[test]
fn a_full_disk_is_served_on_where_that_is_wanted_and_nothing_is_lost() {
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = Setup::with_upstream(&upstream).with("ledger: {unavailable: serve}");
    let gateway = setup.start_on_disk_of(DISK_BYTES);
    let mut answered = BTreeSet::new();
    let (mut is_full, mut left) = (false, 50);
    for number in 0..REQUESTS_MAX {
        let (request_id, answer) = exchange(&gateway, number);
        assert_eq!(answer.status(), 200, "{}", answer.text());
        answered.insert(request_id);
        is_full = is_full || gateway.has_said("ledger_write_failed");
        left -= usize::from(is_full);
        if left == 0 {
            break;
        }
    }
    assert_eq!(left, 0, "the disk never was full");
    gateway.await_ready(200);
    gateway.enlarge_disk();
    assert_billed(gateway, &answered);
}

/// Where blocks are smaller than pages of memory, as on ext4 with blocks of 1 KiB, the kernel ends who
/// writes to a page whose blocks are not there.
#[test]
fn a_full_volume_ends_no_gateway_whether_it_starts_or_runs() {
    Kind::each(a_full_volume_ends_no_gateway_whether_it_starts_or_runs, fill_between_starts);
}

fn fill_between_starts(kind: Kind) {
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = || Setup::with_upstream(&upstream);
    let mut folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount(kind, folder.path(), VOLUME_KIB);
    let mut answered = BTreeSet::new();
    let mut gateway = volume.start(setup(), folder);
    answered.insert(exchange(&gateway, REQUESTS_MAX * LEFT_KIB.len()).0);
    gateway.await_records(1);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    folder = gateway.into_folder();
    for (round, left) in LEFT_KIB.into_iter().enumerate() {
        volume.fill(left);
        let mut gateway = volume.start(setup(), folder);
        let mut refused = 0;
        let (first, last) = (round * REQUESTS_MAX, (round + 1) * REQUESTS_MAX - 1);
        for number in first..last {
            let (request_id, answer) = exchange(&gateway, number);
            match answer.status() {
                200 => drop(answered.insert(request_id)),
                status => refused += usize::from(status == 503),
            }
            if refused == REFUSED_MAX {
                break;
            }
        }
        assert_eq!(refused, REFUSED_MAX, "{left} KiB were enough on {kind:?}");
        assert_eq!(gateway.admin("/healthz").status(), 200);

        volume.empty(&gateway);
        gateway.await_ready(200);
        let (request_id, answer) = exchange(&gateway, last);
        assert_eq!(answer.status(), 200);
        answered.insert(request_id);
        assert_eq!(gateway.await_records(answered.len()).len(), answered.len());
        gateway.terminate();
        let (status, said) = gateway.exit();
        assert!(status.success(), "{said:#?}");
        folder = gateway.into_folder();
    }
    assert_billed(volume.start(setup(), folder), &answered);
}

#[test]
fn a_gateway_that_was_killed_starts_on_a_full_volume_and_writes_what_it_owes_later() {
    let test = a_gateway_that_was_killed_starts_on_a_full_volume_and_writes_what_it_owes_later;
    Kind::each(test, |kind| {
        for lacking in [Lacking::Blocks, Lacking::Inodes] {
            for unavailable in ["refuse", "serve"] {
                start_after_a_kill(kind, lacking, unavailable);
            }
        }
    });
}

/// How many requests of its ledger ended so.
fn ended(gateway: &Gateway, end: &str) -> u64 {
    gateway.records().iter().filter(|record| record["end"] == end).count() as u64
}

/// A killed gateway leaves a log, which would be room for the next start.
fn end_the_log_of_the_store(data: &Path) {
    let billed = taximeter(["bill", "--data-dir", data.to_str().expect("UTF-8")]);
    assert!(billed.status.success(), "{billed:?}");
}

fn start_after_a_kill(kind: Kind, lacking: Lacking, unavailable: &str) {
    let engine = Engine::start();
    let setup = |durability: &str| {
        let ledger = format!("ledger: {{unavailable: {unavailable}, durability: {durability}}}");
        Setup::before(&engine).upstream("dialect: openai").with(&ledger)
    };
    let chat = |gateway: &Gateway| {
        let mut client = gateway.chat("Connection: close\r\n", CHAT);
        engine.answer_once(&json_answer(CHAT_ANSWER));
        assert_eq!(client.answer().status(), 200);
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let volume = Volume::mount(kind, folder.path(), VOLUME_KIB);
    let gateway = volume.start(setup("os"), folder);
    chat(&gateway);
    gateway.await_records(1);
    let streams = [(); 80].map(|()| gateway.streaming(&engine, STREAM_CHAT, &[HELLO]));
    let (data, open) = (gateway.data_dir(), streams.len() as u64);
    let mut folder = gateway.kill();
    drop(streams);
    end_the_log_of_the_store(&data);

    // A change of the promise begins a file.
    let durability = if lacking == Lacking::Inodes { "group" } else { "os" };
    match lacking {
        Lacking::Blocks => volume.fill(0),
        Lacking::Inodes => volume.use_up_inodes(),
    }
    let is_served = unavailable == "serve";
    // The second start finds what the first one could not write.
    for start in 0..2 {
        let gateway = volume.start(setup(durability), folder);
        let failed = gateway.said_at_its_start("ledger_write_failed");
        let data = gateway.data_dir();
        let path = failed["path"].as_str().unwrap_or_default();
        assert!(path.starts_with(data.to_str().expect("UTF-8")), "{failed}");
        let limited = kind == Kind::Limits;
        let (error, hint) = if limited { ("too large", "ulimit -f") } else { ("space", "df -i") };
        assert!(failed["error"].as_str().is_some_and(|it| it.contains(error)), "{failed}");
        assert!(failed["hint"].as_str().is_some_and(|it| it.contains(hint)), "{failed}");
        let opened = gateway.said_at_its_start("ledger_opened");
        // A part of what the first start wrote may be there.
        let died = opened["gateway_died"].as_u64().expect("a number");
        assert!(died == open || (start > 0 && (1..open).contains(&died)), "{opened}");
        assert_eq!(gateway.admin("/healthz").status(), 200);
        gateway.await_ready(if is_served { 200 } else { 503 });
        if is_served {
            chat(&gateway);
        } else {
            let answer = gateway.ask(&post("/v1/chat/completions", "", CHAT));
            assert_eq!(answer.status(), 503);
            assert_eq!(answer.json()["error"]["code"], "ledger_unavailable", "{}", answer.text());
        }
        folder = gateway.kill();
    }
    let gateway = volume.start(setup(durability), folder);
    if is_served {
        chat(&gateway);
    }
    volume.empty(&gateway);
    gateway.await_event("ledger_recovered");
    gateway.await_ready(200);
    chat(&gateway);
    let least = 2 + u64::from(is_served);
    // Who was served by the two that were killed has a record if there was room for it.
    let most = least + 2 * u64::from(is_served);
    let all = patiently(|| Some(ended(&gateway, "complete")).filter(|complete| *complete >= least));
    assert!(all.is_some_and(|complete| complete <= most), "{kind:?}: {all:?}");
    assert_eq!(ended(&gateway, "gateway_died"), open, "{kind:?}");
    let mut gateway = gateway;
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let data = gateway.data_dir();
    let verified = taximeter(["verify", "--data-dir", data.to_str().expect("UTF-8")]);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert!(verified.status.success() && said.contains("Nothing is wrong."), "{said}");
}
