//! Starts the engine, nginx and Taximeter, asks each in turn, and prints the table.
//!
//! `benches/run` builds everything and starts this program; it says what each number is.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::json;
use taximeter_benches::clock::pause;
use taximeter_benches::load::{self, Load, SETTLE, Seen};
use taximeter_benches::process::Process;
use taximeter_benches::report::{Row, SERVERS, Samples, head};
use taximeter_benches::{about, callgrind, say};

/// Where they listen; `nginx.conf` and `taximeter.yaml` say the same.
const PORTS: [u16; 3] = [18470, 18471, 18472];
/// Open streams while memory is read.
const OPEN_STREAMS: u32 = 1_000;
/// Chunks in the shorter run of the meter alone; the longer one has ten times as many.
const METER_CHUNKS: u32 = 2_000;

const ROWS: [Row; 22] = [
    Row::new("request_cpu", "small JSON, 64 connections: CPU per request, µs", 1)
        .ratio()
        .goal("≤ 1.8"),
    Row::new("requests", "  requests/s", 0),
    Row::new("harness_cpu", "  engine and load: CPU per request, µs", 1),
    Row::new("paced_cpu", "256 streams × 20 ms: CPU per chunk, µs", 2).ratio().goal("≤ 1.4"),
    Row::new("counted_cpu", "  each of them counted: CPU per chunk, µs", 2),
    Row::new("counting_adds", "  what counting adds, %", 1).goal("≤ 10"),
    Row::new("fast_cpu", "16 streams, full speed: CPU per chunk, µs", 2).ratio().goal("≤ 1.4"),
    Row::new("fast_chunks", "  chunks/s", 0),
    Row::new("crowd_chunks", "2,000 streams × 20 ms: chunks/s", 0),
    Row::new("crowd_delivered", "  of what direct delivers, %", 1).goal("≥ 95"),
    Row::new("crowd_cpu", "  CPU per chunk, µs", 2).ratio(),
    Row::new("crowd_delay", "  chunk on its way p50, µs", 0),
    Row::new("first_byte_p50", "200 streams/s: first byte p50, µs", 0),
    Row::new("added_first_byte_p50", "  added p50", 0).ratio().goal("≤ 3"),
    Row::new("added_first_byte_p99", "  added p99", 0).ratio(),
    Row::new("chunk_p50", "200 streams/s: chunk on its way p50, µs", 0),
    Row::new("added_chunk_p50", "  added p50", 0).ratio(),
    Row::new("added_chunk_p99", "  added p99", 0).ratio(),
    Row::new("idle_memory", "memory after start, MiB", 1).goal("≤ 12"),
    Row::new("loaded_memory", "memory after all loads, MiB", 1),
    Row::new("stream_memory", "memory per open stream, KiB", 1).goal("≤ 40"),
    Row::new("meter_instructions", "meter alone: instructions per chunk", 0),
];

#[derive(Parser)]
struct Options {
    /// Three short rounds in place of five long ones.
    #[arg(long)]
    quick: bool,
    /// Where `cargo build --release` put the programs.
    #[arg(long)]
    programs: PathBuf,
    /// The folder `benches`.
    #[arg(long)]
    benches: PathBuf,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let bench = Bench::start(&options)?;
    let mut samples = Samples::default();
    bench.memory(&mut samples)?;
    let (rounds, pace) = if options.quick { (3, 0.35) } else { (5, 1.0) };
    let load_before = fs::read_to_string("/proc/loadavg")?;
    for _ in 0..rounds {
        for server in 0..SERVERS.len() {
            bench.round(server, pace, &mut samples)?;
        }
        relate_to_direct(&mut samples);
    }
    bench.loaded_memory(&mut samples)?;
    bench.meter(&mut samples)?;
    let about = about(rounds, &load_before)?;
    say(&about.join("\n"));
    say(&format!("\n{}", head()));
    for row in &ROWS {
        say(&row.line(&samples));
    }
    let results = json!({ "about": about, "samples": samples.json() });
    fs::write(bench.cache.join("results.json"), format!("{results:#}\n"))?;
    Ok(())
}

