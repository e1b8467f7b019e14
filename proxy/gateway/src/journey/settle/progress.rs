//! Writes the usage of a running stream to the journal. A start uses it if the gateway dies.

use std::time::Instant;

use taximeter_ledger::{Entry, Progress};
use taximeter_meter::Measurement;
use taximeter_system::clock;
use taximeter_tokenizer::estimate;

use super::count::{self, Count, GeneratedText, Input, SHORT_BYTES_MAX, Tally};
use super::in_flight::InFlight;
use super::record;
use super::usage::TokenParts;
use crate::counting::Counting;

impl InFlight {
    /// Tells the ledger what the record would say if the client left now, if that is news. Nothing
    /// long is counted here: that is estimated, and said to be.
    pub(super) fn say_progress(&mut self, now: Instant) {
        let Some(answering) = self.answering() else { return };
        let mut measurement = answering.meter.so_far(now);
        let wire = self.call.wire();
        let missing = TokenParts::to_count(wire, &measurement);
        let response_model = measurement.response_model.as_deref();
        let counting =
            self.gateway.tokenizers.choose(self.asked.models(&self.gateway, response_model));
        let is_read = missing.output && record::is_understood(self, &measurement);
        let count = Count {
            input: missing.input.then(|| self.input_so_far(&measurement, &counting)).flatten(),
            output: is_read.then(|| self.output_so_far(&mut measurement, &counting)).flatten(),
            ..Count::default()
        };
        let (usage, _) = record::used(self, &measurement, &count);
        let is_known = usage.input_tokens.is_some() || usage.output_tokens.is_some();
        let said = self.answering().and_then(|answering| answering.said.as_ref());
        if !is_known || said.is_some_and(|said| said.usage == usage) {
            return;
        }
        self.live.used(usage.input_tokens, usage.output_tokens);
        self.tell_output(usage.output_tokens);
        let entry = Entry::Progress(Box::new(Progress {
            id: self.call.id,
            at: clock::wall(),
            response_model: measurement.response_model,
            response_id: measurement.response_id.filter(|_| measurement.is_pending),
            service_tier: measurement.service_tier,
            usage,
        }));
        self.gateway.journal.append_if_room(&entry);
        if let (Entry::Progress(said), Some(answering)) = (entry, self.answering_mut()) {
            answering.said = Some(said);
        }
    }

    fn input_so_far(&mut self, measurement: &Measurement, counting: &Counting) -> Option<Tally> {
        let prompt = &mut self.prompt;
        let body = prompt.body().filter(|body| body.len() <= SHORT_BYTES_MAX as u64);
        if let Some(body) = body.filter(|_| counting.is_quick()) {
            let tally = count::input(self.call.wire(), body, counting);
            // Who answers may choose another vocabulary.
            if measurement.response_model.is_none() {
                return Some(tally);
            }
            let name = counting.choice.tokenizer.name().to_owned();
            prompt.input = Input::Counted(Some(tally), name);
        }
        let is_to_come = prompt.input.is_being_counted();
        match &prompt.input {
            Input::Counted(tally, name) if !is_to_come => {
                tally.map(|tally| tally.by(name, &counting.choice))
            }
            _ => Some(Tally { tokens: estimate(prompt.bytes), estimated: true }),
        }
    }

    fn output_so_far(&self, measurement: &mut Measurement, counting: &Counting) -> Option<Tally> {
        let passing = &self.answering()?.passing;
        let bytes = measurement.output_text_bytes;
        let rest = std::mem::take(&mut measurement.output_text);
        let waiting = rest.len() + passing.waiting_bytes();
        let tokenizer = &counting.choice.tokenizer;
        if waiting > 0 && !tokenizer.is_loaded() && counting.choice.exact {
            self.gateway.process().load(tokenizer.clone());
        }
        if waiting > SHORT_BYTES_MAX || waiting > 0 && !tokenizer.is_loaded() {
            return Some(Tally { tokens: estimate(bytes), estimated: true });
        }
        let mixed = self.asked.choices > 1 || measurement.finish_reasons.len() > 1;
        let output = GeneratedText { passed: passing.clone(), rest, bytes, mixed };
        self.gateway.guarded(|| output.count(&counting.choice)).flatten()
    }
}
