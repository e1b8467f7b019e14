//! How many bytes a request takes: in the journal, in an open segment and in closed ones, and in the
//! SQLite store, and in a Parquet file of its day; and how many a mark of progress takes.
//!
//! `space` prints the table; `benches/run --only space` builds and starts it. The entries are made
//! here, as the gateway writes them, and go through the journal and the store themselves.

mod requests;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail, ensure};
use clap::Parser;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use taximeter_benches::clock::{cpu_nanos, monotonic_nanos, pause};
use taximeter_benches::record::reserve;
use taximeter_benches::say;
use taximeter_columnar::{DayFile, DayWriter, RowFilter};
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_journal::{AppendError, Journal, Options, compress, read};
use taximeter_ledger::{Charge, Entry, Kind, Place, Progress, Record, RecordUsage};
use taximeter_store::{DAYS, SealPolicy, Sealer, Store, feeds};

use self::requests::Load;

/// Small, so that some segments are closed in every form.
const SEGMENT_BYTES: u64 = 4 << 20;
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Between two looks at a full queue.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);
/// Requests that report progress, and how often each does.
const RUNNING: u32 = 1_000;
const MARKS: u32 = 10;
/// Of a stream that runs: its prompt is estimated, and its output is what has gone by.
const RUNNING_USAGE: &str = r#"{
    "source": "counted", "sources": {"input_tokens": "counted", "output_tokens": "counted"},
    "input_tokens": 72, "output_tokens": 0, "counted": {"input_tokens": 72, "output_tokens": 0},
    "flagged": {
        "input_tokens": ["estimated", "missing"], "output_tokens": ["estimated", "missing"]
    },
    "flags": ["estimated", "missing"]
}"#;

#[derive(Debug, Parser)]
struct Arguments {
    /// Requests of each kind.
    #[arg(long, default_value_t = 96_000)]
    requests: u32,
}

fn main() -> Result<()> {
    let Arguments { requests } = Arguments::parse();
    let kinds = [
        ("the bench's", false, false, false),
        ("random ids", true, false, false),
        ("and a price", true, true, false),
        ("and a session", true, true, true),
    ];
    let mut sizes = Vec::new();
    for (_, has_random_ids, has_price, has_session) in kinds {
        let mut load = Load::new(has_random_ids, has_price)?.with_sessions(has_session);
        sizes.push(Sizes::of(&mut load, requests)?);
    }
    let label = format!("bytes per request, of {requests} requests");
    row(&label, &kinds.map(|(name, ..)| name.to_owned()));
    for (label, size) in [
        (
            "journal: the open segment",
            (|sizes| sizes.open.per_request()) as fn(&Sizes) -> Option<f64>,
        ),
        ("  closed segments, not compressed", |sizes| sizes.closed.per_request()),
        ("  closed segments, compressed", |sizes| sizes.compressed.per_request()),
        ("  all segments", |sizes| sizes.journal().per_request()),
        ("SQLite store, with its indexes", |sizes| sizes.store.per_request()),
        ("Parquet file of the day", |sizes| sizes.day.size.per_request()),
        ("  and what its sessions add up to", |sizes| sizes.sessions.per_request()),
    ] {
        let cells: Vec<_> = sizes.iter().map(|sizes| cell(size(sizes))).collect();
        row(label, &cells);
    }
    let cells: Vec<_> = sizes.iter().map(|sizes| cell(sizes.compression())).collect();
    row("microseconds of CPU to compress a request", &cells);
    for (label, micros) in [
        ("  to write it to the file of the day", (|day| day.written) as fn(&Day) -> f64),
        ("  to read it from there", |day| day.read),
        ("microseconds to open that file and find a request", |day| day.found),
    ] {
        let cells: Vec<_> = sizes.iter().map(|sizes| cell(Some(micros(&sizes.day)))).collect();
        row(label, &cells);
    }
    row("bytes per mark of progress, in the open segment", &[cell(Some(mark()?))]);
    Ok(())
}

fn row(label: &str, cells: &[String]) {
    let cells: String = cells.iter().map(|cell| format!("{cell:>14}")).collect();
    say(&format!("{label:<50}{cells}"));
}

fn cell(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "–".to_owned(), |bytes| format!("{bytes:.1}"))
}

/// Bytes of some files, and the requests that are in them.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    bytes: u64,
    requests: u64,
}

impl Size {
    fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.requests += other.requests;
    }

    /// `None` without requests.
    fn per_request(self) -> Option<f64> {
        (self.requests > 0).then(|| self.bytes as f64 / self.requests as f64)
    }
}

