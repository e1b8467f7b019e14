//! Decides which segments may be removed, and removes them.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::mem;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::CORRECTIONS;
use super::clock_trust::{ClockAhead, ClockTrust, KEPT_BYTES, Kept};
use super::disk::{Disk, Kernel};
use super::disk_budget::{self, DiskBudget};
use super::error::JournalError;
use super::files;
use super::read::last_checkpoint;
use super::room::{Filler, HistoryKind, Removable};

/// How often old segments are looked for.
const PERIOD: Duration = Duration::from_secs(3600);
/// How often segments are looked for, at most, whose requests are in files of days.
const SEALED_PERIOD: Duration = Duration::from_secs(10);
/// How often segments are looked for to make room, where none may go now, or where the volume says how
/// much room there is.
const ROOM_PERIOD: Duration = Duration::from_secs(10);
/// How often is looked for what may go, while there is room.
const COUNT_PERIOD: Duration = Duration::from_secs(60);
/// How often is kept what is known of the wall clock, while nothing changes.
const KEPT_PERIOD: Duration = Duration::from_secs(60);
/// The file that says what is known of the wall clock.
const CLOCK: &str = "clock.trust";

/// Whether removal by age waits for the wall clock. For all who tell of it, and for all who give up
/// what is old.
#[derive(Debug, Default)]
pub struct AgeWait(Mutex<Option<ClockTrust>>);

impl AgeWait {
    /// What is known at a start of the journal in `dir`, whose newest entry is of `newest`.
    pub(super) fn begin(dir: &Path, newest: Option<Timestamp>, at: (Instant, Timestamp)) -> Self {
        Self(Mutex::new(Some(trust(dir, newest, at))))
    }

    /// Why removal by age waits. `None` if it does not.
    pub fn ahead(&self) -> Option<ClockAhead> {
        self.known()?.ahead()
    }

    /// The time at the last look, to say what is old. `None` while the wall clock is ahead.
    pub fn time(&self) -> Option<Timestamp> {
        self.known()?.time()
    }

    fn known(&self) -> Option<ClockTrust> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, trust: ClockTrust) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(trust);
    }
}

/// What is known of the wall clock at a start.
fn trust(dir: &Path, newest: Option<Timestamp>, at: (Instant, Timestamp)) -> ClockTrust {
    let text = files::read(&dir.join(CLOCK), &Kernel, KEPT_BYTES).unwrap_or_default();
    ClockTrust::begin(Kept::parse(&String::from_utf8_lossy(&text)), newest, at)
}

/// A change of whether removal by age waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTurn {
    /// The wall clock is too far ahead of the newest entry: removal by age waits.
    Began(ClockAhead),
    /// The wall clock was set right, or was steady for a day.
    Ended,
}

/// What a store has of the journals for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InStore {
    /// The last request up to which all are in files of days. `None` where its tables keep them.
    pub sealed: Option<u64>,
    /// The last correction.
    pub corrections: u64,
}

/// Removes segments from time to time, after the store has their entries. Those of requests that are in
/// files of days go then. Corrections are in no other file, so their segments go only for room. Where a
/// database has all of it, segments go when they are old.
#[derive(Debug)]
pub struct Retention {
    dir: PathBuf,
    keep: SignedDuration,
    /// Up to where requests were in files of days when segments were looked for, and when that was.
    sealed: Option<(u64, Instant)>,
    /// The last entry that was written when the store was last fed.
    written: u64,
    due: Option<Instant>,
    room_due: Option<Instant>,
    count_due: Option<Instant>,
    clock: ClockTrust,
    /// What the file says of the clock, and when it was written.
    kept: Option<(Kept, Instant)>,
    wait: Arc<AgeWait>,
    /// Removal by age waited at the last look.
    waits: bool,
}

impl Retention {
    /// For the journals in the data directory `dir`. `written` is the last entry of the journal of
    /// requests, before the store is fed. `newest` is the time of the newest entry before this start;
    /// `at` is what the clocks say now. `wait` hears whether removal by age waits.
    pub fn new(
        dir: &Path,
        keep_days: u32,
        written: u64,
        newest: Option<Timestamp>,
        at: (Instant, Timestamp),
        wait: Arc<AgeWait>,
    ) -> Self {
        let keep = SignedDuration::from_hours(24 * i64::from(keep_days));
        let clock = trust(dir, newest, at);
        Self {
            dir: dir.to_owned(),
            keep,
            sealed: None,
            written,
            due: None,
            room_due: None,
            count_due: None,
            clock,
            kept: None,
            wait,
            waits: false,
        }
    }

