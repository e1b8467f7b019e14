//! What the ledger costs a request: gateways that differ in their durability alone, one after the
//! other in every round.
//!
//! `benches/run --only ledger` builds and starts it. No gateway is without a ledger, so the nearest
//! is compared with: one whose ledger never waits for a disk, `os` in `/dev/shm`. What the journal
//! costs by itself, against nothing, `benches/run` measures inside the gateway's own crate.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Parser;
use taximeter_benches::load::Load;
use taximeter_benches::process::Process;
use taximeter_benches::report::Spread;
use taximeter_benches::{about, say};
use tempfile::TempDir;

const ENGINE: SocketAddr = local(18470);
/// Many and short: what else the machine does changes from second to second.
const ROUNDS: usize = 15;
/// Of as many requests as it can carry.
const FULL_SECONDS: f64 = 2.0;
/// Of few, whose 99th percentile is not to be that of the first ones.
const CALM_SECONDS: f64 = 4.0;

/// Gateways: what they are called, their durability, and whether their data is in memory.
const GATEWAYS: [(&str, &str, bool); 4] = [
    ("os in memory", "os", true),
    ("os", "os", false),
    ("group", "group", false),
    ("sync", "sync", false),
];

/// What is measured: its name, digits after the point, and what it should be.
const METRICS: [(&str, usize, &str); 4] = [
    ("requests/s, 64 connections, small JSON", 0, ""),
    ("  CPU per request, µs", 1, ""),
    ("first byte at 200 streams/s, p50, µs", 0, ""),
    ("  p99, µs", 0, "os, group ≤ memory + 1000"),
];

#[derive(Parser)]
struct Options {
    /// Where `cargo build --release` put the programs.
    #[arg(long)]
    programs: PathBuf,
    /// The folder `benches`.
    #[arg(long)]
    benches: PathBuf,
}

/// A running gateway, and what was measured of it: a list for each metric.
struct Gateway {
    process: Process,
    address: SocketAddr,
    samples: [Vec<f64>; METRICS.len()],
    _data: TempDir,
}

const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), port)
}

fn main() -> Result<()> {
    let Options { programs, benches } = Options::parse();
    let load_before = fs::read_to_string("/proc/loadavg")?;
    let cache = benches.join(".cache");
    fs::create_dir_all(&cache)?;
    let program = |name: &str| programs.join(name).display().to_string();
    let engine = [program("engine"), "--listen".to_owned(), ENGINE.to_string()];
    let engine = Process::start(&engine, ENGINE, &cache.join("engine.log"))?;
    let mut gateways = Vec::new();
    for (index, gateway) in (0..).zip(GATEWAYS) {
        gateways.push(Gateway::start(gateway, 18474 + 2 * index, &program("taximeter"), &benches)?);
    }
    for _ in 0..ROUNDS {
        for gateway in &mut gateways {
            gateway.round(&programs, &engine)?;
        }
    }
    say(&about::machine(&load_before)?);
    say(&line("", &GATEWAYS.map(|(name, ..)| name.to_owned()), "goal"));
    for (index, (name, digits, goal)) in METRICS.into_iter().enumerate() {
        let cells: Vec<_> = gateways.iter().map(|gateway| gateway.cell(index, digits)).collect();
        say(&line(name, &cells, goal));
    }
    let cells: Vec<_> = gateways.iter().map(|gateway| gateway.speed_beside(&gateways)).collect();
    say(&line("requests/s by memory's of the round, %", &cells, "os, group ≥ 95"));
    Ok(())
}

impl Gateway {
    fn start(
        (name, durability, in_memory): (&str, &str, bool),
        port: u16,
        program: &str,
        benches: &Path,
    ) -> Result<Self> {
        let cache = benches.join(".cache");
        let above = if in_memory { Path::new("/dev/shm") } else { &cache };
        let data = tempfile::tempdir_in(above).context("a folder for the ledger")?;
        let config = data.path().join("taximeter.yaml");
        let yaml = fs::read_to_string(benches.join("taximeter.yaml"))?;
        fs::write(&config, format!("{yaml}ledger: {{durability: {durability}}}\n"))?;
        let address = local(port);
        let command = [
            program,
            "serve",
            "--config",
            &config.display().to_string(),
            "--data-dir",
            &data.path().join("data").display().to_string(),
            "--listen",
            &address.to_string(),
            "--admin",
            &local(port + 1).to_string(),
        ]
        .map(str::to_owned);
        let log = cache.join(format!("ledger-{}.log", name.replace(' ', "-")));
        let process = Process::start(&command, address, &log)?;
        Ok(Self { process, address, samples: Default::default(), _data: data })
    }

    fn round(&mut self, programs: &Path, engine: &Process) -> Result<()> {
        let fast = Load { connections: 64, seconds: FULL_SECONDS, ..Load::default() };
        let fast = fast.measure(programs, self.address, &self.process, engine)?;
        let calm = Load {
            connections: 40,
            seconds: CALM_SECONDS,
            chunks: Some(8),
            gap: 5,
            every: Some(200),
            ramp: 0.2,
            ..Load::default()
        };
        let calm = calm.measure(programs, self.address, &self.process, engine)?;
        let numbers = [
            fast.number("requests_per_second")?,
            fast.cpu_micros / fast.number("requests")?,
            calm.number("first_byte_p50")?,
            calm.number("first_byte_p99")?,
        ];
        for (samples, number) in self.samples.iter_mut().zip(numbers) {
            samples.push(number);
        }
        Ok(())
    }

    /// Its requests a second, of a hundred that the first of them carries right before.
    fn speed_beside(&self, gateways: &[Self]) -> String {
        let speeds = |gateway: &Self| gateway.samples.first().cloned().unwrap_or_default();
        let memory = gateways.first().map(speeds).unwrap_or_default();
        let ratios = speeds(self).into_iter().zip(memory).map(|(own, memory)| 100.0 * own / memory);
        Spread::of(&Vec::from_iter(ratios)).map_or_else(String::new, |spread| spread.text(1))
    }

    fn cell(&self, metric: usize, digits: usize) -> String {
        let spread = self.samples.get(metric).and_then(|samples| Spread::of(samples));
        spread.map_or_else(String::new, |spread| spread.text(digits))
    }
}

fn line(name: &str, cells: &[String], goal: &str) -> String {
    let cells: String = cells.iter().map(|cell| format!(" {cell:>22}")).collect();
    format!("{name:<40}{cells}  {goal}").trim_end().to_owned()
}
