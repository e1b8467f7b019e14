//! The series of one kind of request. Recording a request takes a few additions.

use std::time::Duration;

use ::metrics::{CounterFn as _, Label};
use taximeter_ledger::{End, Record, RecordCost, RecordUsage, UnknownCost, UnknownCostReason};
use taximeter_pricing::{Flag, Member, Source};

use super::attributes::{Attributes, Work, words};
use super::exemplar::Origin;
use super::inference::Inference;
use super::instruments::{Buckets, Count, Instruments, Number, SeriesSlot};
use super::money;
use super::names::{Instrument, key};
use super::recorded::{Completed, RecordedRequest};
use super::usage_source::UsageSource;
use super::wait::{Wait, WaitOutcome};

/// `gen_ai.token.type`.
const INPUT: &str = "input";
const OUTPUT: &str = "output";
/// Where a number may be known from.
const SOURCES: [Source; 3] = [Source::Reported, Source::Counted, Source::Unknown];
/// How many reasons there are for an unknown cost.
const UNKNOWN_COSTS: usize = UnknownCostReason::TooLarge as usize + 1;
/// How many flags there are.
const FLAGS: usize = Flag::Pending as usize + 1;

/// One kind of request's series, each made when it is first needed.
pub(super) struct KindSeries {
    attributes: Attributes,
    /// Those that only the latest generation has, for inference.
    inference: Option<Inference>,
    http_server: SeriesSlot<Buckets>,
    http_client: SeriesSlot<Buckets>,
    /// Input and output.
    usage: [SeriesSlot<Buckets>; 2],
    operation: SeriesSlot<Buckets>,
    embeddings: SeriesSlot<Buckets>,
    embeddings_input: SeriesSlot<Buckets>,
    server: SeriesSlot<Buckets>,
    first_chunk: SeriesSlot<Buckets>,
    per_chunk: SeriesSlot<Buckets>,
    first_token: SeriesSlot<Buckets>,
    per_token: SeriesSlot<Buckets>,
    /// By whether it is a stream, and by how the wait ended.
    waits: [[SeriesSlot<Buckets>; WaitOutcome::COUNT]; 2],
    gateway: SeriesSlot<Buckets>,
    requests: SeriesSlot<Count>,
    completions: SeriesSlot<Count>,
    /// Input and output, each reported and counted.
    tokens: [[SeriesSlot<Count>; 2]; 2],
    /// Input and output, each by where it is known from.
    sources: [[SeriesSlot<Count>; SOURCES.len()]; 2],
    /// By source and reason.
    usage_sources: [SeriesSlot<Count>; UsageSource::COUNT],
    flags: [SeriesSlot<Count>; FLAGS],
    /// Input and output, each as reported and otherwise.
    recounts: [[SeriesSlot<Count>; 2]; 2],
    parts: [SeriesSlot<Count>; 3],
    cost: SeriesSlot<Number>,
    /// By the reason.
    unpriced: [SeriesSlot<Count>; UNKNOWN_COSTS],
}

impl KindSeries {
    pub(super) fn new(attributes: Attributes) -> Self {
        Self {
            inference: (attributes.work == Work::Inference).then(Inference::default),
            attributes,
            http_server: SeriesSlot::new(),
            http_client: SeriesSlot::new(),
            usage: Default::default(),
            operation: SeriesSlot::new(),
            embeddings: SeriesSlot::new(),
            embeddings_input: SeriesSlot::new(),
            server: SeriesSlot::new(),
            first_chunk: SeriesSlot::new(),
            per_chunk: SeriesSlot::new(),
            first_token: SeriesSlot::new(),
            per_token: SeriesSlot::new(),
            waits: Default::default(),
            gateway: SeriesSlot::new(),
            requests: SeriesSlot::new(),
            completions: SeriesSlot::new(),
            tokens: Default::default(),
            sources: Default::default(),
            usage_sources: Default::default(),
            flags: Default::default(),
            recounts: Default::default(),
            parts: Default::default(),
            cost: SeriesSlot::new(),
            unpriced: Default::default(),
        }
    }

