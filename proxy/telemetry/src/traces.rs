//! Decides which requests have spans, and holds the spans on their way to a collector: a bounded
//! queue that is read in batches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;
use taximeter_config::{GenAi, Sampling};
use taximeter_ledger::{RecordTiming, RequestId};
use tokio::sync::Notify;

use super::content::{BATCH_CONTENT_BYTES_MAX, Captured, Waiting};
use super::message::{resource, scope};
use super::queue::{QUEUE_BYTES_MAX, Queue};
use super::resource::{RESOURCE_SCHEMA_URL, schema_url};
use super::trace::RequestTrace;
use super::trace_context::TraceContext;
use super::weight;
use crate::pusher::{Batch, QueueSource, Source};

/// Requests in one push: their spans stay far below what collectors take, which is 4 MiB.
const BATCH_REQUESTS_MAX: usize = 200;

/// Decides which requests have spans, and holds the spans on their way.
pub struct Traces {
    sampling: Sampling,
    pub(super) genai: GenAi,
    queue: Arc<Queue<QueuedSpans>>,
    /// Bytes of content that wait.
    pub(super) content_bytes: Arc<AtomicUsize>,
}

/// What is told of one request.
struct QueuedSpans {
    spans: Vec<Span>,
    said: Option<(Captured, Waiting)>,
}

impl QueuedSpans {
    /// Adds its spans to `spans`; how many bytes of content they have.
    fn tell(mut self, spans: &mut Vec<Span>) -> usize {
        let client = self.spans.iter_mut().find(|span| span.kind() == SpanKind::Client);
        let bytes = self.said.zip(client).map(|((said, _waiting), client)| {
            let (attributes, bytes) = said.attributes();
            client.attributes.extend(attributes);
            bytes
        });
        spans.append(&mut self.spans);
        bytes.unwrap_or(0)
    }
}

impl Traces {
    pub(super) fn new(sampling: Sampling, genai: GenAi) -> Self {
        let queue = Arc::new(Queue::new(QUEUE_BYTES_MAX));
        Self { sampling, genai, queue, content_bytes: Arc::default() }
    }

    /// The position of a request whose caller sent `caller`.
    pub fn request_trace(&self, request: RequestId, caller: Option<TraceContext>) -> RequestTrace {
        RequestTrace::new(request, caller, |caller, trace_id| match caller {
            Some(keeps) if self.sampling.heeds_parent => keeps,
            _ => self.sampling.ratio.keeps(trace_id),
        })
    }

    /// Whether the spans of a request are kept, now that it has ended.
    pub(super) fn keeps(
        &self,
        request_trace: &RequestTrace,
        failed: bool,
        timing: Option<&RecordTiming>,
    ) -> bool {
        let always = &self.sampling.always;
        let is_over = |seconds: Option<f64>, limit: Duration| {
            seconds.is_some_and(|seconds| seconds > limit.as_secs_f64())
        };
        request_trace.sampled
            || always.errors && failed
            || timing.is_some_and(|timing| {
                is_over(timing.time_to_first_token, always.slow_first_token)
                    || is_over(timing.longest_stall, always.stall)
            })
    }

    /// Puts the spans of a request on their way; whether with what was said, if anything was.
    pub(crate) fn queue(&self, spans: Vec<Span>, said: Option<Captured>) -> bool {
        let (items, bytes) = (spans.len(), weight::spans(&spans));
        let is_said = said.is_some();
        let said = said.and_then(|said| {
            let waiting = Waiting::of(&said, &self.content_bytes)?;
            Some((said, waiting))
        });
        let is_kept = said.is_some() == is_said;
        self.queue.push(QueuedSpans { spans, said }, items, bytes);
        is_kept
    }

    /// How many spans wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.items()
    }

    /// The queued spans as a source of batches.
    pub fn source(&self, of: &BTreeMap<String, String>) -> impl QueueSource + use<> {
        SpansSource {
            genai: self.genai,
            queue: self.queue.clone(),
            resource: resource(of),
            round: VecDeque::new(),
            making: 0,
        }
    }
}

/// Spans as a source of batches.
struct SpansSource {
    genai: GenAi,
    queue: Arc<Queue<QueuedSpans>>,
    resource: Resource,
    /// What is left of the round.
    round: VecDeque<QueuedSpans>,
    /// Spans of the batch that is being made.
    making: usize,
}

impl Source for SpansSource {
    fn begin(&mut self) -> usize {
        let (round, lost) = self.queue.take();
        self.round = round;
        lost
    }

