//! What operators see: this crate turns events into metrics, traces and log lines, and sends them
//! to Prometheus and OTLP collectors.
//!
//! Begin with `events.rs` (what can happen and how it looks) and `names.rs` (every instrument).
//!
//! # Invariants
//!
//! - The gateway says what happened. Only this crate says how it looks as a metric, a span and a
//!   log line.
//! - Every name is in one table: instruments in `names`, log lines in `names/log_event`.
//!   `docs/reference/metrics.md` and `docs/reference/logs.md` are made from them.
//! - What clients or engines choose becomes a label only through `bounded`. Each instrument has a
//!   limit on its series.
//! - No request waits for a scrape, a collector or the log.
//! - Log lines and metrics are made from records. They never contain a prompt or a secret.
//!
//! This crate knows no sockets of clients, no databases and no wire formats.
//!
//! # Metrics
//!
//! A request is recorded once, when it is settled. `requests` finds the kind of the request (who,
//! what, how it ended) by one look-up. The kind holds its series (`series`; `inference` has what
//! only the latest GenAI generation has), and each of them takes a few additions. A histogram keeps
//! the last request of each bucket as its exemplar. If two come at the same time, one of them is
//! left out and does not wait.
//!
//! `prometheus` writes a scrape piece by piece while it is read. `otlp` makes batches of protobuf.
//! Both read the same atomics, and neither holds all series at once. A series knows when it was made
//! (`births`): OTLP tells that as its start, and a scraper is told 0 once of a series that it has not
//! seen (`scrapers`).
//!
//! Native histograms need further buckets in every series and every stream, and Prometheus scrapes
//! them only as protobuf. So they exist only with `native_histograms: on`, or if pushes have
//! exponential histograms, which use the same buckets. `taximeter_meter::ExponentialHistogram`
//! implements them. A stream's gaps have some too, which are merged at its end. `prometheus/protobuf.rs`
//! writes them in messages of a few series of one family, so that this scrape is not held as a
//! whole either.
//!
//! # Pushes
//!
//! `pusher.rs` sends metrics, spans and logs. It knows only bytes: a source of batches, a
//! collector, and when to try again. A new signal needs a source and nothing more. Each round of
//! metrics begins with the current values: a collector that was away misses samples of time, never
//! counts. For deltas the source keeps what the collector has taken of each series.
//!
//! Spans and log records come once. A request leaves them in a `queue`, whose bytes are bounded. The
//! thread of the signal makes compressed batches of them each second, also while a collector is away.
//! The batches wait in a `backlog` with bounded bytes until the collector has taken them.
//!
//! The messages and names come from `opentelemetry-proto` and `opentelemetry-semantic-conventions`.
//! The SDK is not used: its aggregations would be a second set of numbers, and it cannot take the
//! gaps of a stream in one addition. tonic is not used: a unary gRPC call is an HTTP/2 request with
//! five bytes before its body and a status in the trailers.
//!
//! # Logs and traces
//!
//! `lines.rs` writes the log on a thread of its own, so that a pipe that nobody reads holds up no
//! worker. What is known of a request at its end (`ended`) becomes its spans and its line. `logs`
//! makes OTLP log records from all lines.
//!
//! # Prompts and answers
//!
//! The gateway collects what a request and its answer say only if the configuration asks for it,
//! and only for a trace that is kept from its start: the body as it came, and a `Transcript` of
//! `meter` that adds up events into messages of bounded size. Parsing, redaction and cutting
//! (`content`) happen when the span or the event (`details`) is sent, so no request waits for them.

mod active;
mod attributes;
mod births;
mod bounded;
pub mod content;
mod details;
pub mod ended;
mod event;
pub mod events;
mod exemplar;
pub mod exports;
mod facts;
mod fault;
mod fleet;
mod inference;
mod instruments;
mod line;
pub mod lines;
pub mod log;
mod logs;
mod message;
mod metrics;
pub mod money;
mod names;
pub mod otlp;
mod prometheus;
pub mod pusher;
mod queue;
mod recorded;
#[cfg(test)]
mod reference;
mod requests;
mod resource;
mod rooms;
mod scrapers;
mod series;
pub mod spans;
mod streams;
pub mod trace;
mod trace_context;
mod traces;
mod usage_source;
mod value;
mod wait;
mod weight;

use jiff::Timestamp;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use taximeter_config::{Config, OtelSettings};
use taximeter_ledger::{RecordTiming, RequestId};

use content::{Captured, Waiting};
use details::Details;
use ended::Ended;
use events::ContentLeftOut;
use exports::Exports;
use log::Log;
use logs::Logs;
use spans::Spans;
use trace::{Fate, Found, RequestTrace, SERVER};