    /// Records a request that is on record.
    pub(super) fn record(&self, request: RecordedRequest<'_>) {
        let RecordedRequest { to, record, measurement, origin, .. } = request;
        self.record_http(request);
        let whole = record.timing.duration;
        self.record_durations(to, whole, request.called(whole), origin);
        if record.stream {
            self.record_stream(request);
        }
        self.wait(to, request.wait, origin);
        self.gateway
            .get_or_init(|| to.buckets(Instrument::GatewayDuration, self.with([])))
            .record_from(record.timing.gateway, origin);
        self.count(to);
        if record.is_pending() {
            self.record_flags(to, &record.usage);
        } else {
            let is_unread = measurement.has_unread_output;
            self.record_usage(to, &record.usage, (Some(record.end), is_unread), origin);
            self.record_cost(to, record.owed(), &record.cost_unknown);
        }
        if let Some(inference) = &self.inference {
            inference.record(&self.attributes, request);
        }
    }

    /// Records the usage of a request that is on record since it was pending.
    pub(super) fn complete(&self, to: &Instruments, completed: &Completed<'_>, origin: Origin) {
        let Completed { usage, cost, unknown, .. } = *completed;
        self.completions
            .get_or_init(|| to.count(Instrument::Completions, self.with([])))
            .increment(1);
        self.record_usage(to, usage, (None, false), origin);
        self.record_cost(to, cost, unknown);
        if let Some(inference) = &self.inference {
            inference.record_tokens(to, &self.attributes, usage, origin);
        }
    }

    /// Records a request that was open when the gateway died. Its times are not known.
    pub(super) fn died(&self, to: &Instruments, record: &Record, origin: Origin) {
        self.count(to);
        // The usage of a request in the background is recorded once, when it is known.
        if record.is_pending() {
            return;
        }
        self.record_usage(to, &record.usage, (Some(record.end), false), origin);
        self.record_cost(to, record.owed(), &record.cost_unknown);
        if let Some(inference) = &self.inference {
            inference.record_tokens(to, &self.attributes, &record.usage, origin);
        }
    }

    fn record_cost(&self, to: &Instruments, cost: Option<&RecordCost>, unknown: &[UnknownCost]) {
        if let Some(cost) = cost {
            self.cost
                .get_or_init(|| {
                    let currency = Label::new(key::CURRENCY, cost.currency.clone());
                    to.number(Instrument::Cost, self.with([currency]))
                })
                .add(money::nearest(cost.amount));
        }
        // One that owes a share of GPUs has no reason: its cost is found when a bill is made.
        let Some(cause) = Self::cause(unknown).filter(|_| RecordCost::is_unknown(cost)) else {
            return;
        };
        if let Some(slot) = self.unpriced.get(cause as usize) {
            slot.get_or_init(|| {
                to.count(Instrument::Unpriced, self.with([Label::new(key::CAUSE, cause.as_str())]))
            })
            .increment(1);
        }
    }

    /// Why a cost is unknown: a price that is missing rather than what was used.
    fn cause(unknown: &[UnknownCost]) -> Option<UnknownCostReason> {
        let reasons = || unknown.iter().map(|unknown| unknown.reason);
        let is_price = |reason: &UnknownCostReason| {
            !matches!(reason, UnknownCostReason::NoQuantity | UnknownCostReason::TooLarge)
        };
        reasons().find(is_price).or_else(|| reasons().next())
    }

    /// Records one that used nothing: how long it was from its head, since its engine was called, and
    /// since it was sent.
    pub(super) fn fail(&self, to: &Instruments, took: [Duration; 3], origin: Origin) {
        let [whole, called, sent] = took.map(|took| took.as_secs_f64());
        self.record_durations(to, whole, called, origin);
        self.record_http_client(to, sent, origin);
        if let Some(inference) = &self.inference {
            inference.fail(to, &self.attributes, called, origin);
        }
    }

    /// Counts one more request that ended so.
    pub(super) fn count(&self, to: &Instruments) {
        self.requests
            .get_or_init(|| {
                to.count(Instrument::Requests, self.with(self.attributes.ended.iter().cloned()))
            })
            .increment(1);
    }

    /// Records how long a request waited for its first token.
    pub(super) fn wait(&self, to: &Instruments, wait: Option<Wait>, origin: Origin) {
        let Some(wait) = wait else { return };
        let [whole, streams] = &self.waits;
        let slots = if wait.is_stream { streams } else { whole };
        let Some(slot) = slots.get(wait.outcome as usize) else { return };
        slot.get_or_init(|| to.buckets(Instrument::FirstTokenWait, self.with(wait.labels())))
            .record_from(wait.duration.as_secs_f64(), origin);
    }

