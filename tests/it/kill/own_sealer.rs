//! SIGKILL at random moments while gateways seal days that are over, which each begins a minute after
//! its start.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::history::History;
use super::{KILLS, KILLS_VARIABLE, LIMITS, Random, SEED_VARIABLE, exchange, given};
use crate::gateway::{Setup, binary};
use crate::pacing::{self, pass};
use crate::patience::patiently;

/// Gateways that wait for their minute at once.
const AT_ONCE: usize = 8;
/// One kill of these for so many others: each takes a minute.
const KILLS_OF: usize = 12;
/// Waits for the begin of it.
const WAITS: usize = 8;
/// They seal for at most so long.
const LIFE_MAX: Duration = Duration::from_millis(400);
/// Days that are left to be sealed after a life.
const DAYS_A_LIFE: u32 = 40;

#[test]
fn gateways_that_are_killed_while_they_seal_lose_nothing_and_go_on() {
    let seed = given(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("{SEED_VARIABLE}={seed}");
    let kills = given(KILLS_VARIABLE).unwrap_or(KILLS) / KILLS_OF;
    let lives = kills.div_ceil(AT_ONCE);
    binary();
    std::thread::scope(|gateways| {
        for number in 0..AT_ONCE {
            let random = Random(seed ^ ((number as u64) << 8) | 1);
            gateways.spawn(move || live(lives, random));
        }
    });
}

/// Starts and kills gateways in one folder, one after the other.
fn live(lives: usize, mut random: Random) {
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = || Setup::with_upstream(&upstream).with(LIMITS);
    let mut folder = tempfile::tempdir().expect("a temporary folder");
    let days = DAYS_A_LIFE * u32::try_from(lives + 1).expect("few");
    let history = History::write(folder.path(), days);
    let (to_requests, requests) = channel();
    for life in 0..lives {
        let gateway = setup().start_in(folder);
        let days = gateway.data_dir().join("days");
        let before = names(&days);
        let seals = || (!names(&days).is_subset(&before)).then_some(());
        assert!((0..WAITS).any(|_| patiently(seals).is_some()), "it does not seal");
        let address = gateway.address();
        let time = random.below(LIFE_MAX.as_micros().try_into().unwrap_or(1));
        let mut of_client = Random(random.below(u64::from(u32::MAX)) | 1);
        folder = std::thread::scope(|clients| {
            let to_requests = to_requests.clone();
            clients.spawn(move || {
                exchange(address, &life.to_string(), &mut of_client, &to_requests);
            });
            pass(Duration::from_micros(time));
            gateway.kill()
        });
    }
    let mut gateway = setup().start_in(folder);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    let sent = requests.try_iter().collect();
    // A life is short, and few of its requests run when it ends.
    let _ = history.judge(lives, &folder.path().join("data"), &engine.log(), sent);
}

/// The names of the files of days in a folder, if there is one, and of those that are being written.
fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(files) = fs::read_dir(folder) else { return BTreeSet::new() };
    let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    names.filter(|name| name.contains(".parquet")).collect()
}
