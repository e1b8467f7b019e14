//! The folder of the samples: names of files, and how one takes the place of others.
//!
//! A file gets its name when it is whole and on the device. One that takes the place of others is first
//! called `NAME.merged`. Then the others go, and it gets its name. Whoever finds a file that is called so
//! goes on from there, so a crash at any point loses no sample and keeps none twice.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use taximeter_fleet::Grid;

use super::error::MemoryError;
use super::file::{Samples, Writer};

/// What is behind the name of each file.
const EXTENSION: &str = ".parquet";
/// A file that takes the place of others which are still there.
const MERGED: &str = ".merged";
/// A file that is being written.
const UNFINISHED: &str = ".tmp";
/// A file that cannot be read.
const DAMAGED: &str = ".damaged";
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// How much time a file is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Span {
    Minute,
    Hour,
    Day,
}

impl Span {
    pub(super) const fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    const fn format(self) -> &'static str {
        match self {
            Self::Minute => "%Y-%m-%dT%H-%M",
            Self::Hour => "%Y-%m-%dT%H",
            Self::Day => "%Y-%m-%d",
        }
    }

    /// Its beginning that a second is in.
    pub(super) const fn floor(self, second: i64) -> i64 {
        second - second.rem_euclid(self.seconds())
    }
}

/// A file of samples.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    /// The first second of the time that its name says.
    pub begin: i64,
    pub span: Span,
    pub name: String,
    pub bytes: u64,
}

impl Named {
    fn of(name: String, bytes: u64) -> Option<Self> {
        let stem = name.strip_suffix(EXTENSION)?;
        let stem = stem.split_once('.').map_or(stem, |(stem, _)| stem);
        let (span, whole) = match stem.len() {
            10 => (Span::Day, format!("{stem}T00-00")),
            13 => (Span::Hour, format!("{stem}-00")),
            _ => (Span::Minute, stem.to_owned()),
        };
        let at = DateTime::strptime("%Y-%m-%dT%H-%M", whole).ok()?;
        let begin = at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        Some(Self { begin, span, name, bytes })
    }
}

/// The name of a file of this time.
pub(super) fn name_of(begin: i64, span: Span) -> String {
    let at = Timestamp::from_second(begin).unwrap_or_default().to_zoned(TimeZone::UTC);
    format!("{}{EXTENSION}", at.strftime(span.format()))
}

/// The files of one grid.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    dir: PathBuf,
    pub grid: Grid,
}

