//! The settlement of one request, from its reservation to its post or void. It writes exactly one
//! of them. A settlement that is dropped records that the client has left.

mod count;
pub mod in_flight;
mod passing;
mod progress;
mod record;
mod settling;
mod usage;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use taximeter_ledger::{Entry, TenantId, Void, VoidReason};
use taximeter_meter::{Delivery, Framing, Hidden, Measurement, Meter, Setup, StreamEnd, Wire};
use taximeter_net::concurrency::Permit;
use taximeter_net::upstream::RequestBody;
use taximeter_system::clock;
use taximeter_telemetry::ended::Try;
use taximeter_telemetry::events::{CountSkipped, EntryLost, LedgerSlow};
use tokio::sync::oneshot;

use super::identify::Call;
use super::refuse::{Refusal, StreamShape};
use super::report;
use super::route::Chosen;
use crate::gateway::Gateway;
use crate::listen::Peer;
use crate::live::{RequestInfo, Stage};
use count::{Count, GeneratedText, Input, Job, SHORT_BYTES_MAX};
use in_flight::{AnswerHead, Answering, Asked, InFlight, InFlightStage, Prompt};
use passing::{Next, Passing};
use settling::{Posted, Written};
use usage::TokenParts;

pub(crate) use record::Receipt;
pub(crate) use settling::Settling;

/// One request's open settlement.
pub struct Settlement(Option<Box<InFlight>>);

impl Settlement {
    /// Opens the settlement of a request that has just been reserved.
    pub fn new(
        gateway: Arc<Gateway>,
        peer: Arc<Peer>,
        call: Call,
        chosen: &mut Chosen,
        permit: Option<Permit<TenantId>>,
    ) -> Self {
        gateway.telemetry.metrics.settlement_opened();
        let live = gateway.live.begin(RequestInfo {
            id: call.id,
            request_id: call.request_id.clone(),
            tenant: call.caller.tenant.clone(),
            request_model: chosen.request_model.clone(),
            upstream: gateway.upstream_name(chosen.index),
            route: call.route.template,
            stream: chosen.stream,
            started: call.started,
            started_at: call.started_at,
        });
        let asked = Asked {
            upstream: chosen.index,
            request_model: chosen.request_model.clone(),
            service_tier: chosen.service_tier.take(),
            stream: chosen.stream,
            choices: chosen.choices,
            max_tokens: chosen.max_tokens,
            parameters: std::mem::take(&mut chosen.parameters),
            captured: chosen.captured.take(),
            setup: Setup {
                wire: call.wire(),
                dialect: chosen.dialect,
                started_at: call.started,
                hidden: chosen.hidden,
                has_one_prompt: chosen.has_one_prompt,
            },
        };
        let (kept, held) = (chosen.kept.take(), chosen.held.take());
        Self(Some(Box::new(InFlight {
            gateway,
            prompt: Prompt::new(call.wire(), kept, chosen.body_bytes, held),
            call,
            peer,
            permit,
            live,
            asked,
            tries: Vec::new(),
            stage: InFlightStage::Reserved,
            refused: None,
        })))
    }

    /// It is on the ledger.
    pub fn admitted(&mut self, now: Instant) {
        if let Some(in_flight) = &mut self.0 {
            in_flight.call.stage_times.admitted = Some(now);
        }
    }

    /// The client will be told this in place of an answer.
    pub fn refused(&mut self, refusal: &Refusal) {
        if let Some(in_flight) = &mut self.0 {
            in_flight.refused = Some((refusal.status().0.as_u16(), refusal.code()));
        }
    }

    /// The first byte goes upstream now; from here on the engine may do work.
    pub fn sent(&mut self, now: Instant) {
        if let Some(in_flight) = &mut self.0 {
            in_flight.send(now);
            in_flight.live.reached(Stage::Sent);
            in_flight.prompt.count_characters();
            in_flight.begin_input();
            in_flight.prompt.keep_short();
        }
    }

    /// Nothing of it was taken after all, by this cause; it is tried once more.
    pub(crate) fn tried(&mut self, cause: &'static str) {
        if let Some(in_flight) = &mut self.0 {
            in_flight.tries.push(Try { ended: clock::now(), cause });
            in_flight.take_back();
            in_flight.live.reached(Stage::Reserved);
        }
    }

    /// The request goes on without our question for usage: its answer is what the client asked for.
    pub(crate) fn unasked(&mut self) {
        if let Some(open) = &mut self.0 {
            open.asked.setup.hidden = Hidden::default();
        }
    }

