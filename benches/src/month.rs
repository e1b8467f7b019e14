//! A store with the requests of a month, made without a gateway: piece by piece, as retention leaves
//! it.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Result, ensure};
use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{
    Dimensions, EncodedEntry, Entry, Framer, LedgerId, Position, Record, SegmentHeader,
    SessionSource, TenantId,
};
use tempfile::TempDir;

use crate::clock::{monotonic_nanos, pause};
use crate::record::{mixed, pattern, vary};

const TENANTS: u32 = 50;
const MODELS: u32 = 6;
/// Requests written to the journal before the store is fed.
const PIECE_RECORDS: u32 = 500_000;
/// How often a program's memory is looked at.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// A data directory with the requests of thirty days, evenly spread over tenants, models and time.
#[derive(Debug)]
pub struct Month {
    dir: TempDir,
    taximeter: PathBuf,
    position: Position,
    pattern: Record,
    /// Of the first request.
    begin: Timestamp,
    /// Between two requests.
    interval: SignedDuration,
    /// Requests of a session, if clients name any.
    of_session: Option<u32>,
}

/// What a command took.
#[derive(Debug)]
pub struct Asked {
    /// From its start to its end.
    pub seconds: f64,
    /// Most memory that it had.
    pub peak_mib: f64,
}

impl Month {
    /// An empty directory, for so many requests.
    ///
    /// Errors: no directory.
    pub fn new(taximeter: PathBuf, begin: Timestamp, records: u32) -> Result<Self> {
        Ok(Self {
            dir: tempfile::tempdir()?,
            taximeter,
            position: Position::START,
            pattern: pattern()?,
            begin,
            interval: SignedDuration::from_hours(30 * 24) / i32::try_from(records)?,
            of_session: None,
        })
    }

    /// The same, where so many requests make a session of a root and a sub-agent.
    #[must_use]
    pub fn with_sessions(mut self, requests: u32) -> Self {
        self.of_session = Some(requests.max(1));
        self
    }

    /// The name of its gateway.
    #[must_use]
    pub fn gateway(&self) -> &str {
        &self.pattern.gateway
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Fills the store; seconds that feeding it took.
    ///
    /// Errors: what `taximeter bill` says.
    pub fn fill(&mut self, records: u32) -> Result<f64> {
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
    ///
    /// Errors: a full disk.
    pub fn write(&mut self, numbers: Range<u32>) -> Result<PathBuf> {
        let path = self.dir.path().join(format!("journal-{:020}.tlj", self.position.seq + 1));
        let header = SegmentHeader {
            gateway: self.pattern.gateway.clone(),
            ledger: LedgerId::default(),
            before: self.position,
            lost: 0,
            has_sync_marks: false,
            follows: None,
            created: self.pattern.started_at,
        };
        let (mut bytes, mut payload) = (Vec::new(), Vec::new());
        header.encode(&mut bytes);
        let mut framer = Framer::new(header.ledger, self.position);
        for number in numbers {
            let entry = Entry::Post(Box::new(self.record(number)?));
            self.position = framer.append(&EncodedEntry::new(&entry, &mut payload)?, &mut bytes);
        }
        fs::write(&path, bytes)?;
        Ok(path)
    }

    /// The request with that number; its `seq` is the entry's.
    ///
    /// Errors: one that time has no room for.
    pub fn record(&self, number: u32) -> Result<Record> {
        let started_at = self.begin + self.interval * i32::try_from(number)?;
        let started_at = Timestamp::from_microsecond(started_at.as_microsecond())?;
        let (tenant, model) = (number % TENANTS, number / TENANTS % MODELS);
        let mut record = Record {
            started_at,
            tenant: TenantId(format!("tenant-{tenant}").into()),
            request_model: Some(format!("org/model-{model}-instruct")),
            ..self.pattern.clone()
        };
        vary(&mut record, number);
        record.dimensions = self.of_session.map(|requests| session(number, requests));
        Ok(record)
    }

    /// Asks for a bill, which feeds the store first.
    ///
    /// Errors: one that fails.
    pub fn bill(&self, arguments: &[&str]) -> Result<Asked> {
        let mut command = Command::new(&self.taximeter);
        command.args(self.arguments()).env("TAXIMETER_STORE", "sqlite").args(arguments);
        let (ended, asked) = ask(command.stdout(Stdio::null()))?;
        ensure!(ended.success(), "taximeter bill ended with {ended}");
        Ok(asked)
    }

    /// The command that makes a bill of it.
    #[must_use]
    pub fn arguments(&self) -> [String; 3] {
        ["bill".to_owned(), "--data-dir".to_owned(), self.dir.path().display().to_string()]
    }
}

/// What a client says of the request with that number. The sessions of a tenant run one after the other,
/// those of all tenants at once.
fn session(number: u32, requests: u32) -> Box<Dimensions> {
    let (tenant, of_tenant) = (number % TENANTS, number / TENANTS);
    let (session, turn) = (of_tenant / requests, of_tenant % requests);
    let name = format!("{:08x}-{tenant:04x}-7222-8333-{session:012x}", mixed(session, tenant));
    let is_sub_agent = turn % 4 == 3;
    Box::new(Dimensions {
        session: Some(name),
        session_source: Some(SessionSource::Header),
        agent: Some(if is_sub_agent { "a1" } else { "root" }.to_owned()),
        parent_agent: is_sub_agent.then(|| "root".to_owned()),
        client: Some("claude-code/2.1".to_owned()),
        ..Dimensions::default()
    })
}

/// Runs a command to its end.
///
/// Errors: it cannot be started.
pub fn ask(command: &mut Command) -> Result<(ExitStatus, Asked)> {
    let started = monotonic_nanos();
    let mut asked = command.spawn()?;
    let mut peak_mib = 0.0_f64;
    let ended = loop {
        if let Some(ended) = asked.try_wait()? {
            break ended;
        }
        peak_mib = peak_mib.max(most_memory(asked.id()));
        pause(LOOK_INTERVAL);
    };
    Ok((ended, Asked { seconds: (monotonic_nanos() - started) as f64 / 1e9, peak_mib }))
}

/// Most memory that a process has had, in MiB. 0 for one that has ended.
#[must_use]
pub fn most_memory(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}
