//! What the store costs and how fast it answers: feeding it from a journal, and billing a month.
//!
//! `store` prints the table; `benches/run --only store` builds and starts it. Ten million requests
//! need 16 GB in the temporary directory. The journal is written piece by piece, and each is
//! dropped when the store has it, as retention does.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use taximeter_benches::clock::{monotonic_nanos, pause};
use taximeter_benches::say;
use taximeter_ledger::{Draft, Entry, Position, Record, RequestId, SegmentHeader, TenantId};
use taximeter_tests::postgres::Server;
use tempfile::TempDir;
use uuid::Uuid;

const TENANTS: u32 = 50;
const MODELS: u32 = 6;
/// Requests written to the journal before the store is fed.
const PIECE_RECORDS: u32 = 500_000;
/// Requests that callgrind sees fed, few and many: the difference is the cost of the rest.
const COUNTED_RECORDS: [u32; 2] = [8_192, 40_960];
/// Requests a second that feeding has to outrun.
const ARRIVALS_PER_SECOND: f64 = 2_000.0;
/// Most requests that PostgreSQL is fed: its rate hardly changes from there on.
const POSTGRES_RECORDS_MAX: u32 = 1_000_000;
/// How often each bill is asked for; the least time is told.
const ROUNDS: usize = 3;
/// How often a program's memory is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A request as the gateway writes it; what differs from one to the next is put in.
const RECORD: &str = r#"{
    "id": "0193e9a0-0000-7000-8000-000000000000", "request_id": "", "attempt": 1,
    "gateway": "bench/0", "started_at": "2026-11-01T00:00:00Z", "ended_at": "2026-11-01T00:00:00Z",
    "tenant": "", "key_id": "production", "identity": "api_key", "labels": {"team": "search"},
    "operation": "chat", "route": "/v1/chat/completions", "stream": true, "upstream": "local",
    "provider": "vllm", "request_model": "", "response_model": null,
    "response_id": "chatcmpl-8f14e45fceea167a5a36dedd4bea2543", "service_tier": null, "status": 200,
    "end": "complete", "error_type": null, "finish_reasons": ["stop"],
    "usage": {
        "source": "reported", "sources": {"input_tokens": "reported", "output_tokens": "reported"},
        "input_tokens": 812, "cache_read_input_tokens": 768, "cache_write_input_tokens": 0,
        "output_tokens": 96, "reasoning_output_tokens": 0, "modalities": null, "passes": null,
        "counted": {"input_tokens": 812, "output_tokens": 96}
    },
    "timing": {
        "time_to_first_chunk": 0.041, "time_to_first_token": 0.043,
        "time_per_output_token": 0.0119, "output_chunks": 96, "longest_stall": 0.031,
        "duration": 1.18, "gateway": 0.0004
    },
    "cost": {
        "currency": "USD", "amount": "0.00028600", "list_amount": "0.00028600",
        "price_id": "builtin@2026-11-20#m",
        "lines": [
            {"meter": "input", "tokens": 44, "unit_price": "0.0000005", "amount": "0.0000220"},
            {"meter": "cache_read", "tokens": 768, "unit_price": "0.00000005",
                "amount": "0.00003840"},
            {"meter": "output", "tokens": 96, "unit_price": "0.00000235", "amount": "0.00022560"}
        ]
    }
}"#;

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
    say(&format!("{:<66}{:>10}  goal", "the store", "taximeter"));
    let counted = COUNTED_RECORDS.map(|counted| {
        let mut month = Month::new(taximeter.clone(), records)?;
        month.write(0..counted)?;
        month.instructions()
    });
    let ([few, many], [fewer, more]) = (COUNTED_RECORDS, counted);
    row("feeding: instructions per request", (more? - fewer?) / f64::from(many - few), "");

    let mut month = Month::new(taximeter.clone(), records)?;
    let rate = f64::from(records) / month.fill(records)?;
    row("  requests per second", rate, "");
    row("  × 2,000 requests/s that arrive", rate / ARRIVALS_PER_SECOND, "≥ 5");
    row("  bytes of store per request", month.store_bytes()? / f64::from(records), "");
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
    postgres(Month::new(taximeter, records)?, records)
}

