//! How soon the console shows itself when a month of requests is in the store.
//!
//! `console` prints the table; `benches/run --only console` builds and starts it. Pages are asked for
//! as they are, then by a Chromium that has no page in its cache.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use jiff::{Timestamp, ToSpan as _};
use taximeter_benches::clock::{monotonic_nanos, wall_nanos};
use taximeter_benches::month::Month;
use taximeter_benches::process::{Process, free_address};
use taximeter_benches::say;

/// The overview over a day, a week and a month, and the pages that list requests and make a bill.
const PAGES: [&str; 5] = ["/", "/?span=week", "/?span=month", "/requests", "/bill"];
/// How often each is asked for; the least time is told, and that of the first.
const ROUNDS: usize = 5;
/// Longest that a page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// The root of the repository, with what drives Chromium.
    #[arg(long, default_value = ".")]
    repository: PathBuf,
    /// Requests of the last thirty days.
    #[arg(long, default_value_t = 1_000_000)]
    records: u32,
}

fn main() -> Result<()> {
    let Arguments { programs, repository, records } = Arguments::parse();
    let taximeter = programs.join("taximeter");
    let begin = Timestamp::from_nanosecond(wall_nanos().into())? - (30 * 24).hours();
    let mut month = Month::new(taximeter.clone(), begin, records)?;
    month.fill(records)?;
    let [listen, admin] = [free_address()?, free_address()?];
    let file = month.path().join("taximeter.yaml");
    let yaml = format!(
        "listen: {listen}\nadmin: {admin}\ndata_dir: {}\nledger: {{store: sqlite}}\n\
         upstreams: [{{name: none, url: \"http://127.0.0.1:9\"}}]\n",
        month.path().display()
    );
    fs::write(&file, yaml)?;
    let file = file.to_str().context("a path of UTF-8")?;
    let command = [taximeter.to_str().context("a path of UTF-8")?, "serve", "--config", file];
    let log = month.path().join("serve.log");
    let _serving = Process::start(&command.map(str::to_owned), admin, &log)?;
    say(&format!(
        "{:<40}{:>10}{:>10}{:>10}",
        format!("{records} requests"),
        "KB",
        "first, ms",
        "least, ms"
    ));
    for page in PAGES {
        let asked = (0..ROUNDS).map(|_| ask(admin, page)).collect::<Result<Vec<_>>>()?;
        let least = asked.iter().map(|(millis, _)| *millis).fold(f64::INFINITY, f64::min);
        let (first, bytes) = asked.first().context("a round")?;
        say(&format!("{page:<40}{:>10.1}{first:>10.1}{least:>10.1}", *bytes as f64 / 1e3));
    }
    let painted = Command::new(repository.join("tests/console/run"))
        .arg("--paint")
        .args(PAGES.map(|page| format!("http://{admin}{page}")))
        .env("TAXIMETER_BINARY", &taximeter)
        .status()?;
    ensure!(painted.success(), "tests/console/run --paint ended with {painted}");
    Ok(())
}

/// Milliseconds until all of a page is there, and its bytes.
fn ask(admin: SocketAddr, page: &str) -> Result<(f64, usize)> {
    let started = monotonic_nanos();
    let mut stream = TcpStream::connect(admin)?;
    stream.set_read_timeout(Some(PAGE_TIMEOUT))?;
    write!(stream, "GET {page} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let millis = (monotonic_nanos() - started) as f64 / 1e6;
    ensure!(answer.starts_with(b"HTTP/1.1 200 "), "{page}: {}", String::from_utf8_lossy(&answer));
    Ok((millis, answer.len()))
}