    /// Looks at the clocks, also when the store could not be fed. Whether removal by age begins to
    /// wait, or waits no more.
    pub fn look(&mut self, (now, at): (Instant, Timestamp)) -> Option<WaitTurn> {
        self.clock.look(now, at);
        let ahead = self.clock.ahead();
        let waited = mem::replace(&mut self.waits, ahead.is_some());
        self.wait.note(self.clock);
        let kept = self.clock.kept();
        let is_due = self.kept.is_none_or(|(last, written)| {
            last.is_doubted() != kept.is_doubted() || now >= written + KEPT_PERIOD
        });
        // What cannot be kept now is kept at the next look.
        if is_due && keep(&self.dir.join(CLOCK), &kept).is_ok() {
            self.kept = Some((kept, now));
        }
        match ahead {
            Some(ahead) if !waited => Some(WaitTurn::Began(ahead)),
            None if waited => Some(WaitTurn::Ended),
            _ => None,
        }
    }

    /// Removes segments after the store was fed. `written` is the last entry now. Where `budget` is short of room, neither age nor files of days count. Nothing is removed because
    /// of its age while the wall clock is in doubt.
    ///
    /// # Errors
    /// `Io`, `Segment`; what was not removed is there as before.
    pub fn fed(
        &mut self,
        written: u64,
        InStore { sealed, corrections }: InStore,
        budget: &DiskBudget,
        (now, at): (Instant, Timestamp),
    ) -> Result<Removed, JournalError> {
        let stored = mem::replace(&mut self.written, written);
        let mut old = Vec::new();
        if let Some(sealed) = sealed.filter(|sealed| self.is_news(*sealed, now)) {
            self.sealed = Some((sealed, now));
            old = retire(&self.dir, Timestamp::MAX, stored.min(sealed))?;
        }
        let is_due = self.due.is_none_or(|due| now >= due) && self.clock.ahead().is_none();
        if sealed.is_none() && is_due {
            self.due = Some(now + PERIOD);
            let kept = at.checked_sub(self.keep).unwrap_or(Timestamp::MIN);
            old = retire(&self.dir, kept, stored)?;
            old.extend(retire(&self.dir.join(CORRECTIONS), kept, corrections)?);
        }
        let for_room = self.make_room(|| Some((stored, corrections)), budget, now)?;
        Ok(Removed { old, for_room })
    }

    /// Whether segments are to be looked for, because requests up to `sealed` are in files of days.
    fn is_news(&self, sealed: u64, now: Instant) -> bool {
        self.sealed.is_none_or(|(before, looked)| {
            let period = if sealed > before { SEALED_PERIOD } else { PERIOD };
            now >= looked + period
        })
    }

    /// Makes room where `budget` is short of it, also while the store cannot be fed. `stored` is asked
    /// for the last request and the last correction that the store has, if they are known.
    ///
    /// # Errors
    /// As `fed`.
    pub fn make_room(
        &mut self,
        stored: impl FnOnce() -> Option<(u64, u64)>,
        budget: &DiskBudget,
        now: Instant,
    ) -> Result<Option<MadeRoom>, JournalError> {
        if !budget.is_short() {
            if self.count_due.is_none_or(|due| now >= due) {
                self.count_due = Some(now + COUNT_PERIOD);
                // Who needs room says what is wrong with them.
                if let Some(history) = stored().and_then(|done| removable(&self.dir, done).ok()) {
                    budget.segments(bytes_of(&history));
                }
            }
            return Ok(None);
        }
        if self.room_due.is_some_and(|due| now < due) {
            return Ok(None);
        }
        let Some(done) = stored() else { return Ok(None) };
        let (made, remaining) = remove_for_room(&self.dir, done, budget)?;
        // To look takes time, and what may go today has gone. Or the volume may show late what it got
        // back, and nothing is to go twice for the same room.
        let is_over = remaining > 0 && budget.is_short();
        let is_late = made.is_some() && budget.room().is_some_and(|room| room.is_by_volume);
        self.room_due = (is_over || is_late).then(|| now + ROOM_PERIOD);
        Ok(made)
    }
}

/// What was removed.
#[derive(Debug, Default)]
pub struct Removed {
    /// Because of its age.
    pub old: Vec<PathBuf>,
    /// To make room.
    pub for_room: Option<MadeRoom>,
}

/// History that was removed before its time, because there was too little room.
#[derive(Debug)]
pub struct MadeRoom {
    /// What has gone, the oldest first.
    pub gone: Vec<Removable>,
    /// Who has taken the room.
    pub filler: Filler,
    /// Files that may still go.
    pub remaining: usize,
    /// The bytes of these.
    pub remaining_bytes: u64,
}

/// Removes segments of the journals in the data directory `dir` as far as `budget` is short of room.
/// The store has all up to `done`: the last request, and the last correction.
///
/// # Errors
/// As `retire`.
pub fn make_room(
    dir: &Path,
    done: (u64, u64),
    budget: &DiskBudget,
) -> Result<Option<MadeRoom>, JournalError> {
    remove_for_room(dir, done, budget).map(|(made, _)| made)
}

