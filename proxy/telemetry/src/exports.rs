//! The state of each signal's OTLP push and of the receiver of events, for the status API and the
//! console.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use taximeter_config::{Exporter, OtlpProtocol};
use taximeter_journal::{PushBacklog, PushOutcome};
use taximeter_system::clock;

use super::message::chosen;
use crate::pusher::ExportOutcome;

/// The state of the push of each signal, and what the receiver of events lacks.
#[derive(Debug, Default)]
pub struct Exports {
    signals: Mutex<Vec<Export>>,
    backlog: Mutex<Option<PushBacklog>>,
}

/// The state of the push of one signal.
#[derive(Debug, Clone)]
pub struct Export {
    /// `metrics`, `traces` or `logs`.
    pub signal: &'static str,
    /// The URL without its query, which may contain a key.
    pub url: String,
    /// `grpc` or `http/protobuf`.
    pub protocol: &'static str,
    /// When the collector last took something.
    pub sent_at: Option<Timestamp>,
    /// Items that the collector took.
    pub sent: u64,
    /// Items that the collector rejected.
    pub rejected: u64,
    /// Items that were not sent.
    pub dropped: u64,
    /// Consecutive failures up to now: the collector could not be reached or took nothing.
    pub failures: u64,
    /// Time and reason of the last failure, however long ago.
    pub last_failure: Option<(Timestamp, String)>,
}

impl Exports {
    /// Notes that a signal is pushed to an exporter from now on.
    pub fn begin(&self, signal: &'static str, exporter: &Exporter) {
        let scheme = if exporter.url.tls { "https" } else { "http" };
        let path = exporter.url.prefix.split('?').next().unwrap_or_default();
        let export = Export {
            signal,
            url: format!("{scheme}://{}{path}", exporter.url.authority()),
            protocol: match exporter.protocol {
                OtlpProtocol::Grpc => "grpc",
                OtlpProtocol::HttpProtobuf => "http/protobuf",
            },
            sent_at: None,
            sent: 0,
            rejected: 0,
            dropped: 0,
            failures: 0,
            last_failure: None,
        };
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).push(export);
    }

    /// Notes what the receiver of events lacks.
    pub fn note_push(&self, outcome: &PushOutcome<'_>) {
        if let PushOutcome::Behind { backlog, .. } = outcome {
            *self.backlog.lock().unwrap_or_else(PoisonError::into_inner) = *backlog;
        }
    }

    /// What the receiver of events lacks, when somebody looked last. `None` if it has all.
    pub fn push_backlog(&self) -> Option<PushBacklog> {
        *self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the result of a batch.
    pub fn note(&self, outcome: &ExportOutcome<'_>) {
        let (ExportOutcome::Sent { signal, .. }
        | ExportOutcome::Failed { signal, .. }
        | ExportOutcome::Dropped { signal, .. }) = outcome
        else {
            return;
        };
        let mut exports = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(export) = exports.iter_mut().find(|export| export.signal == *signal) else {
            return;
        };
        match *outcome {
            ExportOutcome::Sent { items, rejected, .. } => {
                export.sent_at = Some(clock::wall());
                export.sent += items.saturating_sub(rejected) as u64;
                export.rejected += rejected as u64;
                export.failures = 0;
            }
            ExportOutcome::Failed { reason, .. } => {
                export.failures += 1;
                export.last_failure = Some((clock::wall(), chosen(reason)));
            }
            ExportOutcome::Dropped { items, .. } => export.dropped += items as u64,
            ExportOutcome::Panicked => {}
        }
    }

    /// The state of all signals.
    pub fn all(&self) -> Vec<Export> {
        self.signals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
