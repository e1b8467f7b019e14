//! The series of one kind of request: found by one look-up, recorded by a few additions.
//!
//! Attributes that a client or an engine can choose have a named maximum; what comes after it
//! shares `other`.

use std::sync::{Arc, OnceLock};

use ::metrics::{CounterFn as _, HistogramFn as _, Label};
use dashmap::{DashMap, DashSet};
use http::Method;
use taximeter_ledger::{End, Record, RecordUsage};
use taximeter_meter::Measurement;
use taximeter_pricing::{Flag, Member, Source};

use super::instruments::{Buckets, Count, Instruments, Number};
use super::names::{Instrument, key};

/// Model names that get a label of their own.
const MODELS_MAX: usize = 200;
/// Error words of engines that get a label of their own.
const ERRORS_MAX: usize = 50;
/// Kinds of requests that get series of their own.
const KINDS_MAX: usize = 2_000;
/// What the rest is called.
const OTHER: &str = "other";

/// Values that may be labels: the first so many.
pub(super) struct Bounded {
    known: DashSet<String>,
    max: usize,
}

impl Bounded {
    pub(super) fn new(max: usize) -> Self {
        Self { known: DashSet::new(), max }
    }

    /// The label for `value`: itself, or `other`.
    pub(super) fn label<'a>(&self, value: &'a str) -> &'a str {
        if self.known.contains(value) {
            return value;
        }
        if self.known.len() < self.max && self.known.insert(value.to_owned()) {
            return value;
        }
        OTHER
    }
}

/// What tells one kind of request from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Kind {
    tenant: Box<str>,
    operation: Box<str>,
    upstream: Box<str>,
    provider: Box<str>,
    request_model: Option<Box<str>>,
    response_model: Option<Box<str>>,
    error_type: Option<Box<str>>,
    end: End,
    method: &'static str,
    route: Box<str>,
    status: Option<u16>,
}

impl Kind {
    /// Without what clients and engines can choose: what is left is a small fixed set.
    fn collapse(&mut self) {
        self.tenant = OTHER.into();
        let chosen = [&mut self.request_model, &mut self.response_model, &mut self.error_type];
        for word in chosen.into_iter().flatten() {
            *word = OTHER.into();
        }
    }
}

/// Where an upstream is, for `server.address`.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) port: u16,
}

/// The series of all kinds of requests seen so far.
pub(super) struct Requests {
    kinds: DashMap<Kind, Arc<Series>>,
    tenants: Bounded,
    models: Bounded,
    errors: Bounded,
    servers: Vec<Server>,
}

impl Requests {
    pub(super) fn new(tenants_max: usize, servers: Vec<Server>) -> Self {
        Self {
            kinds: DashMap::new(),
            tenants: Bounded::new(tenants_max),
            models: Bounded::new(MODELS_MAX),
            errors: Bounded::new(ERRORS_MAX),
            servers,
        }
    }

    /// The label of a tenant.
    pub(super) fn tenant<'a>(&self, tenant: &'a str) -> &'a str {
        self.tenants.label(tenant)
    }

    /// Records one request everywhere.
    pub(super) fn record(
        &self,
        to: &Instruments,
        method: &Method,
        record: &Record,
        measurement: &Measurement,
    ) {
        let series = self.series(method, record);
        series.record(to, record, measurement);
    }

    fn series(&self, method: &Method, record: &Record) -> Arc<Series> {
        // Names that no engine has answered to are never a label.
        let served = record.status.is_some_and(|status| status < 400);
        let model = |name: &Option<String>| {
            name.as_deref().map(|name| if served { self.models.label(name) } else { OTHER }.into())
        };
        let mut kind = Kind {
            tenant: self.tenants.label(record.tenant.as_str()).into(),
            operation: record.operation.as_str().into(),
            upstream: record.upstream.as_str().into(),
            provider: record.provider.as_str().into(),
            request_model: model(&record.request_model),
            response_model: model(&record.response_model),
            error_type: record.error_type.as_deref().map(|word| self.errors.label(word).into()),
            end: record.end,
            method: method_label(method),
            route: record.route.as_str().into(),
            status: record.status,
        };
        if let Some(series) = self.kinds.get(&kind) {
            return series.clone();
        }
        if self.kinds.len() >= KINDS_MAX {
            kind.collapse();
        }
        let server = self.servers.iter().find(|server| *server.name == *kind.upstream);
        let series = Arc::new(Series::new(&kind, server));
        self.kinds.entry(kind).or_insert(series).clone()
    }
}

