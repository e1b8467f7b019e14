//! SIGKILL at random moments under load; afterwards the ledger has every request once.
//!
//! The truth is outside the gateway: what the engine was sent and has written, and what clients saw
//! finished.

mod history;
mod judge;
mod own_sealer;
mod sealing;
mod two_gateways;

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tempfile::TempDir;

use self::judge::SentRequest;
use crate::client::Client;
use crate::fixtures::{CHAT, DONE, STREAM_CHAT};
use crate::gateway::{Setup, binary};
use crate::http::post;
use crate::pacing::{self, LONG_CHAT, SLOW_CHAT, pass};
use crate::patience::{Limit, PATIENCE, START_MAX};

/// Set to how many kills there are to be; `tests/soak` does.
const KILLS_VARIABLE: &str = "TAXIMETER_TEST_KILLS";
const KILLS: usize = 100;

/// Set it to what a failed run has printed, to have the same moments and the same mix of requests
/// again.
const SEED_VARIABLE: &str = "TAXIMETER_TEST_SEED";

const CLIENTS: usize = 6;
/// Most gateways live at most this long under load.
const LIFE_MAX: Duration = Duration::from_millis(400);
/// One in so many lives on, so that slow streams get to say how far they are.
const LONG_LIVES: u64 = 10;
const LONG_LIFE: Duration = Duration::from_millis(1_300);

/// Some hundred requests: lives end in different segments.
const LIMITS: &str = "limits: {ledger_segment_bytes: 131072}";

/// Small numbers, the same for the same seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }

    /// How long a gateway lives.
    fn life(&mut self) -> Duration {
        let life = self.below(LIFE_MAX.as_micros().try_into().unwrap_or(1));
        let longer = if self.below(LONG_LIVES) == 0 { LONG_LIFE } else { Duration::ZERO };
        Duration::from_micros(life) + longer
    }
}

/// How long a client stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stay {
    ToTheEnd,
    /// Leaves when something of the answer has come.
    ToTheFirstByte,
    /// Leaves when it has asked.
    No,
}

/// What a client asks next: half of it are streams, a quarter of them is not waited for.
fn choose(random: &mut Random) -> (&'static str, Stay) {
    match random.below(16) {
        0..4 => (CHAT, Stay::ToTheEnd),
        4 | 5 => (LONG_CHAT, Stay::ToTheEnd),
        6 => (LONG_CHAT, Stay::ToTheFirstByte),
        7 => (CHAT, Stay::No),
        8..13 => (STREAM_CHAT, Stay::ToTheEnd),
        13 => (STREAM_CHAT, Stay::ToTheFirstByte),
        14 => (STREAM_CHAT, Stay::No),
        _ => (SLOW_CHAT, Stay::ToTheEnd),
    }
}

/// Asks one request after another until the gateway is gone. The last word of `name` is its session.
fn exchange(gateway: SocketAddr, name: &str, random: &mut Random, requests: &Sender<SentRequest>) {
    for number in 0.. {
        let request_id = format!("{name}-{number}");
        let (body, stay) = choose(random);
        let Ok(mut client) = Client::try_connect(gateway) else { return };
        let session = name.rsplit('-').next().unwrap_or(name);
        let headers = format!(
            "x-request-id: {request_id}\r\nuser-agent: codex_exec/0.169.0\r\n\
             session-id: new-{session}\r\nthread-id: agent-{}\r\n\
             x-codex-parent-thread-id: new-{session}\r\nx-turn-id: turn-{}\r\n",
            number % 3,
            number / 2
        );
        let asked = client.try_send(&post("/v1/chat/completions", &headers, body));
        let answered = asked.and_then(|()| match stay {
            Stay::No => Ok(false),
            Stay::ToTheFirstByte => client.wait_for_byte().map(|()| false),
            Stay::ToTheEnd => client.try_answer().map(|answer| {
                let ends_well =
                    body != STREAM_CHAT && body != SLOW_CHAT || answer.text().ends_with(DONE);
                answer.status() == 200 && answer.complete && ends_well
            }),
        });
        let _ = requests.send(SentRequest { request_id, finished: matches!(answered, Ok(true)) });
        if answered.is_err() {
            return;
        }
    }
}

/// Kills gateways in one folder, one after the other. What is left, and what clients saw.
fn kill(kills: usize, seed: u64, setup: impl Fn() -> Setup) -> (TempDir, Vec<SentRequest>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    kill_in(folder, (kills, seed), setup, |_, _| ())
}

/// The same in this folder. `begin` is told the number of each life and the folder: what it begins ends
/// with the life, before the gateway.
fn kill_in<T: Send>(
    mut folder: TempDir,
    (kills, seed): (usize, u64),
    setup: impl Fn() -> Setup,
    begin: impl Fn(usize, &Path) -> T,
) -> (TempDir, Vec<SentRequest>) {
    let mut random = Random(seed | 1);
    let (to_requests, requests): (_, Receiver<SentRequest>) = channel();
    let mut taken: Vec<SentRequest> = Vec::new();
    let mut finished = 0;
    // So that no start waits for the program to be built.
    binary();
    for life in 0..kills {
        let begun = begin(life, folder.path());
        let started = Limit::begin();
        let gateway = setup().start_in(folder);
        assert!(started.is_within(START_MAX), "a start took too long, of gateway {life}");
        let address = gateway.address();
        let seeds: Vec<u64> = (0..CLIENTS).map(|_| random.below(u64::from(u32::MAX)) | 1).collect();
        let lives = random.life();
        folder = std::thread::scope(|clients| {
            for (client, seed) in seeds.into_iter().enumerate() {
                let to_requests = to_requests.clone();
                let name = format!("{life}-{client}");
                clients.spawn(move || exchange(address, &name, &mut Random(seed), &to_requests));
            }
            // On a busy machine little is answered in so short a life: then it is longer.
            while finished <= life {
                let request = requests.recv_timeout(PATIENCE).expect("an answer in time");
                finished += usize::from(request.finished);
                taken.push(request);
            }
            pass(lives);
            drop(begun);
            gateway.kill()
        });
        for request in requests.try_iter() {
            finished += usize::from(request.finished);
            taken.push(request);
        }
    }
    (folder, taken)
}

fn given<T: std::str::FromStr>(variable: &str) -> Option<T> {
    std::env::var(variable).ok().and_then(|value| value.parse().ok())
}

#[test]
fn whenever_the_gateway_is_killed_every_request_is_on_the_ledger_once() {
    let seed = given(SEED_VARIABLE).unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("{SEED_VARIABLE}={seed}");
    let kills = given(KILLS_VARIABLE).unwrap_or(KILLS);
    let engine = pacing::start();
    let upstream = format!("name: e, url: \"http://{}\", dialect: openai", engine.address);
    let setup = || Setup::with_upstream(&upstream).with(LIMITS);
    let (folder, requests) = kill(kills, seed, setup);
    // One more start settles what the last kill left open.
    let mut gateway = setup().start_in(folder);
    gateway.terminate();
    assert!(gateway.exit().0.success());
    let folder = gateway.into_folder();
    judge::judge(kills, &folder.path().join("data"), &engine.log(), &requests).assert_enough(kills);
}