/// The servers, running.
struct Bench {
    programs: PathBuf,
    cache: PathBuf,
    /// In the order of `SERVERS`; the first is the engine.
    servers: [Process; 3],
}

impl Bench {
    fn start(options: &Options) -> Result<Self> {
        let cache = options.benches.join(".cache");
        let (nginx, data) = (cache.join("nginx"), cache.join("taximeter-data"));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(nginx.join("tmp"))?;
        let path = |path: &Path| path.display().to_string();
        let config = |name: &str| path(&options.benches.join(name));
        let program = |name: &str| path(&options.programs.join(name));
        let start = |index: usize, command: &[String]| {
            let name = SERVERS.get(index).copied().unwrap_or_default();
            Process::start(command, address(index)?, &cache.join(format!("{name}.log")))
        };
        let engine = [program("engine"), "--listen".to_owned(), address(0)?.to_string()];
        let nginx = ["nginx", "-p", &path(&nginx), "-c", &config("nginx.conf"), "-e", "error.log"]
            .map(str::to_owned);
        let taximeter = [
            &program("taximeter"),
            "serve",
            "--config",
            &config("taximeter.yaml"),
            "--data-dir",
            &path(&data),
        ]
        .map(str::to_owned);
        let servers = [start(0, &engine)?, start(1, &nginx)?, start(2, &taximeter)?];
        Ok(Self { programs: options.programs.clone(), cache, servers })
    }

    /// All loads against one server; `pace` shortens them.
    fn round(&self, server: usize, pace: f64, samples: &mut Samples) -> Result<()> {
        let name = SERVERS.get(server).copied().context("a server")?;
        let mut add = |metric, value| samples.add(metric, name, value);

        let small = Load { connections: 64, seconds: 4.0 * pace, ..Load::default() };
        let seen = self.measure(server, &small)?;
        add("requests", seen.number("requests_per_second")?);
        add("harness_cpu", seen.harness_cpu_micros / seen.number("requests")?);
        if server > 0 {
            add("request_cpu", seen.cpu_micros / seen.number("requests")?);
        }

        let chunks = Some(whole(200.0 * pace));
        let paced = Load { connections: 256, chunks, gap: 20, ..Load::default() };
        let seen = self.measure(server, &paced)?;
        if server > 0 {
            add("paced_cpu", seen.cpu_micros / seen.number("chunks")?);
        }

        if server == 2 {
            // The same but for the model's name: `taximeter.yaml` has one of them counted.
            let of = |model| Load { model: Some(model), chunks, ..paced };
            let [plain, counted] = [of("gpt-4o"), of("gpt-5")].map(|load| {
                let seen = self.measure(server, &load)?;
                Ok::<f64, anyhow::Error>(seen.cpu_micros / seen.number("chunks")?)
            });
            let (plain, counted) = (plain?, counted?);
            add("counted_cpu", counted);
            add("counting_adds", 100.0 * (counted / plain - 1.0));
        }

        let seconds = 4.0 * pace;
        let fast = Load { connections: 16, seconds, chunks: Some(1_000), ..Load::default() };
        let seen = self.measure(server, &fast)?;
        add("fast_chunks", seen.number("chunks_per_second")?);
        if server > 0 {
            add("fast_cpu", seen.cpu_micros / seen.number("chunks")?);
        }

        let seconds = 1.0 + 5.0 * pace;
        let crowd = Load { connections: 2_000, seconds, gap: 20, ..Load::open_ended() };
        let seen = self.measure(server, &crowd)?;
        add("crowd_chunks", seen.number("chunks_per_second")?);
        add("crowd_delay", seen.number("chunk_p50")?);
        if server > 0 {
            add("crowd_cpu", seen.cpu_micros / seen.number("chunks")?);
        }

        let calm = Load {
            connections: 40,
            seconds: 5.0 * pace,
            chunks: Some(8),
            gap: 5,
            every: Some(200),
            ramp: 0.2,
            ..Load::default()
        };
        let seen = self.measure(server, &calm)?;
        for metric in ["first_byte_p50", "first_byte_p99", "chunk_p50", "chunk_p99"] {
            add(metric, seen.number(metric)?);
        }
        Ok(())
    }