/// A method from the fixed set that OpenTelemetry knows.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        Method::CONNECT => "CONNECT",
        Method::TRACE => "TRACE",
        _ => "_OTHER",
    }
}

/// Attributes of `http.server.request.duration`.
pub(super) fn http_labels(
    method: &Method,
    route: Option<&str>,
    status: Option<u16>,
    tenant: Option<&str>,
) -> Vec<Label> {
    labels_of(method_label(method), route, status, tenant)
}

fn labels_of(
    method: &'static str,
    route: Option<&str>,
    status: Option<u16>,
    tenant: Option<&str>,
) -> Vec<Label> {
    let mut labels =
        vec![Label::new(key::HTTP_REQUEST_METHOD, method), Label::new(key::URL_SCHEME, "http")];
    labels.extend(route.map(|route| Label::new(key::HTTP_ROUTE, route.to_owned())));
    match status {
        Some(status) => {
            let status_text = status.to_string();
            if status >= 500 {
                labels.push(Label::new(key::ERROR_TYPE, status_text.clone()));
            }
            labels.push(Label::new(key::HTTP_RESPONSE_STATUS_CODE, status_text));
        }
        None => labels.push(Label::new(key::ERROR_TYPE, "client_disconnect")),
    }
    labels.extend(tenant.map(|tenant| Label::new(key::TENANT, tenant.to_owned())));
    labels
}

/// One kind of request's series, each made when it is first needed.
struct Series {
    /// On the GenAI instruments.
    genai: Vec<Label>,
    error_type: Option<Label>,
    end: End,
    /// On the HTTP instrument.
    http: Vec<Label>,
    http_duration: OnceLock<Arc<Buckets>>,
    usage: [OnceLock<Arc<Buckets>>; 2],
    durations: [OnceLock<Arc<Buckets>>; 2],
    first_chunk: OnceLock<Arc<Buckets>>,
    per_chunk: OnceLock<Arc<Buckets>>,
    first_token: OnceLock<Arc<Buckets>>,
    per_token: OnceLock<Arc<Buckets>>,
    gateway: OnceLock<Arc<Buckets>>,
    requests: OnceLock<Arc<Count>>,
    /// Input and output, each reported and counted.
    tokens: [[OnceLock<Arc<Count>>; 2]; 2],
    /// Input and output, each as reported and otherwise.
    recounts: [[OnceLock<Arc<Count>>; 2]; 2],
    parts: [OnceLock<Arc<Count>>; 3],
    cost: OnceLock<Arc<Number>>,
    unpriced: OnceLock<Arc<Count>>,
}

impl Series {
    fn new(kind: &Kind, server: Option<&Server>) -> Self {
        let label = |key: &'static str, value: &str| Label::new(key, value.to_owned());
        let mut genai = vec![
            label(key::GEN_AI_OPERATION_NAME, &kind.operation),
            label(key::GEN_AI_PROVIDER_NAME, &kind.provider),
            label(key::TENANT, &kind.tenant),
        ];
        if let Some(server) = server {
            genai.push(label(key::SERVER_ADDRESS, &server.address));
            genai.push(label(key::SERVER_PORT, &server.port.to_string()));
        }
        for (key, model) in [
            (key::GEN_AI_REQUEST_MODEL, &kind.request_model),
            (key::GEN_AI_RESPONSE_MODEL, &kind.response_model),
        ] {
            genai.extend(model.as_deref().map(|model| label(key, model)));
        }
        Self {
            genai,
            error_type: kind.error_type.as_deref().map(|word| label(key::ERROR_TYPE, word)),
            end: kind.end,
            http: labels_of(kind.method, Some(&kind.route), kind.status, Some(&kind.tenant)),
            http_duration: OnceLock::new(),
            usage: Default::default(),
            durations: Default::default(),
            first_chunk: OnceLock::new(),
            per_chunk: OnceLock::new(),
            first_token: OnceLock::new(),
            per_token: OnceLock::new(),
            gateway: OnceLock::new(),
            requests: OnceLock::new(),
            tokens: Default::default(),
            recounts: Default::default(),
            parts: Default::default(),
            cost: OnceLock::new(),
            unpriced: OnceLock::new(),
        }
    }

    fn with(&self, more: impl IntoIterator<Item = Label>) -> Vec<Label> {
        self.genai.iter().cloned().chain(more).collect()
    }

