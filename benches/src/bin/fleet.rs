//! What it costs to read engines, GPUs and hosts, and to keep and ask for what they tell.
//!
//! `fleet` prints the tables; `benches/run --only fleet` builds and starts it. Texts are those of vLLM and of
//! dcgm-exporter, with values that move as in life: power and use are noisy, most else stands still.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Parser, ValueEnum};
use jiff::Timestamp;
use taximeter_benches::clock::{cpu_nanos, monotonic_nanos, pause};
use taximeter_benches::process::{Process, free_address};
use taximeter_benches::say;
use taximeter_control::exposition::{Bounds, read};
use taximeter_fleet::{Pool, Recorder, Statistic, Target, TargetKind};
use taximeter_store::memory::{Memory, Query};
use taximeter_system::clock;

/// How often a text is read; the least time is told.
const ROUNDS: usize = 50;
/// GPUs of the fleet that is kept.
const GPUS: u32 = 100;
/// GPUs of one exporter.
const GPUS_OF_NODE: u32 = 8;
/// 2026-11-20T00:00:00Z.
const BEGIN: i64 = 1_795_132_800;
/// Days of a chart.
const CHART_DAYS: i64 = 90;
const HOUR: i64 = 3_600;
/// Targets that are asked, and the length of what each tells.
const TARGETS: usize = 1_000;
const TARGET_BYTES: usize = 100_000;

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long, default_value = ".")]
    programs: PathBuf,
    /// Only answers as the targets do, at this address.
    #[arg(long)]
    serve: Option<SocketAddr>,
    /// How long the targets are asked, in seconds, once all have been.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this table.
    #[arg(long)]
    only: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Reading,
    Disk,
    Chart,
    Targets,
}

fn main() -> Result<()> {
    let Arguments { programs, serve: at, seconds, only } = Arguments::parse();
    if let Some(at) = at {
        serve(&TcpListener::bind(at)?);
        return Ok(());
    }
    let is_asked = |part| only.is_none_or(|only| only == part);
    if is_asked(Part::Reading) {
        tell_reading()?;
    }
    if is_asked(Part::Disk) {
        tell_disk()?;
    }
    if is_asked(Part::Chart) {
        tell_chart()?;
    }
    if is_asked(Part::Targets) {
        tell_targets(&programs.join("taximeter"), Duration::from_secs(seconds))?;
    }
    Ok(())
}

/// How long 1 MB of text takes.
fn tell_reading() -> Result<()> {
    say(&format!(
        "{:<34}{:>10}{:>10}{:>12}{:>12}",
        "1 MB of text", "samples", "series", "text, ms", "schema, ms"
    ));
    for (name, text) in
        [("vLLM", engines(1_000_000, 1)), ("dcgm-exporter", gpus(0..2_000, 1, 1_000_000))]
    {
        let bounds = Bounds::default();
        let (mut of_text, mut of_schema, mut all) = (u64::MAX, u64::MAX, (0, 0));
        for _ in 0..ROUNDS {
            let began = monotonic_nanos();
            let exposition = read(text.as_bytes(), &bounds);
            let between = monotonic_nanos();
            let reading = taximeter_fleet::read(&exposition.samples, at(0));
            of_text = of_text.min(between - began);
            of_schema = of_schema.min(monotonic_nanos() - between);
            all = (exposition.samples.len(), reading.measured.len());
        }
        ensure!(all.1 > 100, "{name} is not recognised");
        say(&format!(
            "{name:<34}{:>10}{:>10}{:>12.2}{:>12.2}",
            all.0,
            all.1,
            millis(of_text),
            millis(of_schema)
        ));
    }
    Ok(())
}

/// Sources that tell, second by second of their own time.
struct Fleet {
    begun: Instant,
    pool: Pool,
    targets: Vec<(Target, u32)>,
    recorder: Recorder,
}

impl Fleet {
    fn of_gpus(every: u64) -> Self {
        let nodes = (0..GPUS).step_by(GPUS_OF_NODE as usize).map(|first| {
            let name = format!("http://node-{first}:9400/metrics");
            let every = Duration::from_secs(every);
            (Target::new(&name, TargetKind::Gpu, Vec::new(), every), first)
        });
        let targets = nodes.collect();
        Self { begun: clock::now(), pool: Pool::default(), targets, recorder: Recorder::default() }
    }

