//! Shows hours of the table and of the files together.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::{Hour, HourKey, LineKey, Period};
use taximeter_collections::Gather as _;
use taximeter_database::granularity::{Gathering, Granularity, Numbered};

use super::list::LiveHours;
use super::open::HourFiles;
use crate::ask::unreadable;
use crate::hours::{self, HourRows, Lines, NumberedHour};

const HOUR_MICROS: i64 = 3_600_000_000;

type Visit<'a> = dyn FnMut(HourKey, Hour) -> ControlFlow<()> + 'a;

/// Shows the sums of whole hours, as finely as `granularity` says; those that it tells apart by the hour
/// in order of time. The files are listed as of the open transaction.
pub(crate) fn visit(
    connection: &Connection,
    files: &mut HourFiles,
    (hours, tenant): (Period, Option<&str>),
    granularity: Granularity<'_>,
    visit: &mut Visit<'_>,
) -> rusqlite::Result<()> {
    let (from, to) = (hours.from().as_microsecond(), hours.to().as_microsecond());
    let mut query = hours::query(connection)?;
    let mut table = HourRows::begin(&mut query, (from, to), tenant)?;
    let mut shown = Shown {
        connection,
        gathering: Gathering::new(granularity),
        lines: Lines::default(),
        names: Names::default(),
        visit,
    };
    for stretch in stretches(&files.files(), from, to) {
        if shown.stretch(files, &mut table, &stretch, tenant)?.is_break() {
            return Ok(());
        }
    }
    if shown.rows_before(&mut table, i64::MAX)?.is_break() {
        return Ok(());
    }
    let rest = shown.gathering.take();
    shown.show(rest).map(|_| ())
}

/// Hours that the same files have.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    from: i64,
    to: i64,
    files: Vec<LiveHours>,
}

/// From `from` to before `to`, in order, without those that no file has.
fn stretches(files: &[LiveHours], from: i64, to: i64) -> Vec<Stretch> {
    let end = |file: &LiveHours| file.last.saturating_add(HOUR_MICROS);
    let ends: BTreeSet<_> = files
        .iter()
        .filter(|file| file.first < to && end(file) > from)
        .flat_map(|file| [file.first.max(from), end(file).min(to)])
        .gather_set();
    let ends: Vec<_> = ends.into_iter().collect();
    let between = ends.windows(2).filter_map(|pair| {
        let (from, to) = (*pair.first()?, *pair.last()?);
        let has = |file: &&LiveHours| file.first <= from && to <= end(file);
        let files: Vec<_> = files.iter().filter(has).cloned().collect();
        (!files.is_empty()).then_some(Stretch { from, to, files })
    });
    between.collect()
}

/// Numbers for what has none in the table: below zero.
#[derive(Default)]
struct Names {
    keys: HashMap<HourKey, i64, RandomState>,
    lines: HashMap<LineKey, i64, RandomState>,
}

/// What was shown, and what waits for others that it is added to.
struct Shown<'a, 'g> {
    connection: &'a Connection,
    gathering: Gathering<'g>,
    lines: Lines,
    names: Names,
    visit: &'a mut Visit<'a>,
}

