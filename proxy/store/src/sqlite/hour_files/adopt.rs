//! Finds the files of a list that is lost.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use sha2::{Digest as _, Sha256};
use taximeter_billing::HoursFile;
use taximeter_columnar::ReadError;

use super::folder;
use super::list::{self, LiveHours};
use super::open::{HourFiles, unwritable};
use super::seal::described;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Lists all files of the folder, but for those that others replace. Needs an open transaction.
pub(in crate::sqlite) fn adopt(connection: &Connection, files: &HourFiles) -> rusqlite::Result<()> {
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

/// Length and SHA-256.
pub(super) fn digest(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut file = File::open(path)?;
    let (mut digest, mut length) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((length, digest.finalize().into()));
        }
        digest.update(piece.get(..read).unwrap_or_default());
        length += read as u64;
    }
}
