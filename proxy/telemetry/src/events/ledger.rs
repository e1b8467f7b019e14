//! Events of the ledger and the store.

use std::time::Duration;

use jiff::civil::Date;
use taximeter_journal::disk_budget::Turn;
use taximeter_journal::room::{Filler, Removable, Room};
use taximeter_journal::{ClockAhead, MadeRoom, Removed, WaitTurn};
use taximeter_ledger::Record;

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;
use crate::names::{Instrument, key};

/// An event of the journal.
pub struct JournalChanged<'a>(pub &'a taximeter_journal::Event<'a>);

impl Event for JournalChanged<'_> {
    fn count(&self, to: &Metrics) {
        match self.0 {
            taximeter_journal::Event::EntryLost { .. } => to.count(Instrument::EntriesLost, 1, &[]),
            taximeter_journal::Event::Slow { action, took } => {
                LedgerSlow { action, took: *took }.count(to);
            }
            taximeter_journal::Event::PendingDropped { requests } => {
                let requests = usize::try_from(*requests).unwrap_or(usize::MAX);
                to.count(Instrument::PendingDropped, requests, &[]);
            }
            // What a power cut took was not synced, so nobody was promised it.
            taximeter_journal::Event::Salvaged(loss) if loss.torn_bytes.is_none() => {
                let entries = usize::try_from(loss.entries).unwrap_or(usize::MAX);
                to.count(Instrument::EntriesLost, entries, &[]);
            }
            _ => {}
        }
    }

    fn line(&self, to: &Log) {
        let text = |fault: &dyn std::fmt::Display| fault.to_string().into();
        match self.0 {
            taximeter_journal::Event::Recovered => to.tell(LogEvent::LedgerRecovered, []),
            taximeter_journal::Event::WriteFailed { path, error } => {
                let hint = taximeter_journal::remedy(error).unwrap_or("see the log of the kernel");
                to.tell(
                    LogEvent::LedgerWriteFailed,
                    [
                        ("path", text(&path.display())),
                        ("error", text(error)),
                        ("hint", hint.into()),
                    ],
                );
            }
            taximeter_journal::Event::SyncFailed { error } => {
                to.tell(LogEvent::LedgerSyncFailed, [("error", text(error))]);
            }
            taximeter_journal::Event::NotCompressed { path, error } => to.tell(
                LogEvent::LedgerNotCompressed,
                [("path", text(&path.display())), ("error", text(error))],
            ),
            taximeter_journal::Event::SegmentLost { path } => {
                to.tell(LogEvent::LedgerSegmentLost, [("path", text(&path.display()))]);
            }
            taximeter_journal::Event::Slow { action, took } => {
                LedgerSlow { action, took: *took }.line(to);
            }
            taximeter_journal::Event::Salvaged(loss) if loss.torn_bytes.is_some() => to.tell(
                LogEvent::LedgerTorn,
                [
                    ("path", text(&loss.path.display())),
                    ("fault", text(&loss.fault)),
                    ("bytes", loss.torn_bytes.into()),
                    ("first_seq", loss.first_seq.into()),
                    ("entries", loss.entries.into()),
                    ("kept", text(&loss.kept.display())),
                ],
            ),
            taximeter_journal::Event::Salvaged(loss) => to.tell(
                LogEvent::LedgerSalvaged,
                [
                    ("path", text(&loss.path.display())),
                    ("fault", text(&loss.fault)),
                    ("first_seq", loss.first_seq.into()),
                    ("entries_lost", loss.entries.into()),
                    ("kept", text(&loss.kept.display())),
                ],
            ),
            taximeter_journal::Event::PendingDropped { requests } => {
                to.tell(LogEvent::PendingDropped, [("requests", (*requests).into())]);
            }
            taximeter_journal::Event::EntryLost { error } => {
                to.tell(LogEvent::LedgerEntryLost, [("reason", text(error))]);
            }
        }
    }
}

/// The disk takes longer than a request waits for it to write an entry.
pub struct LedgerSlow {
    /// What took long.
    pub action: &'static str,
    /// How long it took.
    pub took: Duration,
}

