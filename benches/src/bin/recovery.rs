//! How long a start takes on a journal of many entries, and how much memory: when a stream was open
//! since the first of them, and when none was. How long it takes to settle many requests that were
//! open when the gateway died. And what it takes to verify a ledger whole.
//!
//! `recovery --programs DIR` prints the table; `benches/run --only recovery` builds and starts it.
//! Ten million entries need 6 GB in the temporary directory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::Value;
use taximeter_benches::clock::monotonic_nanos;
use taximeter_benches::month::{Asked, ask, most_memory};
use taximeter_benches::say;
use taximeter_ledger::{
    CarriedRequest, Change, EncodedEntry, Entry, Framer, Identity, LedgerId, Position, Progress,
    Record, RecordCost, RecordLine, RecordUsage, RequestId, Reserve, RunningTotals, SegmentHeader,
    TenantId, gateway_died_record,
};
use tempfile::TempDir;
use uuid::Uuid;

/// Length of a segment, as the gateway has it by default.
const SEGMENT_BYTES: usize = 64 << 20;

#[derive(Debug, Parser)]
struct Arguments {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// Entries of the journal.
    #[arg(long, default_value_t = 10_000_000)]
    entries: u64,
    /// Requests that are open at its end, in a journal of no others.
    #[arg(long, default_value_t = 5_000)]
    open: u64,
    /// Requests of the ledger that is verified.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
}

fn main() -> Result<()> {
    let Arguments { programs, entries, open, records } = Arguments::parse();
    let taximeter = programs.join("taximeter");
    let mut journal = Journal::new()?;
    journal.fill(entries)?;
    say(&format!("{:<66}{:>10}  goal", format!("a start on {entries} entries"), "seconds"));
    for label in ["a stream open since the first", "none open"] {
        let started = journal.start(&taximeter)?;
        let label = format!("{label}: {} read", started.read);
        say(&format!("{label:<66}{:>10.2}  ≤ 1", started.seconds));
        say(&format!("{:<66}{:>10.0}  ≤ 32", "  most memory, MiB", started.peak_mib));
    }
    let mut journal = Journal::new()?;
    journal.leave_open(open)?;
    let started = journal.start(&taximeter)?;
    if started.settled != open {
        bail!("{} of {open} open requests were settled", started.settled);
    }
    say(&format!("{:<66}{:>10.2}  ≤ 5", format!("{open} open: all settled"), started.seconds));
    let mut journal = Journal::new()?;
    journal.fill(2 * records)?;
    // It settles the one that is open, which would be wrong.
    journal.start(&taximeter)?;
    for label in [", and feeding the store first", ""] {
        let verified = journal.verify(&taximeter)?;
        let label = format!("verify {records} records{label}");
        say(&format!("{label:<66}{:>10.2}", verified.seconds));
        say(&format!("{:<66}{:>10.0}", "  most memory, MiB", verified.peak_mib));
    }
    Ok(())
}

/// A journal as a gateway leaves it that was killed.
struct Journal {
    dir: TempDir,
    position: Position,
    framer: Framer,
    tally: RunningTotals,
    /// Of the segment that is being made.
    bytes: Vec<u8>,
    /// The entry before it.
    before: Position,
    /// When the next request comes.
    at: Timestamp,
}

/// What a start took.
struct Started {
    seconds: f64,
    /// Most memory until it listened.
    peak_mib: f64,
    /// Entries.
    read: u64,
    /// Requests that were open.
    settled: u64,
}

impl Journal {
    fn new() -> Result<Self> {
        Ok(Self {
            dir: tempfile::tempdir()?,
            position: Position::START,
            framer: Framer::new(LedgerId::default(), Position::START),
            tally: RunningTotals::default(),
            bytes: Vec::new(),
            before: Position::START,
            at: "2026-11-01T00:00:00Z".parse()?,
        })
    }

    /// A reservation that stays open, then requests that are posted.
    fn fill(&mut self, entries: u64) -> Result<()> {
        self.add(&Entry::Reserve(Box::new(self.reserve(0)?)))?;
        for number in 1..entries / 2 {
            let reserve = self.reserve(number)?;
            let record = record(&reserve, self.at);
            self.add(&Entry::Reserve(Box::new(reserve)))?;
            self.add(&Entry::Post(Box::new(record)))?;
            self.at += SignedDuration::from_millis(10);
        }
        self.end_segment()
    }

    /// Streams that run, each with a word of what it has used.
    fn leave_open(&mut self, open: u64) -> Result<()> {
        for number in 0..open {
            let reserve = self.reserve(number)?;
            let usage = RecordUsage::counted(Some(812), Some(96), &[]);
            let progress = Progress {
                id: reserve.id,
                at: self.at,
                response_model: reserve.request_model.clone(),
                response_id: None,
                service_tier: None,
                usage,
            };
            self.add(&Entry::Reserve(Box::new(reserve)))?;
            self.add(&Entry::Progress(Box::new(progress)))?;
        }
        self.end_segment()
    }

