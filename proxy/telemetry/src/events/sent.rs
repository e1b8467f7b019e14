//! Events of data that is sent to receivers and collectors.

use taximeter_journal::{PushBacklog, PushOutcome};

use crate::pusher;

use crate::event::Event;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;
use crate::names::{Instrument, key};

/// The result of sending events to the receiver.
pub struct EventsPushed<'a>(pub &'a PushOutcome<'a>);

impl Event for EventsPushed<'_> {
    fn count(&self, to: &Metrics) {
        let events = |count, outcome| {
            to.count(Instrument::PushedEvents, count, &[(key::OUTCOME, outcome)]);
        };
        match self.0 {
            PushOutcome::Stored { events: stored } => events(*stored, "stored"),
            PushOutcome::Rejected { .. } => events(1, "rejected"),
            PushOutcome::Failed { .. } => to.count(Instrument::PushFaults, 1, &[]),
            PushOutcome::Behind { backlog, .. } => {
                let requests = backlog.map_or(0, |backlog| backlog.requests);
                to.push_lacks(requests, backlog.is_some_and(|backlog| backlog.is_at_risk));
            }
            PushOutcome::Lost { .. } | PushOutcome::Replaced => {}
        }
    }

    fn line(&self, to: &Log) {
        match self.0 {
            PushOutcome::Stored { .. } | PushOutcome::Behind { has_turned: false, .. } => {}
            PushOutcome::Behind { receiver, backlog, .. } => match backlog {
                Some(backlog) if backlog.is_at_risk => at_risk(receiver, backlog, to),
                _ => to.tell(LogEvent::PushSafe, [("receiver", (*receiver).into())]),
            },
            PushOutcome::Rejected { id, reason } => to.tell(
                LogEvent::PushRejected,
                [("id", id.to_string().into()), ("reason", (*reason).into())],
            ),
            PushOutcome::Failed { reason } => {
                to.tell(LogEvent::PushFailed, [("reason", (*reason).into())])
            }
            PushOutcome::Lost { first, last } => to.tell(
                LogEvent::PushLost,
                [
                    ("first", (*first).into()),
                    ("last", (*last).into()),
                    ("hint", "their details are no longer kept; bills still count them".into()),
                ],
            ),
            PushOutcome::Replaced => to.tell(LogEvent::PushJournalReplaced, []),
        }
    }
}

fn at_risk(receiver: &str, backlog: &PushBacklog, to: &Log) {
    let hint = "the receiver has taken nothing for long: see the reasons of push_failed; or keep \
                requests longer (ledger.records_keep_days), or give the volume more room";
    to.tell(
        LogEvent::PushAtRisk,
        [
            ("receiver", receiver.into()),
            ("requests", backlog.requests.into()),
            ("since", backlog.since.to_string().into()),
            ("goes_at", backlog.goes_at.to_string().into()),
            ("hint", hint.into()),
        ],
    );
}

/// The result of a push by OTLP.
pub struct TelemetryPushed<'a>(pub &'a pusher::ExportOutcome<'a>);

impl Event for TelemetryPushed<'_> {
    fn count(&self, to: &Metrics) {
        let items = |signal, outcome, count| {
            let labels = [(key::SIGNAL, signal), (key::OUTCOME, outcome)];
            to.count(Instrument::OtlpItems, count, &labels);
        };
        match *self.0 {
            pusher::ExportOutcome::Sent { signal, items: count, rejected, .. } => {
                items(signal, "sent", count.saturating_sub(rejected));
                if rejected > 0 {
                    items(signal, "rejected", rejected);
                }
            }
            pusher::ExportOutcome::Failed { signal, .. } => {
                to.count(Instrument::OtlpFaults, 1, &[(key::SIGNAL, signal)]);
            }
            pusher::ExportOutcome::Dropped { signal, items: count, .. } => {
                items(signal, "dropped", count)
            }
            pusher::ExportOutcome::Panicked => to.count(Instrument::OtlpRestarts, 1, &[]),
        }
    }

    fn line(&self, to: &Log) {
        match *self.0 {
            pusher::ExportOutcome::Sent { signal, rejected, message, .. } => {
                if rejected > 0 || !message.is_empty() {
                    let fields = [
                        ("signal", signal.into()),
                        ("rejected", rejected.into()),
                        ("message", message.into()),
                    ];
                    to.tell(LogEvent::OtlpRejected, fields);
                }
            }
            pusher::ExportOutcome::Failed { signal, reason } => {
                to.tell(
                    LogEvent::OtlpFailed,
                    [("signal", signal.into()), ("reason", reason.into())],
                );
            }
            pusher::ExportOutcome::Dropped { signal, items, reason } => to.tell(
                LogEvent::OtlpDropped,
                [("signal", signal.into()), ("items", items.into()), ("reason", reason.into())],
            ),
            pusher::ExportOutcome::Panicked => to.tell(LogEvent::OtlpPanicked, []),
        }
    }
}
