//! Events in files, a line of JSON for each: lines are added one by one, a torn one costs no other, and
//! DuckDB reads all files as one table.
//!
//! ```text
//! samples/events/2026-11-27T18-30-00.jsonl    events from the time of its name on
//! samples/events/known.json                   what was last known of whom
//! ```

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use taximeter_fleet::{Event, EventKind, Known};

use super::error::MemoryError;

/// Name of the folder among those of the samples.
const EVENTS: &str = "events";
/// What is behind the name of each file.
const EXTENSION: &str = ".jsonl";
/// The time in the name of a file.
const NAME: &str = "%Y-%m-%dT%H-%M-%S";
const KNOWN: &str = "known.json";
const UNFINISHED: &str = "known.json.tmp";
/// From so many bytes on, or so many seconds, the next events go to another file.
const FILE_BYTES_MAX: u64 = 256 << 10;
const FILE_SECONDS_MAX: i64 = 31 * 86_400;
/// A clock is set back by less, if nobody has a hand in it.
const CLOCK_SECONDS: i64 = 60;
/// Most bytes of all files of events.
const BYTES_MAX: u64 = 8 << 20;
/// Events take at most one of so many parts of what samples may take.
const PART_OF: u64 = 8;

/// Which events are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// The first time.
    pub from: Timestamp,
    /// The first time that is not asked for.
    pub to: Timestamp,
    /// Only this kind.
    pub kind: Option<EventKind>,
    /// Only events that concern any of these; none means all.
    pub subjects: Vec<String>,
    /// Most events of the answer.
    pub events_max: usize,
}