    fn tell(&mut self, second: i64) {
        for (target, first) in &mut self.targets {
            let text = gpus(*first..(*first + GPUS_OF_NODE).min(GPUS), second, usize::MAX);
            let exposition = read(text.as_bytes(), &Bounds::default());
            let reading = taximeter_fleet::read(&exposition.samples, at(second));
            let now = self.begun + Duration::from_secs(second.unsigned_abs());
            target.quantities = Arc::new(target.quantities.after(reading, now, &mut self.pool));
            target.answered_at = Some(at(second));
        }
        let targets: Vec<_> = self.targets.iter().map(|one| Arc::new(one.0.clone())).collect();
        self.recorder.note(&targets);
    }
}

/// What a sample takes: a day of 100 GPUs, of which the seconds are those of an exporter that measures each
/// five seconds.
fn tell_disk() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let memory = Memory::open(folder.path())?;
    let mut fleet = Fleet::of_gpus(5);
    let hours = 2;
    let (mut samples, mut spent) = (0, 0);
    for second in (0..=hours * HOUR).step_by(5) {
        fleet.tell(second);
        if second % 60 == 0 {
            let began = cpu_nanos();
            samples += memory.write(&mut fleet.recorder, at(second))?.samples;
            spent += cpu_nanos() - began;
        }
    }
    let began = cpu_nanos();
    // All of the day is over: its hours, and then the day, become one file.
    while memory.merge_next(at(24 * HOUR + 200), &|| true)? {}
    let merged = cpu_nanos() - began;
    say(&format!(
        "\n{:<34}{:>12}{:>12}{:>16}",
        "samples on disk, 100 GPUs", "samples", "bytes", "bytes a sample"
    ));
    tell_written(&folder, "1s", "of 2 hours")?;
    tell_written(&folder, "1m", "of 2 hours")?;
    say(&format!(
        "CPU of {samples} samples of {hours} hours: {:.0} ms to write, {:.0} ms to merge",
        millis(spent),
        millis(merged)
    ));
    Ok(())
}

fn tell_written(folder: &tempfile::TempDir, grid: &str, time: &str) -> Result<()> {
    let (samples, bytes) = written(&folder.path().join("samples").join(grid))?;
    let name = format!("{grid}, {time}");
    say(&format!("{name:<34}{samples:>12}{bytes:>12}{:>16.2}", bytes as f64 / samples as f64));
    Ok(())
}

/// Samples and bytes of the files of a grid.
fn written(dir: &Path) -> Result<(u64, u64)> {
    let (mut samples, mut bytes) = (0, 0);
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        bytes += entry.metadata()?.len();
        samples += taximeter_store::memory::samples_of(&entry.path())?;
    }
    Ok((samples, bytes))
}

/// How long a chart of 90 days over 100 GPUs takes: it is made of hours.
fn tell_chart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let memory = Memory::open(folder.path())?;
    let mut fleet = Fleet::of_gpus(5);
    for hour in 0..=CHART_DAYS * 24 {
        fleet.tell(hour * HOUR);
        memory.write(&mut fleet.recorder, at(hour * HOUR))?;
        if hour % 24 == 1 {
            while memory.merge_next(at(hour * HOUR), &|| true)? {}
        }
    }
    tell_written(&folder, "1h", "of 90 days")?;
    say(&format!(
        "\n{:<34}{:>10}{:>10}{:>12}{:>12}",
        "a chart of 90 days, 100 GPUs", "series", "points", "first, ms", "least, ms"
    ));
    for (name, step) in [("by 12 hours", 12 * HOUR), ("by the hour", HOUR)] {
        let query = Query {
            quantity: "hw.power".to_owned(),
            statistic: Some(Statistic::Mean),
            target: None,
            who: Vec::new(),
            from: BEGIN,
            to: BEGIN + CHART_DAYS * 24 * HOUR,
            step,
            series_max: 500,
        };
        let mut times = Vec::new();
        let (mut series, mut points) = (0, 0);
        for _ in 0..5 {
            let began = monotonic_nanos();
            let found = memory.ask(&query)?;
            times.push(monotonic_nanos() - began);
            series = found.series.len();
            points = found.series.iter().map(|one| one.points.len()).sum();
        }
        ensure!(series == GPUS as usize, "{series} series");
        let least = times.iter().min().context("a round")?;
        say(&format!(
            "{name:<34}{series:>10}{points:>10}{:>12.1}{:>12.1}",
            millis(*times.first().context("a round")?),
            millis(*least)
        ));
    }
    Ok(())
}