    /// The engine's head has come.
    pub fn answered(&mut self, status: u16, headers: &HeaderMap) {
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if let Some(in_flight) = &mut self.0 {
            let wants_receipt = in_flight.call.receipt;
            in_flight.begin_answer(|meter| {
                meter.on_head(status, content_type, codings(headers).as_deref());
                meter.on_headers(headers.iter().filter_map(readable));
                let framing = meter.framing().filter(|_| (200..300).contains(&status));
                // Some routes stream without being asked to, and only events can have comments.
                let owes_receipt = wants_receipt && framing == Some(Framing::Events);
                AnswerHead { status, streams: framing.is_some(), owes_receipt }
            });
            in_flight.live.reached(Stage::Answered);
        }
    }

    /// Bytes of the answer, as they came: what passes now and what waits for the ledger.
    pub(crate) fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        match &mut self.0 {
            Some(in_flight) => in_flight.on_bytes(now, data),
            None => Delivery { forward: data, hold: Bytes::new() },
        }
    }

    /// What the meter still withholds.
    pub(crate) fn take_withheld(&mut self) -> Bytes {
        let answering = self.0.as_mut().and_then(|in_flight| in_flight.answering_mut());
        answering.map(|answering| answering.meter.take_withheld()).unwrap_or_default()
    }

    /// When the whole request must have ended; `None` once it has.
    pub fn deadline(&self) -> Option<Instant> {
        let in_flight = self.0.as_ref()?;
        Some(in_flight.call.started + in_flight.gateway.config.limits.request_timeout)
    }

    /// `limit`, or less where the whole request's time ends before.
    pub(crate) fn time_left(&self, limit: Duration) -> Duration {
        let deadline = self.deadline();
        deadline.map_or(limit, |at| at.saturating_duration_since(clock::now()).min(limit))
    }

    /// Whether the whole request has taken longer than allowed.
    pub(crate) fn is_overdue(&self) -> bool {
        self.deadline().is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Whether it would end because the client left, and nobody else ended it.
    pub(crate) fn is_left(&self) -> bool {
        let in_flight = self.0.as_ref();
        in_flight.is_some_and(|in_flight| !in_flight.peer.has_stalled() && !in_flight.peer.is_cut())
    }

    /// The client has left, and what still comes of the answer is read for its usage alone.
    pub(crate) fn client_left(&mut self) {
        if let Some(answering) = self.0.as_mut().and_then(|in_flight| in_flight.answering_mut()) {
            answering.meter.client_left();
        }
    }

    /// Whether it is a stream, so that what it has used so far is known while it runs.
    pub(crate) fn is_stream(&self) -> bool {
        self.0.as_ref().is_some_and(|in_flight| in_flight.is_stream())
    }

    /// Tells the ledger what it has used so far.
    pub(crate) fn say_progress(&mut self, now: Instant) {
        if let Some(in_flight) = &mut self.0 {
            in_flight.say_progress(now);
        }
    }

    /// When it was admitted; `None` once it has ended.
    pub fn started(&self) -> Option<Instant> {
        self.0.as_ref().map(|in_flight| in_flight.call.started)
    }

    /// Whether the gateway wants this stream to end now.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.as_ref().is_some_and(|in_flight| in_flight.peer.is_cut())
    }

    /// Whether the answer is read, so that it must come in a coding that we can undo.
    pub(crate) fn is_read(&self) -> bool {
        self.0.as_ref().is_some_and(|in_flight| in_flight.call.wire() != Wire::Opaque)
    }

    /// Whether the answer is encoded, so that nothing can be taken out of it or added.
    pub(crate) fn is_encoded(&self) -> bool {
        let answering = self.0.as_ref().and_then(|in_flight| in_flight.answering());
        answering.is_some_and(|answering| answering.meter.is_encoded())
    }

    /// Whether a receipt was asked for, and will be owed if the answer is a stream of events.
    pub(crate) fn may_owe_receipt(&self) -> bool {
        self.0.as_ref().is_some_and(|in_flight| in_flight.call.receipt && in_flight.is_stream())
    }

    /// Whether a receipt is to be put at the end of the stream.
    pub(crate) fn owes_receipt(&self) -> bool {
        self.0.as_ref().is_some_and(|in_flight| in_flight.owes_receipt())
    }

    /// How an error can be told inside this answer; `None` where it cannot.
    pub(crate) fn stream_shape(&self) -> Option<StreamShape> {
        let in_flight = self.0.as_ref()?;
        Some(match (in_flight.answering()?.meter.framing()?, in_flight.call.wire()) {
            (Framing::Lines, _) => StreamShape::Line,
            (Framing::Frames, _) => StreamShape::Message,
            (Framing::Events, Wire::Responses | Wire::Messages) => StreamShape::Event,
            (Framing::Events, _) => StreamShape::Data,
        })
    }

    /// Settles. The entry is on its way when this returns; the future is ready when the kernel has
    /// it.
    pub fn settle(mut self, end: StreamEnd) -> Settling {
        match self.0.take() {
            Some(in_flight) => in_flight.settle(end),
            None => Settling::done(),
        }
    }

    /// Nothing is owed.
    pub fn void(mut self, reason: VoidReason) {
        if let Some(in_flight) = self.0.take() {
            in_flight.void(reason);
        }
    }
}

