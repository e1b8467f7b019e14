//! The memory of the fleet: samples of engines, GPUs and hosts in files, in `data_dir/samples`.
//!
//! ```text
//! samples/1s/2026-11-27T18-30.parquet    a minute, by the second; such files become one now and then
//! samples/1s/2026-11-27T18.parquet       an hour that is over
//! samples/1s/2026-11-27.parquet          a day that is over; the same in 1m and 1h
//! samples/events                         what has changed: see `events.rs`
//! ```
//!
//! Each file has one row for each sample, and any reader of Parquet reads all files of a folder together.
//! `file.rs` says what a row has, `folder.rs` how one file takes the place of others.
//!
//! # Invariants
//!
//! - Samples of a minute are on the device when the minute is over. A crash loses those of the last one.
//! - Hours are made from the minutes when an hour is over, again and again until they are named.
//! - What the files take is bounded, and what is oldest and by the second goes first. Samples go before
//!   details of requests.
//! - Nothing of requests depends on samples: a fault of theirs is told, and costs samples only.
//!
//! This module does not know when it is called, or how long samples are kept.

mod error;
mod events;
mod file;
mod folder;
mod merge;
mod query;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use taximeter_fleet::{Event, Grid, Known, Recorder, Told};
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::{HistoryKind, Removable};
use taximeter_system::lanes::Lanes;

pub use self::error::MemoryError;
use self::events::Events;
pub use self::events::{EventQuery, FoundEvents};
use self::file::{Samples, Writer};
use self::folder::{Folder, Named, Span, name_of};
use self::merge::{FILES_AT_ONCE, Fault, merge};
use self::query::{Answer, RunsOfFile};
pub use self::query::{Found, FoundSeries, POINTS_MAX, Query, STEPS_MAX};

/// Name of the folder in the data directory.
pub const SAMPLES: &str = "samples";
/// An hour and a day are over when nobody still writes to them.
const OVER_AFTER: i64 = 90;
/// Samples of one minute are looked for in so many minutes.
const MINUTES_MAX: usize = 120;

/// How long samples are kept, and how much they may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Of each grid, the finest first.
    pub times: [Duration; 3],
    /// The most bytes of all files.
    pub bytes_max: u64,
}

/// The samples of a gateway. There is one for a data directory, whose owner has it locked.
#[derive(Debug)]
pub struct Memory {
    folders: [Folder; 3],
    events: Events,
    /// Held while files take the place of others, and while somebody opens them.
    names: Mutex<()>,
    /// What the files took when it was last looked at, series that are followed, and samples left out.
    counts: [AtomicU64; 3],
}

/// What is known of the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// What all files take, in bytes.
    pub bytes: u64,
    /// Series that are followed.
    pub series: u64,
    /// Samples that were left out since the start.
    pub left_out: u64,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Samples in files.
    pub samples: u64,
    /// Samples that came too late: the file of their day is closed.
    pub late: u64,
}

impl Memory {
    /// Opens the samples in `data_dir`, and ends what another process has begun.
    ///
    /// # Errors
    /// A folder cannot be made, read or written.
    pub fn open(data_dir: &Path) -> Result<Self, MemoryError> {
        let dir = data_dir.join(SAMPLES);
        let folders = Grid::ALL.map(|grid| Folder::of(&dir, grid));
        for folder in &folders {
            folder.prepare()?;
        }
        let (events, names) = (Events::of(&dir), Mutex::default());
        let memory = Self { folders, events, names, counts: Default::default() };
        memory.bytes()?;
        Ok(memory)
    }

    /// Writes the samples of all minutes that are over at `until`.
    ///
    /// # Errors
    /// A file cannot be written. The samples of its minute are lost.
    pub fn write(&self, recorder: &mut Recorder, until: Timestamp) -> Result<Written, MemoryError> {
        let (until, mut written) = (Grid::Minute.floor(until.as_second()), Written::default());
        for _ in 0..MINUTES_MAX {
            let Some(first) = recorder.earliest() else { break };
            let minute = Grid::Minute.floor(first);
            if minute >= until {
                break;
            }
            self.write_minute(recorder, minute, &mut written)?;
        }
        Ok(written)
    }

