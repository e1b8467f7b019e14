//! How long a scrape takes where there are a hundred thousand series.
//!
//! `scrape` prints the table; `benches/run --only scrape` builds and starts it. As many tenants as may
//! have a label of their own ask a simulated engine, so that most series are histograms, as in life.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use taximeter_benches::clock::monotonic_nanos;
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
}

fn main() -> Result<()> {
    let Arguments { programs, tenants } = Arguments::parse();
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
         telemetry: {{genai: both, tenants_max: {tenants}}}\n",
        folder.path().join("data").display()
    );
    fs::write(&file, yaml)?;
    let file = file.to_str().context("a path of UTF-8")?;
    let serve = [&taximeter, "serve", "--config", file].map(str::to_owned);
    let serving = Process::start(&serve, admin, &folder.path().join("serve.log"))?;
    for tenant in 0..tenants {
        for body in BODIES {
            let head = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: {listen}\r\nx-tenant-id: t{tenant}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            ask(listen, &format!("{head}{body}"))?;
        }
    }
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
    say(&format!("resident behind them: {:.1} MiB", serving.resident_kib()? / 1024.0));
    Ok(())
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
