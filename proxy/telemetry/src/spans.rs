//! Makes the spans of a request that has ended: one that faces the client, one for the call of the
//! engine, and one for each stage between them. Each stage begins where the one before ended.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use taximeter_config::{GenAi, Upstream};
use taximeter_ledger::{Record, Stage};
use taximeter_meter::Wire;
use taximeter_pricing::{Member, Modalities};
use taximeter_request::Parameter;

use super::attributes::{UPSTREAM_PROTOCOL_VERSION, method_label, version_label, words};
use super::ended::{Attempt, Ended};
use super::message::{chosen, int, lines, nanoseconds, pair, text, texts};
use super::names::key;
use super::trace::{CLIENT, SERVER, STAGES};

/// Providers whose attributes under `openai.` are their own.
const OPENAI: [&str; 2] = ["openai", "azure.ai.openai"];

impl Ended<'_> {
    /// Whether it went wrong on our side or the engine's, or its client left: what a client did
    /// wrong is no failure.
    fn server_error(&self) -> Option<String> {
        match self.status {
            Some(status) if status >= 500 => Some(status.to_string()),
            Some(status) if status >= 400 => None,
            _ => self.error.map(str::to_owned),
        }
    }

    /// All its spans. The one that faces the client comes first.
    pub fn spans(&self, genai: GenAi) -> Spans {
        let mut spans = vec![self.server()];
        let stage_times = &self.stage_times;
        let mut stages = Stages { ended: self, number: STAGES, at: self.started };
        for (stage, end) in [
            (Stage::Identify, stage_times.identified),
            (Stage::Body, stage_times.read),
            (Stage::Route, stage_times.routed),
            (Stage::Admit, stage_times.admitted),
        ] {
            spans.extend(stages.next(stage, end, SERVER));
        }
        let began = (self.started, nanoseconds(self.started_at));
        let Some(attempt) = &self.attempt else {
            // It is on no ledger, or its client left before it was.
            let last = match self.passed_to {
                Some(upstream) => Some(self.onward(upstream, stages.at)),
                None => stage_times
                    .routed
                    .and_then(|_| stages.next(Stage::Admit, Some(stages.at), SERVER)),
            };
            return Spans { all: spans, last, began };
        };
        spans.push(self.client(attempt, stages.at, genai));
        for (resent, failed) in (0..).zip(attempt.tries) {
            let connect = stages.next(Stage::Connect, Some(failed.ended), CLIENT);
            spans.extend(connect.map(|span| tried(span, resent, Some(failed.cause))));
        }
        let resent = attempt.tries.len() as u64;
        let connect = stages.next(Stage::Connect, attempt.sent_at.or(Some(self.ended_at)), CLIENT);
        let unsent = self.error.filter(|_| attempt.sent_at.is_none());
        spans.extend(connect.map(|span| tried(span, resent, unsent)));
        if attempt.sent_at.is_some() {
            let stream = attempt.record().filter(|record| record.stream);
            let first = stream.and_then(|record| record.timing.time_to_first_token);
            let first = first.map(|seconds| self.started + Duration::from_secs_f64(seconds));
            spans.extend(stages.next(Stage::Prefill, first, CLIENT));
            let rest = if first.is_some() { Stage::Stream } else { Stage::Answer };
            spans.extend(stages.next(rest, Some(self.ended_at), CLIENT));
        }
        let last = stages.next(Stage::Settle, Some(stages.at), SERVER);
        Spans { all: spans, last, began }
    }

    fn at(&self, instant: Instant) -> u64 {
        wall((self.started, nanoseconds(self.started_at)), instant)
    }

    fn span(&self, number: u64, name: String, kind: SpanKind) -> Span {
        Span {
            trace_id: self.request_trace.trace_id.into(),
            span_id: self.request_trace.span(number).into(),
            name,
            kind: kind.into(),
            flags: u32::from(self.request_trace.sampled),
            ..Span::default()
        }
    }

    fn server(&self) -> Span {
        let method = method_label(self.method);
        let name = match self.route {
            Some(route) => format!("{method} {route}"),
            None => method.to_owned(),
        };
        let mut attributes = vec![
            text(key::HTTP_REQUEST_METHOD, method),
            text(key::URL_PATH, &chosen(self.path)),
            text(key::URL_SCHEME, self.scheme),
            text(key::NETWORK_PROTOCOL_VERSION, version_label(self.version)),
            text(key::REQUEST_ID, &self.request.to_string()),
        ];
        attributes.extend(self.route.map(|route| text(key::HTTP_ROUTE, route)));
        attributes.extend(self.status.map(|it| int(key::HTTP_RESPONSE_STATUS_CODE, it.into())));
        attributes.extend(self.tenant.map(|tenant| text(key::TENANT, tenant)));
        attributes.extend(self.code.map(|code| text(key::CODE, code)));
        let error = self.server_error();
        attributes.extend(error.iter().map(|word| text(key::ERROR_TYPE, word)));
        Span {
            parent_span_id: self.request_trace.parent.map(Vec::from).unwrap_or_default(),
            start_time_unix_nano: self.at(self.started),
            attributes,
            status: status(error.is_some()),
            ..self.span(SERVER, name, SpanKind::Server)
        }
    }

    /// The call of an engine for a request that is on no ledger: nothing of it is generated.
    fn onward(&self, upstream: &Upstream, from: Instant) -> Span {
        let (method, url) = (method_label(self.method), &upstream.url);
        let scheme = if url.tls { "https" } else { "http" };
        let full = format!("{scheme}://{}{}{}", url.authority(), url.prefix, self.path);
        let mut attributes = vec![
            text(key::HTTP_REQUEST_METHOD, method),
            text(key::URL_FULL, &chosen(&full)),
            text(key::SERVER_ADDRESS, &url.host),
            int(key::SERVER_PORT, url.port.into()),
            text(key::NETWORK_PROTOCOL_VERSION, UPSTREAM_PROTOCOL_VERSION),
            text(key::UPSTREAM, &upstream.name),
        ];
        // What we answer in its place is not what it said.
        let status_code = self.status.filter(|_| self.code.is_none());
        attributes.extend(status_code.map(|it| int(key::HTTP_RESPONSE_STATUS_CODE, it.into())));
        // Whoever asks has failed with 4xx too.
        let refused = status_code.filter(|status| *status >= 400).map(|status| status.to_string());
        let error = refused.or(self.error.map(str::to_owned));
        attributes.extend(error.iter().map(|word| text(key::ERROR_TYPE, word)));
        Span {
            parent_span_id: self.request_trace.span(SERVER).into(),
            start_time_unix_nano: self.at(from),
            end_time_unix_nano: self.at(self.ended_at),
            attributes,
            status: status(error.is_some()),
            ..self.span(CLIENT, method.to_owned(), SpanKind::Client)
        }
    }

    fn client(&self, attempt: &Attempt<'_>, from: Instant, genai: GenAi) -> Span {
        let name = match attempt.request_model {
            Some(model) => format!("{} {}", attempt.operation, chosen(model)),
            None => attempt.operation.to_owned(),
        };
        let mut attributes = attempt.attributes(genai, from - self.started);
        attributes.extend(self.tenant.map(|tenant| text(key::TENANT, tenant)));
        attributes.extend(self.error.map(|word| text(key::ERROR_TYPE, &chosen(word))));
        Span {
            parent_span_id: self.request_trace.span(SERVER).into(),
            start_time_unix_nano: self.at(from),
            end_time_unix_nano: self.at(self.ended_at),
            attributes,
            status: status(self.error.is_some()),
            ..self.span(CLIENT, name, SpanKind::Client)
        }
    }
}

