//! SIGKILL at random moments while another process seals, merges and removes days of the same ledger
//! without a pause. A gateway does so now and then, and not in the first minute of its life.

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use jiff::{SignedDuration, Timestamp};
use taximeter_store::{GoneCause, SealPolicy, Sealer, StoreError};

use super::history::{DAY, GATEWAY, History};
use super::{KILLS_VARIABLE, LIMITS, Random, SEED_VARIABLE, given, kill_in};
use crate::gateway::Setup;
use crate::pacing;

/// Says to the test that it is the process that seals: the data directory, and up to when its days are
/// closed.
const SEALS: &str = "TAXIMETER_TEST_SEALS";
const CLOSED: &str = "TAXIMETER_TEST_CLOSED";
/// It says so when nobody else seals.
const BEGUN: &str = "it seals";
/// As many as the gate has time for.
const KILLS: usize = 30;
/// It never seals for longer: whoever kills it may have ended.
const ROUNDS_MAX: u32 = 20_000;
/// Days that keep their details, at least.
const KEPT_DAYS: i32 = 20;

/// A process that seals; killed when dropped.
struct SealingProcess(Child);

impl SealingProcess {
    /// Begins one, and waits until it seals.
    fn begin(test: &str, folder: &Path, closed_until: Timestamp, seed: u64) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test's own path"));
        command
            .args(["--exact", test, "--nocapture"])
            .env(SEALS, folder.join("data"))
            .env(CLOSED, closed_until.to_string())
            .env(SEED_VARIABLE, seed.to_string())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("start this test");
        let said = BufReader::new(child.stdout.take().expect("what it says"));
        let begun = said.lines().map_while(Result::ok).any(|line| line.contains(BEGUN));
        assert!(begun, "it does not seal");
        Self(child)
    }
}

impl Drop for SealingProcess {
    fn drop(&mut self) {
        let ended = self.0.try_wait().expect("a process");
        let _ = self.0.kill();
        let _ = self.0.wait();
        if !std::thread::panicking() {
            assert_eq!(ended, None, "it has failed");
        }
    }
}

#[test]
fn whenever_what_seals_is_killed_each_request_is_on_the_ledger_once() {
    if let Some(data_dir) = std::env::var_os(SEALS) {
        let closed_until = given(CLOSED).expect("a time");
        return seal(Path::new(&data_dir), closed_until, given(SEED_VARIABLE).unwrap_or(1));
    }
    let test = std::any::type_name_of_val(
        &whenever_what_seals_is_killed_each_request_is_on_the_ledger_once,
    );
    let test = test.split_once("::").expect("a path").1;
    let seed = given(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("{SEED_VARIABLE}={seed}");
    let kills = given(KILLS_VARIABLE).unwrap_or(KILLS);
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = || Setup::with_upstream(&upstream).with(LIMITS);
    let folder = tempfile::tempdir().expect("a temporary folder");
    // In each life some more days are closed.
    let history = History::write(folder.path(), u32::try_from(kills + 30).expect("few"));
    let begin = |life: usize, folder: &Path| {
        let closed_until = history.begin + DAY * i32::try_from(life + 3).expect("few");
        SealingProcess::begin(test, folder, closed_until, seed ^ (life as u64) << 8)
    };
    let (folder, requests) = kill_in(folder, (kills, seed), setup, begin);
    let mut gateway = setup().start_in(folder);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    history.judge(kills, &folder.path().join("data"), &engine.log(), requests).assert_enough(kills);
}

/// Seals without a pause: what is due of days that are closed, parts of others as if there were little
/// room, and late requests. The oldest days lose their details now and then.
fn seal(data_dir: &Path, closed_until: Timestamp, seed: u64) {
    let mut random = Random(seed | 1);
    let sealer = || Sealer::open(data_dir, GATEWAY).expect("a store").expect("nobody else seals");
    let mut sealer = sealer();
    println!("{BEGUN}");
    for _ in 0..ROUNDS_MAX {
        let rows_max = usize::try_from(1 + random.below(30)).expect("few");
        sealer = sealer.with_rows_max(rows_max);
        let done = round(&mut sealer, closed_until, &mut random);
        assert!(done.is_ok(), "{done:?}");
    }
}

fn round(
    sealer: &mut Sealer,
    closed_until: Timestamp,
    random: &mut Random,
) -> Result<(), StoreError> {
    let room = (random.below(4) == 0).then_some(4_000);
    let closed_until =
        closed_until + SignedDuration::from_hours(24 * i64::try_from(random.below(3)).unwrap_or(0));
    let policy = SealPolicy { room, left: None, closed_until };
    let newest = sealer.newest()?;
    let work = sealer.work(&policy, newest, &|| true)?;
    assert_eq!(work.fault(), None);
    let is_old = |end: Timestamp| end + DAY * KEPT_DAYS < closed_until;
    if random.below(4) == 0 && sealer.oldest_day()?.is_some_and(|day| is_old(day.end)) {
        sealer.remove_oldest_day(closed_until, GoneCause::Age)?;
    }
    Ok(())
}