    fn next(&mut self) -> Option<Batch> {
        let (mut spans, mut said) = (Vec::new(), 0);
        for _ in 0..BATCH_REQUESTS_MAX {
            if said > BATCH_CONTENT_BYTES_MAX {
                break;
            }
            let Some(queued) = self.round.pop_front() else { break };
            self.making += queued.spans.len();
            said += queued.tell(&mut spans);
        }
        let items = spans.len();
        let request = || ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(scope()),
                    spans,
                    schema_url: schema_url(self.genai).to_owned(),
                }],
                schema_url: RESOURCE_SCHEMA_URL.to_owned(),
            }],
        };
        let batch = (items > 0).then(|| Batch { body: request().encode_to_vec().into(), items });
        self.making = 0;
        batch
    }

    fn taken(&mut self) {}

    fn abandon(&mut self) -> usize {
        let left: usize =
            std::mem::take(&mut self.round).iter().map(|queued| queued.spans.len()).sum();
        left + std::mem::take(&mut self.making)
    }
}

impl QueueSource for SpansSource {
    fn filling(&self) -> Arc<Notify> {
        self.queue.filling()
    }

    fn note_waiting(&self, items: usize) {
        self.queue.note_in_batches(items);
    }
}

#[cfg(test)]
mod tests {
    use taximeter_config::{Always, Ratio};
    use uuid::Uuid;

    use super::*;

    const ID: RequestId = RequestId(Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001));

    fn traces(ratio: Ratio, heeds_parent: bool) -> Traces {
        let always = Always {
            errors: true,
            slow_first_token: Duration::from_secs(2),
            stall: Duration::from_secs(1),
        };
        Traces::new(Sampling { ratio, heeds_parent, always }, GenAi::V1_41)
    }

    fn caller(sampled: bool) -> Option<TraceContext> {
        Some(TraceContext { trace_id: [7; 16], parent: [8; 8], sampled })
    }

    #[test]
    fn the_caller_decides_and_the_ratio_where_there_is_none() {
        let none = traces(Ratio::NONE, true);
        let own = none.request_trace(ID, None);
        assert_eq!((own.trace_id, own.parent, own.sampled), (ID.0.into_bytes(), None, false));
        let theirs = none.request_trace(ID, caller(true));
        assert_eq!((theirs.trace_id, theirs.parent), ([7; 16], Some([8; 8])));
        assert!(theirs.sampled);
        assert!(!traces(Ratio::ALL, true).request_trace(ID, caller(false)).sampled);
        assert!(traces(Ratio::ALL, false).request_trace(ID, caller(false)).sampled);
    }

    #[test]
    fn what_failed_was_late_or_stalled_is_kept_whatever_was_decided() {
        let traces = traces(Ratio::NONE, true);
        let request_trace = traces.request_trace(ID, caller(false));
        let timing = |first, stall| RecordTiming {
            time_to_first_token: first,
            longest_stall: stall,
            ..RecordTiming::default()
        };
        assert!(!traces.keeps(&request_trace, false, Some(&timing(Some(2.0), Some(1.0)))));
        assert!(traces.keeps(&request_trace, false, Some(&timing(Some(2.1), None))));
        assert!(traces.keeps(&request_trace, false, Some(&timing(None, Some(1.1)))));
        assert!(traces.keeps(&request_trace, true, None));
        assert!(traces.keeps(&traces.request_trace(ID, caller(true)), false, None));
    }

    #[test]
    fn what_waits_is_bounded_and_leaves_in_batches() {
        let traces = traces(Ratio::ALL, true);
        let mut source = traces.source(&BTreeMap::new());
        let request = || vec![Span::default(), Span::default()];
        let fits = QUEUE_BYTES_MAX / weight::spans(&request());
        for _ in 0..fits {
            traces.queue(request(), None);
        }
        assert_eq!((source.begin(), traces.waiting()), (0, 0));
        for _ in 0..fits + 3 {
            traces.queue(request(), None);
        }
        assert_eq!(traces.waiting(), 2 * fits);
        let first = source.next().unwrap();
        assert_eq!(first.items, 2 * BATCH_REQUESTS_MAX);
        let sent = ExportTraceServiceRequest::decode(&*first.body).unwrap();
        assert_eq!(sent.resource_spans[0].scope_spans[0].spans.len(), first.items);
        assert_eq!(source.abandon(), 2 * (fits - BATCH_REQUESTS_MAX));
        assert_eq!(source.next(), None);
        assert_eq!(source.begin(), 2 * 3, "what did not fit is lost");
    }
}
