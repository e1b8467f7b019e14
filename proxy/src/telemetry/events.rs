//! What can happen, and how it looks as metric and as log line.

use std::time::Duration;

use ::metrics::HistogramFn as _;
use taximeter_ledger::{Record, TenantId, VoidReason};
use taximeter_meter::Measurement;

use super::log::Log;
use super::metrics::Metrics;
use super::names::{Instrument, key};
use super::series::http_labels;
use crate::edge::{journal, push};

/// Something that happened.
pub(crate) trait Event {
    /// What it adds to the metrics.
    fn count(&self, to: &Metrics);

    /// Its log line, if it has one.
    fn line(&self, _to: &Log) {}
}

/// An HTTP request, as `http.server.request.duration` has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Http<'a> {
    pub(crate) method: &'a http::Method,
    /// Template; `None` where no route matched.
    pub(crate) route: Option<&'static str>,
    /// `None` when the client left before there was one.
    pub(crate) status: Option<u16>,
    pub(crate) tenant: Option<&'a str>,
    pub(crate) duration: Duration,
}

impl Http<'_> {
    fn count(&self, to: &Metrics) {
        let tenant = self.tenant.map(|tenant| to.requests.tenant(tenant));
        let labels = http_labels(self.method, self.route, self.status, tenant);
        to.instruments
            .buckets(Instrument::HttpServerRequestDuration, labels)
            .record(self.duration.as_secs_f64());
    }
}

/// A request ended with a record.
pub(crate) struct RequestSettled<'a> {
    pub(crate) method: &'a http::Method,
    pub(crate) record: &'a Record,
    pub(crate) measurement: &'a Measurement,
}

impl Event for RequestSettled<'_> {
    fn count(&self, to: &Metrics) {
        to.requests.record(&to.instruments, self.method, self.record, self.measurement);
        let counts = &self.measurement.counts;
        for (kind, count) in [
            ("not_json", counts.not_json),
            ("line_too_long", counts.lines_too_long),
            ("after_done", counts.after_done),
            ("usage_invalid", counts.usage_invalid),
            ("usage_fell", counts.usage_fell),
            ("type_mismatch", counts.type_mismatch),
            ("decode_stopped", counts.decode_stopped),
        ] {
            if count > 0 {
                to.count(Instrument::MeterOddities, count as usize, &[(key::KIND, kind)]);
            }
        }
    }
}

/// A client left within an answer.
pub(crate) struct AnswerLeft {
    /// It is read on for its usage; else the engine's work is cancelled.
    pub(crate) drained: bool,
}

impl Event for AnswerLeft {
    fn count(&self, to: &Metrics) {
        let kind = if self.drained { "drained" } else { "cancelled" };
        to.count(Instrument::AnswersLeft, 1, &[(key::KIND, kind)]);
    }
}

/// A reserved request ended without a record.
pub(crate) struct RequestVoided<'a> {
    pub(crate) http: Http<'a>,
    pub(crate) reason: VoidReason,
}

impl Event for RequestVoided<'_> {
    fn count(&self, to: &Metrics) {
        // A refusal of ours is counted as an HTTP request where it is answered.
        if self.http.status.is_some() || self.reason == VoidReason::ClientLeft {
            self.http.count(to);
        }
        to.count(Instrument::Voids, 1, &[(key::REASON, self.reason.as_str())]);
    }
}

/// A request was refused by us.
pub(crate) struct RequestRefused<'a> {
    pub(crate) http: Http<'a>,
    pub(crate) request_id: &'a str,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Event for RequestRefused<'_> {
    fn count(&self, to: &Metrics) {
        self.http.count(to);
        to.count(Instrument::Refusals, 1, &[(key::CODE, self.code)]);
    }

    fn line(&self, to: &Log) {
        to.warn(
            "request_refused",
            &[
                ("code", self.code.into()),
                ("request_id", self.request_id.into()),
                ("message", self.message.as_str().into()),
            ],
        );
    }
}

/// No valid credential. Never the key itself.
pub(crate) struct AuthRefused {
    pub(crate) reason: &'static str,
    /// The first characters of the key's SHA-256.
    pub(crate) fingerprint: Option<String>,
}

impl Event for AuthRefused {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::AuthRefusals, 1, &[(key::CODE, self.reason)]);
    }

    fn line(&self, to: &Log) {
        to.warn(
            "auth_refused",
            &[("reason", self.reason.into()), ("key_sha256", self.fingerprint.clone().into())],
        );
    }
}

/// A client wrote a header that says who it is. It was not believed.
pub(crate) struct SpoofedHeader<'a> {
    pub(crate) tenant: &'a TenantId,
}

impl Event for SpoofedHeader<'_> {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::SpoofedHeaders, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.warn("spoofed_header", &[("tenant", self.tenant.as_str().into())]);
    }
}

