//! Which requests and corrections the files have, as far as they could be met again.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};
use taximeter_billing::HoursCover;
use taximeter_database::day::{day_of, first_of};
use taximeter_ledger::{Place, RequestId};

use super::list;

const IS_COUNTED: &str = "SELECT 1 FROM counted_corrections WHERE id = ?1";
const COUNT: &str = "INSERT OR IGNORE INTO counted_corrections VALUES (?1)";

/// What the files have, by the first instant of the day.
#[derive(Debug, Default)]
pub(crate) struct Covers(BTreeMap<i64, HoursCover>);

impl Covers {
    /// What is listed now.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mut covers = Self::default();
        for file in list::all(connection)? {
            for mut cover in file.covers {
                if !file.is_adopted {
                    // The table of counted ones has all of them, and knows better.
                    cover.corrections.clear();
                }
                let Some(day) = first_of(cover.day) else { continue };
                covers.0.entry(day).or_insert_with(|| empty(&cover)).add(&cover);
            }
        }
        Ok(covers)
    }

    /// The first instants of all days that files have.
    pub(crate) fn days(&self) -> impl Iterator<Item = i64> {
        self.0.keys().copied()
    }

    /// What files have of the UTC day of `at`.
    pub(crate) fn of_day(&self, at: i64) -> Option<&HoursCover> {
        self.0.get(&day_of(at))
    }

    /// Whether a file has the hour of this request, with the request.
    pub(crate) fn has_request(&self, at: i64, place: Place) -> bool {
        self.of_day(at).is_some_and(|cover| cover.has_request(place))
    }

    /// Whether a file has this correction of a request that was admitted at `at`. `has` says whether a file
    /// has the request. Needs an open transaction.
    pub(crate) fn has_correction(
        &self,
        connection: &Connection,
        (at, id): (i64, RequestId),
        written: Option<(&str, Place)>,
        has: bool,
    ) -> rusqlite::Result<bool> {
        let Some(cover) = self.of_day(at) else { return Ok(false) };
        let mut counted = connection.prepare_cached(IS_COUNTED)?;
        if counted.query_row([id.0.as_bytes()], |_| Ok(())).optional()?.is_some() {
            return Ok(true);
        }
        let is_there =
            has && written.is_some_and(|(journal, place)| cover.has_correction(journal, place));
        if is_there {
            connection.prepare_cached(COUNT)?.execute([id.0.as_bytes()])?;
        }
        Ok(is_there)
    }
}

fn empty(cover: &HoursCover) -> HoursCover {
    HoursCover { day: cover.day, ..HoursCover::default() }
}
