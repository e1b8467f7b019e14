//! How a request with a reservation ends: what it used is counted, priced and posted.

use std::time::Instant;

use bytes::Bytes;
use taximeter_ledger::{Entry, Record, VoidReason};
use taximeter_meter::{Delivery, Measurement, Meter, StreamEnd, Wire};
use taximeter_net::upstream::RequestBody;
use taximeter_request::Context;
use taximeter_system::clock;
use taximeter_telemetry::events::{CountSkipped, EntryLost, LedgerSlow};
use tokio::sync::oneshot;

use super::count::{self, Count, GeneratedText, Input, Job, SHORT_BYTES_MAX};
use super::in_flight::{Answering, InFlight, InFlightStage};
use super::passing::{Next, Passing};
use super::record::{self, Receipt};
use super::settling::{Posted, Settling, Written};
use super::usage::TokenParts;
use crate::chains::Link;
use crate::contexts::ContextTokens;
use crate::journey::report;
use crate::live::Stage;

impl InFlight {
    pub(super) fn settle(mut self: Box<Self>, end: StreamEnd) -> Settling {
        let Some((mut measurement, passing)) = self.finish(clock::now(), end) else {
            self.end_unused(VoidReason::NotSent, end, None);
            return Settling::done();
        };
        self.live.reached(Stage::Settling);
        let characters =
            self.prompt.characters.map(|count| ("characters".to_owned(), count.into()));
        measurement.counted_units.extend(characters);
        self.gateway.guess(self.asked.upstream, measurement.dialect);
        if self.status().is_some_and(|status| status >= 300) && !measurement.reports_use() {
            self.end_unused(VoidReason::UpstreamRefused, end, Some(&measurement));
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

    pub(super) fn on_bytes(&mut self, now: Instant, data: Bytes) -> Delivery {
        let Self { gateway, asked, live, stage, .. } = self;
        let InFlightStage::Answering(Answering { meter, passing, .. }) = stage else {
            return Delivery { forward: data, hold: Bytes::new() };
        };
        let delivery = meter.on_bytes(now, data);
        let is_first = live.generated(now, meter.output_chunks());
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
        if is_first {
            self.tell_first_token();
        }
        delivery
    }

    /// Counts a long prompt while the engine works on it, if it will surely be counted.
    pub(super) fn begin_input(&mut self) {
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

    /// Remembers what was said up to this answer, for requests that go on from it.
    fn remember(&self, record: &Record, is_compaction: bool) {
        if self.call.wire() != Wire::Responses {
            return;
        }
        let session = record.dimensions.as_ref().and_then(|told| told.session.as_deref());
        if let (Some(id), Some(session)) = (&record.response_id, session) {
            self.gateway.chains.put(&record.tenant, Link::Response(id), session);
        }
        if record.is_pending() {
            return;
        }
        if is_compaction {
            // Nobody says how large it is now.
            if let Some(context) = &self.asked.conversation {
                self.gateway.contexts.forget(&record.tenant, &record.upstream, context);
            }
            return;
        }
        let Some(size) = ContextTokens::behind(&record.usage) else { return };
        let response = record.response_id.clone().map(Context::Response);
        for context in response.iter().chain(&self.asked.conversation) {
            self.gateway.contexts.put(&record.tenant, &record.upstream, context, size);
        }
    }

    fn post(&self, measurement: &Measurement, count: Count) -> Posted {
        let record = record::record(self, measurement, &count);
        if record.status.is_some() && record.end.is_upstreams_fault() {
            let cause = record.end.as_str();
            self.gateway.health(self.asked.upstream).broke_off(record.ended_at, cause);
        }
        self.remember(&record, measurement.is_compaction);
        let receipt = Receipt::of(&record, self.owes_receipt());
        self.tell_rest(&record);
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