    fn with(&self, more: impl IntoIterator<Item = Label>) -> Vec<Label> {
        self.attributes.with(more)
    }

    fn record_http(&self, request: RecordedRequest<'_>) {
        let RecordedRequest { to, record, origin, .. } = request;
        let timing = &record.timing;
        // A refusal of ours is counted as an HTTP request where it is answered.
        let left = matches!(record.end, End::ClientLeft | End::ClientStalled | End::Shutdown);
        if record.status.is_some() || left {
            self.http_server
                .get_or_init(|| {
                    let labels = self.attributes.http_server.clone();
                    to.buckets(Instrument::HttpServerRequestDuration, labels)
                })
                .record_from(timing.duration, origin);
        }
        self.record_http_client(to, (timing.duration - timing.gateway).max(0.0), origin);
    }

    fn record_http_client(&self, to: &Instruments, seconds: f64, origin: Origin) {
        let Some(labels) = &self.attributes.http_client else { return };
        self.http_client
            .get_or_init(|| to.buckets(Instrument::HttpClientRequestDuration, labels.clone()))
            .record_from(seconds, origin);
    }

    /// How long it took, whole and since its engine was called, in every generation's words.
    fn record_durations(&self, to: &Instruments, whole: f64, called: f64, origin: Origin) {
        let of = |slot: &SeriesSlot<Buckets>, instrument, seconds| {
            if to.tells(instrument) {
                slot.get_or_init(|| {
                    to.buckets(instrument, self.with(self.attributes.error.clone()))
                })
                .record_from(seconds, origin);
            }
        };
        // Of the latest generation it is only what has no instrument of its own.
        if to.tells_v1_41() || self.attributes.work == Work::Other {
            of(&self.operation, Instrument::OperationDuration, called);
        }
        if self.attributes.work == Work::Embeddings {
            of(&self.embeddings, Instrument::EmbeddingsDuration, called);
        }
        of(&self.server, Instrument::ServerRequestDuration, whole);
    }

    fn record_stream(&self, request: RecordedRequest<'_>) {
        let RecordedRequest { to, record, measurement, origin, .. } = request;
        let timing = &record.timing;
        let plain = |slot: &SeriesSlot<Buckets>, instrument, seconds: Option<f64>| {
            if let Some(seconds) = seconds.filter(|_| to.tells(instrument)) {
                slot.get_or_init(|| to.buckets(instrument, self.with([])))
                    .record_from(seconds, origin);
            }
        };
        let first = timing.time_to_first_chunk.map(|seconds| request.called(seconds));
        plain(&self.first_chunk, Instrument::TimeToFirstChunk, first);
        if timing.output_chunks > 1 && to.tells(Instrument::TimePerOutputChunk) {
            self.per_chunk
                .get_or_init(|| to.buckets(Instrument::TimePerOutputChunk, self.with([])))
                .merge(&measurement.timing.gaps, timing.longest_stall, origin);
        }
        if self.attributes.error.is_none() {
            let (first, per) = (timing.time_to_first_token, timing.time_per_output_token);
            plain(&self.first_token, Instrument::ServerTimeToFirstToken, first);
            plain(&self.per_token, Instrument::ServerTimePerOutputToken, per);
        }
    }

