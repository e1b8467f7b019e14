//! What can happen to the ledger and the store.

use std::time::Duration;

use crate::edge::journal;
use crate::telemetry::event::Event;
use crate::telemetry::log::Log;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::names::Instrument;
use crate::telemetry::names::log_event::LogEvent;

/// The ledger's own thread has something to say.
pub(crate) struct LedgerTold<'a>(pub(crate) &'a journal::Event<'a>);

impl Event for LedgerTold<'_> {
    fn count(&self, to: &Metrics) {
        match self.0 {
            journal::Event::EntryLost { .. } => to.count(Instrument::EntriesLost, 1, &[]),
            journal::Event::Slow { action, took } => {
                LedgerSlow { action, took: *took }.count(to);
            }
            _ => {}
        }
    }

    fn line(&self, to: &Log) {
        let text = |fault: &dyn std::fmt::Display| fault.to_string().into();
        match self.0 {
            journal::Event::Recovered => to.tell(LogEvent::LedgerRecovered, []),
            journal::Event::WriteFailed { path, error } => to.tell(
                LogEvent::LedgerWriteFailed,
                [("path", text(&path.display())), ("error", text(error))],
            ),
            journal::Event::SyncFailed { error } => {
                to.tell(LogEvent::LedgerSyncFailed, [("error", text(error))]);
            }
            journal::Event::SegmentLost { path } => {
                to.tell(LogEvent::LedgerSegmentLost, [("path", text(&path.display()))]);
            }
            journal::Event::Slow { action, took } => {
                LedgerSlow { action, took: *took }.line(to);
            }
            journal::Event::Salvaged(loss) if loss.torn_bytes.is_some() => to.tell(
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
            journal::Event::Salvaged(loss) => to.tell(
                LogEvent::LedgerSalvaged,
                [
                    ("path", text(&loss.path.display())),
                    ("fault", text(&loss.fault)),
                    ("first_seq", loss.first_seq.into()),
                    ("entries_lost", loss.entries.into()),
                    ("kept", text(&loss.kept.display())),
                ],
            ),
            journal::Event::EntryLost { error } => {
                to.tell(LogEvent::LedgerEntryLost, [("reason", text(error))]);
            }
        }
    }
}

/// The disk takes longer than a request waits for it.
pub(crate) struct LedgerSlow {
    pub(crate) action: &'static str,
    pub(crate) took: Duration,
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

/// An entry cannot be read, by the store or at a start: it is set aside, and the others go on.
pub(crate) struct EntryRejected<'a> {
    pub(crate) fault: &'a taximeter_ledger::Fault,
    pub(crate) path: &'a std::path::Path,
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
pub(crate) struct StoreFailed {
    pub(crate) reason: String,
}

impl Event for StoreFailed {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::StoreFaults, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::StoreFailed, [("reason", self.reason.as_str().into())]);
    }
}

/// The ledger would not take an entry: a fare is lost.
pub(crate) struct EntryLost {
    pub(crate) reason: String,
}

impl Event for EntryLost {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::EntriesLost, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::LedgerEntryLost, [("reason", self.reason.as_str().into())]);
    }
}
