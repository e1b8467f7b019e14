//! The journals of a data directory as feeds of the store, and their entries that cannot be read.

use std::io;
use std::path::Path;

use taximeter_database::error::ReadError;
use taximeter_journal::{CORRECTIONS, REQUESTS, read};
use taximeter_ledger::{Fault, FramedEntry, Kind};
use taximeter_sqlite::keeper::may_write;

use super::feed::{Entries, Feed, is_fed};
use super::rejected::set_aside;

/// The journals of a data directory as feeds of the store: requests, then corrections. Entries that
/// the store cannot read are set aside in the directory.
pub fn feeds(data_dir: &Path) -> [Feed<'static>; 2] {
    feeds_with(data_dir, |_, _| {})
}

/// The same. It calls `rejected` for each entry that is set aside, with the reason and the path.
pub fn feeds_with(
    data_dir: &Path,
    rejected: impl Fn(&Fault, &Path) + Clone + Send + 'static,
) -> [Feed<'static>; 2] {
    let dir = data_dir.to_owned();
    both(data_dir, move |name, framed, fault| {
        rejected(fault, &set_aside(&dir, name, framed, fault)?);
        Ok(())
    })
}

/// The same for a store that is read. In a directory that this process may not write, entries that
/// the store cannot read are passed over: its gateway sets them aside.
pub fn feeds_to_read(data_dir: &Path) -> [Feed<'static>; 2] {
    let dir = may_write(data_dir).then(|| data_dir.to_owned());
    both(data_dir, move |name, framed, fault| match &dir {
        Some(dir) => set_aside(dir, name, framed, fault).map(|_| ()),
        None => Ok(()),
    })
}

fn both(
    data_dir: &Path,
    aside: impl Fn(&str, &FramedEntry, &Fault) -> io::Result<()> + Clone + Send + 'static,
) -> [Feed<'static>; 2] {
    let feed = |name, dir: &Path| Feed::new(name, reader(dir)).setting_aside(aside.clone());
    [feed(REQUESTS, data_dir), feed(CORRECTIONS, &data_dir.join(CORRECTIONS))]
}

/// Stores the entries that a start of the journal in `data_dir` rejected next to those that the
/// store rejects, and takes them out of `entries`. It calls `rejected` for those that only the start
/// has read, with the reason and the path.
///
/// # Errors
/// The directory cannot be written. What is not stored is still in `entries`.
pub fn set_rejected_aside(
    data_dir: &Path,
    entries: &mut Vec<(FramedEntry, Fault)>,
    rejected: impl Fn(&Fault, &Path),
) -> io::Result<()> {
    while let Some((framed, fault)) = entries.last() {
        let path = set_aside(data_dir, REQUESTS, framed, fault)?;
        if !matches!(framed.kind, Kind::Post | Kind::Correction) {
            rejected(fault, &path);
        }
        entries.pop();
    }
    Ok(())
}

fn reader(dir: &Path) -> impl FnMut(u64) -> Result<Entries, ReadError> + use<> {
    let dir = dir.to_owned();
    move |from| {
        let entries = read(&dir, from).only(is_fed).map(|framed| framed.map_err(ReadError::from));
        Ok(Box::new(entries))
    }
}
