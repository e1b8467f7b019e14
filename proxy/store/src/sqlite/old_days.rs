//! Decides which days lose their details: those that are old, and the oldest ones where there is too
//! little room.

use jiff::Timestamp;
use taximeter_database::error::StoreError;
use taximeter_database::gone::{GoneCause, GoneDay};
use taximeter_journal::disk_budget::{Details, DiskBudget};
use taximeter_journal::room::{Filler, HistoryKind, Removable};

use super::days::{self, DAY_MICROS, Interrupt, LiveFile};
use super::retire::OldDay;
use super::sealer::Sealer;

/// What a day takes is known from so many of the newest ones.
const NEWEST_DAYS: usize = 7;

/// Days that lost their details to make room.
#[derive(Debug)]
pub struct DaysForRoom {
    /// The days, the oldest first.
    pub days: Vec<GoneDay>,
    /// Who has taken the room.
    pub filler: Filler,
}

impl Sealer {
    /// Removes the details of days that end before `until`, while `go_on` says yes. `now` is noted.
    ///
    /// Errors: as [`Sealer::remove_oldest_day`]. What was removed before is gone.
    pub fn remove_old_days(
        &mut self,
        until: Timestamp,
        now: Timestamp,
        go_on: &Interrupt<'_>,
    ) -> Result<Vec<GoneDay>, StoreError> {
        let mut gone = Vec::new();
        while go_on() && self.oldest_day()?.is_some_and(|OldDay { end, .. }| end <= until) {
            gone.extend(self.remove_oldest_day(now, GoneCause::Age)?);
        }
        Ok(gone)
    }

    /// Removes the details of the oldest days where `budget` is short of room and has nothing else that
    /// may go: as many as are needed and no more. `now` is noted. `None` if nothing was removed.
    ///
    /// Errors: as [`Sealer::remove_oldest_day`]. What was removed before is gone.
    pub fn make_room(
        &mut self,
        budget: &DiskBudget,
        now: Timestamp,
        go_on: &Interrupt<'_>,
    ) -> Result<Option<DaysForRoom>, StoreError> {
        if !budget.needs_days() {
            return Ok(None);
        }
        let history = self.removable_days()?;
        let plan = budget.plan(&history);
        let filler = if plan.bytes_for_others > 0 { Filler::Others } else { Filler::Own };
        // What goes because of others comes last.
        let mut own = plan.bytes - plan.bytes_for_others;
        let mut made = DaysForRoom { days: Vec::new(), filler };
        for day in history.iter().take(plan.count) {
            if !go_on() {
                break;
            }
            made.days.extend(self.remove_oldest_day(now, GoneCause::Room)?);
            let for_others = if own < day.bytes { day.bytes } else { 0 };
            own = own.saturating_sub(day.bytes);
            budget.freed(std::slice::from_ref(day), for_others);
        }
        Ok((!made.days.is_empty()).then_some(made))
    }

    /// What the details of days take that may go: nothing before the first of them has files.
    ///
    /// Errors: `Unavailable`, `Damaged`.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn details(&self, now: Timestamp) -> Result<Details, StoreError> {
        let files = self.sqlite.ask(days::all)?;
        let bytes = |files: &[LiveFile]| files.iter().map(|file| file.bytes).sum::<u64>();
        let mut days: Vec<_> = files.chunk_by(|a, b| a.day == b.day).map(bytes).collect();
        let Some(oldest) = files.first().map(|file| file.day) else {
            return Ok(Details::default());
        };
        let all = bytes(&files);
        // Of a day that is not over, only a part may have left the tables.
        let is_over = |file: &LiveFile| file.day + DAY_MICROS <= now.as_microsecond();
        if !files.last().is_some_and(is_over) {
            days.pop();
        }
        let newest: Vec<_> = days.iter().rev().take(NEWEST_DAYS).collect();
        let sum = newest.iter().copied().sum::<u64>() as f64;
        let bytes_a_day = if newest.is_empty() { 0.0 } else { sum / newest.len() as f64 };
        let days = (now.as_microsecond() - oldest).max(0) as f64 / DAY_MICROS as f64;
        Ok(Details { bytes: all, days, bytes_a_day })
    }

    /// The days that have files of requests, the oldest first.
    fn removable_days(&self) -> Result<Vec<Removable>, StoreError> {
        let files = self.sqlite.ask(days::all)?;
        let dir = self.sqlite.days.dir();
        let of_day = |files: &[LiveFile]| Removable {
            kind: HistoryKind::Day,
            path: dir.join(files.first().map_or("", |file| &file.name)),
            bytes: files.iter().map(|file| file.bytes).sum(),
            files: files.len() as u64,
        };
        Ok(files.chunk_by(|a, b| a.day == b.day).map(of_day).collect())
    }
}
