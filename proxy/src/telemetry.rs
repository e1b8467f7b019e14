//! What is told to operators: metrics and log lines. The journey says what happened; `events.rs`
//! says how that looks; `names.rs` has every name.

mod attributes;
mod bounded;
mod event;
pub(crate) mod events;
mod exemplar;
mod inference;
mod instruments;
pub(crate) mod log;
mod message;
mod metrics;
mod names;
pub(crate) mod otlp;
mod prometheus;
#[cfg(test)]
mod reference;
mod requests;
mod resource;
mod series;
pub(crate) mod spans;
pub(crate) mod trace;
mod trace_context;
mod traces;

use jiff::Timestamp;
use opentelemetry_proto::tonic::trace::v1::Span;
use taximeter_config::{Config, Emission};

use crate::edge::otlp::{TRACES, Told};

use event::Event;
use events::OtlpTold;
use log::Log;

pub(crate) use metrics::{Metrics, Vitals};
pub(crate) use prometheus::{Exposition, Format};
pub(crate) use requests::Failed;
pub(crate) use trace_context::TraceContext;
pub(crate) use traces::Traces;

/// Everything that is told.
pub(crate) struct Telemetry {
    pub(crate) log: Log,
    pub(crate) metrics: Metrics,
    /// `None` where nobody asks for spans: then trace contexts pass untouched.
    pub(crate) traces: Option<Traces>,
}

impl Telemetry {
    /// Nothing told yet, by the gateway of this name.
    pub(crate) fn new(
        log: Log,
        config: &Config,
        emission: &Emission,
        gateway: &str,
        since: Timestamp,
    ) -> Self {
        let sampling = emission.traces.as_ref().map(|export| export.sampling.clone());
        let traces = sampling.map(|sampling| Traces::new(sampling, emission.genai));
        Self { log, metrics: Metrics::new(config, emission, gateway, since), traces }
    }

    /// Something happened.
    pub(crate) fn emit(&self, event: &impl Event) {
        event.count(&self.metrics);
        event.line(&self.log);
    }

    /// The spans of a request that has ended.
    pub(crate) fn queue_spans(&self, spans: Vec<Span>) {
        if let Some(Err(items)) = self.traces.as_ref().map(|traces| traces.queue(spans)) {
            let reason = "too many wait for the collector";
            self.emit(&OtlpTold(&Told::Dropped { signal: TRACES.name, items, reason }));
        }
    }
}