    fn write_minute(
        &self,
        recorder: &mut Recorder,
        minute: i64,
        written: &mut Written,
    ) -> Result<(), MemoryError> {
        let mut parts = self.folders.each_ref().map(|folder| Part::of(folder, minute));
        recorder.give(minute + Grid::Minute.seconds(), &mut |told| {
            let part = parts.iter_mut().find(|part| part.folder.grid == told.grid);
            part.map_or(Ok(()), |part| part.add(told, written))
        })?;
        parts.into_iter().try_for_each(|part| part.finish(written))
    }

    /// Merges files of one time that is over at `now`, if there are any. Whether there were.
    ///
    /// # Errors
    /// A file cannot be read or written. One that is damaged is put aside.
    pub fn merge_next(
        &self,
        now: Timestamp,
        go_on: &dyn Fn() -> bool,
    ) -> Result<bool, MemoryError> {
        let over = now.as_second() - OVER_AFTER;
        let [seconds, minutes, hours] = &self.folders;
        for folder in [seconds, minutes] {
            let files = folder.files()?;
            let parts: Vec<_> = files.iter().filter(|file| file.span != Span::Day).collect();
            let same_hour =
                |a: &&Named, b: &&Named| Span::Hour.floor(a.begin) == Span::Hour.floor(b.begin);
            for of_hour in parts.chunk_by(same_hour) {
                let of_minutes = of_hour.iter().filter(|file| file.span == Span::Minute).count();
                let Some(first) = of_hour.first().filter(|_| of_minutes > 0) else { continue };
                let begin = Span::Hour.floor(first.begin);
                let is_over = begin + Span::Hour.seconds() <= over;
                if is_over || of_minutes >= FILES_AT_ONCE {
                    let name = is_over.then(|| name_of(begin, Span::Hour));
                    let rolled = (folder.grid == Grid::Minute && is_over).then_some(hours);
                    return self.merge(folder, of_hour, (name, rolled), go_on).map(|()| true);
                }
            }
        }
        for folder in &self.folders {
            let files: Vec<_> = folder.files()?;
            let files: Vec<_> = files.iter().collect();
            let same_day =
                |a: &&Named, b: &&Named| Span::Day.floor(a.begin) == Span::Day.floor(b.begin);
            for of_day in files.chunk_by(same_day) {
                let Some(first) = of_day.first() else { continue };
                let begin = Span::Day.floor(first.begin);
                let is_whole = of_day.iter().all(|file| file.span == Span::Day);
                if !is_whole && begin + Span::Day.seconds() <= over {
                    let name = Some(name_of(begin, Span::Day));
                    return self.merge(folder, of_day, (name, None), go_on).map(|()| true);
                }
            }
        }
        Ok(false)
    }

    /// Merges files into one with this name, or with that of the last of them. Of too many, the first ones
    /// become one, and the next call goes on.
    fn merge(
        &self,
        folder: &Folder,
        files: &[&Named],
        (name, hours): (Option<String>, Option<&Folder>),
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), MemoryError> {
        let is_all = files.len() <= FILES_AT_ONCE;
        let files = files.get(..files.len().min(FILES_AT_ONCE)).unwrap_or(files);
        let Some(last) = files.last() else { return Ok(()) };
        let name = name.filter(|_| is_all).unwrap_or_else(|| last.name.clone());
        let hours = hours.filter(|_| is_all);
        let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
        let mut opened = Vec::with_capacity(files.len());
        for name in &names {
            match folder.open(name) {
                Ok(file) => opened.push(file),
                Err(error) => return Err(set_aside(folder, name, error)),
            }
        }
        let mut out = folder.begin(&name, names.clone())?;
        let mut rolled = hours.map(|hours| hours.begin(&name, Vec::new())).transpose()?;
        match merge(&opened, &mut out, rolled.as_mut(), go_on) {
            Ok(()) => {}
            Err(Fault::Stopped) => return Ok(()),
            Err(Fault::In(at, error)) => {
                let name = names.get(at).map_or("", String::as_str);
                let error = MemoryError::unreadable(&folder.path(name), &error);
                return Err(set_aside(folder, name, error));
            }
            Err(Fault::Out(error)) => {
                return Err(MemoryError::unwritable(&folder.path(&name), &error));
            }
        }
        // Hours that are there twice are the same; minutes that have gone cannot be made hours again.
        if let Some((hours, rolled)) = hours.zip(rolled) {
            hours.add(rolled, &name)?;
        }
        folder.stand_by(out, &name)?;
        let _alone = self.names();
        folder.take_place(&name, &names)
    }