/// A client connection ended by what came, or did not come, where a request's head should be.
pub(crate) struct BadFraming {
    pub(crate) cause: &'static str,
    pub(crate) peer: std::net::SocketAddr,
}

impl Event for BadFraming {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::BadFraming, 1, &[(key::CAUSE, self.cause)]);
    }

    fn line(&self, to: &Log) {
        let peer = self.peer.ip().to_string();
        to.warn("bad_framing", &[("cause", self.cause.into()), ("peer", peer.into())]);
    }
}

/// A request that is not on the ledger was passed on.
pub(crate) struct RequestPassed<'a>(pub(crate) Http<'a>);

impl Event for RequestPassed<'_> {
    fn count(&self, to: &Metrics) {
        self.0.count(to);
    }
}

/// An engine could not be reached.
pub(crate) struct UpstreamUnreachable<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) cause: &'static str,
    pub(crate) message: String,
}

impl Event for UpstreamUnreachable<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, self.cause)];
        to.count(Instrument::UpstreamFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        to.warn(
            "upstream_unreachable",
            &[
                ("upstream", self.upstream.into()),
                ("cause", self.cause.into()),
                ("message", self.message.as_str().into()),
            ],
        );
    }
}

/// An engine's answer is not valid HTTP.
pub(crate) struct UpstreamProtocol<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) cause: &'static str,
}

impl Event for UpstreamProtocol<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, self.cause)];
        to.count(Instrument::UpstreamProtocolFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into()), ("cause", self.cause.into())];
        to.warn("upstream_protocol", &fields);
    }
}

/// The engine refused our own credential.
pub(crate) struct UpstreamRefusedUs<'a> {
    pub(crate) upstream: &'a str,
}

impl Event for UpstreamRefusedUs<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, "credential")];
        to.count(Instrument::UpstreamFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        to.critical("upstream_refused_credential", &[("upstream", self.upstream.into())]);
    }
}

/// An upstream configured as `auto` has shown what it is.
pub(crate) struct UpstreamRecognised<'a> {
    pub(crate) upstream: &'a str,
    pub(crate) provider: &'static str,
}

impl Event for UpstreamRecognised<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into()), ("provider", self.provider.into())];
        to.info("upstream_recognised", &fields);
    }
}

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
            journal::Event::Recovered => to.info("ledger_recovered", &[]),
            journal::Event::WriteFailed { path, error } => to.critical(
                "ledger_write_failed",
                &[("path", text(&path.display())), ("error", text(error))],
            ),
            journal::Event::SyncFailed { error } => {
                to.critical("ledger_sync_failed", &[("error", text(error))]);
            }
            journal::Event::SegmentLost { path } => {
                to.critical("ledger_segment_lost", &[("path", text(&path.display()))]);
            }
            journal::Event::Slow { action, took } => {
                LedgerSlow { action, took: *took }.line(to);
            }
            journal::Event::Salvaged(loss) => to.critical(
                "ledger_salvaged",
                &[
                    ("path", text(&loss.path.display())),
                    ("fault", text(&loss.fault)),
                    ("first_seq", loss.first_seq.into()),
                    ("entries_lost", loss.entries.into()),
                    ("kept", text(&loss.kept.display())),
                ],
            ),
            journal::Event::EntryLost { error } => {
                to.critical("ledger_entry_lost", &[("reason", text(error))]);
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
        to.critical("ledger_slow", &fields);
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
        to.warn("store_failed", &[("reason", self.reason.as_str().into())]);
    }
}

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
            push::Told::Rejected { id, reason } => to.critical(
                "push_rejected",
                &[("id", id.to_string().into()), ("reason", (*reason).into())],
            ),
            push::Told::Failed { reason } => {
                to.warn("push_failed", &[("reason", (*reason).into())])
            }
            push::Told::Lost { first, last } => to.critical(
                "push_lost",
                &[
                    ("first", (*first).into()),
                    ("last", (*last).into()),
                    ("hint", "the journal dropped them; send `bill --format cloudevents`".into()),
                ],
            ),
            push::Told::Replaced => to.warn("push_journal_replaced", &[]),
        }
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
        to.critical("ledger_entry_lost", &[("reason", self.reason.as_str().into())]);
    }
}

/// An answer without usage was not counted either.
pub(crate) struct CountSkipped {
    pub(crate) cause: &'static str,
}

impl Event for CountSkipped {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::CountsSkipped, 1, &[(key::CAUSE, self.cause)]);
    }

    fn line(&self, to: &Log) {
        to.warn("count_skipped", &[("cause", self.cause.into())]);
    }
}

/// A client was not let in: too many connections.
pub(crate) struct ConnectionRefused;

impl Event for ConnectionRefused {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ConnectionsRefused, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.warn("connection_refused", &[("reason", "connections_max".into())]);
    }
}
