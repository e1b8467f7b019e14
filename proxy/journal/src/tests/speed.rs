//! Measures and prints what the journal costs on a real disk. It never fails because of a number.
//! `benches/run --only ledger` runs it and explains the numbers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_ledger::{Charge, Replay};
use taximeter_system::clock;
use tempfile::TempDir;

use super::super::{Journal, Options, Recovery, read};
use super::bench::{post, reserve};

/// Where the journals are made; the disk under it is what is measured. Here, if it is not set.
const DIR_VARIABLE: &str = "TAXIMETER_BENCH_DIR";
/// Entries of the journal that is recovered.
const ENTRIES_VARIABLE: &str = "TAXIMETER_BENCH_ENTRIES";
const ENTRIES: u128 = 10_000_000;

/// Entries that are written as fast as they can be.
const FAST_ENTRIES: u128 = 1_000_000;
/// Requests at once.
const REQUESTS: u128 = 64;
/// Between two requests of one of them, and how many it makes.
const PACE: Duration = Duration::from_millis(10);
const PACED_REQUESTS: u128 = 500;
const QUEUE_BYTES_MAX: usize = 64 << 20;

fn open(dir: &Path, durability: Durability) -> (Journal, Recovery) {
    let options = Options {
        gateway: "bench/0".to_owned(),
        durability,
        recovery: OnDamage::Strict,
        unavailable: OnUnavailable::Refuse,
        queue_bytes_max: QUEUE_BYTES_MAX,
        segment_bytes: 64 << 20,
        now: clock::wall,
        tell: Box::new(|event| println!("{event:?}")),
    };
    Journal::open(dir, options, &|_| Charge::default()).unwrap()
}

fn folder() -> TempDir {
    let here = std::env::var_os(DIR_VARIABLE).map_or_else(|| PathBuf::from("."), PathBuf::from);
    tempfile::tempdir_in(here).unwrap()
}

/// CPU time of all threads of this process.
fn cpu() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let nanos = threads.map(|thread| {
        let said = std::fs::read_to_string(thread.unwrap().path().join("schedstat"));
        let said = said.unwrap_or_default();
        said.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0)
    });
    Duration::from_nanos(nanos.sum())
}

/// Runs `each` for all requests at once, on one thread as the gateway does.
fn ride<F: Future<Output = ()> + 'static>(each: impl Fn(u128) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let rides: Vec<_> =
            (0..REQUESTS).map(|request| tokio::task::spawn_local(each(request))).collect();
        for ride in rides {
            ride.await.unwrap();
        }
    });
}

/// As fast as they can be written, each waited for: entries/s, and CPU time of each.
fn fast(durability: Durability) -> String {
    let folder = folder();
    let (journal, _) = open(folder.path(), durability);
    let (begun, cpu_begun) = (clock::now(), cpu());
    ride(|lane| {
        let journal = journal.clone();
        async move {
            for number in 0..FAST_ENTRIES / REQUESTS / 2 {
                let request = number * REQUESTS + lane;
                journal.append(&reserve(request)).unwrap().await.unwrap();
                journal.append(&post(request)).unwrap().await.unwrap();
            }
        }
    });
    let (took, cpu) = (clock::now() - begun, cpu() - cpu_begun);
    journal.close().unwrap();
    let entries = journal.sequence() as f64;
    let micros = cpu.as_secs_f64() * 1e6 / entries;
    format!("{:>12.0} {micros:>14.2} {:>14.0}", entries / took.as_secs_f64(), 1e6 / micros)
}

/// Time from a request's two entries to where they are, at a pace; nothing is written without a
/// journal.
fn paced(journal: Option<&Journal>) -> String {
    let waits = std::rc::Rc::new(std::cell::RefCell::new(Vec::<Duration>::new()));
    ride(|lane| {
        let (journal, waits) = (journal.cloned(), std::rc::Rc::clone(&waits));
        async move {
            let start = clock::now() + PACE * u32::try_from(lane).unwrap() / 64;
            let mut pace = tokio::time::interval_at(start.into(), PACE);
            for number in 0..PACED_REQUESTS {
                pace.tick().await;
                let request = number * REQUESTS + lane;
                let entries = [reserve(request), post(request)];
                let begun: Instant = clock::now();
                for entry in &entries {
                    match &journal {
                        Some(journal) => drop(journal.append(entry).unwrap().await.unwrap()),
                        None => tokio::task::yield_now().await,
                    }
                }
                waits.borrow_mut().push(clock::now() - begun);
            }
        }
    });
    let mut waits = waits.take();
    waits.sort_unstable();
    let micros = |part: usize| waits[waits.len() * part / 100].as_secs_f64() * 1e6;
    format!("{:>12.0} {:>14.0}", micros(50), micros(99))
}

/// How long a start takes on a long journal, and how long reading and folding all of it.
fn recovery() -> String {
    let entries = std::env::var(ENTRIES_VARIABLE).ok().and_then(|entries| entries.parse().ok());
    let entries: u128 = entries.unwrap_or(ENTRIES);
    let folder = folder();
    let (journal, _) = open(folder.path(), Durability::Os);
    for request in 0..entries / 2 {
        for entry in [reserve(request), post(request)] {
            while journal.append(&entry).is_err() {
                std::thread::yield_now();
            }
        }
    }
    journal.close().unwrap();
    drop(journal);
    let begun = clock::now();
    let (journal, recovery) = open(folder.path(), Durability::Os);
    let start = clock::now() - begun;
    journal.close().unwrap();
    let begun = clock::now();
    let (mut replay, mut bytes, mut count) = (Replay::default(), 0, 0_u64);
    for framed in read(folder.path(), 1) {
        let framed = framed.unwrap();
        replay.apply(framed.seq, framed.entry().unwrap()).unwrap();
        bytes += framed.payload.len();
        count += 1;
    }
    let whole = clock::now() - begun;
    assert_eq!(replay.posts(), recovery.posts);
    format!(
        "{count} entries, {} MB: start in {:.2} s, {} entries read; all read and folded in {:.2} s",
        bytes / 1_000_000,
        start.as_secs_f64(),
        recovery.entries,
        whole.as_secs_f64(),
    )
}

#[test]
#[ignore = "a measurement: benches/run --only ledger"]
fn speed() {
    let mut said = String::from("\n");
    let all = [("os", Durability::Os), ("group", Durability::Group), ("sync", Durability::Sync)];
    let head = ["entries/s", "CPU each, µs", "one core's"];
    writeln!(said, "{:<10} {:>12} {:>14} {:>14}", "full speed", head[0], head[1], head[2]).unwrap();
    for (name, durability) in all {
        writeln!(said, "{name:<10} {}", fast(durability)).unwrap();
    }
    writeln!(said, "{:<10} {:>12} {:>14}", "paced", "p50, µs", "p99, µs").unwrap();
    writeln!(said, "{:<10} {}", "none", paced(None)).unwrap();
    for (name, durability) in all {
        let folder = folder();
        let (journal, _) = open(folder.path(), durability);
        writeln!(said, "{name:<10} {}", paced(Some(&journal))).unwrap();
    }
    writeln!(said, "recovery   {}", recovery()).unwrap();
    println!("{said}");
}
