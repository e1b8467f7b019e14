//! How soon `taximeter sessions` lists a month, and how much memory it takes.
//!
//! `sessions` prints the table; `benches/run --only sessions` builds and starts it. It makes two
//! stores: one with ten million requests of half a million sessions, and one with a million sessions
//! of one request. Each is asked while all of it is in the store, and again when its days are sealed.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use taximeter_benches::month::{Month, ask};
use taximeter_benches::say;
use taximeter_store::{SealPolicy, Sealer};

/// Of the first request. All of the month has passed: it can be sealed.
const BEGIN: &str = "2025-11-01T00:00:00Z";
/// How often each list is asked for; the least time is told.
const ROUNDS: usize = 3;

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// Requests of the store whose sessions have twenty requests.
    #[arg(long, default_value_t = 10_000_000)]
    requests: u32,
    /// Sessions of the store whose sessions have one request.
    #[arg(long, default_value_t = 1_000_000)]
    sessions: u32,
}

fn main() -> Result<()> {
    let Arguments { programs, requests, sessions } = Arguments::parse();
    say(&format!("{:<66}{:>10}{:>10}  goal", "lists of sessions", "seconds", "MiB"));
    measure(programs.clone(), requests, 20)?;
    measure(programs, sessions, 1)
}

/// A store with so many requests, so many of them in each session.
fn measure(programs: PathBuf, requests: u32, of_session: u32) -> Result<()> {
    let begin: Timestamp = BEGIN.parse()?;
    let taximeter = programs.join("taximeter");
    let mut month = Month::new(taximeter.clone(), begin, requests)?.with_sessions(of_session);
    let seconds = month.fill(requests)?;
    let what = format!("{requests} requests, {of_session} a session");
    say(&format!("{what}: fed with {:.0} a second", f64::from(requests) / seconds));
    row("  the dearest, nothing is sealed", list(&month, &taximeter, "cost")?);
    row("  the latest", list(&month, &taximeter, "latest")?);
    seal(&month)?;
    row("  the dearest, all days are sealed", list(&month, &taximeter, "cost")?);
    row("  the latest", list(&month, &taximeter, "latest")?);
    Ok(())
}

/// The least seconds of some lists, and the most MiB.
fn list(month: &Month, taximeter: &PathBuf, top: &str) -> Result<(f64, f64)> {
    let (mut least, mut peak) = (f64::INFINITY, 0.0_f64);
    for _ in 0..ROUNDS {
        let mut command = Command::new(taximeter);
        command.args(["sessions", "--store", "sqlite", "--top", top, "--data-dir"]);
        command.arg(month.path()).args(["--from", "2025-11-01", "--to", "2025-12-01"]);
        let (ended, asked) = ask(command.stdout(Stdio::null()))?;
        ensure!(ended.success(), "taximeter sessions ended with {ended}");
        (least, peak) = (least.min(asked.seconds), peak.max(asked.peak_mib));
    }
    Ok((least, peak))
}

/// Seals all days, as a gateway does.
fn seal(month: &Month) -> Result<()> {
    let mut sealer = Sealer::open(month.path(), month.gateway())?;
    let Some(sealer) = &mut sealer else { anyhow::bail!("another process seals there") };
    let end = BEGIN.parse::<Timestamp>()? + SignedDuration::from_hours(40 * 24);
    let policy = SealPolicy { closed_until: sealer.closed_until(end)?, ..SealPolicy::default() };
    let newest = sealer.newest()?;
    let done = sealer.work(&policy, newest, &|| true)?;
    ensure!(done.fault().is_none(), "{done:?}");
    Ok(())
}

fn row(label: &str, (seconds, mib): (f64, f64)) {
    say(&format!("{label:<66}{seconds:>10.2}{mib:>10.0}  ≤ 1 s"));
}
