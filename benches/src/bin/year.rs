//! A year of requests, and a full day of many, with a clock that runs fast: is every request written
//! while history goes, does each month's bill stay exact, and which details are there in the end?
//!
//! `year` prints a row for each month and ends with an error where something is not as told;
//! `benches/run --only year` builds and starts it. The requests go through the journal, the store, the
//! sealing and the making of room themselves, as `serve` connects them, without HTTP.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde_json::Value;
use taximeter_benches::clock::{monotonic_nanos, pause};
use taximeter_benches::record::{pattern, reserve, vary};
use taximeter_benches::say;
use taximeter_config::{Config, Durability, OnDamage, OnUnavailable};
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::RoomLimits;
use taximeter_journal::{AppendError, Journal, Options, Retention};
use taximeter_ledger::{Charge, Entry, Record, RequestId, TenantId};
use taximeter_store::{
    Cleaner, Feed, Filter, Location, SealPolicy, Sealer, Store, StoreError, feeds,
};
use taximeter_system::clock;

/// The first instant of the simulation. All of it has passed: nobody bills the future.
const BEGIN: &str = "2025-01-01T00:00:00Z";
const GATEWAY: &str = "bench/0";
const TENANTS: [&str; 4] = ["acme", "blue", "city", "dock"];
const MODELS: [&str; 3] = ["small", "medium", "large"];
const QUEUE_BYTES_MAX: usize = 16 << 20;
const SEGMENT_BYTES: usize = 4 << 20;
/// Requests between two looks at the store and at the room.
const STEP_REQUESTS: u32 = 1800;
/// So many steps later everybody has seen a request.
const SEEN_STEPS: usize = 2;
/// Between two looks at a full queue.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// The simulated wall clock, in microseconds since 1970.
static NOW: AtomicI64 = AtomicI64::new(0);

#[derive(Debug, Parser)]
struct Arguments {
    /// The folder with the built program `taximeter`.
    #[arg(long)]
    programs: PathBuf,
    /// The folder of the data directory: on a volume of its own, for example. A temporary one otherwise.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Requests a second.
    #[arg(long, default_value_t = 1)]
    rate: u32,
    /// Simulated days.
    #[arg(long, default_value_t = 365)]
    days: u32,
    /// `ledger.dir_bytes_max`, in megabytes. Without it the volume decides.
    #[arg(long)]
    room: Option<usize>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let temporary = tempfile::tempdir()?;
    let dir = arguments.dir.as_deref().unwrap_or(temporary.path()).join("data");
    fs::create_dir_all(&dir)?;
    let (begun, mut history) = (monotonic_nanos(), History::open(&dir, &arguments)?);
    let requests = u64::from(arguments.days) * 86_400 * u64::from(arguments.rate);
    row(["month", "requests", "owed, USD", "details from", "MB", "MiB of memory"]
        .map(str::to_owned));
    while history.served < requests {
        let month = month_of(now());
        history.step(requests)?;
        if month_of(now()) != month {
            history.tell(month)?;
        }
    }
    // The last day closes, too.
    advance(history.end()? + SignedDuration::from_hours(48));
    history.keep()?;
    history.tell(month_of(history.end()?))?;
    let details = history.details()?;
    let seconds = (monotonic_nanos() - begun) / 1_000_000_000;
    say(&format!(
        "{requests} requests were written, none was refused; the bill of each month is exact; \
         {details} of them have details; {seconds} s"
    ));
    let (found, slowest) = history.look_up()?;
    say(&format!(
        "{found} requests, the last one of each of these days, were looked up by id; \
         the slowest in {slowest:.1} ms"
    ));
    Ok(())
}

fn row(cells: [String; 6]) {
    let [month, cells @ ..] = cells;
    say(&format!("{month:<10}{}", cells.map(|cell| format!("{cell:>16}")).concat()));
}

fn now() -> Timestamp {
    Timestamp::from_microsecond(NOW.load(Ordering::Relaxed)).unwrap_or_default()
}

fn advance(to: Timestamp) {
    NOW.store(to.as_microsecond(), Ordering::Relaxed);
}