    /// The finest grid that has what is kept since `from`, a second: what is older is kept by the minute,
    /// and then by the hour.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn grid_since(&self, from: i64) -> Result<Grid, MemoryError> {
        let mut oldest = Vec::new();
        for folder in &self.folders {
            let first = folder.files()?.first().map(|file| Span::Day.floor(file.begin));
            oldest.extend(first.map(|first| (folder.grid, first)));
        }
        let all_from = oldest.iter().map(|(_, first)| *first).min().unwrap_or(from);
        let from = Span::Day.floor(from).max(all_from);
        let has = oldest.into_iter().find(|(_, first)| *first <= from);
        Ok(has.map_or(Grid::Second, |(grid, _)| grid))
    }

    /// Answers a question from the files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn ask(&self, query: &Query) -> Result<Found, MemoryError> {
        let Some(folder) = self.folders.iter().find(|folder| folder.grid == query.grid()) else {
            return Ok(Found::default());
        };
        loop {
            let mut files = {
                let _alone = self.names();
                folder.files()?
            };
            files.retain(|file| query.may_have(file.begin));
            if let Some(found) = answer(folder, query, &files)? {
                return Ok(found);
            }
        }
    }

    /// Adds events. They are on the device afterwards.
    ///
    /// # Errors
    /// They cannot be written, or not all of them.
    pub fn tell(&self, events: &[Event]) -> Result<(), MemoryError> {
        self.events.add(events)
    }

    /// Answers a question about events.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn ask_events(&self, query: &EventQuery) -> Result<FoundEvents, MemoryError> {
        self.events.ask(query)
    }

    /// What was last known when events were last told, and what of their files is damaged.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn recall(&self) -> Result<(Known, Option<MemoryError>), MemoryError> {
        self.events.recall()
    }

    /// Keeps what is known now.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_known(&self, known: &Known, keep: &Keep) -> Result<(), MemoryError> {
        self.events.keep(known, keep.bytes_max)
    }

    /// Removes files whose samples or events are older than they are kept, and the oldest ones of those that
    /// take more than they may. Events are kept as long as samples by the hour. `now` is `None` while the clock is in doubt: then nothing goes by its age.
    ///
    /// # Errors
    /// A folder cannot be read, or a file not removed.
    pub fn bound(&self, now: Option<Timestamp>, keep: &Keep) -> Result<(), MemoryError> {
        for (folder, time) in self.folders.iter().zip(keep.times) {
            let Some(now) = now else { break };
            let until = now.as_second().saturating_sub_unsigned(time.as_secs());
            for file in folder.files()?.into_iter().chain(folder.damaged()?) {
                if Span::Day.floor(file.begin) + Span::Day.seconds() <= until {
                    self.remove(folder, &file)?;
                }
            }
        }
        let [.., hours] = keep.times;
        let until = now.map(|now| now.as_second().saturating_sub_unsigned(hours.as_secs()));
        self.events.bound(until, keep.bytes_max)?;
        let mut bytes = self.bytes()?;
        while bytes > keep.bytes_max {
            let Some((_, freed)) = self.remove_oldest()? else { break };
            bytes = bytes.saturating_sub(freed);
        }
        Ok(())
    }

    /// Removes the oldest files while records of requests would have to go.
    ///
    /// # Errors
    /// A folder cannot be read, or a file not removed.
    pub fn make_room(&self, budget: &DiskBudget) -> Result<(), MemoryError> {
        while budget.needs_days() {
            let Some((path, bytes)) = self.remove_oldest()? else { break };
            let gone = Removable { kind: HistoryKind::Samples, path, bytes, files: 1 };
            budget.freed(&[gone], 0);
        }
        Ok(())
    }

    /// What all files take, in bytes, also those that were put aside and those of events.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn bytes(&self) -> Result<u64, MemoryError> {
        let mut bytes = self.events.bytes()?;
        for folder in &self.folders {
            let files = folder.files()?.into_iter().chain(folder.damaged()?);
            bytes += files.map(|file| file.bytes).sum::<u64>();
        }
        let [of_files, ..] = &self.counts;
        of_files.store(bytes, Relaxed);
        Ok(bytes)
    }

    /// Notes series that are followed, and samples that were left out.
    pub fn note(&self, series: usize, left_out: u64) {
        let [_, of_series, of_left_out] = &self.counts;
        of_series.store(series as u64, Relaxed);
        of_left_out.store(left_out, Relaxed);
    }

    /// What was last known.
    pub fn counts(&self) -> Counts {
        let [bytes, series, left_out] = self.counts.each_ref().map(|count| count.load(Relaxed));
        Counts { bytes, series, left_out }
    }

    /// Removes the file that goes first: one that was put aside, then samples, then events. Which one it
    /// was, and its bytes.
    fn remove_oldest(&self) -> Result<Option<(PathBuf, u64)>, MemoryError> {
        let damaged = self.folders.iter().map(|folder| (folder, folder.damaged()));
        let files = self.folders.iter().map(|folder| (folder, folder.files()));
        for (folder, files) in damaged.chain(files) {
            if let Some(first) = files?.into_iter().next() {
                self.remove(folder, &first)?;
                return Ok(Some((folder.path(&first.name), first.bytes)));
            }
        }
        self.events.remove_oldest()
    }

    fn remove(&self, folder: &Folder, file: &Named) -> Result<(), MemoryError> {
        let _alone = self.names();
        folder.remove(&file.name)
    }

    fn names(&self) -> MutexGuard<'_, ()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many samples a file has.