/// What the requests of one kind take.
#[derive(Debug, Default)]
struct Sizes {
    open: Size,
    closed: Size,
    compressed: Size,
    /// CPU time that it took to compress the closed ones, to read them again and to compare them.
    compression: Duration,
    store: Size,
    day: Day,
    /// The file of what sessions add up to, if there are any.
    sessions: Size,
}

/// A Parquet file of all of them.
#[derive(Debug, Clone, Copy, Default)]
struct Day {
    size: Size,
    /// Microseconds of CPU time that it takes to write a request, and to read it again.
    written: f64,
    read: f64,
    /// Microseconds of wall time that it takes to open the file and find a request by its id.
    found: f64,
}

impl Sizes {
    fn of(load: &mut Load, requests: u32) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        write(dir.path(), SEGMENT_BYTES, |append| {
            for _ in 0..requests {
                let record = load.request()?;
                append(&Entry::Reserve(Box::new(reserve(&record))))?;
                append(&Entry::Post(Box::new(record)))?;
            }
            Ok(())
        })?;
        let mut sizes = Self::default();
        let plain = segments(dir.path())?;
        let begun = cpu_nanos();
        compress(dir.path())?;
        sizes.compression = Duration::from_nanos(cpu_nanos() - begun);
        for (position, segment) in plain.iter().enumerate() {
            if position + 1 == plain.len() {
                sizes.open.add(segment.size);
            } else if !segment.name.ends_with(".zst") {
                sizes.closed.add(segment.size);
            }
        }
        for segment in segments(dir.path())?.iter().filter(|it| it.name.ends_with(".zst")) {
            sizes.compressed.add(segment.size);
        }
        Store::open(dir.path())?.catch_up(&mut feeds(dir.path()))?;
        // Who closes a store last leaves all of it in one file.
        let bytes = fs::metadata(dir.path().join("store.sqlite"))?.len();
        sizes.store = Size { bytes, requests: requests.into() };
        sizes.day = day(dir.path())?;
        if load.has_session {
            sizes.sessions =
                Size { bytes: sealed_sessions(dir.path())?, requests: requests.into() };
        }
        Ok(sizes)
    }

    fn journal(&self) -> Size {
        let mut all = self.open;
        all.add(self.compressed);
        all
    }

    /// CPU time in microseconds. `None` if nothing was compressed here.
    fn compression(&self) -> Option<f64> {
        let requests = self.closed.requests;
        (requests > 0).then(|| self.compression.as_secs_f64() * 1e6 / requests as f64)
    }
}

/// A file of a journal.
struct Segment {
    name: String,
    /// Number of its first entry.
    first: u64,
    size: Size,
}

/// The files of a journal in order, each with the requests that end in it.
fn segments(dir: &Path) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for file in fs::read_dir(dir)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".zst").unwrap_or(&name);
        let first = stem.strip_prefix("journal-").and_then(|stem| stem.strip_suffix(".tlj"));
        let Some(first) = first.and_then(|first| first.parse().ok()) else { continue };
        let size = Size { bytes: file.metadata()?.len(), requests: 0 };
        segments.push(Segment { name, first, size });
    }
    segments.sort_by_key(|segment| segment.first);
    for entry in read(dir, 1) {
        let entry = entry.map_err(|error| anyhow!("{error:?}"))?;
        let segment = segments.iter_mut().rfind(|segment| segment.first <= entry.seq);
        if entry.kind == Kind::Post
            && let Some(segment) = segment
        {
            segment.size.requests += 1;
        }
    }
    Ok(segments)
}

