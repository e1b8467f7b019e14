//! The files that count, and those of them that are open.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::HoursFile;
use taximeter_collections::Gather as _;
use taximeter_columnar::ReadError;
use taximeter_database::error::StoreError;

use super::folder::{self, FOLDER};
use super::list::{self, Generation, LiveHours};
use crate::days;

/// Most files that stay open for the next question.
const OPENED_MAX: usize = 16;

/// An open file.
pub(super) type OpenHours = Arc<HoursFile<File>>;

/// The files of a data directory, as they were listed last.
#[derive(Default)]
pub(crate) struct HourFiles {
    dir: PathBuf,
    generation: Generation,
    files: Arc<[LiveHours]>,
    /// Files that another process may replace by one: they were opened when they were listed.
    held: BTreeMap<i64, File>,
    /// By their numbers. The one that was used last comes last.
    opened: Vec<(i64, OpenHours)>,
}

impl HourFiles {
    /// Those beside the store at this path.
    pub(crate) fn beside(store: &Path) -> Self {
        Self { dir: store.with_file_name(FOLDER), ..Self::default() }
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
        let in_month = |month| files.iter().filter(|file: &&LiveHours| file.month == month).count();
        let may_go = |file: &&LiveHours| !folder::is_month(&file.name) || in_month(file.month) > 1;
        for file in files.iter().filter(may_go) {
            let opened = match self.held.remove(&file.number) {
                Some(opened) => Ok(opened),
                None => File::open(self.dir.join(&file.name)),
            };
            // Who reads it is told.
            held.extend(opened.map(|opened| (file.number, opened)));
        }
        let is_live = |number| files.iter().any(|file| file.number == number);
        self.opened.retain(|(number, _)| is_live(*number));
        (self.files, self.generation, self.held) = (files, generation, held);
        Ok(())
    }

    /// All files that are listed, in the order of their first hours.
    pub(crate) fn files(&self) -> Arc<[LiveHours]> {
        Arc::clone(&self.files)
    }

    /// Opens a file that is listed.
    pub(super) fn open(&mut self, file: &LiveHours) -> rusqlite::Result<OpenHours> {
        if let Some(at) = self.opened.iter().position(|(number, _)| *number == file.number) {
            let opened = self.opened.remove(at);
            let hours = Arc::clone(&opened.1);
            self.opened.push(opened);
            return Ok(hours);
        }
        let handle = match self.held.get(&file.number) {
            Some(held) => held.try_clone(),
            None => File::open(self.dir.join(&file.name)),
        };
        let opened = handle.map_err(ReadError::Read).and_then(HoursFile::open);
        let hours = opened.map_err(|error| self.fault(&file.name, error))?;
        let footer = hours.footer();
        let [first, last] = [footer.first, footer.last].map(|it| it.map(Timestamp::as_microsecond));
        let is_same = footer.rows == file.rows
            && (first, last) == (Some(file.first), Some(file.last))
            && hours.bytes() == file.bytes
            && footer.covers == file.covers;
        if !is_same {
            return Err(self.other_file(&file.name));
        }
        let hours = Arc::new(hours);
        if self.opened.len() >= OPENED_MAX {
            self.opened.remove(0);
        }
        self.opened.push((file.number, Arc::clone(&hours)));
        Ok(hours)
    }

    /// Names that no file may get: of files that are there or were, as far as anybody knows.
    pub(super) fn taken(&mut self, month: i64) -> rusqlite::Result<BTreeSet<String>> {
        let names = folder::file_names(&self.dir);
        let names = names.map_err(|error| unwritable(&self.dir, error))?;
        let mut taken: BTreeSet<_> = names.into_iter().gather_set();
        for file in self.files().iter().filter(|file| file.month == month) {
            taken.extend(self.open(file)?.footer().replaces.iter().cloned());
            taken.insert(file.name.clone());
        }
        Ok(taken)
    }

    /// A file that is not the one that was written.
    pub(super) fn other_file(&self, name: &str) -> rusqlite::Error {
        let error = io::Error::other("it is another file than the one that was written");
        self.fault(name, error.into())
    }

    /// What is wrong with a file.
    pub(super) fn fault(&self, name: &str, source: ReadError) -> rusqlite::Error {
        days::lifted(StoreError::HoursFile { file: self.dir.join(name), source: source.into() })
    }
}

/// Why a file cannot be written.
pub(super) fn unwritable(
    path: &Path,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    let store = path.display().to_string();
    days::lifted(StoreError::Unavailable { store, source: error.into() })
}

impl fmt::Debug for HourFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HourFiles").field("dir", &self.dir).finish_non_exhaustive()
    }
}
