//! The traffic of the demo: three tenants, their models and their behaviour.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Client, Patience};
use super::task;

/// Words of the system prompt that `globex` sends with every request, marked for the cache.
const SYSTEM_WORDS: u64 = 1200;

/// One kind of client.
pub(super) struct Habit {
    pub(super) tenant: &'static str,
    /// Its API key.
    pub(super) key: &'static str,
    /// The label `team` of the key.
    pub(super) team: &'static str,
    pub(super) model: &'static str,
    path: &'static str,
    /// Clients at the same time.
    clients: u64,
    /// The client hangs up during one answer in this many.
    hangs_up_one_in: Option<u64>,
    /// Milliseconds between an answer and the next request.
    pause_ms: std::ops::Range<u64>,
    body: fn(&Habit, &mut Dice) -> Value,
    /// The settings of the simulated engine, as in `x-simulate`.
    engine: fn(&mut Dice) -> String,
}

/// All kinds of clients.
pub(super) const HABITS: [Habit; 4] = [
    Habit {
        tenant: "acme",
        key: "demo-acme",
        team: "support",
        model: "gpt-5.4-mini",
        path: "/v1/chat/completions",
        clients: 6,
        hangs_up_one_in: Some(7),
        pause_ms: 50..600,
        body: |habit, dice| {
            json!({
                "model": habit.model,
                "messages": [{"role": "user", "content": words(dice.among(40..160))}],
                "stream": true,
            })
        },
        engine: |dice| {
            let (prefill, output) = (dice.among(80..260), dice.among(40..200));
            format!("prefill_ms={prefill},gap_ms=12,jitter_ms=6,output_tokens={output}")
        },
    },
    Habit {
        tenant: "globex",
        key: "demo-globex",
        team: "search",
        model: "claude-sonnet-5-5",
        path: "/v1/messages",
        clients: 3,
        hangs_up_one_in: None,
        pause_ms: 100..900,
        body: |habit, dice| {
            json!({
                "model": habit.model,
                "max_tokens": 1024,
                "system": [{
                    "type": "text",
                    "text": words(SYSTEM_WORDS),
                    "cache_control": {"type": "ephemeral"},
                }],
                "messages": [{"role": "user", "content": words(dice.among(20..60))}],
                "stream": dice.one_in(2),
            })
        },
        engine: |dice| {
            let (prefill, output) = (dice.among(150..400), dice.among(60..240));
            format!("prefix_cache,prefill_ms={prefill},gap_ms=9,output_tokens={output}")
        },
    },
    Habit {
        tenant: "initech",
        key: "demo-initech",
        team: "research",
        model: "o4-mini",
        path: "/v1/responses",
        clients: 2,
        hangs_up_one_in: None,
        pause_ms: 200..800,
        body: |habit, dice| {
            json!({
                "model": habit.model,
                "input": words(dice.among(80..300)),
                "reasoning": {"effort": "medium"},
                "stream": true,
            })
        },
        engine: |dice| {
            let reasoning = dice.among(80..400);
            let output = reasoning + dice.among(40..120);
            format!(
                "prefill_ms=200,gap_ms=16,chunk_tokens=4,reasoning_tokens={reasoning},\
                 output_tokens={output}"
            )
        },
    },
    Habit {
        tenant: "initech",
        key: "demo-initech",
        team: "research",
        model: "text-embedding-3-small",
        path: "/v1/embeddings",
        clients: 1,
        hangs_up_one_in: None,
        pause_ms: 150..400,
        body: |habit, dice| {
            let inputs: Vec<String> = (0..4).map(|_| words(dice.among(30..90))).collect();
            json!({"model": habit.model, "input": inputs})
        },
        engine: |dice| format!("prefill_ms={}", dice.among(15..40)),
    },
];

/// All running clients.
pub(super) struct Traffic {
    clients: JoinSet<anyhow::Result<()>>,
    over: Arc<AtomicBool>,
    /// Whether the coding agent is to leave its task as it is.
    task_stops: Arc<AtomicBool>,
}

impl Traffic {
    /// Starts every client in a task of the current runtime. `session` is the name of the coding
    /// agent's session.
    pub(super) fn start(address: SocketAddr, session: &str) -> Self {
        let [over, task_stops] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let mut clients = JoinSet::new();
        for habit in &HABITS {
            for number in 0..habit.clients {
                let call = habit.calls(Client::new(address), Dice::new(number), over.clone());
                clients.spawn(call);
            }
        }
        clients.spawn(task::run(Client::new(address), session.to_owned(), task_stops.clone()));
        Self { clients, over, task_stops }
    }

