//! Decides whether the data directory has room, and what goes if it has not.
//!
//! Room is what `ledger.dir_bytes_max` leaves or what the volume leaves, whichever is less, in bytes
//! and in files. Pages that SQLite has free are room for the store, but not for the journal. What goes
//! is told by [`plan`], whatever kinds of history there are. This file reads no clock and no disk.

use std::path::PathBuf;

use taximeter_config::{Config, OnUnavailable};

/// Of so many parts of the room, one is to stay free: with less, history goes early.
const SHORT_OF: i128 = 5;
/// Of so many parts of the room, the last one is not for new requests.
const FULL_OF: i128 = 20;
/// The last part for which nobody but running requests may write has at most so many bytes: those of
/// SQLite's log and of one segment of the journal.
const FULL_BYTES_MAX: i128 = 128 << 20;
/// So much of the room stays free for running requests without the pages that SQLite has free, which the
/// journal cannot write to.
const LAST_OF: i128 = 100;
/// At most so many bytes.
const LAST_BYTES_MAX: i128 = 16 << 20;
/// With fewer inodes left, history goes early: for a segment, its compressed form, the log of SQLite
/// and its index, and the files of cursors and of rejected entries.
const FILES_SHORT: u64 = 16;
/// So many inodes are left then.
const FILES_KEPT: u64 = 20;
/// Of so many parts of the history, one may go in a day where others fill the volume.
const DAILY_OF: u64 = 10;

/// What the data directory takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of its files.
    pub bytes: u64,
    /// Its files and directories.
    pub files: u64,
    /// Of `bytes`, those in pages that SQLite has free for later rows.
    pub reusable_bytes: u64,
}

/// What a volume has of bytes, or of inodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supply {
    /// What is used by anybody.
    pub used: u64,
    /// What is left for this process.
    pub available: u64,
}

/// What is known of a volume. `None` for what it does not limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Volume {
    /// In bytes.
    pub bytes: Option<Supply>,
    /// In inodes.
    pub files: Option<Supply>,
}

/// What limits the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomLimits {
    /// `ledger.dir_bytes_max`.
    pub bytes_max: Option<u64>,
    /// Length of a segment of the journal, for which room is made.
    pub segment_bytes: u64,
    /// Whether new requests are served without room.
    pub serves: bool,
}

impl RoomLimits {
    /// Those of a configuration.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        Self {
            bytes_max: config.ledger.dir_bytes_max.map(|bytes| bytes as u64),
            segment_bytes: config.limits.ledger_segment_bytes as u64,
            serves: config.ledger.unavailable == OnUnavailable::Serve,
        }
    }
}

/// Who has filled the volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filler {
    /// The data directory: it takes at least half of what is used, or all that it may.
    Own,
    /// Other files.
    Others,
}

impl Filler {
    /// As in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Others => "others",
        }
    }
}

/// What is to be freed, and who has taken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// In bytes, or in files.
    pub amount: u64,
    /// Who has taken it.
    pub filler: Filler,
}

/// The room of a data directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// The most that the directory may take. `None` where nothing limits it.
    pub bytes_max: Option<u64>,
    /// What is left of that, with the pages that SQLite has free.
    pub bytes_left: Option<u64>,
    /// Whether that is what the volume leaves, and not `ledger.dir_bytes_max`.
    pub is_by_volume: bool,
    /// Inodes that are left. `None` where nothing limits them.
    pub files_left: Option<u64>,
    /// Bytes until new requests find no room.
    pub bytes_until_full: Option<u64>,
    /// Bytes that are to be freed.
    pub short_of_bytes: Option<Need>,
    /// Inodes that are to be freed.
    pub short_of_files: Option<Need>,
    /// There is no room for new requests.
    pub is_full: bool,
}

impl Room {
    /// The room now. What was full before is full until there is some more room.
    #[must_use]
    pub fn of(usage: &Usage, volume: &Volume, limits: &RoomLimits, was_full: bool) -> Self {
        let mut room = Self::default();
        if let Some((left, filler, is_by_volume)) = least_left(usage, volume, limits) {
            room.is_by_volume = is_by_volume;
            let used = i128::from(usage.bytes);
            let bytes_max = left + used;
            let with_free = left + i128::from(usage.reusable_bytes).min(used);
            let full = (bytes_max / FULL_OF).min(FULL_BYTES_MAX);
            let last = (bytes_max / LAST_OF).min(LAST_BYTES_MAX);
            let more = |kept: i128| if was_full { kept * 7 / 5 } else { kept };
            let margin = i128::from(limits.segment_bytes).min(bytes_max / FULL_OF);
            let (short, short_last) = (bytes_max / SHORT_OF, last * 2);
            room.is_full = with_free <= more(full) || left <= more(last);
            if with_free <= short || left <= short_last {
                let amount = (short - with_free).max(short_last - left) + margin;
                room.short_of_bytes = Some(Need { amount: whole(amount), filler });
            }
            room.bytes_max = Some(whole(bytes_max));
            room.bytes_left = Some(whole(with_free));
            room.bytes_until_full = Some(whole((with_free - full).min(left - last)));
        }
        if let Some(files) = volume.files {
            room.files_left = Some(files.available);
            if files.available < FILES_SHORT {
                let amount = FILES_KEPT - files.available;
                let filler = filler(usage.files, files);
                room.short_of_files = Some(Need { amount, filler });
            }
        }
        room
    }