/// What a gateway spends on a thousand targets, beside one that has none.
fn tell_targets(taximeter: &Path, time: Duration) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let source = listener.local_addr()?;
    thread::spawn(move || serve(&listener));
    say(&format!(
        "\n{:<34}{:>14}{:>14}",
        "targets of 100 kB, each 15 s", "% of a core", "resident, MiB"
    ));
    let [without, with] = [0, TARGETS].map(|targets| gateway(taximeter, source, targets, time));
    let (without, with) = (without?, with?);
    for (name, (core, mib)) in [("none", without), ("1,000", with)] {
        say(&format!("{name:<34}{:>14.2}{mib:>14.1}", core * 100.0));
    }
    say(&format!(
        "{:<34}{:>14.2}{:>14.1}",
        "between",
        (with.0 - without.0) * 100.0,
        with.1 - without.1
    ));
    Ok(())
}

/// The share of a core that a gateway spends which asks so many targets, and its memory at the end, in MiB.
fn gateway(
    taximeter: &Path,
    source: SocketAddr,
    targets: usize,
    time: Duration,
) -> Result<(f64, f64)> {
    let folder = tempfile::tempdir()?;
    let [listen, admin] = [free_address()?, free_address()?];
    let urls: Vec<_> = (0..targets).map(|number| format!("\"http://{source}/{number}\"")).collect();
    let fleet = match targets {
        0 => String::new(),
        _ => format!("fleet: {{hosts: {{local: off}}, engines: [{}]}}\n", urls.join(", ")),
    };
    let yaml = format!(
        "listen: {listen}\nadmin: {admin}\ndata_dir: {}\n\
         upstreams: [{{name: engine, url: \"http://127.0.0.1:9\", dialect: openai}}]\n{fleet}",
        folder.path().join("data").display()
    );
    let file = folder.path().join("taximeter.yaml");
    fs::write(&file, yaml)?;
    let words = [taximeter, Path::new("serve"), Path::new("--config"), &file];
    let words: Vec<_> = words.iter().map(|word| word.display().to_string()).collect();
    let serving = Process::start(&words, admin, &folder.path().join("serve.log"))?;
    // All are asked once meanwhile, and the first minute of samples is written.
    pause(Duration::from_secs(if targets > 0 { 75 } else { 5 }));
    let before = serving.cpu()?;
    pause(time);
    let spent = serving.cpu()?.nanos_since(&before);
    Ok((spent as f64 / time.as_nanos() as f64, serving.resident_kib()? / 1024.0))
}

/// Answers each question with the text of an engine, whose values move.
fn serve(listener: &TcpListener) {
    for (number, stream) in (1..).zip(listener.incoming().map_while(Result::ok)) {
        // Who does not read goes.
        thread::spawn(move || answer(stream, number));
    }
}

fn answer(mut stream: TcpStream, number: i64) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let text = engines(TARGET_BYTES, number);
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