impl Shown<'_, '_> {
    /// Shows what the files and the table have of a stretch, and what the table has before it.
    fn stretch(
        &mut self,
        files: &mut HourFiles,
        table: &mut HourRows<'_>,
        stretch: &Stretch,
        tenant: Option<&str>,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let Stretch { from, to, files: of_stretch } = stretch;
        // Several files are read by the hour, so that hours come in order.
        let step = if of_stretch.len() == 1 { to - from } else { HOUR_MICROS };
        let time = |at| Timestamp::from_microsecond(at).map_err(|error| unreadable(0, error));
        let mut at = *from;
        while at < *to {
            let end = at.saturating_add(step).min(*to);
            let period =
                Period::new(time(at)?, time(end)?).map_err(|error| unreadable(0, error))?;
            for file in of_stretch {
                let mut outcome = Ok(ControlFlow::Continue(()));
                let scanned = files.open(file)?.scan(Some(period), tenant, &mut |key, hour| {
                    outcome = self.file_row(table, key, hour);
                    match outcome {
                        Ok(go_on) => go_on,
                        Err(_) => ControlFlow::Break(()),
                    }
                });
                scanned.map_err(|error| files.fault(&file.name, error))?;
                if outcome?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if self.rows_before(table, end)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            at = end;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Shows the rows of the table before this time.
    fn rows_before(
        &mut self,
        table: &mut HourRows<'_>,
        time: i64,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let connection = self.connection;
        while let Some(row) = table.next_before(time)? {
            let number = row.1;
            if self.row(row, || hours::dimensions(connection, number))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn file_row(
        &mut self,
        table: &mut HourRows<'_>,
        mut key: HourKey,
        hour: Hour,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let at = std::mem::replace(&mut key.hour, Timestamp::UNIX_EPOCH);
        if self.rows_before(table, at.as_microsecond())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut row =
            Numbered { sums: hour.sums, quantities: Vec::with_capacity(hour.lines.len()) };
        for (line, quantity) in hour.lines {
            let next = -1 - i64::try_from(self.names.lines.len()).unwrap_or(i64::MAX - 1);
            let number = match self.names.lines.get(&line) {
                Some(number) => *number,
                None => {
                    self.lines.name(next, line.clone());
                    *self.names.lines.entry(line).or_insert(next)
                }
            };
            row.quantities.push((number, quantity));
        }
        let next = -1 - i64::try_from(self.names.keys.len()).unwrap_or(i64::MAX - 1);
        let number = match self.names.keys.get(&key) {
            Some(number) => *number,
            None => *self.names.keys.entry(key.clone()).or_insert(next),
        };
        self.row((at, number, row), || Ok(key))
    }

    fn row(
        &mut self,
        (hour, number, row): NumberedHour,
        key: impl FnOnce() -> rusqlite::Result<HourKey>,
    ) -> rusqlite::Result<ControlFlow<()>> {
        let is_due = self.gathering.is_due(hour);
        let mut sums = if is_due { self.gathering.take() } else { Vec::new() };
        sums.extend(self.gathering.add((hour, number), row, key)?);
        self.show(sums)
    }

    fn show(&mut self, sums: Vec<(HourKey, Numbered)>) -> rusqlite::Result<ControlFlow<()>> {
        for (key, sum) in sums {
            if (self.visit)(key, self.lines.hour(self.connection, sum)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_cut_where_a_file_begins_or_ends() {
        let file = |number, first, last| LiveHours {
            number,
            name: String::new(),
            month: 0,
            first: first * HOUR_MICROS,
            last: last * HOUR_MICROS,
            rows: 1,
            bytes: 1,
            sha256: [0; 32],
            covers: Vec::new(),
            is_adopted: false,
        };
        let found = |files: &[LiveHours], from: i64, to: i64| -> Vec<(i64, i64, Vec<i64>)> {
            stretches(files, from * HOUR_MICROS, to * HOUR_MICROS)
                .into_iter()
                .map(|Stretch { from, to, files }| {
                    let numbers = files.iter().map(|file| file.number).collect();
                    (from / HOUR_MICROS, to / HOUR_MICROS, numbers)
                })
                .collect()
        };
        let files = [file(1, 0, 9), file(2, 5, 5), file(3, 20, 29)];
        let all = [(0, 5, vec![1]), (5, 6, vec![1, 2]), (6, 10, vec![1]), (20, 30, vec![3])];
        assert_eq!(found(&files, -50, 50), all);
        assert_eq!(found(&files, 6, 21), [(6, 10, vec![1]), (20, 21, vec![3])]);
        assert_eq!(found(&files, 10, 20), []);
        assert_eq!(found(&[], 0, 20), []);
    }
}