/// The spans of one request. The last ones have not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Spans {
    all: Vec<Span>,
    /// What goes on.
    last: Option<Span>,
    began: (Instant, u64),
}

impl Spans {
    /// Ends the open spans at `now` and returns all spans.
    pub fn finish(mut self, now: Instant) -> Vec<Span> {
        let now = wall(self.began, now);
        for span in self.all.first_mut().into_iter().chain(&mut self.last) {
            span.end_time_unix_nano = now.max(span.start_time_unix_nano);
        }
        self.all.extend(self.last);
        self.all
    }
}

/// The wall's time of an instant, by what it was when a request began.
fn wall((instant, nanos): (Instant, u64), at: Instant) -> u64 {
    let since = at.saturating_duration_since(instant).as_nanos();
    nanos.saturating_add(since.try_into().unwrap_or(u64::MAX))
}

/// The stages of a request, one after another.
struct Stages<'a> {
    ended: &'a Ended<'a>,
    number: u64,
    /// When the last one ended.
    at: Instant,
}

impl Stages<'_> {
    /// The next one, if it has ended.
    fn next(&mut self, stage: Stage, end: Option<Instant>, parent: u64) -> Option<Span> {
        let end = end?.max(self.at);
        let start = std::mem::replace(&mut self.at, end);
        self.number += 1;
        Some(Span {
            parent_span_id: self.ended.request_trace.span(parent).into(),
            start_time_unix_nano: self.ended.at(start),
            end_time_unix_nano: self.ended.at(end),
            ..self.ended.span(self.number, stage.as_str().to_owned(), SpanKind::Internal)
        })
    }
}

