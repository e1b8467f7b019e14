//! Decides which days lose their details: those that are old, and the oldest ones where there is too
//! little room.

use jiff::Timestamp;
use taximeter_database::day::DAY_MICROS;
use taximeter_database::error::StoreError;
use taximeter_database::gone::{GoneCause, GoneDay};
use taximeter_journal::disk_budget::{Details, DiskBudget};
use taximeter_journal::room::{Filler, HistoryKind, Removable};

use super::days::{self, Interrupt, LiveFile};
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

/// What became of the oldest day.
enum Removed {
    Day(GoneDay),
    /// A file of it cannot be read.
    KeptBack,
    /// There is none.
    Nothing,
}

impl Sealer {
    /// Removes the details of days that end before `until`, while `go_on` says yes. `now` is noted. Days of
    /// which a file cannot be read stay, and the next [`work`](Self::work) tells them.
    ///
    /// Errors: `Unavailable`, `Damaged`, if nothing was removed before.
    pub fn remove_old_days(
        &mut self,
        until: Timestamp,
        now: Timestamp,
        go_on: &Interrupt<'_>,
    ) -> Result<Vec<GoneDay>, StoreError> {
        let mut gone = Vec::new();
        let is_old = |day: OldDay| day.end <= until;
        loop {
            match self.oldest_day().map(|oldest| go_on() && oldest.is_some_and(is_old)) {
                Ok(true) => {}
                Err(fault) if gone.is_empty() => return Err(fault),
                Ok(false) | Err(_) => return Ok(gone),
            }
            match self.removed(now, GoneCause::Age) {
                Ok(Removed::Day(day)) => gone.push(day),
                Ok(Removed::KeptBack) => {}
                Err(fault) if gone.is_empty() => return Err(fault),
                // The next call comes to it again.
                Ok(Removed::Nothing) | Err(_) => return Ok(gone),
            }
        }
    }

    /// Removes the details of the oldest days where `budget` is short of room and has nothing else that
    /// may go: as many as are needed and no more. `now` is noted. `None` if nothing was removed.
    ///
    /// Errors: as [`remove_old_days`](Self::remove_old_days).
    pub fn make_room(
        &mut self,
        budget: &DiskBudget,
        now: Timestamp,
        go_on: &Interrupt<'_>,
    ) -> Result<Option<DaysForRoom>, StoreError> {
        let mut made = None;
        while budget.needs_days() && !self.make_room_of(&mut made, budget, now, go_on)? {}
        Ok(made)
    }

    /// Removes what is needed. Whether that is all: not if a day cannot go, and others may in its place.
    fn make_room_of(
        &mut self,
        made: &mut Option<DaysForRoom>,
        budget: &DiskBudget,
        now: Timestamp,
        go_on: &Interrupt<'_>,
    ) -> Result<bool, StoreError> {
        let history = self.removable_days()?;
        let plan = budget.plan(&history);
        let filler = if plan.bytes_for_others > 0 { Filler::Others } else { Filler::Own };
        // What goes because of others comes last.
        let mut own = plan.bytes - plan.bytes_for_others;
        for day in history.iter().take(plan.count).take_while(|_| go_on()) {
            match self.removed(now, GoneCause::Room) {
                Ok(Removed::Day(gone)) => {
                    let made = made.get_or_insert_with(|| DaysForRoom { days: Vec::new(), filler });
                    made.days.push(gone);
                    let for_others = if own < day.bytes { day.bytes } else { 0 };
                    own = own.saturating_sub(day.bytes);
                    budget.freed(std::slice::from_ref(day), for_others);
                }
                Ok(Removed::KeptBack) => return Ok(false),
                Err(fault) if made.is_none() => return Err(fault),
                // The next call comes to it again.
                Ok(Removed::Nothing) | Err(_) => return Ok(true),
            }
        }
        Ok(true)
    }

    /// Removes the oldest day. What was removed before is no longer on the volume: otherwise one day after
    /// the other would go, and there would be no more room.
    fn removed(&mut self, now: Timestamp, cause: GoneCause) -> Result<Removed, StoreError> {
        self.tidy()?;
        // What is written then begins the log anew, and needs no room.
        self.sqlite.settle_log();
        match self.remove_oldest_day(now, cause) {
            Ok(Some(gone)) => Ok(Removed::Day(gone)),
            Ok(None) => Ok(Removed::Nothing),
            Err(StoreError::DayFile { .. } | StoreError::HoursFile { .. }) => Ok(Removed::KeptBack),
            Err(fault) => Err(fault),
        }
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
        let mut files = self.sqlite.ask(days::all)?;
        files.retain(|file| !self.kept_back.contains_key(&file.day));
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