    /// Waits until a client fails.
    ///
    /// Errors: the fault of that client.
    pub(super) async fn failure(&mut self) -> anyhow::Result<()> {
        match self.clients.join_next().await {
            Some(ended) => ended?,
            None => std::future::pending().await,
        }
    }

    /// Tells the coding agent to end with its current answer.
    pub(super) fn stop_task(&self) {
        self.task_stops.store(true, Ordering::Relaxed);
    }

    /// Lets every client finish its current answer, and the coding agent its task, for at most
    /// `patience`.
    ///
    /// Errors: the fault of the first client that failed.
    pub(super) async fn finish(mut self, patience: Duration) -> anyhow::Result<()> {
        self.over.store(true, Ordering::Relaxed);
        let all = async {
            while let Some(ended) = self.clients.join_next().await {
                ended??;
            }
            Ok(())
        };
        // A client that is not done by then leaves, and its request is recorded, too.
        tokio::time::timeout(patience, all).await.unwrap_or(Ok(()))
    }
}

impl Habit {
    /// Sends requests until the demo ends.
    async fn calls(
        &self,
        mut client: Client,
        mut dice: Dice,
        over: Arc<AtomicBool>,
    ) -> anyhow::Result<()> {
        while !over.load(Ordering::Relaxed) {
            let patience = match self.hangs_up_one_in {
                Some(many) if dice.one_in(many) => {
                    Patience::LeavesAfter(usize::try_from(dice.among(4..30))?)
                }
                _ => Patience::Stays,
            };
            let call = client.call(self.request(&mut dice)?, patience);
            call.await.with_context(|| format!("{} ({})", self.tenant, self.path))?;
            tokio::time::sleep(Duration::from_millis(dice.among(self.pause_ms.clone()))).await;
        }
        Ok(())
    }

    fn request(&self, dice: &mut Dice) -> anyhow::Result<Request<Full<Bytes>>> {
        let request = Request::post(self.path)
            .header("host", "taximeter.demo")
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .header("x-simulate", (self.engine)(dice));
        Ok(request.body(Full::from((self.body)(self, dice).to_string()))?)
    }
}

/// Random numbers that are the same in every demo.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }

    fn among(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.roll() % (range.end - range.start).max(1)
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.roll().is_multiple_of(many)
    }
}

/// A text with this many words.
fn words(count: u64) -> String {
    const WORDS: [&str; 12] = [
        "please", "compare", "the", "fares", "of", "last", "month", "with", "those", "before",
        "and", "explain",
    ];
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let words: Vec<&str> = WORDS.into_iter().cycle().take(count).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use taximeter_simulator::{Behaviour, End, Simulator};

    #[tokio::test]
    async fn every_habit_is_served_and_someone_hangs_up() {
        let engine = Simulator::bind("127.0.0.1:0", Behaviour::default()).await.unwrap();
        let mut traffic = Traffic::start(engine.addr(), "fix-login");
        let mut tick = tokio::time::interval(Duration::from_millis(20));
        let is_complete = |journal: &[taximeter_simulator::Served]| {
            let served = |habit: &Habit| {
                let mut its = journal.iter().filter(|served| served.model == habit.model);
                its.any(|served| served.end == End::Finished)
            };
            let left = |model| {
                let mut its = journal.iter().filter(|served| served.model == model);
                its.any(|served| served.end == End::Cancelled && served.output_tokens > 0)
            };
            let cached = journal.iter().any(|served| served.cached_tokens > 1000);
            HABITS.iter().all(served) && left("gpt-5.4-mini") && cached
        };
        while !is_complete(&engine.journal()) {
            tokio::select! {
                _ = tick.tick() => {}
                failure = traffic.failure() => failure.unwrap(),
            }
        }
        traffic.finish(Duration::from_secs(10)).await.unwrap();
    }

    #[test]
    fn the_demo_asks_the_same_every_time() {
        let ask = || {
            let mut dice = Dice::new(1);
            HABITS.each_ref().map(|habit| (habit.body)(habit, &mut dice))
        };
        assert_eq!(ask(), ask());
    }
}