/// A header whose value is text.
fn readable<'h>((name, value): (&'h HeaderName, &'h HeaderValue)) -> Option<(&'h str, &'h str)> {
    Some((name.as_str(), value.to_str().ok()?))
}

/// All codings of an answer, in the order in which they were applied.
fn codings(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(CONTENT_ENCODING).iter();
    // A coding that is no text is none that we know.
    lines
        .map(|line| line.to_str().unwrap_or("unknown").to_owned())
        .reduce(|all, line| all + "," + &line)
}

/// The client left, unless somebody else ended it.
impl Drop for Settlement {
    fn drop(&mut self) {
        let Some(in_flight) = self.0.take() else { return };
        if in_flight.sent_at().is_none() {
            return in_flight.void(VoidReason::ClientLeft);
        }
        let end = in_flight.ended_by();
        drop(in_flight.settle(end));
    }
}

impl InFlight {
    fn settle(mut self: Box<Self>, end: StreamEnd) -> Settling {
        let Some((mut measurement, passing)) = self.finish(clock::now(), end) else {
            self.void(VoidReason::NotSent);
            return Settling::done();
        };
        self.live.reached(Stage::Settling);
        let characters =
            self.prompt.characters.map(|count| ("characters".to_owned(), count.into()));
        measurement.counted_units.extend(characters);
        self.gateway.guess(self.asked.upstream, measurement.dialect);
        if self.status().is_some_and(|status| status >= 300) && !measurement.reports_usage() {
            self.void(VoidReason::UpstreamRefused);
            return Settling::done();
        }
        let Some(mut job) = self.job(&mut measurement, passing) else {
            return Settling::posted(self.post(&measurement, Count::default()));
        };
        if job.is_short() {
            let count = self.gateway.guarded(|| job.run()).unwrap_or_default();
            return Settling::posted(self.post(&measurement, count));
        }
        let Ok(permit) = self.gateway.counting.clone().try_acquire_owned() else {
            let wire = self.call.wire();
            if TokenParts::to_count(wire, &measurement) != TokenParts::default() {
                self.gateway.telemetry.emit(&CountSkipped { cause: "queue_full" });
            }
            return Settling::posted(self.post(&measurement, job.estimate(self.prompt.bytes)));
        };
        let (sender, receiver) = oneshot::channel();
        let background = self.gateway.background.clone();
        background.spawn_blocking(move || {
            let count = self.gateway.guarded(|| job.run()).unwrap_or_default();
            drop(permit);
            // The client may be gone; the entry is written all the same.
            let posted = self.post(&measurement, count);
            // Who asks again once it has all of its answer finds its permit free.
            drop(self);
            let _ = sender.send(posted);
        });
        Settling::counting(receiver)
    }

    fn void(&self, reason: VoidReason) {
        let entry = Entry::Void(Void { id: self.call.id, reason, ended_at: clock::wall() });
        self.gateway.journal.append_detached(&entry);
        self.gateway.telemetry.metrics.settlement_closed();
        report::voided(self, reason);
    }

    fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        let Self { gateway, asked, live, stage, .. } = self;
        let InFlightStage::Answering(Answering { meter, passing, .. }) = stage else {
            return Delivery { forward: data, hold: Bytes::new() };
        };
        let delivery = meter.on_bytes(now, data);
        live.generated(now, meter.output_chunks());
        let choose = |meter: &Meter| {
            let recounts = gateway.upstream(asked.upstream).recount;
            let models = asked.models(gateway, meter.response_model());
            recounts.then(|| gateway.tokenizers.choose(models).choice)
        };
        match passing.step(meter, choose) {
            Next::Nothing => {}
            Next::Load(tokenizer) => gateway.process().load(tokenizer),
            Next::Panicked => gateway.telemetry.emit(&CountSkipped { cause: "panic" }),
        }
        delivery
    }

    /// Counts a long prompt while the engine works on it, if it will surely be counted.
    fn begin_input(&mut self) {
        let wire = self.call.wire();
        let is_long = |body: &RequestBody| body.len() > SHORT_BYTES_MAX as u64;
        if !self.gateway.upstream(self.asked.upstream).recount
            || !wire.has_countable_input()
            || !self.prompt.body().is_some_and(is_long)
        {
            return;
        }
        // The answer will most often name the model that is asked for.
        let expected = self.asked.request_model.as_deref();
        let models = self.asked.models(&self.gateway, expected);
        let counting = self.gateway.tokenizers.choose(models);
        if !counting.choice.exact {
            return;
        }
        let Ok(permit) = self.gateway.counting.clone().try_acquire_owned() else { return };
        let (sender, receiver) = oneshot::channel();
        let begun = Input::Begun(receiver, counting.choice.tokenizer.name().to_owned());
        let Some((body, held)) = self.prompt.take(begun) else { return };
        let gateway = self.gateway.clone();
        self.gateway.background.spawn_blocking(move || {
            let tally = gateway.guarded(|| count::input(wire, &body, &counting));
            drop((body, held, permit));
            // It may have ended without a need for it.
            let _ = tally.map(|tally| sender.send(tally));
        });
    }

    /// What has to be counted, if anything: what the engine did not report, and what it did where
    /// our count is exact.
    fn job(&mut self, measurement: &mut Measurement, passed: Passing) -> Option<Job> {
        let wire = self.call.wire();
        let parts = TokenParts::of(wire);
        let missing = TokenParts::to_count(wire, measurement);
        let recount = self.gateway.upstream(self.asked.upstream).recount;
        if record::owes_nothing(measurement) {
            return None;
        }
        if missing == TokenParts::default() && !recount {
            return None;
        }
        let response_model = measurement.response_model.as_deref();
        let counting =
            self.gateway.tokenizers.choose(self.asked.models(&self.gateway, response_model));
        let compared = if recount && counting.choice.exact && wire.is_text() {
            parts.comparable(measurement)
        } else {
            TokenParts::default()
        };
        let input = std::mem::replace(&mut self.prompt.input, Input::Bytes(self.prompt.bytes));
        // By its length a prompt can be estimated, and not compared.
        let is_wanted = match input {
            Input::Bytes(_) => missing.input,
            Input::Begun(..) | Input::Counted(..) | Input::Body(..) => {
                missing.input || compared.input
            }
        };
        let output = GeneratedText {
            passed,
            rest: std::mem::take(&mut measurement.output_text),
            bytes: measurement.output_text_bytes,
            mixed: self.asked.choices > 1 || measurement.finish_reasons.len() > 1,
        };
        let understood = record::is_understood(self, measurement);
        let job = Job {
            counting,
            input: is_wanted.then_some(input),
            output: (missing.output && understood || compared.output).then_some(output),
        };
        (job.input.is_some() || job.output.is_some()).then_some(job)
    }

    fn post(&self, measurement: &Measurement, count: Count) -> Posted {
        let record = record::record(self, measurement, &count);
        if record.status.is_some() && record.end.is_upstreams_fault() {
            let cause = record.end.as_str();
            self.gateway.health(self.asked.upstream).failed(record.ended_at, cause);
        }
        let receipt = Receipt::of(&record, self.owes_receipt());
        let closing = report::settled(self, &record, measurement);
        let entry = Entry::Post(Box::new(record));
        let limit = self.gateway.config.limits.ledger_write_timeout;
        let written: Written = match self.gateway.journal.append(&entry) {
            Ok(append) => {
                let telemetry = self.gateway.telemetry.clone();
                Box::pin(async move {
                    // Already served: the journal keeps what it could not write, and retries.
                    if tokio::time::timeout(limit, append).await.is_err() {
                        telemetry.emit(&LedgerSlow { action: "settle", took: limit });
                    }
                    drop(closing);
                })
            }
            Err(fault) => {
                self.gateway.telemetry.emit(&EntryLost { reason: fault.to_string() });
                Box::pin(std::future::ready(()))
            }
        };
        self.gateway.telemetry.metrics.settlement_closed();
        (written, receipt)
    }
}
