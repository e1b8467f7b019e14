//! Asks for completions and counts what comes: one JSON object on standard output.
//!
//! Each connection sends its next request when the answer to the last one is complete, or `every`
//! so many milliseconds.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use serde_json::json;
use taximeter_benches::answer::Answer;
use taximeter_benches::clock::monotonic_nanos;
use taximeter_benches::process::CpuTime;
use taximeter_benches::say;
use taximeter_benches::wire::{CHUNKS_HEADER, GAP_HEADER, KEYS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Wait after a failed request, so that a dead server is not hammered.
const FAILURE_PAUSE: Duration = Duration::from_millis(20);
const PROMPT: &str = "You are a taxi driver in a large city. A passenger asks how the fare is \
    made up; explain in one sentence what the meter counts.";

#[derive(Parser, Clone)]
struct Plan {
    /// Server to ask.
    #[arg(long)]
    target: SocketAddr,
    /// Connections, each with one request at a time.
    #[arg(long)]
    connections: u64,
    /// No request starts later than this; each connection makes at least one.
    #[arg(long)]
    seconds: f64,
    /// Content chunks of a stream; without it answers are plain JSON.
    #[arg(long)]
    chunks: Option<u64>,
    /// Gap between the chunks of a stream, in milliseconds.
    #[arg(long, default_value_t = 0)]
    gap: u64,
    /// Model to ask for; the engine answers to `gpt-…` as OpenAI does.
    #[arg(long, default_value = "bench-model")]
    model: String,
    /// Start requests of one connection this far apart, in milliseconds.
    #[arg(long)]
    every: Option<u64>,
    /// Spread the connections' starts over so many seconds.
    #[arg(long, default_value_t = 0.0)]
    ramp: f64,
    /// Hang up when the time is over, and count only what came after the ramp.
    #[arg(long)]
    cut: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let plan = Arc::new(Plan::parse());
    let begin = monotonic_nanos();
    let mut connections = JoinSet::new();
    for index in 0..plan.connections {
        connections.spawn(connection(Arc::clone(&plan), index, begin));
    }
    let mut total = Tally::default();
    while let Some(tally) = connections.join_next().await {
        total.add(tally?);
    }
    let counted_from = if plan.cut { begin + nanos(plan.ramp) } else { begin };
    let seconds = (monotonic_nanos() - counted_from) as f64 / 1e9;
    say(&total.json(seconds)?.to_string());
    Ok(())
}

async fn connection(plan: Arc<Plan>, index: u64, begin: u64) -> Tally {
    let mut tally = Tally::default();
    let start = plan.ramp * index as f64 / plan.connections as f64;
    let visit = async {
        sleep(Duration::from_secs_f64(start)).await;
        visit(&plan, index, begin, &mut tally).await;
    };
    if plan.cut {
        let left = begin + nanos(plan.seconds) - monotonic_nanos();
        // Running out of time is how a cut run ends.
        let _ = timeout(Duration::from_nanos(left), visit).await;
    } else {
        visit.await;
    }
    tally
}

async fn visit(plan: &Plan, index: u64, begin: u64, tally: &mut Tally) {
    let request = request(plan, index);
    let mut client = Client::new(plan, begin);
    let mut starts = plan.every.map(|gap| {
        let mut starts = interval(Duration::from_millis(gap));
        starts.set_missed_tick_behavior(MissedTickBehavior::Skip);
        starts
    });
    loop {
        if let Some(starts) = &mut starts {
            starts.tick().await;
        }
        match client.exchange(&request, tally).await {
            Ok(()) => tally.requests += 1,
            Err(error) => {
                tally.failed(&error);
                client.stream = None;
                sleep(FAILURE_PAUSE).await;
            }
        }
        if monotonic_nanos() >= begin + nanos(plan.seconds) {
            return;
        }
    }
}

struct Client {
    target: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
    counted_from: u64,
}

impl Client {
    fn new(plan: &Plan, begin: u64) -> Self {
        Self {
            target: plan.target,
            stream: None,
            buffer: vec![0; READ_BYTES],
            counted_from: if plan.cut { begin + nanos(plan.ramp) } else { begin },
        }
    }

    async fn exchange(&mut self, request: &[u8], tally: &mut Tally) -> Result<()> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.target).await?;
            stream.set_nodelay(true)?;
            self.stream = Some(stream);
        }
        let stream = self.stream.as_mut().context("just connected")?;
        let asked = monotonic_nanos();
        stream.write_all(request).await?;
        let mut answer = Answer::default();
        loop {
            let length = stream.read(&mut self.buffer).await?;
            ensure!(length > 0, "the server closed before the answer was complete");
            let now = monotonic_nanos();
            let bytes = self.buffer.get(..length).unwrap_or_default();
            let begun = answer.has_body();
            let complete = answer.take(bytes, |sent| {
                tally.chunks += 1;
                if now >= self.counted_from {
                    tally.chunks_counted += 1;
                    tally.chunk_nanos.extend(sent.map(|sent| now.saturating_sub(sent)));
                }
            })?;
            if !begun && answer.has_body() {
                tally.first_byte_nanos.push(now - asked);
            }
            if complete {
                return Ok(());
            }
        }
    }
}