    /// Bytes until history is to go early; 0 where that is so now. `None` where nothing limits them.
    pub(super) fn bytes_until_short(&self) -> Option<u64> {
        let (left, most) = (self.bytes_left?, self.bytes_max?);
        let kept = whole(i128::from(most) / SHORT_OF);
        Some(if self.is_short() { 0 } else { left.saturating_sub(kept) })
    }

    /// Whether history is to go early.
    #[must_use]
    pub const fn is_short(&self) -> bool {
        self.short_of_bytes.is_some() || self.short_of_files.is_some()
    }
}

/// The bytes that may be added, without the pages that SQLite has free, who has taken the rest, and
/// whether the volume says so. Less than nothing where the directory takes more than its limit.
fn least_left(usage: &Usage, volume: &Volume, limits: &RoomLimits) -> Option<(i128, Filler, bool)> {
    let by_limit = |most| (i128::from(most) - i128::from(usage.bytes), Filler::Own, false);
    let by_volume = |it: Supply| (i128::from(it.available), filler(usage.bytes, it), true);
    match (limits.bytes_max.map(by_limit), volume.bytes.map(by_volume)) {
        (Some(by_limit), Some(by_volume)) if by_volume.0 < by_limit.0 => Some(by_volume),
        (by_limit, by_volume) => by_limit.or(by_volume),
    }
}

/// Bytes, of which there are not less than none.
fn whole(bytes: i128) -> u64 {
    u64::try_from(bytes.max(0)).unwrap_or(u64::MAX)
}

pub(super) fn filler(own: u64, volume: Supply) -> Filler {
    if own.saturating_mul(2) < volume.used { Filler::Others } else { Filler::Own }
}

/// A kind of history that may go. A further kind needs no other change here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistoryKind {
    /// A segment of the journal of requests.
    Segment,
    /// A segment of the journal of corrections.
    Corrections,
    /// The requests of a day.
    Day,
    /// Samples of engines, GPUs and hosts.
    Samples,
}

/// A part of the history that may go. Nobody needs it but for room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removable {
    /// What it is.
    pub kind: HistoryKind,
    /// Where it is.
    pub path: PathBuf,
    /// What it takes of the volume.
    pub bytes: u64,
    /// How many files it has.
    pub files: u64,
}

/// What goes of a list of [`Removable`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plan {
    /// So many of the first ones.
    pub count: usize,
    /// What they take.
    pub bytes: u64,
    /// The bytes of those that go because others fill the volume.
    pub bytes_for_others: u64,
}

/// What goes of `history`, the oldest first, to make room: as much as is needed and no more. Where
/// others fill the volume, no more than `allowance` bytes.
#[must_use]
pub fn plan(room: &Room, history: &[Removable], allowance: u64) -> Plan {
    let (mut plan, mut files) = (Plan::default(), 0);
    for part in history {
        let needs = [(room.short_of_bytes, plan.bytes), (room.short_of_files, files)];
        let is_needed = |filler: Filler| {
            let mut needs = needs.iter().filter_map(|(need, freed)| Some((need.as_ref()?, freed)));
            needs.any(|(need, freed)| need.filler == filler && *freed < need.amount)
        };
        if !is_needed(Filler::Own) {
            let for_others = plan.bytes_for_others.saturating_add(part.bytes);
            if !is_needed(Filler::Others) || for_others > allowance {
                break;
            }
            plan.bytes_for_others = for_others;
        }
        plan.count += 1;
        plan.bytes = plan.bytes.saturating_add(part.bytes);
        files += part.files;
    }
    plan
}

/// What may go in a day because others fill the volume: a tenth of the history. What a day leaves over
/// counts for the next one, until it is enough for one part.
///
/// A day is a day of a running gateway, by the monotonic clock. Neither the wall clock nor a restart
/// begins a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Bytes that may still go.
    pub(super) left: u64,
    /// Seconds of this day that are over. `None` before the first one.
    pub(super) seconds: Option<u64>,
}

/// Of a day.
const DAY_SECONDS: u64 = 24 * 3600;

impl Allowance {
    /// Time passes.
    pub(super) fn pass(&mut self, seconds: u64) {
        self.seconds = self.seconds.map(|before| before.saturating_add(seconds));
    }

    /// What may go now of `history`. Begins a day if none has begun, or if it is over.
    pub(super) fn grant(&mut self, history: &[Removable]) -> u64 {
        if self.seconds.is_none_or(|seconds| seconds >= DAY_SECONDS) {
            let sum = |sum: u64, part: &Removable| sum.saturating_add(part.bytes);
            let daily = history.iter().fold(0, sum) / DAILY_OF;
            let first = history.first().map_or(0, |part| part.bytes);
            self.left = self.left.saturating_add(daily).min(daily.max(first));
            self.seconds = Some(0);
        }
        self.left
    }

    /// What may go now of a history of so many bytes, if it were looked for.
    pub(super) fn today(&self, history_bytes: u64) -> u64 {
        let begins = self.seconds.is_none_or(|seconds| seconds >= DAY_SECONDS);
        if begins { self.left.max(history_bytes / DAILY_OF) } else { self.left }
    }

    /// So much has gone.
    pub(super) fn spend(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests;