impl Folder {
    /// The one in the folder of all samples.
    pub(super) fn of(samples: &Path, grid: Grid) -> Self {
        Self { dir: samples.join(grid.name()), grid }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Makes the folder, and ends what another process has begun.
    pub(super) fn prepare(&self) -> Result<(), MemoryError> {
        fs::create_dir_all(&self.dir).map_err(|error| self.fault(&error))?;
        for name in self.names()? {
            if name.ends_with(UNFINISHED) {
                self.remove(&name)?;
            } else if name.ends_with(MERGED) {
                match self.open(&name) {
                    Ok(file) => self.settle(&name, &file.footer().replaces)?,
                    // What it takes the place of is still there, or it has been named.
                    Err(_) => self.remove(&name)?,
                }
            }
        }
        Ok(())
    }

    fn fault(&self, error: &io::Error) -> MemoryError {
        MemoryError::at(&self.dir, error)
    }

    fn names(&self) -> Result<Vec<String>, MemoryError> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| self.fault(&error))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(|error| self.fault(&error))?.file_name().into_string());
        }
        Ok(names)
    }

    /// The files, the oldest first.
    pub(super) fn files(&self) -> Result<Vec<Named>, MemoryError> {
        self.named("")
    }

    /// The files that were put aside, the oldest first.
    pub(super) fn damaged(&self) -> Result<Vec<Named>, MemoryError> {
        self.named(DAMAGED)
    }

    /// The files with this behind their names.
    fn named(&self, behind: &str) -> Result<Vec<Named>, MemoryError> {
        let mut files = Vec::new();
        for name in self.names()? {
            // One that goes meanwhile is none.
            if let Some(own) = name.strip_suffix(behind)
                && let Ok(metadata) = fs::metadata(self.path(&name))
                && let Some(file) = Named::of(own.to_owned(), metadata.len())
            {
                files.push(Named { name, ..file });
            }
        }
        taximeter_collections::sort(&mut files);
        Ok(files)
    }

    pub(super) fn open(&self, name: &str) -> Result<Samples, MemoryError> {
        let path = self.path(name);
        let file = File::open(&path).map_err(|error| MemoryError::at(&path, &error))?;
        Samples::open(file).map_err(|error| MemoryError::unreadable(&path, &error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), MemoryError> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(MemoryError::at(&path, &error))
            }
            _ => Ok(()),
        }
    }

    /// Puts a file aside that cannot be read: no reader finds it by its name.
    pub(super) fn put_aside(&self, name: &str) -> Result<(), MemoryError> {
        let path = self.path(name);
        fs::rename(&path, self.path(&format!("{name}{DAMAGED}")))
            .map_err(|error| MemoryError::at(&path, &error))
    }

    /// Begins a file.
    pub(super) fn begin(&self, name: &str, replaces: Vec<String>) -> Result<Writer, MemoryError> {
        let path = self.path(&format!("{name}{UNFINISHED}"));
        let out = File::create(&path).map_err(|error| MemoryError::at(&path, &error))?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        Writer::new(out, self.grid, replaces)
            .map_err(|error| MemoryError::unwritable(&path, &error))
    }

    /// Ends a file, and names it where it takes no other's place. How many samples it has.
    fn end(&self, writer: Writer, name: &str, last: &str) -> Result<u64, MemoryError> {
        let path = self.path(&format!("{name}{UNFINISHED}"));
        let (out, samples) =
            writer.finish().map_err(|error| MemoryError::unwritable(&path, &error))?;
        let kept = out.into_inner().map_err(io::IntoInnerError::into_error);
        kept.and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(&path, self.path(&format!("{name}{last}"))))
            .and_then(|()| self.sync())
            .map_err(|error| MemoryError::at(&path, &error))?;
        Ok(samples)
    }

    /// Ends a file and gives it a name that none has.
    pub(super) fn add(&self, writer: Writer, name: &str) -> Result<u64, MemoryError> {
        self.end(writer, name, "")
    }

    /// A name for a part of a minute that no file has.
    pub(super) fn free_name(&self, begin: i64) -> String {
        let name = name_of(begin, Span::Minute);
        let stem = name.strip_suffix(EXTENSION).unwrap_or(&name).to_owned();
        let numbered = (2..1_000_u32).map(|number| format!("{stem}.{number}{EXTENSION}"));
        let mut names = std::iter::once(name.clone()).chain(numbered);
        names.find(|name| !self.path(name).exists()).unwrap_or(name)
    }

    /// Ends a file that takes the place of others, as it was begun with. They are still there.
    pub(super) fn stand_by(&self, writer: Writer, name: &str) -> Result<u64, MemoryError> {
        self.end(writer, name, MERGED)
    }

    /// A file takes the place of these.
    pub(super) fn take_place(&self, name: &str, of: &[String]) -> Result<(), MemoryError> {
        self.settle(&format!("{name}{MERGED}"), of)
    }

    fn settle(&self, merged: &str, replaces: &[String]) -> Result<(), MemoryError> {
        let name = merged.strip_suffix(MERGED).unwrap_or(merged);
        for other in replaces.iter().filter(|other| *other != name) {
            self.remove(other)?;
        }
        fs::rename(self.path(merged), self.path(name))
            .and_then(|()| self.sync())
            .map_err(|error| self.fault(&error))
    }

    /// Makes sure that the device has the names.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}
