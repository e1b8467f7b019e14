//! Events of requests whose answers go on in the background.

use jiff::Timestamp;
use taximeter_ledger::RequestId;

use super::access::{given, used};
use crate::event::Event;
use crate::exemplar::Origin;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::names::log_event::LogEvent;
use crate::recorded::Completed;

/// The usage of a request that was pending has become known, and is on the ledger.
pub struct RequestCompleted<'a> {
    /// The request and its usage.
    pub completed: Completed<'a>,
    /// When it became known.
    pub at: Timestamp,
}

impl Event for RequestCompleted<'_> {
    fn count(&self, to: &Metrics) {
        let request = self.completed.request.id;
        let origin = Origin { request, trace: None, at: self.at };
        to.requests.complete(&to.instruments, &self.completed, origin);
    }

    fn line(&self, to: &Log) {
        let Completed { request, response_model, usage, cost, .. } = self.completed;
        let mut fields = vec![
            ("id", request.id.to_string().into()),
            ("tenant", request.tenant.as_str().into()),
            ("operation", request.operation.as_str().into()),
            ("provider", request.provider.as_str().into()),
            ("upstream", request.upstream.as_str().into()),
        ];
        fields.extend(given("model", request.request_model.as_deref()));
        fields.extend(given("response_model", response_model));
        used(usage, cost, &mut fields);
        to.tell_of(None, LogEvent::RequestCompleted, fields);
    }
}

/// The ledger did not accept what completes a request. It stays pending.
pub struct CompletionDelayed {
    /// The request.
    pub id: RequestId,
    /// The reason.
    pub reason: String,
}

impl Event for CompletionDelayed {
    fn count(&self, _to: &Metrics) {}

    fn line(&self, to: &Log) {
        let fields = [("id", self.id.to_string().into()), ("reason", self.reason.as_str().into())];
        to.tell(LogEvent::CompletionDelayed, fields);
    }
}