    fn record(&self, to: &Instruments, record: &Record, measurement: &Measurement) {
        self.record_times(to, record, measurement);
        self.record_tokens(to, record);
        self.requests
            .get_or_init(|| {
                to.count(Instrument::Requests, self.with([Label::new(key::END, self.end.as_str())]))
            })
            .increment(1);
        match &record.cost {
            Some(cost) => self
                .cost
                .get_or_init(|| {
                    let currency = Label::new(key::CURRENCY, cost.currency.clone());
                    to.number(Instrument::Cost, self.with([currency]))
                })
                .add(cost.amount.to_string().parse().unwrap_or(0.0)),
            None => self
                .unpriced
                .get_or_init(|| to.count(Instrument::Unpriced, self.with([])))
                .increment(1),
        }
    }

    fn record_times(&self, to: &Instruments, record: &Record, measurement: &Measurement) {
        let timing = &record.timing;
        // A refusal of ours is counted as an HTTP request where it is answered.
        let left = matches!(record.end, End::ClientLeft | End::ClientStalled | End::Shutdown);
        if record.status.is_some() || left {
            self.http_duration
                .get_or_init(|| {
                    to.buckets(Instrument::HttpServerRequestDuration, self.http.clone())
                })
                .record(timing.duration);
        }
        let [operation, server] = &self.durations;
        for (slot, instrument) in [
            (operation, Instrument::OperationDuration),
            (server, Instrument::ServerRequestDuration),
        ] {
            slot.get_or_init(|| to.buckets(instrument, self.with(self.error_type.clone())))
                .record(timing.duration);
        }
        let plain = |slot: &OnceLock<Arc<Buckets>>, instrument, value: Option<f64>| {
            if let Some(value) = value {
                slot.get_or_init(|| to.buckets(instrument, self.with([]))).record(value);
            }
        };
        plain(&self.gateway, Instrument::GatewayDuration, Some(timing.gateway));
        if !record.stream {
            return;
        }
        plain(&self.first_chunk, Instrument::TimeToFirstChunk, timing.time_to_first_chunk);
        if timing.output_chunks > 1 {
            self.per_chunk
                .get_or_init(|| to.buckets(Instrument::TimePerOutputChunk, self.with([])))
                .merge(&measurement.timing.gaps);
        }
        if self.error_type.is_none() {
            plain(
                &self.first_token,
                Instrument::ServerTimeToFirstToken,
                timing.time_to_first_token,
            );
            plain(
                &self.per_token,
                Instrument::ServerTimePerOutputToken,
                timing.time_per_output_token,
            );
        }
    }

    fn record_tokens(&self, to: &Instruments, record: &Record) {
        let usage = &record.usage;
        let [input, output] = &self.usage;
        for (slot, counts, member, kind, tokens) in [
            (input, &self.tokens[0], Member::InputTokens, "input", usage.input_tokens),
            (output, &self.tokens[1], Member::OutputTokens, "output", usage.output_tokens),
        ] {
            let Some(tokens) = tokens else { continue };
            let kind = Label::new(key::GEN_AI_TOKEN_TYPE, kind);
            #[expect(clippy::cast_precision_loss, reason = "a histogram's samples are floats")]
            slot.get_or_init(|| to.buckets(Instrument::TokenUsage, self.with([kind.clone()])))
                .record(tokens as f64);
            // A number that is there was reported or counted.
            let source = usage.sources.get(&member).copied().unwrap_or(usage.source);
            let [reported, counted] = counts;
            let count = if source == Source::Reported { reported } else { counted };
            count
                .get_or_init(|| {
                    let source = Label::new(key::SOURCE, source.as_str());
                    to.count(Instrument::Tokens, self.with([kind, source]))
                })
                .increment(tokens);
        }
        self.record_recounts(to, usage);
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

    /// What is there twice, reported and counted.
    fn record_recounts(&self, to: &Instruments, usage: &RecordUsage) {
        let Some(counted) = usage.counted else { return };
        let [input, output] = &self.recounts;
        for (slots, member, kind, counted) in [
            (input, Member::InputTokens, "input", counted.input_tokens),
            (output, Member::OutputTokens, "output", counted.output_tokens),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_maximum_everything_new_is_other() {
        let bounded = Bounded::new(2);
        assert_eq!(bounded.label("a"), "a");
        assert_eq!(bounded.label("b"), "b");
        assert_eq!(bounded.label("c"), OTHER);
        assert_eq!(bounded.label("a"), "a");
    }
}
