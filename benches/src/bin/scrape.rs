//! How long a scrape takes where there are a hundred thousand series, and what it costs requests where
//! every instrument has as many series as it may.
//!
//! `scrape` prints the tables; `benches/run --only scrape` builds and starts it. As many tenants as may
//! have a label of their own ask a simulated engine, so that most series are histograms, as in life.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use clap::Parser;
use taximeter_benches::clock::{monotonic_nanos, pause};
use taximeter_benches::process::{Process, free_address};
use taximeter_benches::say;

/// A chat, and the same as a stream.
const BODIES: [&str; 2] = [
    r#"{"model":"m","max_tokens":3,"messages":[{"role":"user","content":"Where to?"}]}"#,
    r#"{"model":"m","max_tokens":3,"stream":true,"messages":[{"role":"user","content":"Where to?"}]}"#,
];
/// Forms that a scraper may ask for.
const FORMS: [(&str, &str); 2] =
    [("text", "text/plain"), ("OpenMetrics, with exemplars", "application/openmetrics-text")];
/// How often each is asked for; the least time is told, and that of the first.
const ROUNDS: usize = 5;
/// Rounds of requests alone, beside a busy core, and with scrapes, in turn.
const ROUNDS_OF_REQUESTS: usize = 7;
/// How long a round is.
const ROUND_TIME: Duration = Duration::from_secs(6);
/// What the names of the data plane's threads begin with.
const DATA_PLANE: &str = "carry-";
/// One request begins so long after the other.
const REQUEST_PERIOD: Duration = Duration::from_millis(10);
/// Longest that an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// Tenants that ask.
    #[arg(long, default_value_t = 500)]
    tenants: u32,
    /// Tenants that ask until instruments are full: more than `limits.series_per_metric_max`.
    #[arg(long, default_value_t = 2_100)]
    full: u32,
}

fn main() -> Result<()> {
    let Arguments { programs, tenants, full } = Arguments::parse();
    let taximeter = programs.join("taximeter");
    let taximeter = taximeter.to_str().context("a path of UTF-8")?.to_owned();
    let folder = tempfile::tempdir()?;
    let [engine, listen, admin] = [free_address()?, free_address()?, free_address()?];
    let simulate = [&taximeter, "simulate", "--listen", &engine.to_string(), "--prefill-ms", "0"]
        .map(str::to_owned);
    let _engine = Process::start(&simulate, engine, &folder.path().join("engine.log"))?;
    let file = folder.path().join("taximeter.yaml");
    let yaml = format!(
        "listen: {listen}\nadmin: {admin}\ndata_dir: {}\n\
         upstreams: [{{name: engine, url: \"http://{engine}\", dialect: vllm}}]\n\
         tenants: {{header: {{name: x-tenant-id, trusted_peers: [127.0.0.1]}}}}\n\
         telemetry: {{genai: both, tenants_max: {full}}}\n",
        folder.path().join("data").display()
    );
    fs::write(&file, yaml)?;
    let file = file.to_str().context("a path of UTF-8")?;
    let serve = [&taximeter, "serve", "--config", file].map(str::to_owned);
    let serving = Process::start(&serve, admin, &folder.path().join("serve.log"))?;
    let ride = |tenants: Range<u32>| {
        let mut requests = tenants.flat_map(|tenant| BODIES.map(|body| chat(listen, tenant, body)));
        requests.try_for_each(|request| ask(listen, &request).map(|_| ()))
    };
    ride(0..tenants)?;
    tell_scrapes(admin)?;
    say(&format!("resident behind them: {:.1} MiB", serving.resident_kib()? / 1024.0));
    ride(tenants..full)?;
    tell_scrapes(admin)?;
    tell_requests(listen, admin, &serving)
}

/// A request of this tenant.
fn chat(listen: SocketAddr, tenant: u32, body: &str) -> String {
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {listen}\r\nx-tenant-id: t{tenant}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    format!("{head}{body}")
}

/// Prints how long scrapes take.
fn tell_scrapes(admin: SocketAddr) -> Result<()> {
    say(&format!(
        "{:<32}{:>10}{:>8}{:>12}{:>11}{:>11}",
        "a scrape", "series", "MiB", "byte 1, ms", "first, ms", "least, ms"
    ));
    for (name, accept) in FORMS {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nhost: {admin}\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
        );
        let asked = (0..ROUNDS).map(|_| ask(admin, &request)).collect::<Result<Vec<_>>>()?;
        let least = asked.iter().map(|answer| answer.millis).fold(f64::INFINITY, f64::min);
        let first = asked.first().context("a round")?;
        say(&format!(
            "{name:<32}{:>10}{:>8.1}{:>12.1}{:>11.1}{least:>11.1}",
            first.series,
            first.bytes as f64 / f64::from(1 << 20),
            first.first_byte_millis,
            first.millis,
        ));
    }
    Ok(())
}

