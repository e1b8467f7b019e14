//! How fast records become a Parquet file: by the command that users have, and by the writer alone.
//!
//! `exports` prints the table; `benches/run --only exports` builds and starts it. The command reads a
//! store and writes a file, and its time is by the clock, from its start to its end. For the writer
//! alone entries are made before, a few at a time as the store hands them on, and written to
//! nowhere, so that it is the writer's own CPU time: taking them apart, and encoding them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use taximeter_benches::clock::cpu_nanos;
use taximeter_benches::month::Month;
use taximeter_benches::say;
use taximeter_billing::export::{RecordRows, RecordsParquet};
use taximeter_ledger::{EncodedEntry, Entry, LedgerId, RecordDecoder};

/// The least time is told.
const ROUNDS: usize = 3;

/// How fast records become a Parquet file.
#[derive(Debug, Parser)]
struct Options {
    /// Where `taximeter` is.
    #[arg(long)]
    programs: PathBuf,
    /// How many.
    #[arg(long, default_value_t = 1_000_000)]
    records: u32,
}

fn main() -> Result<()> {
    let options = Options::parse();
    say(&format!("{:<66}{:>10}  goal", "exports", "taximeter"));
    let rate = command(&options)?;
    say(&format!("{:<66}{rate:>10.0}  ≥ 500000", "a store into a Parquet file, records a second"));
    let (rate, size) = writer(&options)?;
    say(&format!(
        "{:<66}{rate:>10.0}",
        "  entries into rows and into the file, a second of one core"
    ));
    say(&format!("{:<66}{size:>10.0}", "  bytes of file per record"));
    Ok(())
}

fn month(options: &Options) -> Result<Month> {
    let begin = "2026-10-01T00:00:00Z".parse()?;
    Month::new(options.programs.join("taximeter"), begin, options.records)
}

/// Records a second of `taximeter bill --format parquet`, over a store that has them all.
fn command(options: &Options) -> Result<f64> {
    let mut month = month(options)?;
    month.fill(options.records)?;
    let file = month.path().join("records.parquet").display().to_string();
    let mut least = f64::INFINITY;
    for _ in 0..ROUNDS {
        let export = ["--month", "2026-10", "--format", "parquet", "-o", file.as_str()];
        least = least.min(month.bill(&export)?.seconds);
    }
    Ok(f64::from(options.records) / least)
}

/// Records that the writer takes in a second of CPU time, and bytes of file that each becomes.
fn writer(options: &Options) -> Result<(f64, f64)> {
    let month = month(options)?;
    let mut best = u64::MAX;
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let mut writer = RecordsParquet::new(Counted(0))?;
        let (mut spent, mut decoder) = (0, RecordDecoder::default());
        for from in (0..options.records).step_by(RecordRows::MAX) {
            let mut entries = Vec::with_capacity(RecordRows::MAX);
            for number in (from..options.records).take(RecordRows::MAX) {
                let entry = Entry::Post(Box::new(month.record(number)?));
                let mut payload = Vec::new();
                EncodedEntry::new(&entry, &mut payload)?;
                entries.push((u64::from(number), payload));
            }
            let start = cpu_nanos();
            let mut rows = RecordRows::new();
            for (seq, payload) in &entries {
                rows.add(LedgerId::default(), decoder.decode(*seq, payload)?)?;
            }
            writer.add(&mut rows)?;
            spent += cpu_nanos() - start;
        }
        let start = cpu_nanos();
        bytes = writer.finish()?.0;
        best = best.min(spent + cpu_nanos() - start);
    }
    let records = f64::from(options.records);
    Ok((records * 1e9 / best as f64, bytes as f64 / records))
}

/// Counts what is written, and keeps nothing.
struct Counted(u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
