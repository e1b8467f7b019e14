//! Compares files with what they were when they were written.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use rusqlite::Connection;
use taximeter_billing::check_hours;
use taximeter_columnar::ReadError;
use taximeter_database::day::date_of;

use super::list::{self, LiveHours};
use crate::digest::digest;

/// Reads a file that is named. Whether it is still named, and what was named is what it is. `tell` is
/// shown what is wrong with it.
pub(crate) fn check(
    connection: &Connection,
    dir: &Path,
    file: &LiveHours,
    tell: &mut dyn FnMut(String),
) -> rusqlite::Result<bool> {
    let path = dir.join(&file.name);
    let month = date_of(file.month).strftime("%Y-%m");
    let mut wrong = Vec::new();
    let opened = File::open(&path).map_err(ReadError::Read);
    match opened.and_then(|opened| Ok((digest(&path)?, check_hours(opened)?))) {
        Ok((whole, findings)) => {
            let is_other = findings.is_empty() && whole != (file.bytes, file.sha256);
            wrong.extend(
                findings.into_iter().map(|found| format!("{}: {}", found.part, found.what)),
            );
            if is_other {
                wrong.push("it is another file than the one that was written".to_owned());
            }
        }
        Err(ReadError::Read(error)) if error.kind() == ErrorKind::NotFound => {
            // Another process may have replaced it.
            if !list::all(connection)?.contains(file) {
                return Ok(false);
            }
            wrong.push("the file is gone".to_owned());
        }
        Err(error) => wrong.push(error.to_string()),
    }
    for what in &wrong {
        tell(format!(
            "{}, which has sums by the hour of {month}: {what}; restore the file from a backup",
            path.display()
        ));
    }
    Ok(wrong.is_empty())
}