/// The same store in PostgreSQL, which a gateway feeds. The server is at its defaults.
fn postgres(mut month: Month, records: u32) -> Result<()> {
    let server = Server::start(&["fsync=on", "full_page_writes=on"])?;
    let database = server.database()?;
    let url = server.url(&database);
    month.write(0..records)?;
    let rate = f64::from(records) / month.feed(&server, &database, records)?;
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

/// A data directory with the requests of November, evenly spread over tenants, models and time.
struct Month {
    dir: TempDir,
    taximeter: PathBuf,
    position: Position,
    pattern: Record,
    /// Between two requests.
    interval: SignedDuration,
}

/// What asking for a bill took.
struct Asked {
    seconds: f64,
    peak_mib: f64,
}

impl Month {
    fn new(taximeter: PathBuf, records: u32) -> Result<Self> {
        Ok(Self {
            dir: tempfile::tempdir()?,
            taximeter,
            position: Position::START,
            pattern: serde_json::from_str(RECORD)?,
            interval: SignedDuration::from_hours(30 * 24) / i32::try_from(records)?,
        })
    }

    /// Seconds that feeding the store took.
    fn fill(&mut self, records: u32) -> Result<f64> {
        let mut seconds = 0.0;
        let mut first = 0;
        while first < records {
            let next = records.min(first + PIECE_RECORDS);
            let segment = self.write(first..next)?;
            seconds += self.bill(&["--month", "2000-01"])?.seconds;
            fs::remove_file(segment)?;
            first = next;
        }
        Ok(seconds)
    }

    /// Writes a segment of the journal; its path.
    fn write(&mut self, numbers: Range<u32>) -> Result<PathBuf> {
        let path = self.dir.path().join(format!("journal-{:020}.tlj", self.position.seq + 1));
        let header = SegmentHeader {
            gateway: self.pattern.gateway.clone(),
            before: self.position,
            lost: 0,
            marked: false,
            created: self.pattern.started_at,
        };
        let (mut bytes, mut payload) = (Vec::new(), Vec::new());
        header.encode(&mut bytes);
        for number in numbers {
            let entry = Entry::Post(Box::new(self.record(number)?));
            self.position = Draft::new(&entry, &mut payload)?.seal(self.position, &mut bytes);
        }
        fs::write(&path, bytes)?;
        Ok(path)
    }

    fn record(&self, number: u32) -> Result<Record> {
        let started_at = self.pattern.started_at + self.interval * i32::try_from(number)?;
        let started_at = Timestamp::from_microsecond(started_at.as_microsecond())?;
        let bits = self.pattern.id.0.as_u128() + u128::from(number);
        let (tenant, model) = (number % TENANTS, number / TENANTS % MODELS);
        Ok(Record {
            id: RequestId(Uuid::from_u128(bits)),
            request_id: format!("4bf92f35-77b3-4da6-a3ce-{number:012x}"),
            started_at,
            ended_at: started_at + SignedDuration::from_millis(1180),
            tenant: TenantId(format!("tenant-{tenant}").into()),
            request_model: Some(format!("org/model-{model}-instruct")),
            ..self.pattern.clone()
        })
    }

    /// Seconds that a gateway takes from its start until the database has all of the journal.
    fn feed(&self, server: &Server, database: &str, records: u32) -> Result<f64> {
        let (dir, url) = (self.dir.path().display(), server.url(database));
        let file = self.dir.path().join("taximeter.yaml");
        let yaml = format!(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndata_dir: {dir}\nledger: {{store: \"{url}\"}}\n\
             upstreams: [{{name: none, url: \"http://127.0.0.1:9\"}}]\n"
        );
        fs::write(&file, yaml)?;
        let started = monotonic_nanos();
        let mut serve = Command::new(&self.taximeter)
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

    fn store_bytes(&self) -> Result<f64> {
        Ok(fs::metadata(self.dir.path().join("store.sqlite"))?.len() as f64)
    }

    fn bill(&self, arguments: &[&str]) -> Result<Asked> {
        let started = monotonic_nanos();
        let mut asked = Command::new(&self.taximeter)
            .args(self.arguments())
            .env("TAXIMETER_STORE", "sqlite")
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()?;
        let status = format!("/proc/{}/status", asked.id());
        let mut peak_mib = 0.0_f64;
        let ended = loop {
            if let Some(ended) = asked.try_wait()? {
                break ended;
            }
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            peak_mib = peak_mib.max(kib.unwrap_or_default() / 1024.0);
            pause(LOOK_INTERVAL);
        };
        ensure!(ended.success(), "taximeter bill ended with {ended}");
        Ok(Asked { seconds: (monotonic_nanos() - started) as f64 / 1e9, peak_mib })
    }

    /// Of one bill, by callgrind: it feeds the store first.
    fn instructions(&self) -> Result<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&self.taximeter)
            .args(self.arguments())
            .env("TAXIMETER_STORE", "sqlite")
            .args(["--month", "2000-01"])
            .output()
            .context("valgrind (Debian: valgrind)")?;
        let text = String::from_utf8_lossy(&output.stderr);
        let count = text.lines().find_map(|line| line.split_once("Collected : "));
        let (_, count) = count.with_context(|| text.clone().into_owned())?;
        Ok(count.trim().parse()?)
    }

    fn arguments(&self) -> [String; 3] {
        ["bill".to_owned(), "--data-dir".to_owned(), self.dir.path().display().to_string()]
    }
}