impl Attempt<'_> {
    /// `waited` from the request's head before its engine was called.
    fn attributes(&self, genai: GenAi, waited: Duration) -> Vec<KeyValue> {
        let (address, port) = self.server;
        let mut all = vec![
            text(key::GEN_AI_OPERATION_NAME, self.operation),
            text(key::GEN_AI_PROVIDER_NAME, self.provider),
            text(key::SERVER_ADDRESS, address),
            int(key::SERVER_PORT, port.into()),
            text(key::UPSTREAM, self.upstream),
        ];
        all.extend(self.request_model.map(|model| text(key::GEN_AI_REQUEST_MODEL, &chosen(model))));
        if self.choices != 1 {
            all.push(int(key::GEN_AI_REQUEST_CHOICE_COUNT, self.choices));
        }
        all.extend(self.max_tokens.map(|tokens| int(key::GEN_AI_REQUEST_MAX_TOKENS, tokens)));
        stated(self.parameters, genai, &mut all);
        self.part_of(&mut all);
        all.extend(self.output_type().map(|form| text(key::GEN_AI_OUTPUT_TYPE, form)));
        self.of_openai(&mut all);
        if let Some(record) = self.record() {
            said(record, waited, &mut all);
            used(record, genai, &mut all);
        }
        all
    }
}

impl Attempt<'_> {
    /// The session and the agent. A conversation that the request names is a session, unless its
    /// client names another one or sessions are not kept.
    fn part_of(&self, all: &mut Vec<KeyValue>) {
        let session = self.said.and_then(|said| said.session.as_deref());
        let agent = self.said.and_then(|said| said.agent.as_deref());
        let mut stated = self.parameters.iter();
        let conversation = stated.find(|(parameter, _)| *parameter == Parameter::Conversation);
        let conversation = session.or(conversation.map(|(_, value)| value.as_str()));
        all.extend(conversation.map(|id| text(key::GEN_AI_CONVERSATION_ID, &chosen(id))));
        all.extend(agent.map(|id| text(key::GEN_AI_AGENT_ID, &chosen(id))));
    }

    /// `gen_ai.output.type`, where one was asked for.
    fn output_type(&self) -> Option<&'static str> {
        let is = |wanted: Parameter, words: &[&str]| {
            let mut stated = self.parameters.iter();
            stated.any(|(parameter, value)| *parameter == wanted && words.contains(&value.as_str()))
        };
        Some(match self.operation {
            "speech" => "speech",
            "image_generation" => "image",
            _ if is(Parameter::Modality, &["audio"]) => "speech",
            _ if is(Parameter::Modality, &["image"]) => "image",
            _ if is(Parameter::OutputFormat, &["json_object", "json_schema"]) => "json",
            _ if is(Parameter::OutputFormat, &["text"]) => "text",
            _ => return None,
        })
    }

    /// What only OpenAI has.
    fn of_openai(&self, all: &mut Vec<KeyValue>) {
        if !OPENAI.contains(&self.provider) {
            return;
        }
        let api = match self.wire {
            Wire::ChatCompletions => Some("chat_completions"),
            Wire::Responses => Some("responses"),
            _ => None,
        };
        all.extend(api.map(|api| text(key::OPENAI_API_TYPE, api)));
        let asked = self.request_tier.filter(|tier| *tier != "auto");
        all.extend(asked.map(|tier| text(key::OPENAI_REQUEST_SERVICE_TIER, &chosen(tier))));
        let Some((_, answer)) = self.answered else { return };
        for (key, said) in [
            (key::OPENAI_RESPONSE_SERVICE_TIER, &answer.service_tier),
            (key::OPENAI_RESPONSE_SYSTEM_FINGERPRINT, &answer.system_fingerprint),
        ] {
            all.extend(said.as_deref().map(|said| text(key, &chosen(said))));
        }
    }
}