    fn record_usage(
        &self,
        to: &Instruments,
        usage: &RecordUsage,
        (end, is_unread): (Option<End>, bool),
        origin: Origin,
    ) {
        self.record_usage_source(to, UsageSource::of(usage, end, is_unread), end);
        let [input, output] = &self.usage;
        let [from_input, from_output] = &self.sources;
        for (slot, counts, sources, member, kind, tokens) in [
            (input, &self.tokens[0], from_input, Member::InputTokens, INPUT, usage.input_tokens),
            (
                output,
                &self.tokens[1],
                from_output,
                Member::OutputTokens,
                OUTPUT,
                usage.output_tokens,
            ),
        ] {
            let known = usage.sources.get(&member).copied();
            if let Some(source) = known {
                self.record_source(to, sources, kind, source);
            }
            let Some(tokens) = tokens else { continue };
            let kind = Label::new(key::GEN_AI_TOKEN_TYPE, kind);
            if to.tells(Instrument::TokenUsage) {
                slot.get_or_init(|| to.buckets(Instrument::TokenUsage, self.with([kind.clone()])))
                    .record_from(sample(tokens), origin);
            }
            // A number that is there was reported or counted.
            let source = known.unwrap_or(usage.source);
            let [reported, counted] = counts;
            let count = if source == Source::Reported { reported } else { counted };
            count
                .get_or_init(|| {
                    let source = Label::new(key::SOURCE, source.as_str());
                    to.count(Instrument::Tokens, self.with([kind, source]))
                })
                .increment(tokens);
        }
        if let Some(tokens) = usage.input_tokens
            && self.attributes.work == Work::Embeddings
            && to.tells(Instrument::EmbeddingsInputSize)
        {
            let labels = || self.with(self.attributes.error.clone());
            self.embeddings_input
                .get_or_init(|| to.buckets(Instrument::EmbeddingsInputSize, labels()))
                .record_from(sample(tokens), origin);
        }
        self.record_recounts(to, usage);
        self.record_flags(to, usage);
        let parts = [
            (Instrument::CacheReadTokens, usage.cache_read_input_tokens),
            (Instrument::CacheWriteTokens, usage.cache_write_input_tokens),
            (Instrument::ReasoningTokens, usage.reasoning_output_tokens),
        ];
        for (slot, (instrument, tokens)) in self.parts.iter().zip(parts) {
            if let Some(tokens) = tokens.filter(|tokens| *tokens > 0) {
                slot.get_or_init(|| to.count(instrument, self.with([]))).increment(tokens);
            }
        }
    }

    fn record_flags(&self, to: &Instruments, usage: &RecordUsage) {
        for flag in &usage.flags {
            if let Some(slot) = self.flags.get(*flag as usize) {
                let labels = || self.with(words(&[*flag]).map(|word| Label::new(key::FLAG, word)));
                slot.get_or_init(|| to.count(Instrument::Flags, labels())).increment(1);
            }
        }
    }

    /// Where the usage of a request is known from, and why; nothing if there is none.
    fn record_usage_source(&self, to: &Instruments, usage: Option<UsageSource>, end: Option<End>) {
        let Some(usage) = usage else { return };
        let Some(slot) = self.usage_sources.get(usage.index()) else { return };
        slot.get_or_init(|| {
            let source = Label::new(key::SOURCE, usage.source());
            let reason = usage.reason(end).map(|reason| Label::new(key::USAGE_REASON, reason));
            to.count(Instrument::Usage, self.with(std::iter::once(source).chain(reason)))
        })
        .increment(1);
    }

    /// Where a number is known from, or that it is not.
    fn record_source(
        &self,
        to: &Instruments,
        slots: &[SeriesSlot<Count>; SOURCES.len()],
        kind: &'static str,
        source: Source,
    ) {
        if let Some((slot, _)) = slots.iter().zip(SOURCES).find(|(_, of)| *of == source) {
            slot.get_or_init(|| {
                let kind = Label::new(key::GEN_AI_TOKEN_TYPE, kind);
                let source = Label::new(key::SOURCE, source.as_str());
                to.count(Instrument::Sources, self.with([kind, source]))
            })
            .increment(1);
        }
    }

    /// What is there twice, reported and counted.
    fn record_recounts(&self, to: &Instruments, usage: &RecordUsage) {
        let Some(counted) = usage.counted else { return };
        let [input, output] = &self.recounts;
        for (slots, member, kind, counted) in [
            (input, Member::InputTokens, INPUT, counted.input_tokens),
            (output, Member::OutputTokens, OUTPUT, counted.output_tokens),
        ] {
            let is_reported = usage.sources.get(&member) == Some(&Source::Reported);
            if counted.is_none() || !is_reported {
                continue;
            }
            let flags = usage.flagged.get(&member);
            let differs = flags.is_some_and(|flags| flags.contains(&Flag::Differs));
            let [agreeing, differing] = slots;
            let (slot, word) = if differs { (differing, "false") } else { (agreeing, "true") };
            slot.get_or_init(|| {
                let kind = Label::new(key::GEN_AI_TOKEN_TYPE, kind);
                to.count(Instrument::Recounts, self.with([kind, Label::new(key::AGREES, word)]))
            })
            .increment(1);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a histogram's samples are floats")]
const fn sample(tokens: u64) -> f64 {
    tokens as f64
}