impl EventQuery {
    fn takes(&self, event: &Event) -> bool {
        (self.from..self.to).contains(&event.at)
            && self.kind.is_none_or(|kind| kind == event.kind)
            && event.concerns(&self.subjects)
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundEvents {
    /// The newest first.
    pub events: Vec<Event>,
    /// Whether there are more.
    pub more: bool,
    /// Lines that cannot be read.
    pub skipped: u64,
}

/// A file of events.
struct Named {
    begin: i64,
    name: String,
    bytes: u64,
}

/// The folder.
#[derive(Debug)]
pub(super) struct Events {
    dir: PathBuf,
}

impl Events {
    pub(super) fn of(samples: &Path) -> Self {
        Self { dir: samples.join(EVENTS) }
    }

    fn fault(&self, name: &str, error: &io::Error) -> MemoryError {
        MemoryError::at(&self.dir.join(name), error)
    }

    /// The files, the oldest first.
    fn files(&self) -> Result<Vec<Named>, MemoryError> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.fault("", &error))?,
        };
        let mut files = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let begin = name.strip_suffix(EXTENSION).and_then(|stem| {
                let at = DateTime::strptime(NAME, stem).ok()?.to_zoned(TimeZone::UTC).ok()?;
                Some(at.timestamp().as_second())
            });
            if let Some((begin, metadata)) = begin.zip(entry.metadata().ok()) {
                files.push(Named { begin, name, bytes: metadata.len() });
            }
        }
        files.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// What they take, with what is known, in bytes.
    pub(super) fn bytes(&self) -> Result<u64, MemoryError> {
        let known = fs::metadata(self.dir.join(KNOWN)).map_or(0, |metadata| metadata.len());
        Ok(self.files()?.iter().map(|file| file.bytes).sum::<u64>() + known)
    }

    /// Adds events. They are on the device afterwards.
    pub(super) fn add(&self, events: &[Event]) -> Result<(), MemoryError> {
        let Some(first) = events.first() else { return Ok(()) };
        let mut lines = Vec::new();
        for event in events {
            if serde_json::to_writer(&mut lines, event).is_ok() {
                lines.push(b'\n');
            }
        }
        let at = first.at.as_second();
        // A clock that is set back begins no file.
        let fits = |file: &Named| file.bytes < FILE_BYTES_MAX && at < file.begin + FILE_SECONDS_MAX;
        let last = self.files()?.pop();
        let begin = last.as_ref().map_or(at, |last| at.max(last.begin + 1));
        let (name, is_new) = match last.filter(fits) {
            Some(last) => (last.name, false),
            None => {
                let begin = Timestamp::from_second(begin).unwrap_or(first.at);
                (format!("{}{EXTENSION}", begin.to_zoned(TimeZone::UTC).strftime(NAME)), true)
            }
        };
        self.append(&name, &lines, is_new).map_err(|error| self.fault(&name, &error))
    }

    fn append(&self, name: &str, lines: &[u8], is_new: bool) -> io::Result<()> {
        if is_new {
            fs::create_dir_all(&self.dir)?;
        }
        let path = self.dir.join(name);
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0))? > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        // What was torn off is a line of its own, which nobody can read.
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
        file.write_all(lines)?;
        file.sync_data()?;
        if is_new { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }

    /// The events of a file. How many of its lines cannot be read.
    fn read(&self, name: &str, take: &mut dyn FnMut(Event)) -> Result<u64, MemoryError> {
        let text = match fs::read(self.dir.join(name)) {
            // It has gone meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
            text => text.map_err(|error| self.fault(name, &error))?,
        };
        let mut skipped = 0;
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(event) => take(event),
                Err(_) => skipped += 1,
            }
        }
        Ok(skipped)
    }

    pub(super) fn ask(&self, query: &EventQuery) -> Result<FoundEvents, MemoryError> {
        let (mut found, files) = (FoundEvents::default(), self.files()?);
        for (at, file) in files.iter().enumerate() {
            // The clock may have been set back by some seconds.
            let from = query.from.as_second().saturating_sub(CLOCK_SECONDS);
            if files.get(at + 1).is_some_and(|next| next.begin < from) {
                continue;
            }
            let mut take = |event| {
                if query.takes(&event) {
                    found.events.push(event);
                }
            };
            found.skipped += self.read(&file.name, &mut take)?;
        }
        found.events.reverse();
        found.events.sort_by_key(|event| std::cmp::Reverse(event.at));
        // What could not be written whole was written again.
        found.events.dedup();
        found.more = found.events.len() > query.events_max;
        found.events.truncate(query.events_max);
        Ok(found)
    }

    /// What was last known, and what of the files is damaged.
    pub(super) fn recall(&self) -> Result<(Known, Option<MemoryError>), MemoryError> {
        let damaged = |name: &str, why: String| {
            let path = self.dir.join(name).display().to_string();
            Some(MemoryError::Damaged { path, why })
        };
        let mut fault = None;
        let mut known = match fs::read(self.dir.join(KNOWN)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Known::default(),
            Err(error) => return Err(self.fault(KNOWN, &error)),
            Ok(text) => serde_json::from_slice(&text).unwrap_or_else(|error| {
                fault = damaged(KNOWN, error.to_string());
                Known::default()
            }),
        };
        let since = known.at;
        for file in self.files()? {
            let skipped = self.read(&file.name, &mut |event| {
                // What came after it was written was told, and must not be told again.
                if since.is_some_and(|since| event.at >= since) {
                    known.after(&event);
                }
            })?;
            if skipped > 0 {
                let why = format!("{skipped} of its lines cannot be read, and are skipped");
                fault = fault.or_else(|| damaged(&file.name, why));
            }
        }
        Ok((known, fault))
    }

    /// Keeps what is known, if it fits into so many bytes.
    pub(super) fn keep(&self, known: &Known, bytes_max: u64) -> Result<(), MemoryError> {
        let text = serde_json::to_vec(known).unwrap_or_default();
        if text.len() as u64 > bytes_max {
            return Ok(());
        }
        let write = || {
            fs::create_dir_all(&self.dir)?;
            let mut file = File::create(self.dir.join(UNFINISHED))?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(self.dir.join(UNFINISHED), self.dir.join(KNOWN))?;
            File::open(&self.dir)?.sync_all()
        };
        write().map_err(|error| self.fault(KNOWN, &error))
    }

    /// Removes files whose events are all older than `until`, and the oldest ones of too many bytes.
    pub(super) fn bound(&self, until: Option<i64>, bytes_max: u64) -> Result<(), MemoryError> {
        let files = self.files()?;
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        let most = BYTES_MAX.min(bytes_max / PART_OF);
        for (at, file) in files.iter().enumerate() {
            let end = files.get(at + 1).map_or(file.begin + FILE_SECONDS_MAX, |next| next.begin);
            if bytes > most || until.is_some_and(|until| end <= until) {
                self.remove(&file.name)?;
                bytes -= file.bytes;
            }
        }
        Ok(())
    }

    /// Removes the oldest file. Which one it was, and its bytes.
    pub(super) fn remove_oldest(&self) -> Result<Option<(PathBuf, u64)>, MemoryError> {
        let Some(file) = self.files()?.into_iter().next() else { return Ok(None) };
        self.remove(&file.name)?;
        Ok(Some((self.dir.join(&file.name), file.bytes)))
    }

    fn remove(&self, name: &str) -> Result<(), MemoryError> {
        match fs::remove_file(self.dir.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(self.fault(name, &error)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