/// What the request states, as far as the generation has an attribute for it.
fn stated(parameters: &[(Parameter, String)], genai: GenAi, all: &mut Vec<KeyValue>) {
    let is_newer = genai != GenAi::V1_41;
    let mut stops = Vec::new();
    for (parameter, value) in parameters {
        all.extend(match parameter {
            Parameter::Temperature => double(key::GEN_AI_REQUEST_TEMPERATURE, value),
            Parameter::TopP => double(key::GEN_AI_REQUEST_TOP_P, value),
            // The newer generation has it as a whole number, which it is.
            Parameter::TopK if genai == GenAi::Latest => signed(key::GEN_AI_REQUEST_TOP_K, value),
            Parameter::TopK => double(key::GEN_AI_REQUEST_TOP_K, value),
            Parameter::FrequencyPenalty => double(key::GEN_AI_REQUEST_FREQUENCY_PENALTY, value),
            Parameter::PresencePenalty => double(key::GEN_AI_REQUEST_PRESENCE_PENALTY, value),
            Parameter::Seed => signed(key::GEN_AI_REQUEST_SEED, value),
            Parameter::Dimensions => signed(key::GEN_AI_EMBEDDINGS_DIMENSION_COUNT, value),
            Parameter::EncodingFormat => {
                Some(texts(key::GEN_AI_REQUEST_ENCODING_FORMATS, std::slice::from_ref(value)))
            }
            Parameter::ReasoningLevel if is_newer => {
                Some(text(key::GEN_AI_REQUEST_REASONING_LEVEL, &chosen(value)))
            }
            Parameter::PreviousResponse if is_newer => {
                Some(text(key::GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID, &chosen(value)))
            }
            Parameter::Prompt if is_newer => Some(text(key::GEN_AI_PROMPT_NAME, &chosen(value))),
            Parameter::PromptVersion if is_newer => {
                Some(text(key::GEN_AI_PROMPT_VERSION, &chosen(value)))
            }
            Parameter::StopSequence => {
                stops.push(value.clone());
                None
            }
            Parameter::ReasoningLevel
            | Parameter::PreviousResponse
            | Parameter::Prompt
            | Parameter::PromptVersion
            | Parameter::Conversation
            | Parameter::OutputFormat
            | Parameter::Modality => None,
        });
    }
    if !stops.is_empty() {
        all.push(lines(key::GEN_AI_REQUEST_STOP_SEQUENCES, &stops));
    }
}

/// A number as it is written; none that is beyond all numbers.
fn double(key: &str, written: &str) -> Option<KeyValue> {
    let number = written.parse::<f64>().ok().filter(|number| number.is_finite())?;
    Some(pair(key, Value::DoubleValue(number)))
}

/// A whole number as it is written.
fn signed(key: &str, written: &str) -> Option<KeyValue> {
    Some(pair(key, Value::IntValue(written.parse().ok()?)))
}

/// What the engine said of its answer.
fn said(record: &Record, waited: Duration, all: &mut Vec<KeyValue>) {
    for (key, value) in [
        (key::GEN_AI_RESPONSE_MODEL, &record.response_model),
        (key::GEN_AI_RESPONSE_ID, &record.response_id),
    ] {
        all.extend(value.as_deref().map(|value| text(key, &chosen(value))));
    }
    if !record.finish_reasons.is_empty() {
        all.push(texts(key::GEN_AI_RESPONSE_FINISH_REASONS, &record.finish_reasons));
    }
    if record.stream {
        all.push(pair(key::GEN_AI_REQUEST_STREAM, Value::BoolValue(true)));
        let first = record.timing.time_to_first_chunk;
        all.extend(first.map(|seconds| {
            let seconds = (seconds - waited.as_secs_f64()).max(0.0);
            pair(key::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Value::DoubleValue(seconds))
        }));
    }
    all.push(text(key::END, record.end.as_str()));
}