/// What one connection, or all of them, saw.
#[derive(Default)]
struct Tally {
    requests: u64,
    failures: u64,
    failure: Option<String>,
    /// All content chunks.
    chunks: u64,
    /// Those after the ramp, if that is asked for.
    chunks_counted: u64,
    first_byte_nanos: Vec<u64>,
    chunk_nanos: Vec<u64>,
}

impl Tally {
    fn failed(&mut self, error: &anyhow::Error) {
        self.failures += 1;
        self.failure.get_or_insert_with(|| format!("{error:#}"));
    }

    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.failures += other.failures;
        self.failure = self.failure.take().or(other.failure);
        self.chunks += other.chunks;
        self.chunks_counted += other.chunks_counted;
        self.first_byte_nanos.extend(other.first_byte_nanos);
        self.chunk_nanos.extend(other.chunk_nanos);
    }

    /// Counts, and times in microseconds.
    fn json(mut self, seconds: f64) -> Result<serde_json::Value> {
        self.first_byte_nanos.sort_unstable();
        self.chunk_nanos.sort_unstable();
        Ok(json!({
            "requests": self.requests,
            "requests_per_second": self.requests as f64 / seconds,
            "failures": self.failures,
            "failure": self.failure,
            "chunks": self.chunks,
            "chunks_per_second": self.chunks_counted as f64 / seconds,
            "first_byte_p50": quantile(&self.first_byte_nanos, 0.5),
            "first_byte_p99": quantile(&self.first_byte_nanos, 0.99),
            "chunk_p50": quantile(&self.chunk_nanos, 0.5),
            "chunk_p99": quantile(&self.chunk_nanos, 0.99),
            "cpu": CpuTime::of("self")?.total_nanos() as f64 / 1e3,
        }))
    }
}

/// Microseconds below which the share `q` of the sorted `nanos` lies; `None` without any.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ≤ q ≤ 1")]
fn quantile(nanos: &[u64], q: f64) -> Option<f64> {
    let rank = (nanos.len().saturating_sub(1) as f64 * q).round() as usize;
    nanos.get(rank).map(|&nanos| nanos as f64 / 1e3)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a short, positive time"
)]
fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn request(plan: &Plan, index: u64) -> Vec<u8> {
    let stream = plan.chunks.is_some();
    let body = format!(
        "{{\"model\":\"{}\",\"messages\":[\
         {{\"role\":\"system\",\"content\":\"{PROMPT}\"}},\
         {{\"role\":\"user\",\"content\":\"And at night?\"}}],\"max_tokens\":256,\
         \"temperature\":0.7,\"stream\":{stream}}}",
        plan.model
    );
    let key = KEYS.iter().cycle().nth(usize::try_from(index).unwrap_or(0)).unwrap_or(&"");
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\naccept: application/json\r\nuser-agent: bench\r\n\
         {CHUNKS_HEADER}: {}\r\n{GAP_HEADER}: {}\r\ncontent-length: {}\r\n\r\n{body}",
        plan.target,
        plan.chunks.unwrap_or(0),
        plan.gap,
        body.len()
    )
    .into_bytes()
}