    fn measure(&self, server: usize, load: &Load) -> Result<Seen> {
        load.measure(&self.programs, address(server)?, self.server(server)?, self.server(0)?)
    }

    /// Memory of the freshly started servers: idle, and what a thousand open streams add, read
    /// while each of them gets ten chunks a second.
    fn memory(&self, samples: &mut Samples) -> Result<()> {
        pause(SETTLE);
        let connections = OPEN_STREAMS;
        let load = Load { connections, seconds: 5.0, gap: 100, ..Load::open_ended() };
        for (index, name) in SERVERS.into_iter().enumerate().skip(1) {
            let process = self.server(index)?;
            let idle = process.resident_kib()?;
            let running = load.start(&self.programs, address(index)?)?;
            pause(Duration::from_secs(4));
            let open = process.resident_kib()?;
            load::finish(running)?;
            samples.add("idle_memory", name, idle / 1024.0);
            samples.add("stream_memory", name, (open - idle) / f64::from(OPEN_STREAMS));
        }
        Ok(())
    }

    fn loaded_memory(&self, samples: &mut Samples) -> Result<()> {
        for (process, name) in self.servers.iter().zip(SERVERS).skip(1) {
            samples.add("loaded_memory", name, process.resident_kib()? / 1024.0);
        }
        Ok(())
    }

    /// What the meter costs without any network: the difference of two runs under callgrind.
    fn meter(&self, samples: &mut Samples) -> Result<()> {
        let (few, many) = (METER_CHUNKS, 10 * METER_CHUNKS);
        let more = self.meter_instructions(many)? - self.meter_instructions(few)?;
        samples.add("meter_instructions", "taximeter", more / f64::from(many - few));
        Ok(())
    }

    fn meter_instructions(&self, chunks: u32) -> Result<f64> {
        let program = self.programs.join("meter_chunks");
        callgrind::instructions(Command::new(program).arg(chunks.to_string()))
    }

    fn server(&self, index: usize) -> Result<&Process> {
        self.servers.get(index).context("a server")
    }
}

/// What the proxies add to direct, or leave of it, in the newest round.
fn relate_to_direct(samples: &mut Samples) {
    for server in SERVERS.into_iter().skip(1) {
        for (added, metric) in [
            ("added_first_byte_p50", "first_byte_p50"),
            ("added_first_byte_p99", "first_byte_p99"),
            ("added_chunk_p50", "chunk_p50"),
            ("added_chunk_p99", "chunk_p99"),
        ] {
            samples.relate(added, metric, server, |own, direct| own - direct);
        }
        samples
            .relate("crowd_delivered", "crowd_chunks", server, |own, direct| 100.0 * own / direct);
    }
}

/// Machine, date and versions: without them the numbers mean nothing.
fn about(rounds: u32, load_before: &str) -> Result<Vec<String>> {
    Ok(vec![
        about::machine(load_before)?,
        format!(
            "{} · taximeter {} ({}) · {} · one worker thread each · {rounds} rounds, medians \
             (smallest–largest)",
            about::said("nginx", &["-v"])?,
            env!("CARGO_PKG_VERSION"),
            about::said("git", &["describe", "--always", "--dirty"])?,
            about::said("rustc", &["--version"])?,
        ),
    ])
}

fn address(server: usize) -> Result<SocketAddr> {
    let port = *PORTS.get(server).context("a server")?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small, positive count"
)]
fn whole(count: f64) -> u32 {
    count.round() as u32
}
