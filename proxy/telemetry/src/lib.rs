//! What is told to operators: metrics and log lines. The journey says what happened; `events.rs`
//! says how that looks; `names.rs` has every name.

mod active;
mod attributes;
mod bounded;
pub mod content;
mod details;
pub mod ended;
mod event;
pub mod events;
mod exemplar;
pub mod exports;
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
mod series;
pub mod spans;
pub mod trace;
mod trace_context;
mod traces;

use jiff::Timestamp;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use taximeter_config::{Config, Emission};
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
pub use event::Event;
pub use exemplar::Origin;
pub use metrics::{Metrics, Vitals};
pub use names::log_event::LogEvent;
pub use prometheus::{Exposition, ExpositionFormat};
pub use requests::Failed;
pub use trace_context::TraceContext;
pub(crate) use traces::Traces;

/// Everything that is told.
pub struct Telemetry {
    /// Log lines.
    pub log: Log,
    /// Metrics.
    pub metrics: Metrics,
    /// `None` where nobody asks for spans: then trace contexts pass untouched.
    pub traces: Option<Traces>,
    /// Whether a call is an event also where nothing of what is said is captured.
    has_events: bool,
    /// How the pushing of each signal does.
    pub exports: Exports,
}

impl Telemetry {
    /// Nothing told yet, by the gateway of this name.
    pub fn new(
        log: Log,
        config: &Config,
        emission: &Emission,
        gateway: &str,
        since: Timestamp,
    ) -> Self {
        let sampling = emission.traces.as_ref().map(|export| export.sampling.clone());
        let traces = sampling.map(|sampling| Traces::new(sampling, emission.genai));
        let logs = emission.logs.as_ref().map(|_| Logs::new(emission.genai));
        log.limit(&config.limits);
        Self {
            log: log.pushing(logs),
            metrics: Metrics::new(config, emission, gateway, since),
            traces,
            has_events: emission.events,
            exports: Exports::default(),
        }
    }

    /// Another configuration is in force.
    pub fn reconfigured(&self, config: &Config) {
        self.metrics.reconfigured(config);
        self.log.limit(&config.limits);
    }

    /// What of a signal waits for the collector: requests with spans, or lines. Metrics never wait:
    /// each push tells all of them as they are then.
    pub fn waiting(&self, signal: &str) -> usize {
        match signal {
            "traces" => self.traces.as_ref().map_or(0, Traces::waiting),
            "logs" => self.log.logs.as_ref().map_or(0, Logs::waiting),
            _ => 0,
        }
    }

    /// What becomes of the spans of a request that has ended, and where it can be found again.
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
            let place = RequestTrace::new(request, caller, |_, _| false);
            return Fate { place, found, is_kept: false };
        };
        let place = traces.place(request, caller);
        let is_kept = traces.keeps(&place, failed, timing);
        let found = || Found { trace_id: place.trace_id, span_id: Some(place.span(SERVER)) };
        Fate { found: is_kept.then(found), place, is_kept }
    }

    /// The spans of a request, where there are any.
    pub fn spans(&self, ended: &Ended<'_>) -> Option<Spans> {
        self.traces.as_ref().map(|traces| ended.spans(traces.genai))
    }

    /// Whether the spans of a request are surely kept.
    pub fn is_sampled(&self, request: RequestId, caller: Option<TraceContext>) -> bool {
        self.traces.as_ref().is_some_and(|traces| traces.place(request, caller).sampled)
    }

    /// Something happened.
    pub fn emit(&self, event: &impl Event) {
        event.count(&self.metrics);
        event.line(&self.log);
    }

    /// The spans of a request that has ended, and what was said in it, where that is captured.
    pub fn queue_spans(&self, spans: Vec<Span>, said: Option<Captured>) {
        let Some(traces) = &self.traces else { return };
        let capture = said.as_ref().map(Captured::capture).unwrap_or_default();
        let call = spans.iter().find(|span| span.kind() == SpanKind::Client);
        let on_event = said.as_ref().filter(|_| capture.is_on_events());
        let is_told = call.is_none_or(|call| self.queue_details(traces, call, on_event));
        let said = said.filter(|_| capture.is_on_spans());
        if !traces.queue(spans, said) || !is_told {
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