/// What it used, where that is known from, and what it costs.
fn used(record: &Record, genai: GenAi, all: &mut Vec<KeyValue>) {
    let usage = &record.usage;
    let (older, newer) = (genai != GenAi::Latest, genai != GenAi::V1_41);
    for (key, tokens, applies) in [
        (key::GEN_AI_USAGE_INPUT_TOKENS, usage.input_tokens, true),
        (key::GEN_AI_USAGE_OUTPUT_TOKENS, usage.output_tokens, true),
        (key::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, usage.cache_read_input_tokens, true),
        (key::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS, usage.cache_write_input_tokens, older),
        (key::GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS, usage.cache_write_input_tokens, newer),
        (key::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, usage.reasoning_output_tokens, true),
    ] {
        all.extend(tokens.filter(|_| applies).map(|tokens| int(key, tokens)));
    }
    if newer {
        by_modality(usage.modalities.as_ref().map(Modalities::from).unwrap_or_default(), all);
    }
    all.push(text(key::SOURCE, usage.source.as_str()));
    for (key, member) in
        [(key::INPUT_SOURCE, Member::InputTokens), (key::OUTPUT_SOURCE, Member::OutputTokens)]
    {
        all.extend(usage.sources.get(&member).map(|source| text(key, source.as_str())));
    }
    if !usage.flags.is_empty() {
        all.push(texts(key::FLAGS, &words(&usage.flags).collect::<Vec<_>>()));
    }
    if let Some(cost) = &record.cost {
        // A decimal number is exact as text, and as nothing else.
        all.push(text(key::COST_AMOUNT, &cost.amount.normalize().to_string()));
        all.push(text(key::CURRENCY, &cost.currency));
    } else if let Some(known) = &record.cost_known {
        all.push(text(key::COST_KNOWN, &known.amount.normalize().to_string()));
        all.push(text(key::CURRENCY, &known.currency));
    }
}

/// Tokens by what they stand for, where the engine tells that apart.
fn by_modality(modalities: Modalities, all: &mut Vec<KeyValue>) {
    for (parts, [text, image, audio]) in [
        (modalities.input, key::INPUT_BY_MODALITY),
        (modalities.output, key::OUTPUT_BY_MODALITY),
        (modalities.cache_read, key::CACHE_READ_BY_MODALITY),
    ] {
        for (key, tokens) in [(text, parts.text), (image, parts.image), (audio, parts.audio)] {
            all.extend(tokens.map(|tokens| int(key, tokens)));
        }
    }
}

/// An attempt to send a request, after so many others, and what ended it where it brought the request
/// nowhere.
fn tried(span: Span, resent: u64, cause: Option<&str>) -> Span {
    let mut attributes = Vec::new();
    if resent > 0 {
        attributes.push(int(key::HTTP_REQUEST_RESEND_COUNT, resent));
    }
    attributes.extend(cause.map(|cause| text(key::ERROR_TYPE, cause)));
    Span { attributes, status: status(cause.is_some()), ..span }
}

fn status(failed: bool) -> Option<Status> {
    failed.then(|| Status { code: StatusCode::Error.into(), message: String::new() })
}

#[cfg(test)]
mod tests {
    use http::Method;
    use jiff::Timestamp;
    use taximeter_ledger::RequestId;
    use uuid::Uuid;

    use super::super::ended::StageTimes;
    use super::super::trace::RequestTrace;
    use super::*;
    use taximeter_system::clock;

    #[test]
    fn the_stages_of_a_client_that_leaves_while_it_is_reserved_add_up() {
        let started = clock::now();
        let at = |ms| started + Duration::from_millis(ms);
        let request = RequestId(Uuid::from_u128(7));
        let ended = Ended {
            request,
            request_id: "r",
            client: [127, 0, 0, 1].into(),
            request_trace: RequestTrace::new(request, None, |_, _| true),
            started,
            started_at: Timestamp::UNIX_EPOCH,
            ended_at: at(9),
            stage_times: StageTimes {
                identified: Some(at(1)),
                read: Some(at(2)),
                routed: Some(at(4)),
                admitted: None,
            },
            method: &Method::POST,
            version: http::Version::HTTP_11,
            scheme: "http",
            path: "/v1/chat/completions",
            route: None,
            tenant: Some("default"),
            status: None,
            error: Some("client_disconnect"),
            code: None,
            attempt: None,
            passed_to: None,
        };
        let spans = ended.spans(GenAi::V1_41).finish(at(9));
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["POST", "identify", "body", "route", "admit"]);
        let took = |span: &Span| span.end_time_unix_nano - span.start_time_unix_nano;
        let (server, stages) = spans.split_first().unwrap();
        assert_eq!(stages.iter().map(took).sum::<u64>(), took(server));
        assert!(server.attributes.iter().any(|pair| pair.key == key::ERROR_TYPE));
    }
}