///
/// # Errors
/// It cannot be read, or is no file of samples.
pub fn samples_of(path: &Path) -> Result<u64, MemoryError> {
    let file = File::open(path).map_err(|error| MemoryError::at(path, &error))?;
    let opened = Samples::open(file).map_err(|error| MemoryError::unreadable(path, &error))?;
    Ok(opened.footer().samples)
}

/// The answer from these files. `None` if others have taken their place meanwhile.
fn answer(folder: &Folder, query: &Query, files: &[Named]) -> Result<Option<Found>, MemoryError> {
    let work = |(): &mut (), file: &Named| read(folder, query, file);
    let mut answer = Answer::to(query);
    let mut add = |read: Result<Option<RunsOfFile>, MemoryError>| {
        Ok(read?.map(|runs| runs.into_iter().for_each(|(key, run)| answer.add(key, &run))))
    };
    let is_whole = thread::scope(|scope| {
        let mut lanes = Lanes::new(scope, &work);
        for file in files {
            if let Some(done) = lanes.push(file)
                && add(done)?.is_none()
            {
                return Ok(false);
            }
        }
        for done in lanes {
            if add(done)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    Ok(is_whole.then(|| answer.finish()))
}

/// What a file has of what is asked for. `None` if it was replaced meanwhile.
fn read(folder: &Folder, query: &Query, file: &Named) -> Result<Option<RunsOfFile>, MemoryError> {
    let path = folder.path(&file.name);
    let opened = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| MemoryError::at(&path, &error))?,
    };
    if opened.metadata().map_err(|error| MemoryError::at(&path, &error))?.len() != file.bytes {
        return Ok(None);
    }
    let runs = Samples::open(opened).and_then(|opened| query.runs(&opened));
    runs.map(Some).map_err(|error| MemoryError::unreadable(&path, &error))
}

/// Puts a file aside that is damaged, so that the others go on.
fn set_aside(folder: &Folder, name: &str, error: MemoryError) -> MemoryError {
    match &error {
        MemoryError::Damaged { .. } => folder.put_aside(name).err().unwrap_or(error),
        MemoryError::Unavailable { .. } => error,
    }
}

/// A file of a minute.
struct Part<'a> {
    folder: &'a Folder,
    minute: i64,
    /// The file of its day is closed.
    is_late: bool,
    writer: Option<(Writer, String)>,
}

impl<'a> Part<'a> {
    fn of(folder: &'a Folder, minute: i64) -> Self {
        let day = folder.path(&name_of(Span::Day.floor(minute), Span::Day));
        Self { folder, minute, is_late: day.exists(), writer: None }
    }

    fn add(&mut self, told: &Told<'_>, written: &mut Written) -> Result<(), MemoryError> {
        let Self { folder, minute, is_late, writer } = self;
        let path = |name: &str| folder.path(name);
        if *is_late {
            written.late += told.samples.len() as u64;
            return Ok(());
        }
        let (writer, name) = match writer {
            Some(begun) => begun,
            None => {
                let name = folder.free_name(*minute);
                writer.insert((folder.begin(&name, Vec::new())?, name))
            }
        };
        writer
            .add(told.key, told.samples)
            .map_err(|error| MemoryError::unwritable(&path(name), &error))
    }

    fn finish(self, written: &mut Written) -> Result<(), MemoryError> {
        if let Some((writer, name)) = self.writer {
            written.samples += self.folder.add(writer, &name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
