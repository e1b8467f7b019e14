//! The files that count, and those of them that are open.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use taximeter_columnar::{DayFile, ReadError};
use taximeter_database::day::first_of;
use taximeter_database::error::StoreError;

use super::folder::FOLDER;
use super::list::{self, Generation, LiveFile};
use super::selection::{Ranges, Selection};
use super::window::{AHEAD_BYTES_MAX, Window};

/// Most files that stay open for the next question, and most bytes that all of them have: one in two
/// hundred of these is in memory.
const OPENED_MAX: usize = 64;
const OPENED_BYTES_MAX: u64 = 4 << 30;

/// An open file.
pub(super) type OpenDay = Arc<DayFile<File>>;

/// The files of a data directory, as they were listed last.
#[derive(Default)]
pub(crate) struct Days {
    pub(super) dir: PathBuf,
    generation: Generation,
    files: Arc<[LiveFile]>,
    /// Files that another process may replace by one: they were opened when they were listed, so that
    /// they can be read to the end.
    held: BTreeMap<i64, File>,
    /// Whether one of those was not there.
    lacks_any: bool,
    /// By their numbers. The one that was used last comes last.
    opened: Vec<(i64, u64, OpenDay)>,
    /// Bytes of requests that are read ahead at most.
    pub(crate) ahead_bytes_max: usize,
    /// Requests that were read for the page before.
    pub(super) window: Option<Window>,
    /// What was selected for the page of entries before.
    pub(super) selected: Option<Selection>,
    pub(super) ranges: Ranges,
}

impl Days {
    /// Those beside the store at this path.
    pub(crate) fn beside(store: &Path) -> Self {
        let dir = store.with_file_name(FOLDER);
        Self { dir, ahead_bytes_max: AHEAD_BYTES_MAX, ..Self::default() }
    }

    /// The folder.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Lists the files again if the list has changed. Needs an open transaction, as of which it is.
    pub(crate) fn list(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let generation = list::generation(connection)?;
        if generation == self.generation {
            return Ok(());
        }
        let files: Arc<[_]> = list::all(connection)?.into();
        let mut held = BTreeMap::new();
        let mut lacks_any = false;
        for file in files.iter().filter(|file| !file.is_final) {
            let opened = match self.held.remove(&file.number) {
                Some(opened) => Ok(opened),
                None => File::open(self.dir.join(&file.name)),
            };
            // Who reads it is told.
            lacks_any |= opened.is_err();
            held.extend(opened.map(|opened| (file.number, opened)));
        }
        let is_live = |number| files.iter().any(|file| file.number == number);
        self.opened.retain(|(number, ..)| is_live(*number));
        self.ranges.retain(|number, _| is_live(*number));
        (self.held, self.window, self.selected) = (held, None, None);
        (self.files, self.generation, self.lacks_any) = (files, generation, lacks_any);
        Ok(())
    }

    /// Whether a file was not there when it was listed. Then the next list is a new one.
    pub(crate) fn lacks_any(&mut self) -> bool {
        if self.lacks_any {
            self.generation = Generation::default();
        }
        self.lacks_any
    }

    /// All files that are listed, in order of day and number.
    pub(crate) fn files(&self) -> Arc<[LiveFile]> {
        Arc::clone(&self.files)
    }

    /// Those with requests that were admitted from `from` to before `to`, in order of day and number.
    pub(super) fn between(&self, from: i64, to: i64) -> Vec<LiveFile> {
        let is_in = |file: &&LiveFile| file.last >= from && file.first < to;
        self.files.iter().filter(is_in).cloned().collect()
    }

    /// Opens a file that is listed.
    pub(crate) fn open(&mut self, file: &LiveFile) -> rusqlite::Result<OpenDay> {
        if let Some(at) = self.opened.iter().position(|(number, ..)| *number == file.number) {
            let opened = self.opened.remove(at);
            let day = Arc::clone(&opened.2);
            self.opened.push(opened);
            return Ok(day);
        }
        let handle = match self.held.get(&file.number) {
            Some(held) => held.try_clone(),
            None => File::open(self.dir.join(&file.name)),
        };
        let opened = handle.map_err(ReadError::Read).and_then(DayFile::open);
        let day = opened.map_err(|error| self.fault(&file.name, error))?;
        let is_same = is_named(&day, file).map_err(|error| self.fault(&file.name, error))?;
        if !is_same {
            return Err(self.other_file(&file.name));
        }
        let day = Arc::new(day);
        let bytes =
            |opened: &[(i64, u64, OpenDay)]| opened.iter().map(|(_, it, _)| it).sum::<u64>();
        while self.opened.len() >= OPENED_MAX
            || (!self.opened.is_empty() && bytes(&self.opened) + file.bytes > OPENED_BYTES_MAX)
        {
            self.opened.remove(0);
        }
        self.opened.push((file.number, file.bytes, Arc::clone(&day)));
        Ok(day)
    }

    /// What is wrong with a file.
    pub(crate) fn fault(&self, name: &str, source: ReadError) -> rusqlite::Error {
        lifted(StoreError::DayFile { file: self.dir.join(name), source: source.into() })
    }

    /// A file that is not the one that was written.
    pub(super) fn other_file(&self, name: &str) -> rusqlite::Error {
        let error = io::Error::other("it is another file than the one that was written");
        self.fault(name, error.into())
    }

    /// The same where the tables may be wrong too.
    pub(crate) fn fault_in(&self, name: &str, fault: FileFault) -> rusqlite::Error {
        match fault {
            FileFault::File(error) => self.fault(name, error),
            FileFault::Tables(error) => error,
        }
    }

    /// Why a file cannot be written.
    pub(crate) fn unwritable(
        &self,
        path: &Path,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> rusqlite::Error {
        let store = path.display().to_string();
        lifted(StoreError::Unavailable { store, source: error.into() })
    }
}

/// Whether a file is the one that the list names, by what is known without reading it. Only `verify`
/// reads all of it for its digest.
fn is_named(day: &DayFile<File>, file: &LiveFile) -> Result<bool, ReadError> {
    let footer = day.footer();
    Ok(footer.rows == file.requests
        && first_of(footer.day) == Some(file.day)
        && day.bytes() == file.bytes
        && day.times()? == Some((file.first, file.last)))
}

/// What is wrong with a file, or with the tables that get what it has.
#[derive(Debug)]
pub(crate) enum FileFault {
    File(ReadError),
    Tables(rusqlite::Error),
}

impl From<ReadError> for FileFault {
    fn from(error: ReadError) -> Self {
        Self::File(error)
    }
}

impl From<rusqlite::Error> for FileFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Tables(error)
    }
}

impl fmt::Debug for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Days").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// An error of ours, for those who answer with one of SQLite's. [`found`] takes it out again.
pub(crate) fn lifted(error: StoreError) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// The error of ours in one of SQLite's, if it has one.
pub(crate) fn found(error: rusqlite::Error) -> Result<StoreError, rusqlite::Error> {
    match error {
        rusqlite::Error::ToSqlConversionFailure(inner) => {
            let inner = inner.downcast::<StoreError>().map(|inner| *inner);
            inner.map_err(rusqlite::Error::ToSqlConversionFailure)
        }
        error => Err(error),
    }
}
