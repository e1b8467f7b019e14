//! Finds the files of a list that is lost.

use std::collections::BTreeSet;
use std::fs::File;

use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::HoursFile;
use taximeter_columnar::ReadError;

use super::folder;
use super::list::{self, LiveHours};
use super::open::{HourFiles, unwritable};
use super::seal::described;
use crate::digest::digest;

/// Lists all files of the folder, but for those that others replace. Needs an open transaction.
pub(crate) fn adopt(connection: &Connection, files: &HourFiles) -> rusqlite::Result<()> {
    let dir = files.dir();
    let names = folder::file_names(dir).map_err(|error| unwritable(dir, error))?;
    let (mut found, mut replaced) = (Vec::new(), BTreeSet::new());
    for name in names {
        let path = dir.join(&name);
        let fault = |error: ReadError| files.fault(&name, error);
        let handle = File::open(&path).map_err(|error| fault(error.into()))?;
        let footer = HoursFile::open(handle).map_err(fault)?.footer().clone();
        let whole = digest(&path).map_err(|error| fault(error.into()))?;
        replaced.extend(footer.replaces.iter().cloned());
        let first = footer.first.map_or(0, Timestamp::as_microsecond);
        found.push(described(name, folder::month_of(first).0, whole, footer));
    }
    found.retain(|file| !replaced.contains(&file.name));
    for file in found {
        list::add(connection, &LiveHours { is_adopted: true, ..file })?;
    }
    Ok(())
}
