//! Everything that can happen, and how it looks as a metric and as a log line.

mod access;
mod background;
mod config;
mod dialect;
mod from_client;
mod ledger;
mod sent;
mod tls;

use std::time::Duration;

use taximeter_ledger::{Record, RequestId, TenantId, VoidReason};
use taximeter_meter::Measurement;

use super::event::Event;
use super::exemplar::Origin;
use super::fault::Fault;
use super::log::Log;
use super::metrics::Metrics;
use super::names::log_event::LogEvent;
use super::names::{Instrument, key};
use super::recorded::RecordedRequest;
use super::requests::Failed;
use super::trace::Found;
use super::wait::Wait;

pub use self::access::RequestEnded;
pub use self::background::{CompletionDelayed, RequestCompleted};
pub use self::config::{ConfigRejected, ConfigReloaded};
pub use self::dialect::{DialectGuessed, QuestionRefused, UpstreamRecognised};
pub use self::from_client::{DimensionDropped, NameKeyMissing, SpoofedHeader};
pub use self::ledger::{
    ClockTurned, DetailsRemoved, EntryLost, EntryRejected, HistoryRemoved, JournalChanged,
    LedgerSlow, NotSealed, RequestDied, RoomTurned, SamplesNotKept, Sealed, StoreFailed,
};
pub use self::sent::{EventsPushed, TelemetryPushed};
pub use self::tls::CertificateReloaded;

/// An HTTP request, as `http.server.request.duration` has it.
#[derive(Debug, Clone, Copy)]
pub struct Http<'a> {
    /// The method of the request.
    pub method: &'a http::Method,
    /// The HTTP version.
    pub version: http::Version,
    /// Template; `None` where no route matched.
    pub route: Option<&'static str>,
    /// `None` when the client left before there was one.
    pub status: Option<u16>,
    /// The tenant; `None` if it is not known.
    pub tenant: Option<&'a str>,
    /// From the head of the request to the end of the answer.
    pub duration: Duration,
    /// The call of an engine, if the request is not on the ledger.
    pub called: Option<Called<'a>>,
    /// The origin of its samples, for exemplars.
    pub origin: Origin,
}

/// A call of an engine for a request that is on no ledger, as `http.client.request.duration` has it.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// What the engine answered.
    pub status: Option<u16>,
    /// `error.type`, if there is no answer.
    pub error: Option<&'static str>,
    /// The time up to the head of the answer.
    pub duration: Duration,
}

impl Http<'_> {
    fn count(&self, to: &Metrics) {
        if let Some(called) = &self.called {
            let outcome = (called.status, called.error);
            to.instruments
                .buckets(
                    Instrument::HttpClientRequestDuration,
                    to.requests.http_client(self.method, called.upstream, outcome),
                )
                .record_from(called.duration.as_secs_f64(), self.origin);
        }
        let asked = (self.method, self.version);
        let labels = to.requests.http(asked, self.route, self.status, self.tenant);
        to.instruments
            .buckets(Instrument::HttpServerRequestDuration, labels)
            .record_from(self.duration.as_secs_f64(), self.origin);
    }

    /// One more of those that are told apart by `word`, and by their tenant where that is known.
    fn count_by(&self, to: &Metrics, instrument: Instrument, word: (&'static str, &str)) {
        match self.tenant.map(|tenant| (key::TENANT, to.requests.tenant(tenant))) {
            Some(tenant) => to.count(instrument, 1, &[word, tenant]),
            None => to.count(instrument, 1, &[word]),
        }
    }
}

/// A request ended with a record.
pub struct RequestSettled<'a> {
    /// The method of the request.
    pub method: &'a http::Method,
    /// The HTTP version.
    pub version: http::Version,
    /// The record of the request.
    pub record: &'a Record,
    /// What the meter measured.
    pub measurement: &'a Measurement,
    /// The time from its head until its reservation was on the ledger. Then the engine was called.
    pub waited: Duration,
    /// Whose fault it is that it was not served; `None` if it was.
    pub fault: Option<Fault>,
    /// The wait for its first token, if it waited for one.
    pub wait: Option<Wait>,
    /// Its trace, where it has one.
    pub trace: Option<Found>,
}