    fn add(&mut self, entry: &Entry) -> Result<()> {
        if self.bytes.len() >= SEGMENT_BYTES {
            let carried = self.tally.carried();
            self.end_segment()?;
            CarriedRequest::append_all(carried, LedgerId::default(), &mut self.bytes);
            let checkpoint = self.tally.checkpoint(self.at);
            self.seal(&Entry::Checkpoint(Box::new(checkpoint)))?;
        }
        self.seal(entry)
    }

    fn seal(&mut self, entry: &Entry) -> Result<()> {
        let mut payload = Vec::new();
        let entry_bytes = EncodedEntry::new(entry, &mut payload)?;
        self.position = self.framer.append(&entry_bytes, &mut self.bytes);
        self.tally.add_and_keep(self.position.seq, &Change::of(entry), &payload);
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        let first = self.before.seq + 1;
        let path = self.dir.path().join(format!("journal-{first:020}.tlj"));
        let mut file = File::create(path)?;
        let gateway = "bench/0".to_owned();
        let mut header = Vec::new();
        SegmentHeader {
            gateway,
            ledger: LedgerId::default(),
            before: self.before,
            lost: 0,
            has_sync_marks: false,
            follows: None,
            created: self.at,
        }
        .encode(&mut header);
        file.write_all(&header)?;
        file.write_all(&self.bytes)?;
        self.bytes.clear();
        self.before = self.position;
        self.framer = Framer::new(LedgerId::default(), self.position);
        Ok(())
    }

    fn reserve(&self, number: u64) -> Result<Reserve> {
        let id = RequestId(Uuid::from_u128(0x0193_e9a0 << 96 | u128::from(number)));
        Ok(Reserve {
            id,
            request_id: id.to_string(),
            started_at: self.at,
            tenant: TenantId::new("acme")?,
            key_id: Some("acme-production".to_owned()),
            identity: Identity::ApiKey,
            labels: BTreeMap::from([("team".to_owned(), "search".to_owned())]),
            dimensions: None,
            operation: "chat".to_owned(),
            route: "/v1/chat/completions".to_owned(),
            stream: true,
            upstream: "local".to_owned(),
            provider: "vllm".to_owned(),
            request_model: Some("meta-llama/Llama-3.1-8B-Instruct".to_owned()),
            service_tier: None,
            amount: None,
            input_tokens: Some(845),
            output_tokens: Some(0),
            context: false,
            background: false,
        })
    }

    /// Verifies it.
    ///
    /// Errors: something is wrong with it.
    fn verify(&self, taximeter: &Path) -> Result<Asked> {
        let mut command = Command::new(taximeter);
        command.arg("verify").arg("--data-dir").arg(self.dir.path()).stdout(Stdio::null());
        let (ended, asked) = ask(&mut command)?;
        ensure!(ended.success(), "taximeter verify ended with {ended}");
        Ok(asked)
    }

    /// Starts a gateway, and kills it once it listens.
    fn start(&self, taximeter: &Path) -> Result<Started> {
        let begun = monotonic_nanos();
        let mut gateway = Command::new(taximeter)
            .args(["serve", "--upstream", "http://127.0.0.1:1"])
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir"])
            .arg(self.dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .context("start the gateway")?;
        let log = BufReader::new(gateway.stderr.take().context("its log")?);
        let (mut read, mut settled, mut seconds, mut peak_mib) = (None, None, None, 0.0);
        for line in log.lines() {
            let event: Value = serde_json::from_str(&line?)?;
            match event.get("event").and_then(Value::as_str) {
                Some("ledger_opened") => {
                    read = event.get("entries").and_then(Value::as_u64);
                    settled = event.get("gateway_died").and_then(Value::as_u64);
                }
                Some("listening") => {
                    seconds = Some((monotonic_nanos() - begun) as f64 / 1e9);
                    peak_mib = most_memory(gateway.id());
                    break;
                }
                _ => {}
            }
        }
        gateway.kill()?;
        gateway.wait()?;
        match (read, settled, seconds) {
            (Some(read), Some(settled), Some(seconds)) => {
                Ok(Started { seconds, peak_mib, read, settled })
            }
            _ => bail!("the gateway did not start"),
        }
    }
}

/// As a gateway writes it.
fn record(reserve: &Reserve, at: Timestamp) -> Record {
    let usage = RecordUsage::counted(Some(812), Some(96), &[]);
    let mut record = Record { usage, ..gateway_died_record(reserve, None, at, "bench/0") };
    record.response_model.clone_from(&record.request_model);
    record.response_id = Some("chatcmpl-8f14e45fceea167a5a36dedd4bea2543".to_owned());
    record.status = Some(200);
    let line = |meter: &str, tokens, price: &str| RecordLine {
        meter: meter.to_owned(),
        model: None,
        price_match: None,
        tokens: Some(tokens),
        quantity: None,
        unit: None,
        unit_price: price.parse().unwrap_or_default(),
        list_unit_price: None,
        amount: price.parse::<Decimal>().unwrap_or_default() * Decimal::from(tokens),
    };
    let lines = vec![line("input", 812, "0.0000005"), line("output", 96, "0.0000015")];
    let amount = lines.iter().map(|line| line.amount).sum();
    record.cost = Some(RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount,
        list_amount: amount,
        price_id: "builtin@2026-11-20#llama-3.1-8b".to_owned(),
        price_match: Some("exact".into()),
        lines,
    });
    record
}
