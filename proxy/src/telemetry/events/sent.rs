//! What can become of what is sent to receivers and collectors.

use crate::edge::{otlp, push};
use crate::telemetry::event::Event;
use crate::telemetry::log::Log;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::names::log_event::LogEvent;
use crate::telemetry::names::{Instrument, key};

/// What became of events for the receiver.
pub(crate) struct PushTold<'a>(pub(crate) &'a push::Told<'a>);

impl Event for PushTold<'_> {
    fn count(&self, to: &Metrics) {
        let events = |count, outcome| {
            to.count(Instrument::PushedEvents, count, &[(key::OUTCOME, outcome)]);
        };
        match self.0 {
            push::Told::Stored { events: stored } => events(*stored, "stored"),
            push::Told::Rejected { .. } => events(1, "rejected"),
            push::Told::Failed { .. } => to.count(Instrument::PushFaults, 1, &[]),
            push::Told::Lost { .. } | push::Told::Replaced => {}
        }
    }

    fn line(&self, to: &Log) {
        match self.0 {
            push::Told::Stored { .. } => {}
            push::Told::Rejected { id, reason } => to.tell(
                LogEvent::PushRejected,
                [("id", id.to_string().into()), ("reason", (*reason).into())],
            ),
            push::Told::Failed { reason } => {
                to.tell(LogEvent::PushFailed, [("reason", (*reason).into())])
            }
            push::Told::Lost { first, last } => to.tell(
                LogEvent::PushLost,
                [
                    ("first", (*first).into()),
                    ("last", (*last).into()),
                    ("hint", "the journal dropped them; send `bill --format cloudevents`".into()),
                ],
            ),
            push::Told::Replaced => to.tell(LogEvent::PushJournalReplaced, []),
        }
    }
}

/// What became of what was pushed by OTLP.
pub(crate) struct OtlpTold<'a>(pub(crate) &'a otlp::Told<'a>);

impl Event for OtlpTold<'_> {
    fn count(&self, to: &Metrics) {
        let items = |signal, outcome, count| {
            let labels = [(key::SIGNAL, signal), (key::OUTCOME, outcome)];
            to.count(Instrument::OtlpItems, count, &labels);
        };
        match *self.0 {
            otlp::Told::Sent { signal, items: count, rejected, .. } => {
                items(signal, "sent", count.saturating_sub(rejected));
                if rejected > 0 {
                    items(signal, "rejected", rejected);
                }
            }
            otlp::Told::Failed { signal, .. } => {
                to.count(Instrument::OtlpFaults, 1, &[(key::SIGNAL, signal)]);
            }
            otlp::Told::Dropped { signal, items: count, .. } => items(signal, "dropped", count),
            otlp::Told::Panicked => to.count(Instrument::OtlpRestarts, 1, &[]),
        }
    }

    fn line(&self, to: &Log) {
        match *self.0 {
            otlp::Told::Sent { signal, rejected, message, .. } => {
                if rejected > 0 || !message.is_empty() {
                    let fields = [
                        ("signal", signal.into()),
                        ("rejected", rejected.into()),
                        ("message", message.into()),
                    ];
                    to.tell(LogEvent::OtlpRejected, fields);
                }
            }
            otlp::Told::Failed { signal, reason } => {
                to.tell(
                    LogEvent::OtlpFailed,
                    [("signal", signal.into()), ("reason", reason.into())],
                );
            }
            otlp::Told::Dropped { signal, items, reason } => to.tell(
                LogEvent::OtlpDropped,
                [("signal", signal.into()), ("items", items.into()), ("reason", reason.into())],
            ),
            otlp::Told::Panicked => to.tell(LogEvent::OtlpPanicked, []),
        }
    }
}