impl Event for RequestSettled<'_> {
    fn count(&self, to: &Metrics) {
        let Self { method, version, record, measurement, waited, fault, wait, trace } = self;
        let origin = Origin { request: record.id, trace: *trace, at: record.ended_at };
        let waited = waited.as_secs_f64();
        let (fault, wait) = (*fault, *wait);
        let instruments = &to.instruments;
        let request =
            RecordedRequest { to: instruments, record, measurement, waited, origin, fault, wait };
        to.requests.record((method, *version), request);
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

/// A client left in the middle of an answer.
pub struct AnswerLeft {
    /// Whether the gateway reads the rest for its usage. Otherwise it cancels the engine's work.
    pub drained: bool,
}

impl Event for AnswerLeft {
    fn count(&self, to: &Metrics) {
        let kind = if self.drained { "drained" } else { "cancelled" };
        to.count(Instrument::AnswersLeft, 1, &[(key::KIND, kind)]);
    }
}

/// A reserved request ended without a record.
pub struct RequestVoided<'a> {
    /// The HTTP request.
    pub http: Http<'a>,
    /// The reason.
    pub reason: VoidReason,
    /// The call of an engine, if there was one.
    pub failed: Option<Failed<'a>>,
}

impl Event for RequestVoided<'_> {
    fn count(&self, to: &Metrics) {
        // A refusal of ours is counted as an HTTP request where it is answered.
        if self.http.status.is_some() || self.reason == VoidReason::ClientLeft {
            self.http.count(to);
        }
        if let Some(failed) = &self.failed {
            let Http { method, tenant, duration, origin, .. } = self.http;
            let tenant = tenant.unwrap_or_default();
            to.requests.fail(&to.instruments, method, tenant, failed, duration, origin);
        }
        self.http.count_by(to, Instrument::Voids, (key::REASON, self.reason.as_str()));
    }
}

/// A call of an engine has failed. Collectors of log records get this event.
pub struct OperationFailed<'a> {
    /// The id of the request.
    pub request: RequestId,
    /// The tenant.
    pub tenant: &'a str,
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: &'a str,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The model that the client asked for.
    pub request_model: Option<&'a str>,
    /// What the engine answered.
    pub status: Option<u16>,
    /// `error.type`.
    pub error: &'a str,
    /// Its trace, where it has one.
    pub trace: Option<Found>,
}

impl Event for OperationFailed<'_> {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        if to.logs.is_none() {
            return;
        }
        let fields = vec![
            ("id", self.request.to_string().into()),
            ("tenant", self.tenant.into()),
            ("operation", self.operation.into()),
            ("provider", self.provider.into()),
            ("upstream", self.upstream.into()),
            ("model", self.request_model.into()),
            ("status", self.status.into()),
            ("error_type", self.error.into()),
            ("exception_type", self.error.into()),
        ];
        to.tell_of(self.trace, LogEvent::OperationFailed, fields);
    }
}

/// The gateway refused a request.
pub struct RequestRefused<'a> {
    /// The HTTP request.
    pub http: Http<'a>,
    /// The client's `x-request-id`, or the one that was made for it.
    pub request_id: &'a str,
    /// The error code.
    pub code: &'static str,
    /// The limit of the gateway that was reached, as a fixed word, if one was.
    pub limit: Option<&'static str>,
    /// The text of the error.
    pub message: String,
}

impl Event for RequestRefused<'_> {
    fn count(&self, to: &Metrics) {
        self.http.count(to);
        self.http.count_by(to, Instrument::Refusals, (key::CODE, self.code));
        if let Some(limit) = self.limit {
            self.http.count_by(to, Instrument::LimitRefusals, (key::KIND, limit));
        }
    }

    fn line(&self, to: &Log) {
        let fields = vec![
            ("code", self.code.into()),
            ("request_id", self.request_id.into()),
            ("message", self.message.as_str().into()),
        ];
        to.tell_of(self.http.origin.trace, LogEvent::RequestRefused, fields);
    }
}

/// A request has no valid credential. The event never contains the key itself.
pub struct AuthRefused {
    /// The reason.
    pub reason: &'static str,
    /// The first characters of the key's SHA-256.
    pub fingerprint: Option<String>,
}

impl Event for AuthRefused {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::AuthRefusals, 1, &[(key::CODE, self.reason)]);
    }

    fn line(&self, to: &Log) {
        let fields =
            [("reason", self.reason.into()), ("key_sha256", self.fingerprint.clone().into())];
        to.tell(LogEvent::AuthRefused, fields);
    }
}

/// A client connection ended because the head of a request was malformed or did not come.
pub struct BadFraming {
    /// A fixed word for the cause.
    pub cause: &'static str,
    /// The connection of the client.
    pub peer: std::net::SocketAddr,
    /// The part of the request that is at fault, as a fixed word, if there is a request.
    pub place: Option<&'static str>,
}

impl Event for BadFraming {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::BadFraming, 1, &[(key::CAUSE, self.cause)]);
    }

    fn line(&self, to: &Log) {
        // Nothing that the client has sent: what cannot be read may be a key or a prompt.
        let peer = self.peer.ip().to_string();
        let place = self.place.into();
        let fields = [("cause", self.cause.into()), ("peer", peer.into()), ("place", place)];
        to.tell(LogEvent::BadFraming, fields);
    }
}

