//! What metrics are told of a stream while it runs: its wait for the first token when that comes, and
//! its output each second.

use std::sync::Arc;

use taximeter_ledger::Record;
use taximeter_telemetry::{RequestNames, StreamSeries};

use super::in_flight::InFlight;
use crate::journey::report;

impl InFlight {
    /// The first generated content has come.
    pub(super) fn tell_first_token(&mut self) {
        let first = self.answering().and_then(|answering| answering.meter.time_to_first_token());
        let (Some(first), Some(series)) = (first, self.stream_series()) else { return };
        self.told.has_wait = report::first_token_came(self, &series, first);
        self.told.series = Some(series);
    }

    /// So much output is known by now. Less than before is told once that is passed.
    pub(super) fn tell_output(&mut self, output_tokens: Option<u64>) {
        let tokens = output_tokens.unwrap_or_default();
        if tokens <= self.told.output_tokens {
            return;
        }
        let Some(series) = self.stream_series() else { return };
        self.gateway.telemetry.metrics.generated(&series, tokens - self.told.output_tokens);
        self.told.output_tokens = tokens;
        self.told.series = Some(series);
    }

    /// It has ended with this record: what was generated since the last second is told.
    pub(super) fn tell_rest(&self, record: &Record) {
        let tokens = record.usage.output_tokens.unwrap_or_default();
        let rest = tokens.saturating_sub(self.told.output_tokens);
        let names = self.names(record.response_model.as_deref());
        if rest > 0
            && let Some(series) = self.series_of(names)
        {
            self.gateway.telemetry.metrics.generated(&series, rest);
        }
    }

    fn stream_series(&self) -> Option<Arc<StreamSeries>> {
        let response_model =
            self.answering().and_then(|answering| answering.meter.response_model());
        self.series_of(self.names(response_model))
    }

    /// Its series. `None` if it is no stream, or none that the engine has answered well: names that no
    /// engine serves become no label.
    fn series_of(&self, names: RequestNames<'_>) -> Option<Arc<StreamSeries>> {
        let is_served = self.status().is_some_and(|status| (200..300).contains(&status));
        if !is_served || !self.is_stream() {
            return None;
        }
        let known = self.told.series.clone();
        Some(known.unwrap_or_else(|| self.gateway.telemetry.metrics.stream(names)))
    }

    fn names<'a>(&'a self, response_model: Option<&'a str>) -> RequestNames<'a> {
        RequestNames {
            tenant: self.call.caller.tenant.as_str(),
            operation: self.call.route.operation.as_str(),
            upstream: &self.gateway.upstream(self.asked.upstream).name,
            provider: self.gateway.provider(self.asked.upstream),
            request_model: self.asked.request_model.as_deref(),
            response_model,
        }
    }
}
