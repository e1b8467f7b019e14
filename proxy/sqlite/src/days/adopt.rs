//! Finds the files of a list that is lost.

use std::collections::BTreeSet;
use std::fs::File;

use taximeter_columnar::{DayFile, ReadError};
use taximeter_database::day::first_of;

use super::folder;
use super::list::{self, LiveFile};
use super::open::Days;
use crate::digest::digest;

/// A file that no list names.
pub(crate) struct FoundFile {
    pub(crate) name: String,
    pub(crate) day: DayFile<File>,
}

/// All files, but for those that others replace.
pub(crate) fn found_files(days: &Days) -> rusqlite::Result<Vec<FoundFile>> {
    let names = folder::day_names(days.dir());
    let names = names.map_err(|error| days.unwritable(days.dir(), error))?;
    let (mut found, mut replaced) = (Vec::new(), BTreeSet::new());
    for name in names {
        let handle = File::open(days.dir().join(&name)).map_err(ReadError::Read);
        let day = handle.and_then(DayFile::open).map_err(|error| days.fault(&name, error))?;
        replaced.extend(day.footer().replaces.iter().cloned());
        found.push(FoundFile { name, day });
    }
    found.retain(|file| !replaced.contains(&file.name));
    Ok(found)
}

impl FoundFile {
    /// The first instant of the day, if the file is the one of a day that is closed.
    pub(crate) fn closed_day(&self) -> Option<i64> {
        let day = first_of(self.day.footer().day)?;
        (self.name == folder::final_name(day)).then_some(day)
    }

    /// What the list says about the file. `times` are those of the first and the last admission.
    pub(crate) fn described(&self, days: &Days, times: (i64, i64)) -> rusqlite::Result<LiveFile> {
        let footer = self.day.footer();
        let day = first_of(footer.day).unwrap_or_default();
        let whole = digest(&days.dir().join(&self.name));
        let whole = whole.map_err(|error| days.fault(&self.name, error.into()))?;
        let file = list::described(self.name.clone(), day, times, whole, footer);
        Ok(LiveFile { is_final: self.name == folder::final_name(day), ..file })
    }
}