pub use active::Active;
pub use attributes::RequestNames;
pub use event::Event;
pub use exemplar::Origin;
pub use facts::{CertificateFact, Facts};
pub use fault::Fault;
pub use fleet::FleetVital;
pub use metrics::{Metrics, UpstreamCounts, UpstreamVitals, Vitals};
pub use names::log_event::LogEvent;
pub use prometheus::{Exposition, ExpositionFormat};
pub use recorded::Completed;
pub use requests::{Failed, MODELS_MAX};
pub use scrapers::{Scraper, ScraperId};
pub use streams::StreamSeries;
pub use trace_context::TraceContext;
pub(crate) use traces::Traces;
pub use wait::{Wait, WaitOutcome};

/// The telemetry of a gateway.
pub struct Telemetry {
    /// Log lines.
    pub log: Log,
    /// Metrics.
    pub metrics: Metrics,
    /// Spans; `None` if no spans are configured. Then trace contexts pass unchanged.
    pub traces: Option<Traces>,
    /// Whether a call is an event also where nothing of what is said is captured.
    has_events: bool,
    /// The state of the push of each signal.
    pub exports: Exports,
}

impl Telemetry {
    /// The telemetry of a gateway, without any samples yet.
    pub fn new(log: Log, config: &Config, otel: &OtelSettings, since: Timestamp) -> Self {
        let sampling = otel.traces.as_ref().map(|export| export.sampling.clone());
        let traces = sampling.map(|sampling| Traces::new(sampling, otel.genai));
        let logs = otel.logs.as_ref().map(|_| Logs::new(otel.genai));
        log.limit(&config.limits);
        Self {
            log: log.pushing(logs),
            metrics: Metrics::new(config, otel, since),
            traces,
            has_events: otel.events,
            exports: Exports::default(),
        }
    }

    /// Applies a new configuration.
    pub fn reconfigured(&self, config: &Config) {
        self.metrics.reconfigured(config);
        self.log.limit(&config.limits);
    }

    /// The number of spans, or of log records, that wait for the collector. Metrics never wait,
    /// because each push has their current values.
    pub fn waiting(&self, signal: &str) -> usize {
        match signal {
            "traces" => self.traces.as_ref().map_or(0, Traces::waiting),
            "logs" => self.log.logs.as_ref().map_or(0, Logs::waiting),
            _ => 0,
        }
    }

    /// Decides whether the spans of a request that has ended are kept, and where it can be found
    /// again.
    pub fn fate(
        &self,
        request: RequestId,
        caller: Option<TraceContext>,
        failed: bool,
        timing: Option<&RecordTiming>,
    ) -> Fate {
        let Some(traces) = &self.traces else {
            let keeps = caller.filter(|caller| caller.sampled);
            let found = keeps.map(|caller| Found { trace_id: caller.trace_id, span_id: None });
            let request_trace = RequestTrace::new(request, caller, |_, _| false);
            return Fate { request_trace, found, is_kept: false };
        };
        let request_trace = traces.request_trace(request, caller);
        let is_kept = traces.keeps(&request_trace, failed, timing);
        let found = || Found {
            trace_id: request_trace.trace_id,
            span_id: Some(request_trace.span(SERVER)),
        };
        Fate { found: is_kept.then(found), request_trace, is_kept }
    }

    /// The spans of a request, if spans are configured.
    pub fn spans(&self, ended: &Ended<'_>) -> Option<Spans> {
        self.traces.as_ref().map(|traces| ended.spans(traces.genai))
    }

    /// Whether it is already certain that the spans of a request are kept.
    pub fn is_sampled(&self, request: RequestId, caller: Option<TraceContext>) -> bool {
        self.traces.as_ref().is_some_and(|traces| traces.request_trace(request, caller).sampled)
    }

    /// Records an event.
    pub fn emit(&self, event: &impl Event) {
        event.count(&self.metrics);
        event.line(&self.log);
    }

    /// Queues the spans of a request that has ended, and its captured content.
    pub fn queue_spans(&self, spans: Vec<Span>, said: Option<Captured>) {
        let Some(traces) = &self.traces else { return };
        let capture = said.as_ref().map(Captured::capture).unwrap_or_default();
        let call = spans.iter().find(|span| span.kind() == SpanKind::Client);
        let on_event = said.as_ref().filter(|_| capture.is_on_events());
        let is_queued = call.is_none_or(|call| self.queue_details(traces, call, on_event));
        let said = said.filter(|_| capture.is_on_spans());
        if !traces.queue(spans, said) || !is_queued {
            self.emit(&ContentLeftOut { cause: "queue_full" });
        }
    }

    /// The event of a call, where it shall have one; whether with all that was said.
    fn queue_details(&self, traces: &Traces, call: &Span, said: Option<&Captured>) -> bool {
        let Some(logs) = &self.log.logs else { return true };
        let said = match said {
            Some(said) => match Waiting::of(said, &traces.content_bytes) {
                Some(waiting) => Some((said.clone(), waiting)),
                None => return false,
            },
            None if self.has_events && details::is_due(call) => None,
            None => return true,
        };
        logs.queue_details(Details::new(call, said));
        true
    }
}
