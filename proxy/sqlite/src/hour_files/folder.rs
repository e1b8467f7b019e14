//! The folder of the files, and their names.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use jiff::civil::Date;
use taximeter_database::day::{date_of, first_of};

use crate::days;

/// Name of the folder in the data directory.
pub(crate) const FOLDER: &str = "hours";
/// What is behind the name of each file.
const EXTENSION: &str = ".parquet";

/// The first instant of the UTC month of a day, and of the next one, in microseconds since 1970.
pub(super) fn month_of(day: i64) -> (i64, i64) {
    let first = date_of(day).first_of_month();
    let instant = |date: Date| first_of(date).unwrap_or(day);
    let next = first.checked_add(jiff::Span::new().months(1));
    (instant(first), next.map_or(i64::MAX, instant))
}

/// A name for a file of a day that is not `taken`.
pub(super) fn day_name(day: i64, taken: &BTreeSet<String>) -> String {
    free_name(&date_of(day).to_string(), taken)
}

/// The same for a file of a month.
pub(super) fn month_name(month: i64, taken: &BTreeSet<String>) -> String {
    free_name(&date_of(month).strftime("%Y-%m").to_string(), taken)
}

fn free_name(date: &str, taken: &BTreeSet<String>) -> String {
    let numbered = |number: u64| format!("{date}.{number}{EXTENSION}");
    let mut names = std::iter::once(format!("{date}{EXTENSION}")).chain((2..).map(numbered));
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// Whether a file is one of hours, by its name.
pub(super) fn is_file(name: &str) -> bool {
    name.ends_with(EXTENSION)
}

/// Whether a file has all days of a month, by its name.
pub(super) fn is_month(name: &str) -> bool {
    name.as_bytes().get("2026-11".len()) == Some(&b'.')
}

/// The names of the files in the folder that are written whole.
pub(crate) fn file_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = days::names(dir)?;
    names.retain(|name| is_file(name));
    Ok(names)
}

/// Makes the folder if it is not there.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    if !dir.is_dir() {
        std::fs::create_dir(dir)?;
        std::fs::File::open(dir.parent().unwrap_or(dir))?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use taximeter_database::day::DAY_MICROS;

    use super::*;

    #[test]
    fn no_name_is_given_twice_and_a_month_ends_with_its_last_day() {
        let mut taken = BTreeSet::new();
        for expected in ["2026-11-30.parquet", "2026-11-30.2.parquet", "2026-11-30.3.parquet"] {
            let day = first_of("2026-11-30".parse().unwrap()).unwrap();
            let name = day_name(day, &taken);
            assert_eq!(name, expected);
            taken.insert(name);
            let (month, next) = month_of(day);
            assert_eq!(month_name(month, &taken), "2026-11.parquet");
            assert_eq!(next - day, DAY_MICROS);
            assert!(!is_month(expected) && is_month(&month_name(month, &taken)));
        }
    }
}
