//! `verify` beside a gateway that writes, compresses and removes journal files all the time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::RoomLimits;
use taximeter_journal::{InStore, Journal, Options, Retention};
use taximeter_ledger::{Charge, Reserve};
use taximeter_system::clock;

use super::*;
use crate::verify::{Findings, verify};

/// Requests while it is verified. They bound the size of the store, and so the time of the test.
const REQUESTS: u32 = 2_000;
/// Requests before the first one, so that there is something to remove from the start.
const REQUESTS_BEFORE: u32 = 300;

pub(super) fn journal_in(dir: &Path) -> Journal {
    let options = Options {
        gateway: "pod-7f9c/0".to_owned(),
        durability: Durability::Os,
        recovery: OnDamage::Strict,
        unavailable: OnUnavailable::Refuse,
        queue_bytes_max: 1 << 20,
        segment_bytes: 2_000,
        now: clock::wall,
        tell: Box::new(|event| panic!("{event:?}")),
    };
    Journal::open(dir, options, &|_| Charge::default()).unwrap().0
}

pub(super) fn serve(journal: &Journal, number: u32) {
    serve_record(journal, record(number));
}

/// Writes what a request with this record writes.
pub(super) fn serve_record(journal: &Journal, record: Record) {
    let reserve: Reserve = serde_json::from_value(json!({
        "id": record.id, "request_id": record.request_id, "started_at": record.started_at,
        "tenant": record.tenant, "key_id": null, "identity": "api_key", "operation": "chat",
        "route": record.route, "stream": true, "upstream": "local", "provider": "vllm",
        "request_model": null, "amount": null,
    }))
    .unwrap();
    // Where the queue is full, the request is refused.
    if journal.append(&Entry::Reserve(Box::new(reserve))).is_ok() {
        journal.append_detached(&Entry::Post(Box::new(record)));
    }
}

/// Feeds the store, and removes the files that it has: the directory is nearly full. The journal
/// compresses its files itself.
fn keep(dir: &Path, journal: &Journal, removed: &AtomicU64, ends: &AtomicBool) {
    let mut store = Store::open(dir).unwrap();
    let mut feeds = feeds(dir);
    let clocks = || (clock::now(), clock::wall());
    let newest = Some(Timestamp::UNIX_EPOCH);
    let mut retention = Retention::new(dir, 400, 0, newest, clocks(), Arc::default());
    let budget = DiskBudget::default();
    let limits = RoomLimits { bytes_max: Some(1), segment_bytes: 2_000, serves: false };
    while !ends.load(Relaxed) {
        // Another process may write for a moment.
        let Ok(fed) = store.catch_up(&mut feeds) else { continue };
        let gone = retention
            .fed(
                journal.sequence(),
                InStore { sealed: fed.sealed, corrections: fed.stored_corrections },
                &budget,
                clocks(),
            )
            .unwrap();
        removed.fetch_add(gone.for_room.map_or(0, |made| made.gone.len() as u64), Relaxed);
        budget.look(dir, &limits).unwrap();
        // Otherwise the log of the database would be too long before a reader is done.
        thread::park_timeout(Duration::from_millis(10));
    }
}

#[test]
fn verify_finds_nothing_wrong_in_sound_data_while_files_are_compressed_and_removed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let journal = journal_in(dir);
    (0..REQUESTS_BEFORE).for_each(|number| serve(&journal, number));
    let (removed, ends) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in REQUESTS_BEFORE..REQUESTS {
                if ends.load(Relaxed) {
                    return;
                }
                serve(&journal, number);
                thread::park_timeout(Duration::from_millis(1));
            }
            ends.store(true, Relaxed);
        });
        scope.spawn(|| keep(dir, &journal, &removed, &ends));
        let _ends = Ends(&ends);
        while !ends.load(Relaxed) {
            let mut store = Store::open(dir).unwrap();
            let mut findings = Findings::default();
            let read = verify(dir, &mut store, &mut |_| {}, &mut findings);
            let mut said = Vec::new();
            findings.write(&mut said).unwrap();
            let said = String::from_utf8(said).unwrap();
            assert!(read.is_ok() && findings.wrong() == 0, "{read:?}\n{said}");
        }
    });
    assert!(removed.load(Relaxed) > 0);
}

/// Ends the other threads, also where the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