/// Seals the days of a store: what the files of their sessions take.
fn sealed_sessions(dir: &Path) -> Result<u64> {
    let sealer = Sealer::open(dir, "bench/0")?;
    let mut sealer = sealer.ok_or_else(|| anyhow!("somebody else seals"))?;
    let policy = SealPolicy { closed_until: Timestamp::MAX, ..SealPolicy::default() };
    let newest = sealer.newest()?;
    let work = sealer.work(&policy, newest, &|| true)?;
    ensure!(work.fault().is_none(), "{work:?}");
    let mut bytes = 0;
    for file in fs::read_dir(dir.join(DAYS))? {
        let file = file?;
        if file.file_name().to_string_lossy().ends_with(".sessions") {
            bytes += file.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Writes the requests of a journal to a file of their day, and reads them again.
fn day(dir: &Path) -> Result<Day> {
    let mut posts = Vec::new();
    for entry in read(dir, 1) {
        let entry = entry.map_err(|error| anyhow!("{error:?}"))?;
        if entry.kind == Kind::Post {
            let payload = entry.payload.to_vec();
            let record = Record::decode(entry.seq, &payload)?;
            let place = Place { ledger: entry.ledger, seq: entry.seq };
            posts.push((record.tenant, record.id, record.started_at, place, payload));
        }
    }
    posts.sort_unstable_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let Some((_, id, at, ..)) = posts.get(posts.len() / 2) else { bail!("no requests") };
    let (id, day) = (*id, at.to_zoned(TimeZone::UTC).date());
    let path = dir.join("day.parquet");
    let begun = cpu_nanos();
    let mut writer = DayWriter::new(fs::File::create(&path)?, "bench/0", day, Vec::new())?;
    for (.., place, payload) in &posts {
        writer.add(*place, payload)?;
    }
    let sealed = writer.finish()?;
    let written = cpu_nanos() - begun;
    let begun = cpu_nanos();
    let file = DayFile::open(fs::File::open(&path)?)?;
    let mut rows = file.scan(RowFilter::default());
    for (.., payload) in &posts {
        let row = rows.next_row()?;
        ensure!(row.is_some_and(|row| row.payload == payload), "a request is read differently");
    }
    let read = cpu_nanos() - begun;
    let begun = monotonic_nanos();
    let file = DayFile::open(fs::File::open(&path)?)?;
    ensure!(file.find(id, &mut Vec::new())?.is_some(), "a request is not found");
    let found = monotonic_nanos() - begun;
    let requests = posts.len() as f64;
    Ok(Day {
        size: Size { bytes: sealed.file.bytes, requests: posts.len() as u64 },
        written: written as f64 / 1e3 / requests,
        read: read as f64 / 1e3 / requests,
        found: found as f64 / 1e3,
    })
}

/// Writes a journal to its end.
fn write(
    dir: &Path,
    segment_bytes: u64,
    entries: impl FnOnce(&mut dyn FnMut(&Entry) -> Result<()>) -> Result<()>,
) -> Result<()> {
    let options = Options {
        gateway: "bench/0".to_owned(),
        // Syncing adds marks by the clock and not by the request.
        durability: Durability::Os,
        recovery: OnDamage::Strict,
        unavailable: OnUnavailable::Refuse,
        queue_bytes_max: QUEUE_BYTES_MAX,
        segment_bytes,
        now: taximeter_system::clock::wall,
        tell: Box::new(|event| say(&format!("{event:?}"))),
    };
    let (journal, _) = Journal::open(dir, options, &|_| Charge::default())?;
    entries(&mut |entry| {
        loop {
            match journal.append(entry) {
                Ok(written) => {
                    drop(written);
                    return Ok(());
                }
                Err(AppendError::QueueFull) => pause(LOOK_INTERVAL),
                Err(error) => bail!("the journal takes no entry: {error:?}"),
            }
        }
    })?;
    journal.close()?;
    Ok(())
}

/// Bytes of a mark: what a journal has more in which the same requests report progress.
fn mark() -> Result<f64> {
    let usage: RecordUsage = serde_json::from_str(RUNNING_USAGE)?;
    let bytes = |marks: u32| {
        let dir = tempfile::tempdir()?;
        let mut load = Load::new(true, false)?;
        let running: Vec<_> = (0..RUNNING).map(|_| load.request()).collect::<Result<_>>()?;
        write(dir.path(), u64::MAX, |append| {
            for record in &running {
                append(&Entry::Reserve(Box::new(reserve(record))))?;
            }
            for number in 0..marks {
                for record in &running {
                    append(&Entry::Progress(Box::new(progress(record, &usage, number))))?;
                }
            }
            running.into_iter().try_for_each(|record| append(&Entry::Post(Box::new(record))))
        })?;
        let segments = segments(dir.path())?;
        anyhow::Ok(segments.iter().map(|segment| segment.size.bytes).sum::<u64>())
    };
    let (without, with) = (bytes(0)?, bytes(MARKS)?);
    Ok((with - without) as f64 / f64::from(RUNNING * MARKS))
}

fn progress(record: &Record, usage: &RecordUsage, number: u32) -> Progress {
    let output_tokens = Some(u64::from(number + 1) * 211);
    let mut usage = RecordUsage { output_tokens, ..usage.clone() };
    if let Some(counted) = &mut usage.counted {
        counted.output_tokens = output_tokens;
    }
    Progress {
        id: record.id,
        at: record.started_at + SignedDuration::from_secs(5 * i64::from(number + 1)),
        response_model: record.response_model.clone(),
        response_id: None,
        service_tier: None,
        usage,
    }
}