impl Event for LedgerSlow {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::LedgerSlow, 1, &[]);
    }

    fn line(&self, to: &Log) {
        let fields = [("action", self.action.into()), ("seconds", self.took.as_secs_f64().into())];
        to.tell(LogEvent::LedgerSlow, fields);
    }
}

/// The store or a start cannot read an entry. It is set aside, and the others continue.
pub struct EntryRejected<'a> {
    /// What is wrong.
    pub fault: &'a taximeter_ledger::Fault,
    /// The path of the file.
    pub path: &'a std::path::Path,
}

impl Event for EntryRejected<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::EntriesRejected, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(
            LogEvent::StoreRejected,
            [
                ("reason", self.fault.to_string().into()),
                ("path", self.path.display().to_string().into()),
            ],
        );
    }
}

/// The store could not be fed; the journal keeps what is missing.
pub struct StoreFailed {
    reason: String,
    /// The attempt before failed for the same reason, so that the log has it.
    is_told: bool,
}

impl StoreFailed {
    /// It failed for this reason, and the attempt before for the reason `before`, if it failed.
    pub fn new(reason: &impl ToString, before: Option<&str>) -> Self {
        let reason = reason.to_string();
        Self { is_told: before == Some(&reason), reason }
    }
}

impl Event for StoreFailed {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::StoreFaults, 1, &[]);
    }

    fn line(&self, to: &Log) {
        if !self.is_told {
            to.tell(LogEvent::StoreFailed, [("reason", self.reason.as_str().into())]);
        }
    }
}

/// A request was open when the gateway died. This start has put it on record.
pub struct RequestDied<'a>(pub &'a Record);

impl Event for RequestDied<'_> {
    fn count(&self, to: &Metrics) {
        to.requests.died(&to.instruments, self.0);
    }
}

/// The journal refused an entry. The charge of a request is lost.
pub struct EntryLost {
    /// The reason.
    pub reason: String,
}

impl Event for EntryLost {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::EntriesLost, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::LedgerEntryLost, [("reason", self.reason.as_str().into())]);
    }
}

/// Whether the removal of old files waits, because the clock is far from the ledger's entries.
#[derive(Debug)]
pub struct ClockTurned(pub WaitTurn);

impl Event for ClockTurned {
    fn count(&self, metrics: &Metrics) {
        metrics.clock_is_ahead(matches!(self.0, WaitTurn::Began(_)));
    }

    fn line(&self, log: &Log) {
        let WaitTurn::Began(ClockAhead { clock, newest, .. }) = &self.0 else {
            return log.tell(LogEvent::ClockTrusted, []);
        };
        let hint = "check the clock of the host: times of requests, months and bills come from it; \
                    if it is right, the gateway was off, and nothing is to be done";
        let (clock, newest) = (clock.to_string(), newest.to_string());
        log.tell(
            LogEvent::ClockAhead,
            [("clock", clock.into()), ("newest_entry", newest.into()), ("hint", hint.into())],
        );
    }
}

/// History was removed, because it was old or to make room.
#[derive(Debug)]
pub struct HistoryRemoved<'a>(pub &'a Removed);

impl Event for HistoryRemoved<'_> {
    fn count(&self, to: &Metrics) {
        if let Some(MadeRoom { gone, filler, .. }) = &self.0.for_room {
            let cause = (key::CAUSE, filler.as_str());
            to.count(Instrument::LedgerHistoryRemoved, gone.len(), &[cause]);
        }
    }

    fn line(&self, to: &Log) {
        let Removed { old, for_room } = self.0;
        if !old.is_empty() {
            to.tell(LogEvent::LedgerRetired, [("segments", old.len().into())]);
        }
        let Some(MadeRoom { gone, filler, remaining, remaining_bytes }) = for_room else { return };
        let path = |part: Option<&Removable>| part.map(|part| part.path.display().to_string());
        let fields = [
            ("files", gone.len().into()),
            ("bytes", gone.iter().map(|part| part.bytes).sum::<u64>().into()),
            ("first", path(gone.first()).into()),
            ("last", path(gone.last()).into()),
            ("remaining_files", (*remaining).into()),
            ("remaining_bytes", (*remaining_bytes).into()),
        ];
        match filler {
            Filler::Own => to.tell(LogEvent::LedgerMadeRoom, fields),
            Filler::Others => {
                let hint = "other files fill the volume: give the data directory a volume of its own, \
                            or remove them";
                let [a, b, c, d, e, f] = fields;
                to.tell(LogEvent::VolumeFilledByOthers, [a, b, c, d, e, f, ("hint", hint.into())]);
            }
        }
    }
}

