//! What the store costs and how fast it answers: feeding it from a journal, and billing a month.
//!
//! `store` prints the table; `benches/run --only store` builds and starts it. Ten million requests
//! need 16 GB in the temporary directory. The journal is written piece by piece, and each is
//! dropped when the store has it, as retention does.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use clap::Parser;
use taximeter_benches::clock::{monotonic_nanos, pause};
use taximeter_benches::month::{LOOK_INTERVAL, Month};
use taximeter_benches::{callgrind, say};
use taximeter_tests::postgres::Server;

/// Requests that callgrind sees fed, few and many: the difference is the cost of the rest.
const COUNTED_RECORDS: [u32; 2] = [8_192, 40_960];
/// Requests a second that feeding has to outrun.
const ARRIVALS_PER_SECOND: f64 = 2_000.0;
/// Most requests that PostgreSQL is fed: its rate hardly changes from there on.
const POSTGRES_RECORDS_MAX: u32 = 1_000_000;
/// How often each bill is asked for; the least time is told.
const ROUNDS: usize = 3;

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// Requests of the month.
    #[arg(long, default_value_t = 10_000_000)]
    records: u32,
}

fn main() -> Result<()> {
    let Arguments { programs, records } = Arguments::parse();
    let taximeter = programs.join("taximeter");
    let begin = "2026-11-01T00:00:00Z".parse()?;
    say(&format!("{:<66}{:>10}  goal", "the store", "taximeter"));
    let counted = COUNTED_RECORDS.map(|counted| {
        let mut month = Month::new(taximeter.clone(), begin, records)?;
        month.write(0..counted)?;
        instructions(&month, &taximeter)
    });
    let ([few, many], [fewer, more]) = (COUNTED_RECORDS, counted);
    row("feeding: instructions per request", (more? - fewer?) / f64::from(many - few), "");

    let mut month = Month::new(taximeter.clone(), begin, records)?;
    let rate = f64::from(records) / month.fill(records)?;
    row("  requests per second", rate, "");
    row("  × 2,000 requests/s that arrive", rate / ARRIVALS_PER_SECOND, "≥ 5");
    row("  bytes of store per request", store_bytes(&month)? / f64::from(records), "");
    let mut peak = 0.0_f64;
    for (label, arguments, goal) in [
        ("a bill by tenant and model, s", &["--month", "2026-11"][..], "≤ 3"),
        (
            "  by hour, tenant and model, s",
            &["--month", "2026-11", "--by", "hour,tenant,model", "--format", "csv"],
            "≤ 3",
        ),
        ("  of one tenant, s", &["--month", "2026-11", "--tenant", "tenant-7"], "≤ 3"),
        ("  of a week that begins and ends within an hour, s", &CUT_WEEK, "≤ 3"),
    ] {
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            let bill = month.bill(arguments)?;
            (least, peak) = (least.min(bill.seconds), peak.max(bill.peak_mib));
        }
        row(label, least, goal);
    }
    row("  most memory, MiB", peak, "");
    let records = records.min(POSTGRES_RECORDS_MAX);
    postgres(Month::new(taximeter.clone(), begin, records)?, &taximeter, records)
}

/// The same store in PostgreSQL, which a gateway feeds. The server is at its defaults.
fn postgres(mut month: Month, taximeter: &Path, records: u32) -> Result<()> {
    let server = Server::start(&["fsync=on", "full_page_writes=on"])?;
    let database = server.database()?;
    let url = server.url(&database);
    month.write(0..records)?;
    let rate = f64::from(records) / feed(&month, taximeter, &server, &database, records)?;
    row("feeding PostgreSQL: requests per second", rate, "");
    row("  × 2,000 requests/s that arrive", rate / ARRIVALS_PER_SECOND, "≥ 5");
    let asked = month.bill(&["--store", &url, "--month", "2026-11"])?;
    row("  a bill by tenant and model, s", asked.seconds, "≤ 3");
    Ok(())
}

const CUT_WEEK: [&str; 4] = ["--from", "2026-11-09T10:30:00Z", "--to", "2026-11-16T10:30:00Z"];

fn row(label: &str, value: f64, goal: &str) {
    say(format!("{label:<66}{value:>10.2}  {goal}").trim_end());
}

/// Seconds that a gateway takes from its start until the database has all of the journal.
fn feed(
    month: &Month,
    taximeter: &Path,
    server: &Server,
    database: &str,
    records: u32,
) -> Result<f64> {
    let (dir, url) = (month.path().display(), server.url(database));
    let file = month.path().join("taximeter.yaml");
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: {dir}\nledger: {{store: \"{url}\"}}\n\
         upstreams: [{{name: none, url: \"http://127.0.0.1:9\"}}]\n"
    );
    fs::write(&file, yaml)?;
    let started = monotonic_nanos();
    let mut serve = Command::new(taximeter)
        .args(["serve", "--config"])
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()?;
    let cursor = "SELECT max(seq) FROM taximeter.cursors";
    let fed = || server.ask(database, cursor).ok()?.trim().parse().ok();
    while fed().is_none_or(|fed: u32| fed < records) {
        ensure!(serve.try_wait()?.is_none(), "taximeter serve ended");
        pause(LOOK_INTERVAL);
    }
    let seconds = (monotonic_nanos() - started) as f64 / 1e9;
    serve.kill()?;
    serve.wait()?;
    let stored = server.ask(database, "SELECT count(*) FROM taximeter.requests")?;
    ensure!(stored.trim() == records.to_string(), "{stored} of {records} are there");
    Ok(seconds)
}

fn store_bytes(month: &Month) -> Result<f64> {
    Ok(fs::metadata(month.path().join("store.sqlite"))?.len() as f64)
}

/// Of one bill, by callgrind: it feeds the store first.
fn instructions(month: &Month, taximeter: &Path) -> Result<f64> {
    let mut bill = Command::new(taximeter);
    bill.args(month.arguments()).env("TAXIMETER_STORE", "sqlite").args(["--month", "2000-01"]);
    callgrind::instructions(&bill)
}