fn day_of(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

fn month_of(at: Timestamp) -> Date {
    day_of(at).first_of_month()
}

/// A gateway's data directory, and what was written there.
struct History {
    programs: PathBuf,
    config: Config,
    journal: Journal,
    store: Store,
    feeds: Vec<Feed<'static>>,
    sealer: Sealer,
    cleaner: Cleaner,
    budget: Arc<DiskBudget>,
    /// The newest requests of the last steps.
    seen: VecDeque<i64>,
    /// Both clocks at the beginning, from where they go on together.
    began: (Instant, Timestamp),
    interval: SignedDuration,
    pattern: Record,
    served: u64,
    /// What all tenants owe, by the first day of the month.
    owed: BTreeMap<Date, Decimal>,
    /// Requests by day.
    days: BTreeMap<Date, u64>,
    /// The last request of each day.
    last: BTreeMap<Date, RequestId>,
}

impl History {
    fn open(dir: &Path, arguments: &Arguments) -> Result<Self> {
        let mut config = Config::zero("http://127.0.0.1:1").context("a configuration")?;
        dir.clone_into(&mut config.data_dir);
        config.ledger.dir_bytes_max = arguments.room.map(|megabytes| megabytes * 1_000_000);
        config.limits.ledger_segment_bytes = SEGMENT_BYTES;
        let begin: Timestamp = BEGIN.parse()?;
        advance(begin);
        let options = Options {
            gateway: GATEWAY.to_owned(),
            durability: Durability::Os,
            recovery: OnDamage::Strict,
            unavailable: OnUnavailable::Refuse,
            queue_bytes_max: QUEUE_BYTES_MAX,
            segment_bytes: SEGMENT_BYTES as u64,
            now,
            tell: Box::new(|event| say(&format!("{event:?}"))),
        };
        let (journal, _) = Journal::open(dir, options, &|_| Charge::default())?;
        let store = Store::open(dir)?;
        let sealer = Sealer::open(dir, GATEWAY)?.context("another process seals there")?;
        let (began, budget) = ((clock::now(), begin), Arc::new(DiskBudget::default()));
        let wait = journal.age_wait().clone();
        let keep_days = config.ledger.records_keep_days;
        let retention = Retention::new(dir, keep_days, 0, None, began, wait);
        let location = Location::of(&config, GATEWAY);
        let cleaner = Cleaner::new(&config, location, budget.clone(), retention);
        Ok(Self {
            programs: arguments.programs.clone(),
            feeds: feeds(dir).into(),
            config,
            journal,
            store,
            sealer,
            cleaner,
            budget,
            seen: VecDeque::new(),
            began,
            interval: SignedDuration::from_secs(1) / i32::try_from(arguments.rate)?,
            pattern: pattern()?,
            served: 0,
            owed: BTreeMap::new(),
            days: BTreeMap::new(),
            last: BTreeMap::new(),
        })
    }

    /// The admission of the newest request.
    fn end(&self) -> Result<Timestamp> {
        let number = i32::try_from(self.served.saturating_sub(1))?;
        Ok(self.began.1 + self.interval * number)
    }

    /// Some requests, and what the gateway does meanwhile.
    fn step(&mut self, most: u64) -> Result<()> {
        for _ in 0..STEP_REQUESTS.min(u32::try_from(most - self.served)?) {
            ensure!(
                !self.budget.refuses(),
                "request {} is refused: {:?}",
                self.served,
                self.budget.room()
            );
            self.served += 1;
            let at = self.end()?;
            advance(at);
            let mut record = self.pattern.clone();
            let number = u32::try_from(self.served)?;
            let pick = |names: &[&'static str]| names.get(number as usize % names.len()).copied();
            record.tenant = TenantId::new(pick(&TENANTS).unwrap_or_default())?;
            record.request_model = pick(&MODELS).map(str::to_owned);
            (record.started_at, record.ended_at) = (at, at);
            vary(&mut record, number);
            record.ended_at = at;
            let cost = record.cost.as_ref().map(|cost| cost.amount).unwrap_or_default();
            *self.owed.entry(month_of(at)).or_default() += cost;
            *self.days.entry(day_of(at)).or_default() += 1;
            self.last.insert(day_of(at), record.id);
            self.append(&Entry::Reserve(Box::new(reserve(&record))))?;
            self.append(&Entry::Post(Box::new(record)))?;
        }
        self.keep()
    }

    fn append(&self, entry: &Entry) -> Result<()> {
        loop {
            match self.journal.append(entry) {
                Ok(written) => {
                    drop(written);
                    return Ok(());
                }
                Err(AppendError::QueueFull) => pause(LOOK_INTERVAL),
                Err(error) => bail!("the journal takes no entry: {error:?}"),
            }
        }
    }

    /// Feeds, makes room and seals, as `serve` does.
    fn keep(&mut self) -> Result<()> {
        let passed = Duration::try_from(now().duration_since(self.began.1))?;
        let at = (self.began.0 + passed, now());
        self.budget.look(&self.config.data_dir, &RoomLimits::of(&self.config))?;
        let fed = self.store.catch_up(&mut self.feeds);
        self.cleaner.look(at);
        self.journal.mark(at.0, self.config.limits.request_timeout);
        self.cleaner.fed(&fed, self.journal.sequence(), at)?;
        fed?;
        self.seen.push_back(self.sealer.newest()?);
        if self.seen.len() > SEEN_STEPS
            && let Some(newest) = self.seen.pop_front()
        {
            let room = self.budget.room().unwrap_or_default();
            let policy = SealPolicy {
                room: room.bytes_max,
                left: room.bytes_until_full,
                closed_until: self.sealer.closed_until(at.1)?,
            };
            let done = self.sealer.work(&policy, newest, &|| true)?;
            ensure!(done.fault().is_none(), "{done:?}");
            let keep = i64::from(self.config.ledger.records_keep_days);
            let until = at.1 - SignedDuration::from_hours(24 * keep);
            self.sealer.remove_old_days(until, at.1, &|| true)?;
        }
        self.sealer.make_room(&self.budget, at.1, &|| true)?;
        Ok(())
    }

    /// Compares the bill of a month, and prints what there is now.
    fn tell(&mut self, month: Date) -> Result<()> {
        let from = month.to_zoned(TimeZone::UTC)?.timestamp().to_string();
        let to = month.last_of_month().tomorrow()?.to_zoned(TimeZone::UTC)?.timestamp().to_string();
        let bill: Value = serde_json::from_slice(
            &self.taximeter(&["bill", "--from", &from, "--to", &to, "--format", "json"])?,
        )?;
        let owed = self.owed.get(&month).copied().unwrap_or_default();
        let rows = bill.get("rows").and_then(Value::as_array).context("a bill")?;
        let costs =
            rows.iter().filter_map(|row| row.get("cost")?.as_str()?.parse::<Decimal>().ok());
        let billed: Decimal = costs.sum();
        ensure!(billed == owed, "the bill of {month} says {billed} in place of {owed}");
        let memory = fs::read_to_string("/proc/self/status")?;
        let peak = memory.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        row([
            month.strftime("%Y-%m").to_string(),
            self.days
                .iter()
                .filter(|(day, _)| day.first_of_month() == month)
                .map(|(_, count)| count)
                .sum::<u64>()
                .to_string(),
            owed.to_string(),
            self.details_from()?,
            (self.budget.bytes().unwrap_or_default() / 1_000_000).to_string(),
            (peak.unwrap_or_default() / 1024).to_string(),
        ]);
        Ok(())
    }

    fn taximeter(&self, words: &[&str]) -> Result<Vec<u8>> {
        let output = Command::new(self.programs.join("taximeter"))
            .args(words)
            .args(["--store", "sqlite", "--data-dir"])
            .arg(&self.config.data_dir)
            .output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(output.stdout)
    }

    /// The first day with details.
    fn details_from(&mut self) -> Result<String> {
        let from = self.store.details_from()?;
        Ok(from.map_or_else(|| "the first".to_owned(), |from| day_of(from).to_string()))
    }

    /// Counts the requests that have details: all of each day from the told one on, and none before.
    fn details(&mut self) -> Result<u64> {
        let from = self.store.details_from()?.map_or(Date::MIN, day_of);
        let mut found = BTreeMap::<Date, u64>::new();
        let newest = self.store.newest()?;
        self.store.records(&Filter::default(), newest, None, |record| {
            *found.entry(day_of(record.started_at)).or_default() += 1;
            Ok::<_, StoreError>(())
        })?;
        let kept: BTreeMap<_, _> = self.days.iter().filter(|(day, _)| **day >= from).collect();
        ensure!(kept.into_iter().eq(found.iter()), "details are missing: {found:?}");
        Ok(found.values().sum())
    }

    /// Looks up a request of each day that has details. How many, and the milliseconds of the slowest.
    fn look_up(&mut self) -> Result<(usize, f64)> {
        let from = self.store.details_from()?.map_or(Date::MIN, day_of);
        let (mut found, mut slowest) = (0, 0.0_f64);
        for id in self.last.range(from..).map(|(_, id)| *id) {
            let begun = monotonic_nanos();
            ensure!(self.store.record(id)?.is_some(), "request {id} has no details");
            slowest = slowest.max((monotonic_nanos() - begun) as f64 / 1e6);
            found += 1;
        }
        Ok((found, slowest))
    }
}