/// Prints how long requests take while nobody scrapes, while another program keeps a core busy, and while
/// one compressed scrape follows the other; and the CPU time of the data plane's threads, to which a
/// busy machine adds little.
fn tell_requests(listen: SocketAddr, admin: SocketAddr, serving: &Process) -> Result<()> {
    let scrape = format!(
        "GET /metrics HTTP/1.1\r\nhost: {admin}\r\naccept: application/openmetrics-text\r\n\
         accept-encoding: gzip\r\nconnection: close\r\n\r\n"
    );
    let mut scrapes = 0;
    let mut rows = ["nobody scrapes", "beside a busy core", "during compressed scrapes"]
        .map(|name| Row { name, millis: Vec::new(), p99: Vec::new(), cpu: 0 });
    let [alone, busy, scraped] = &mut rows;
    for _ in 0..ROUNDS_OF_REQUESTS {
        alone.add(listen, serving, None)?;
        let mut work = || {
            std::hint::black_box(monotonic_nanos());
            Ok(())
        };
        busy.add(listen, serving, Some(&mut work))?;
        let mut work = || {
            ask(admin, &scrape)?;
            scrapes += 1;
            Ok(())
        };
        scraped.add(listen, serving, Some(&mut work))?;
    }
    say(&format!(
        "{:<32}{:>10}{:>8}{:>12}{:>24}",
        "requests, ms", "requests", "p50", "p99", "CPU of data plane, µs"
    ));
    for row in &mut rows {
        row.millis.sort_by(f64::total_cmp);
        let [p50, p99] = [50, 99].map(|percent| quantile(&row.millis, percent));
        let (name, count) = (row.name, row.millis.len());
        say(&format!("{name:<32}{count:>10}{p50:>8.2}{p99:>12.2}{:>24.1}", row.micros()));
    }
    let [alone, busy, scraped] = &rows;
    say(&format!(
        "during {scrapes} scrapes: p99 {:.2} of alone, {:.2} of beside a busy core (medians of rounds), \
         CPU {:.2} of alone",
        scraped.p99_of(alone),
        scraped.p99_of(busy),
        scraped.micros() / alone.micros()
    ));
    Ok(())
}

/// What is done beside requests, again and again.
type Work<'a> = &'a mut (dyn FnMut() -> Result<()> + Send);

/// Requests of all rounds of a kind.
struct Row {
    name: &'static str,
    millis: Vec<f64>,
    /// Of each round.
    p99: Vec<f64>,
    /// Of the threads of the data plane, in nanoseconds.
    cpu: u64,
}

impl Row {
    /// A round of requests, alone or beside `work`.
    fn add(&mut self, listen: SocketAddr, serving: &Process, work: Option<Work<'_>>) -> Result<()> {
        let (before, is_over) = (serving.cpu_of_threads(DATA_PLANE)?, AtomicBool::new(false));
        let (millis, worked) = std::thread::scope(|scope| {
            let worker = work.map(|work| {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        work()?;
                    }
                    Ok::<_, anyhow::Error>(())
                })
            });
            let millis = requests(listen);
            is_over.store(true, Relaxed);
            (millis, worker.map(ScopedJoinHandle::join))
        });
        worked.unwrap_or(Ok(Ok(()))).map_err(|_| anyhow!("what is beside requests panicked"))??;
        let millis = millis?;
        self.cpu += serving.cpu_of_threads(DATA_PLANE)?.nanos_since(&before);
        self.p99.push(quantile(&millis, 99));
        self.millis.extend(millis);
        Ok(())
    }

    /// CPU time of a request on the data plane.
    fn micros(&self) -> f64 {
        self.cpu as f64 / 1e3 / self.millis.len() as f64
    }

    /// How much longer the slowest percent takes than that of `other`: the median over the rounds.
    fn p99_of(&self, other: &Self) -> f64 {
        let pairs = self.p99.iter().zip(&other.p99);
        let mut ratios: Vec<_> = pairs.map(|(own, other)| own / other).collect();
        ratios.sort_by(f64::total_cmp);
        quantile(&ratios, 50)
    }
}

/// Asks at a steady pace; the milliseconds of each request, sorted. A late answer makes none later.
fn requests(listen: SocketAddr) -> Result<Vec<f64>> {
    let count = ROUND_TIME.as_millis() / REQUEST_PERIOD.as_millis();
    let began = monotonic_nanos();
    let request = chat(listen, 0, BODIES[0]);
    let mut millis = std::thread::scope(|scope| {
        let asked = (0..count).map(|nth| {
            let due = began + u64::try_from(nth * REQUEST_PERIOD.as_nanos()).unwrap_or(u64::MAX);
            pause(Duration::from_nanos(due.saturating_sub(monotonic_nanos())));
            scope.spawn(|| Ok::<_, anyhow::Error>(ask(listen, &request)?.millis))
        });
        let asked: Vec<_> = asked.collect();
        let answer = |asked: ScopedJoinHandle<'_, Result<f64>>| {
            asked.join().map_err(|_| anyhow!("a request panicked"))?
        };
        asked.into_iter().map(answer).collect::<Result<Vec<_>>>()
    })?;
    millis.sort_by(f64::total_cmp);
    Ok(millis)
}

/// Of sorted numbers.
fn quantile(sorted: &[f64], percent: usize) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or(f64::NAN)
}

/// An answer that has come.
struct Answered {
    first_byte_millis: f64,
    millis: f64,
    bytes: usize,
    series: usize,
}

/// Asks, and reads all of what comes.
fn ask(address: SocketAddr, request: &str) -> Result<Answered> {
    let started = monotonic_nanos();
    let since = |now: u64| (now - started) as f64 / 1e6;
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = vec![0];
    stream.read_exact(&mut answer)?;
    let first_byte_millis = since(monotonic_nanos());
    stream.read_to_end(&mut answer)?;
    let millis = since(monotonic_nanos());
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let lines = answer.split(|byte| *byte == b'\n');
    let series = lines.filter(|line| line.contains(&b'{')).count();
    Ok(Answered { first_byte_millis, millis, bytes: answer.len(), series })
}
