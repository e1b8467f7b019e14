//! Compares files with what they were when they were written.

use std::fs::File;
use std::io::ErrorKind;

use rusqlite::Connection;
use taximeter_columnar::{self as columnar, Expected, Finding, ReadError};
use taximeter_database::day::date_of;

use super::list::{self, LiveFile};
use super::open::Days;

/// Shown what is wrong with a file.
pub(crate) type Damage<'a> = dyn FnMut(String) + 'a;

/// Reads a file that is named. Whether it is still named, and what was named is what it is.
pub(crate) fn check(
    connection: &Connection,
    days: &Days,
    file: &LiveFile,
    tell: &mut Damage<'_>,
) -> rusqlite::Result<bool> {
    let path = days.dir().join(&file.name);
    let date = date_of(file.day);
    let mut tell = |what: String| {
        tell(format!(
            "{}, which has requests of {date}: {what}; restore the file from a backup",
            path.display()
        ));
    };
    let expected = Expected { gateway: None, day: Some(date), sha256: Some(file.sha256) };
    let opened = File::open(&path).map_err(ReadError::Read);
    let checked = match opened.and_then(|opened| columnar::check(opened, &expected)) {
        Ok(checked) => checked,
        Err(ReadError::Read(error)) if error.kind() == ErrorKind::NotFound => {
            // Another process may have replaced it.
            let is_live = list::all(connection)?.contains(file);
            if is_live {
                tell("the file is gone".to_owned());
            }
            return Ok(false);
        }
        Err(error) => {
            tell(error.to_string());
            return Ok(false);
        }
    };
    let is_sound = checked.findings.is_empty();
    for Finding { part, what } in checked.findings {
        tell(format!("{part}: {what}"));
    }
    if is_sound && checked.rows != file.requests {
        tell(format!("it has {} requests and not {}", checked.rows, file.requests));
    }
    Ok(is_sound && checked.rows == file.requests)
}