/// What has gone, and how many files may still go.
fn remove_for_room(
    dir: &Path,
    done: (u64, u64),
    budget: &DiskBudget,
) -> Result<(Option<MadeRoom>, usize), JournalError> {
    let mut history = removable(dir, done)?;
    let plan = budget.plan(&history);
    let remaining = history.split_off(plan.count);
    let remaining_bytes = bytes_of(&remaining);
    budget.segments_left(remaining.len());
    budget.segments(remaining_bytes);
    if history.is_empty() {
        return Ok((None, remaining.len()));
    }
    for Removable { path, .. } in &history {
        files::remove(path, &Kernel).map_err(JournalError::io("remove", path))?;
    }
    // Some file systems give blocks back when a removal is on the volume.
    for dir in [dir.to_owned(), dir.join(CORRECTIONS)] {
        let _ = Kernel.sync_dir(&dir);
    }
    budget.freed(&history, plan.bytes_for_others);
    let filler = if plan.bytes_for_others > 0 { Filler::Others } else { Filler::Own };
    let remaining = remaining.len();
    Ok((Some(MadeRoom { gone: history, filler, remaining, remaining_bytes }), remaining))
}

fn bytes_of(history: &[Removable]) -> u64 {
    history.iter().map(|part| part.bytes).sum()
}

/// The segments of the journals in `dir` that may go for room, the oldest first. The store has all up to
/// `done`: the last request, and the last correction.
fn removable(dir: &Path, done: (u64, u64)) -> Result<Vec<Removable>, JournalError> {
    let mut history = Vec::new();
    for (kind, dir, done) in [
        (HistoryKind::Segment, dir.to_owned(), done.0),
        (HistoryKind::Corrections, dir.join(CORRECTIONS), done.1),
    ] {
        for (ended, path) in finished(&dir, Timestamp::MAX, done)? {
            // Another process may remove it meanwhile.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            let bytes = disk_budget::size(&metadata);
            history.push((ended, Removable { kind, path, bytes, files: 1 }));
        }
    }
    taximeter_collections::sort_by_key(&mut history, |(ended, _)| *ended);
    Ok(history.into_iter().map(|(_, part)| part).collect())
}

/// Writes over what is kept of the clock, in place: a file that is there needs no more room.
fn keep(path: &Path, kept: &Kept) -> io::Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    file.write_all_at(kept.text().as_bytes(), 0)?;
    // Otherwise a power cut could leave entries of a wrong clock, and nothing that says so.
    if kept.is_doubted() { file.sync_data() } else { Ok(()) }
}

/// Removes the segments of the journal in `dir` whose last entry was written before `until`, also
/// while it is written. What it gives back are their paths.
///
/// # Errors
/// As `finished`; what was not removed is there as before.
pub(super) fn retire(
    dir: &Path,
    until: Timestamp,
    done: u64,
) -> Result<Vec<PathBuf>, JournalError> {
    let mut removed = Vec::new();
    for (_, path) in finished(dir, until, done)? {
        files::remove(&path, &Kernel).map_err(JournalError::io("remove", &path))?;
        removed.push(path);
    }
    Ok(removed)
}

/// The segments of the journal in `dir` that nobody needs and whose last entry was written before
/// `until`, with the time of that, the oldest first.
///
/// A segment is needed while it has an entry behind `done`, the last one that nobody else needs, and
/// while the next start needs it: from the last checkpoint on, or from the oldest reservation on that
/// was open there and that the segment of the checkpoint does not carry over.
///
/// # Errors
/// `Io`, `Segment`.
fn finished(
    dir: &Path,
    until: Timestamp,
    done: u64,
) -> Result<Vec<(Timestamp, PathBuf)>, JournalError> {
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let segments = match files::list(dir, &*disk) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(JournalError::io("list", dir))?,
    };
    let mut old = Vec::new();
    for ((_, path), (next, next_path)) in segments.iter().zip(segments.iter().skip(1)) {
        // A segment ends when the next one begins.
        let begun = files::header(next_path, &*disk)
            .map_err(JournalError::io("read", next_path))?
            .map(|header| header.created);
        match begun {
            Some(begun) if *next <= done.saturating_add(1) && begun < until => {
                old.push((*next, begun, path));
            }
            _ => break,
        }
    }
    if old.is_empty() {
        return Ok(Vec::new());
    }
    let needed = last_checkpoint(&disk, dir)?.map_or(0, |last| last.from);
    let unneeded = old.into_iter().take_while(|(next, ..)| *next <= needed);
    Ok(unneeded.map(|(_, begun, path)| (begun, path.clone())).collect())
}
