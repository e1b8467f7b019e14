//! The folder of the files: their names, and how one is written that survives a power cut.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use taximeter_columnar::{DayWriter, SealedDay, WriteError};
use taximeter_database::day::date_of;

use super::list::LiveFile;

/// Name of the folder in the data directory.
pub(crate) const FOLDER: &str = "days";
/// A file that is being written.
pub(crate) const UNFINISHED: &str = ".tmp";
/// What is behind the name of each file.
const EXTENSION: &str = ".parquet";
const SESSIONS_EXTENSION: &str = ".sessions";
/// Who has it locked seals. Nobody else does meanwhile.
const LOCK: &str = "lock";
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;

/// The name of the one file of a day that is closed.
pub(super) fn final_name(day: i64) -> String {
    format!("{}{EXTENSION}", date_of(day))
}

/// The name of the file of sessions of a day that is closed. Another ending, so that who asks all files of
/// requests with another program does not come upon it.
pub(crate) fn sessions_name(day: i64) -> String {
    format!("{}{SESSIONS_EXTENSION}", date_of(day))
}

/// Whether a file is one of sessions, by its name.
pub(super) fn is_sessions(name: &str) -> bool {
    name.ends_with(SESSIONS_EXTENSION)
}

/// A name for a part of a day that no file has or had, as far as anybody knows: beside the file of a
/// closed day it is late.
pub(super) fn part_name(dir: &Path, day: i64, live: &[LiveFile]) -> io::Result<String> {
    let date = date_of(day).to_string();
    let of_day = |name: &str| {
        let rest = name.strip_prefix(&date)?.strip_suffix(EXTENSION)?;
        let number = rest.strip_prefix(".part-").or_else(|| rest.strip_prefix(".late-"))?;
        number.parse::<u32>().ok()
    };
    let listed = live.iter().filter_map(|file| of_day(&file.name)).max();
    let there = names(dir)?.iter().filter_map(|name| of_day(name)).max();
    let number = listed.max(there).map_or(1, |last| last.saturating_add(1));
    let is_late = live.iter().any(|file| file.day == day && file.is_final);
    let kind = if is_late { "late" } else { "part" };
    Ok(format!("{date}.{kind}-{number:04}{EXTENSION}"))
}

/// Whether a file is one of a day, by its name.
pub(super) fn is_day(name: &str) -> bool {
    name.ends_with(EXTENSION)
}

/// The names of the files in the folder that are written whole.
pub(crate) fn day_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = names(dir)?;
    names.retain(|name| is_day(name));
    Ok(names)
}

/// The names of what is in the folder; none if there is no folder.
pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    taximeter_collections::sort(&mut names);
    Ok(names)
}

/// Makes the folder if it is not there, and locks it until the file is closed. `None` while somebody
/// else has it locked.
pub(crate) fn lock(dir: &Path) -> io::Result<Option<File>> {
    if !dir.is_dir() {
        fs::create_dir(dir)?;
        sync(dir.parent().unwrap_or(dir))?;
    }
    let lock = File::options().create(true).append(true).open(dir.join(LOCK))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// A file that is being written. It gets its name when it is whole.
#[derive(Debug)]
pub(crate) struct NewFile {
    unfinished: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// A writer of the file that will have this name.
    pub(crate) fn begin(dir: &Path, name: &str) -> io::Result<(Self, BufWriter<File>)> {
        let unfinished = dir.join(format!("{name}{UNFINISHED}"));
        let out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&unfinished)?);
        Ok((Self { unfinished, path: dir.join(name) }, out))
    }

    /// Ends the file and makes sure that the device has it.
    pub(super) fn finish(
        &self,
        writer: DayWriter<BufWriter<File>>,
    ) -> Result<SealedDay<()>, WriteError> {
        let SealedDay { file, footer } = writer.finish()?;
        Self::keep(file.out)?;
        let file = taximeter_columnar::Sealed { out: (), bytes: file.bytes, sha256: file.sha256 };
        Ok(SealedDay { file, footer })
    }

    /// Makes sure that the device has what was written.
    pub(crate) fn keep(out: BufWriter<File>) -> io::Result<()> {
        out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }

    /// The file that has no name yet.
    pub(crate) fn open(&self) -> io::Result<File> {
        File::open(&self.unfinished)
    }

    /// Gives the file its name.
    pub(crate) fn name(&self) -> io::Result<()> {
        fs::rename(&self.unfinished, &self.path)?;
        sync(self.path.parent().unwrap_or(&self.path))
    }
}

/// Makes sure that the device has the names in a folder.
pub(super) fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Removes a file that may be gone.
pub(crate) fn remove(dir: &Path, name: &str) -> io::Result<()> {
    match fs::remove_file(dir.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
