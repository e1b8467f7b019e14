//! SIGKILL at random moments under load; afterwards the ledger has every request once.
//!
//! The truth is outside the gateway: what the engine was sent, and what clients saw finished.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::PATIENCE;
use crate::client::Client;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE, WORLD};
use crate::gateway::Setup;
use crate::http::{LAST_CHUNK, STREAM_HEAD, Unframed, chunk, json_answer, post, read_message};

const KILLS: usize = 100;
const CLIENTS: usize = 6;
/// A gateway lives at most this long under load.
const LIFE_MAX: Duration = Duration::from_millis(400);
/// Between two events of the engine.
const PACE: Duration = Duration::from_millis(2);

/// Asks for an answer that is relayed while it comes.
const LONG_CHAT: &str = r#"{"model":"gpt-4o-mini","user":"long","messages":[]}"#;
/// Larger than what a gateway gathers before it answers.
const LONG_BYTES: usize = 200_000;

/// Set it to what a failed run has printed, to have the same moments and the same mix of requests
/// again.
const SEED_VARIABLE: &str = "TAXIMETER_TEST_SEED";

/// Small numbers, the same for the same seed (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32) % bound
    }
}

/// Lets time pass: this is how fast an engine writes and how long a gateway lives, not a wait for
/// something.
fn pass(time: Duration) {
    let (_sender, nothing) = channel::<()>();
    let _ = nothing.recv_timeout(time);
}

/// An engine that serves any number of requests, at a pace, and tells which it was sent.
fn pacing_engine() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind the engine");
    let address = listener.local_addr().expect("the engine's address");
    let (to_seen, seen) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let to_seen = to_seen.clone();
            std::thread::spawn(move || while serve(&stream, &to_seen).is_ok() {});
        }
    });
    (address, seen)
}

fn serve(mut stream: &TcpStream, seen: &Sender<String>) -> std::io::Result<()> {
    let request = read_message(&mut stream, &mut Vec::new(), Unframed::Empty)?;
    if !request.complete {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    let _ = seen.send(request.header("x-request-id").expect("an id").to_owned());
    if request.json()["stream"] == true {
        stream.write_all(STREAM_HEAD)?;
        for event in [HELLO, WORLD, HELLO, WORLD, HELLO, WORLD, STOP, USAGE, DONE] {
            pass(PACE);
            stream.write_all(&chunk(event))?;
        }
        stream.write_all(LAST_CHUNK)
    } else {
        pass(PACE);
        let blanks = if request.text() == LONG_CHAT { LONG_BYTES } else { 0 };
        stream.write_all(&json_answer(CHAT_ANSWER.to_owned() + &" ".repeat(blanks)))
    }
}

/// What one client saw of one request.
struct Ride {
    request_id: String,
    finished: bool,
}

/// Asks one request after another until the gateway is gone.
fn ride(gateway: SocketAddr, name: &str, random: &mut Random, rides: &Sender<Ride>) {
    for number in 0.. {
        let request_id = format!("{name}-{number}");
        let headers = format!("x-request-id: {request_id}\r\n");
        let (body, leaves_early) = match random.below(5) {
            0 => (CHAT, false),
            1 => (LONG_CHAT, false),
            2 => (STREAM_CHAT, true),
            _ => (STREAM_CHAT, false),
        };
        let Ok(mut client) = Client::try_connect(gateway) else { return };
        if client.try_send(&post("/v1/chat/completions", &headers, body)).is_err() {
            return;
        }
        let finished = if leaves_early {
            let _ = client.wait_for_byte();
            Some(false)
        } else {
            client.try_answer().ok().map(|answer| {
                answer.status() == 200
                    && if body == STREAM_CHAT {
                        answer.text().ends_with(DONE)
                    } else {
                        answer.complete
                    }
            })
        };
        let _ = rides.send(Ride { request_id, finished: finished.unwrap_or(false) });
        if finished.is_none() {
            return;
        }
    }
}

#[test]
fn whenever_the_gateway_is_killed_every_request_is_on_the_ledger_once() {
    let seed = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) | 1);
    println!("{SEED_VARIABLE}={seed}");
    let mut random = Random(seed);
    let (engine, seen) = pacing_engine();
    let setup =
        || Setup::with_upstream(&format!("name: e, url: \"http://{engine}\", dialect: openai"));
    let (to_rides, rides) = channel();

    let mut folder = tempfile::tempdir().expect("a temporary folder");
    let mut taken: Vec<Ride> = Vec::new();
    for life in 0..=KILLS {
        let gateway = setup().start_in(folder);
        let address = gateway.address();
        let seeds: Vec<u64> = (0..CLIENTS).map(|_| random.below(u64::from(u32::MAX)) | 1).collect();
        let lives =
            Duration::from_micros(random.below(LIFE_MAX.as_micros().try_into().unwrap_or(1)));
        folder = std::thread::scope(|clients| {
            for (client, seed) in seeds.into_iter().enumerate() {
                let to_rides = to_rides.clone();
                let name = format!("{life}-{client}");
                clients.spawn(move || ride(address, &name, &mut Random(seed), &to_rides));
            }
            // On a busy machine little is answered in so short a life: then it is longer.
            while taken.iter().filter(|ride| ride.finished).count() <= life {
                taken.push(rides.recv_timeout(PATIENCE).expect("an answer in time"));
            }
            pass(lives);
            gateway.kill()
        });
        taken.extend(rides.try_iter());
    }
    let gateway = setup().start_in(folder);
    let records = gateway.records();
    judge(&records, &seen.try_iter().collect(), &taken);
}

/// Compares the ledger with what the engine and the clients have seen.
fn judge(records: &[serde_json::Value], seen: &BTreeSet<String>, rides: &[Ride]) {
    let mut by_request: BTreeMap<&str, &serde_json::Value> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for record in records {
        let request_id = record["request_id"].as_str().expect("a request id");
        assert!(by_request.insert(request_id, record).is_none(), "twice on the ledger: {record:#}");
        assert!(ids.insert(record["id"].as_str()), "an id twice: {record:#}");
    }

    let finished: Vec<_> = rides.iter().filter(|ride| ride.finished).collect();
    println!("{} sent, {} finished, {} records", seen.len(), finished.len(), records.len());
    assert!(finished.len() > KILLS, "too little load to learn anything");
    assert!(seen.len() > finished.len(), "no kill met a running request");

    for ride in finished {
        let record = by_request.get(ride.request_id.as_str());
        let record =
            record.unwrap_or_else(|| panic!("{} was answered and is lost", ride.request_id));
        assert_eq!(record["end"], "complete", "{record:#}");
        assert_eq!(record["usage"]["output_tokens"], 100, "{record:#}");
    }
    for request_id in seen {
        // Reserved before it was sent, so it must have ended on the ledger, one way or another.
        assert!(
            by_request.contains_key(request_id.as_str()),
            "{request_id} reached the engine and is lost"
        );
    }
    let asked: BTreeSet<&str> = rides.iter().map(|ride| ride.request_id.as_str()).collect();
    for request_id in by_request.keys() {
        assert!(asked.contains(request_id), "{request_id} was never asked");
    }
}