/// What vLLM prints, for as many models as fill so many bytes.
fn engines(bytes: usize, now: i64) -> String {
    const GAUGES: [&str; 3] =
        ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"];
    const COUNTERS: [&str; 4] =
        ["prompt_tokens", "generation_tokens", "num_preemptions", "prefix_cache_hits"];
    const HISTOGRAMS: [&str; 6] = [
        "time_to_first_token_seconds",
        "inter_token_latency_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "request_decode_time_seconds",
    ];
    let (mut text, mut model) = (String::with_capacity(bytes + 16_384), 0);
    while text.len() < bytes {
        let labels =
            format!("engine=\"0\",model_name=\"meta-llama/Llama-3.3-70B-Instruct-{model}\"");
        for (at, name) in (0_i64..).zip(GAUGES) {
            let value = noise(model, at, now) % 100;
            let _ =
                write!(text, "# TYPE vllm:{name} gauge\nvllm:{name}{{{labels}}} 0.{value:02}\n");
        }
        for (at, name) in (0_i64..).zip(COUNTERS) {
            let value = now * (300 + at) + model;
            let _ = write!(
                text,
                "# TYPE vllm:{name} counter\nvllm:{name}_total{{{labels}}} {value}.0\n"
            );
        }
        for name in HISTOGRAMS {
            let _ = writeln!(text, "# TYPE vllm:{name} histogram");
            for step in 1..=20 {
                let (bound, count) = (step as f64 * 0.05, now * step);
                let _ = writeln!(text, "vllm:{name}_bucket{{{labels},le=\"{bound}\"}} {count}.0");
            }
            let count = now * 20;
            let _ = write!(
                text,
                "vllm:{name}_bucket{{{labels},le=\"+Inf\"}} {count}.0\n\
                 vllm:{name}_sum{{{labels}}} {}.5\nvllm:{name}_count{{{labels}}} {count}.0\n",
                now * 7
            );
        }
        model += 1;
    }
    text
}

/// What dcgm-exporter prints of these GPUs, up to so many bytes.
fn gpus(all: std::ops::Range<u32>, now: i64, bytes: usize) -> String {
    /// Name, kind, a usual value, and by how much it moves.
    const FIELDS: [(&str, &str, i64, i64); 16] = [
        ("DCGM_FI_DEV_SM_CLOCK", "gauge", 1_755, 2),
        ("DCGM_FI_DEV_MEM_CLOCK", "gauge", 2_619, 1),
        ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", 61, 3),
        ("DCGM_FI_DEV_GPU_TEMP", "gauge", 54, 3),
        ("DCGM_FI_DEV_POWER_USAGE", "gauge", 480, 170),
        ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", 500_000, 60_000),
        ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", 0, 1),
        ("DCGM_FI_DEV_GPU_UTIL", "gauge", 80, 20),
        ("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", 40, 20),
        ("DCGM_FI_DEV_XID_ERRORS", "gauge", 0, 1),
        ("DCGM_FI_DEV_FB_FREE", "gauge", 8_000, 1),
        ("DCGM_FI_DEV_FB_USED", "gauge", 73_000, 1),
        ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", 0, 1),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", 0, 1),
        ("DCGM_FI_DEV_POWER_VIOLATION", "counter", 0, 1),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", 0, 1),
    ];
    let mut text = String::new();
    for (field, (name, kind, usual, moves)) in (0_i64..).zip(FIELDS) {
        let _ = write!(text, "# HELP {name} help.\n# TYPE {name} {kind}\n");
        for gpu in all.clone() {
            let value = match kind {
                "counter" => usual * now + noise(gpu.into(), field, now) % moves,
                _ => usual + noise(gpu.into(), field, now) % moves,
            };
            let _ = writeln!(
                text,
                "{name}{{gpu=\"{gpu}\",UUID=\"GPU-{gpu:08x}-1111-2222-3333-444444444444\",\
                 pci_bus_id=\"00000000:{:02X}:00.0\",device=\"nvidia{gpu}\",\
                 modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"node-{}\",\
                 DCGM_FI_DRIVER_VERSION=\"570.86.15\"}} {value}",
                gpu % 256,
                gpu / GPUS_OF_NODE
            );
            if text.len() >= bytes {
                return text;
            }
        }
    }
    text
}

/// A number that looks like chance, and is the same each time.
fn noise(of: i64, field: i64, now: i64) -> i64 {
    let mut seed =
        of.wrapping_mul(7_919) ^ field.wrapping_mul(104_729) ^ now.wrapping_mul(1_299_709);
    for _ in 0..3 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed ^= seed >> 29;
    }
    seed & i64::from(u32::MAX)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(BEGIN + second).unwrap_or_default()
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