/// A request that is not on the ledger was passed on.
pub struct RequestPassed<'a>(pub Http<'a>);

impl Event for RequestPassed<'_> {
    fn count(&self, to: &Metrics) {
        self.0.count(to);
    }
}

/// An engine could not be reached.
pub struct UpstreamUnreachable<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// A fixed word for the cause.
    pub cause: &'static str,
    /// The text of the error.
    pub message: String,
}

impl Event for UpstreamUnreachable<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, self.cause)];
        to.count(Instrument::UpstreamFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        let fields = [
            ("upstream", self.upstream.into()),
            ("cause", self.cause.into()),
            ("message", self.message.as_str().into()),
        ];
        to.tell(LogEvent::UpstreamUnreachable, fields);
    }
}

/// A request is sent again, because nothing of it has reached an engine.
pub struct UpstreamRetried<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The cause of the failed attempt.
    pub cause: &'static str,
}

impl Event for UpstreamRetried<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, self.cause)];
        to.count(Instrument::UpstreamRetries, 1, &labels);
    }
}

/// A panic. The event never contains its message, which may be a part of a prompt.
pub struct Panicked {
    /// File, line and column.
    pub place: String,
}

impl Event for Panicked {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::Panics, 1, &[]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::Panicked, [("place", self.place.as_str().into())]);
    }
}

/// An engine's answer is not valid HTTP.
pub struct UpstreamProtocol<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
    /// A fixed word for the cause.
    pub cause: &'static str,
}

impl Event for UpstreamProtocol<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, self.cause)];
        to.count(Instrument::UpstreamProtocolFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into()), ("cause", self.cause.into())];
        to.tell(LogEvent::UpstreamProtocol, fields);
    }
}

/// The engine refused the gateway's credential.
pub struct UpstreamRefusedUs<'a> {
    /// The name of the upstream.
    pub upstream: &'a str,
}

impl Event for UpstreamRefusedUs<'_> {
    fn count(&self, to: &Metrics) {
        let labels = [(key::UPSTREAM, self.upstream), (key::CAUSE, "credential")];
        to.count(Instrument::UpstreamFaults, 1, &labels);
    }

    fn line(&self, to: &Log) {
        let fields = [("upstream", self.upstream.into())];
        to.tell(LogEvent::UpstreamRefusedCredential, fields);
    }
}

/// A scrape was refused, because too many run at once.
pub struct ScrapeShed;

impl Event for ScrapeShed {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ScrapesShed, 1, &[]);
    }
}

/// An answer reported no usage, and Taximeter could not count it either.
pub struct CountSkipped {
    /// A fixed word for the cause.
    pub cause: &'static str,
}

impl Event for CountSkipped {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::CountsSkipped, 1, &[(key::CAUSE, self.cause)]);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::CountSkipped, [("cause", self.cause.into())]);
    }
}

/// The content of a request should be captured but was left out.
pub struct ContentLeftOut {
    /// A fixed word for the cause.
    pub cause: &'static str,
}

impl Event for ContentLeftOut {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ContentLeftOut, 1, &[(key::CAUSE, self.cause)]);
    }
}

/// A tenant has reached its limit of concurrent requests.
pub struct TenantLimited<'a> {
    /// The tenant.
    pub tenant: &'a TenantId,
}

impl Event for TenantLimited<'_> {
    fn count(&self, to: &Metrics) {
        let tenant = to.requests.tenant(self.tenant.as_str());
        let labels = [(key::TENANT, tenant), (key::KIND, "concurrency")];
        to.count(Instrument::LimitRefusals, 1, &labels);
    }

    fn line(&self, to: &Log) {
        to.tell(LogEvent::TenantLimited, [("tenant", self.tenant.as_str().into())]);
    }
}

/// A connection was refused, because there are too many.
pub struct ConnectionRefused {
    /// The limit that was reached.
    pub reason: &'static str,
    /// The address of the client; `None` if no file descriptor is left, so that the client waits.
    pub peer: Option<std::net::SocketAddr>,
}

impl Event for ConnectionRefused {
    fn count(&self, to: &Metrics) {
        to.count(Instrument::ConnectionsRefused, 1, &[]);
        to.count(Instrument::LimitRefusals, 1, &[(key::KIND, self.reason)]);
    }

    fn line(&self, to: &Log) {
        let peer = self.peer.map(|peer| peer.ip().to_string());
        let fields = [("reason", self.reason.into()), ("peer", peer.into())];
        to.tell(LogEvent::ConnectionRefused, fields);
    }
}