/// Requests left the tables of the store for files of their days.
#[derive(Debug, Clone, Copy)]
pub struct Sealed {
    /// Requests that left.
    pub requests: u64,
    /// Files that became one with others.
    pub files_merged: u64,
}

impl Event for Sealed {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        if self.requests + self.files_merged > 0 {
            let fields =
                [("requests", self.requests.into()), ("files_merged", self.files_merged.into())];
            to.tell(LogEvent::LedgerSealed, fields);
        }
    }
}

/// Details of old days were removed. Their sums by the hour stay.
#[derive(Debug, Clone, Copy)]
pub struct DetailsRemoved<'a> {
    /// Who has filled the volume; `None` if the details were old.
    pub filler: Option<Filler>,
    /// The first day and the last one. `None` if nothing was removed.
    pub days: Option<(&'a Date, &'a Date)>,
    /// Requests of these days.
    pub requests: usize,
    /// Files of these days.
    pub files: usize,
}

impl DetailsRemoved<'_> {
    fn cause(&self) -> &'static str {
        self.filler.map_or("age", Filler::as_str)
    }
}

impl Event for DetailsRemoved<'_> {
    fn count(&self, to: &Metrics) {
        if self.days.is_some() {
            let cause = (key::CAUSE, self.cause());
            to.count(Instrument::LedgerDetailsRemoved, self.requests, &[cause]);
            if self.filler.is_some() {
                to.count(Instrument::LedgerHistoryRemoved, self.files, &[cause]);
            }
        }
    }

    fn line(&self, to: &Log) {
        let Some((first, last)) = self.days else { return };
        let fields = [
            ("cause", self.cause().into()),
            ("requests", self.requests.into()),
            ("first_day", first.to_string().into()),
            ("last_day", last.to_string().into()),
        ];
        let event = match self.filler {
            None => LogEvent::DetailsRetired,
            Some(_) => LogEvent::DetailsRemovedForRoom,
        };
        to.tell(event, fields);
    }
}

/// Requests could not leave the tables.
#[derive(Debug, Clone, Copy)]
pub struct NotSealed<'a> {
    /// The reason.
    pub reason: &'a str,
}

impl Event for NotSealed<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::StoreFaults, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::LedgerNotSealed, [("reason", self.reason.into())]);
    }
}

/// Samples of engines, GPUs and hosts could not be kept.
#[derive(Debug, Clone, Copy)]
pub struct SamplesNotKept<'a> {
    /// The reason.
    pub reason: &'a str,
}

impl Event for SamplesNotKept<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        to.tell(LogEvent::SamplesNotKept, [("reason", self.reason.into())]);
    }
}

/// The data directory has no room for new requests, or has room again.
#[derive(Debug)]
pub struct RoomTurned<'a> {
    /// What has changed.
    pub turn: Turn,
    /// What the directory takes.
    pub bytes: Option<u64>,
    /// The room now.
    pub room: &'a Room,
}

impl Event for RoomTurned<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [("bytes", self.bytes.into()), ("bytes_max", self.room.bytes_max.into())];
        match self.turn {
            Turn::Full => {
                let hint = "use a larger volume, and a larger ledger.dir_bytes_max where that is set; \
                            or a store in PostgreSQL";
                let [bytes, most] = fields;
                to.tell(LogEvent::LedgerFull, [bytes, most, ("hint", hint.into())]);
            }
            Turn::Emptied => to.tell(LogEvent::LedgerHasRoom, fields),
        }
    }
}
