//! What distinguishes one kind of request from another, and the attributes that follow from it.

use ::metrics::Label;
use http::{Method, Version};
use taximeter_ledger::End;
use taximeter_pricing::Flag;

use super::bounded::{OTHER, OTHER_ERROR};
use super::fault::Fault;
use super::names::key;

/// The version of HTTP that we speak to engines.
pub(super) const UPSTREAM_PROTOCOL_VERSION: &str = "1.1";

/// For whom a request is, and who serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestNames<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: &'a str,
    /// The name of the upstream.
    pub upstream: &'a str,
    /// The provider, as `gen_ai.provider.name` says it.
    pub provider: &'a str,
    /// The model that the client asked for.
    pub request_model: Option<&'a str>,
    /// `model` of the answer, if it has said one.
    pub response_model: Option<&'a str>,
}

/// The same, as long as a series.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct KeptNames {
    tenant: Box<str>,
    operation: Box<str>,
    upstream: Box<str>,
    provider: Box<str>,
    request_model: Option<Box<str>>,
    response_model: Option<Box<str>>,
}

impl From<RequestNames<'_>> for KeptNames {
    fn from(names: RequestNames<'_>) -> Self {
        Self {
            tenant: names.tenant.into(),
            operation: names.operation.into(),
            upstream: names.upstream.into(),
            provider: names.provider.into(),
            request_model: names.request_model.map(Box::from),
            response_model: names.response_model.map(Box::from),
        }
    }
}

impl KeptNames {
    pub(super) fn get(&self) -> RequestNames<'_> {
        RequestNames {
            tenant: &self.tenant,
            operation: &self.operation,
            upstream: &self.upstream,
            provider: &self.provider,
            request_model: self.request_model.as_deref(),
            response_model: self.response_model.as_deref(),
        }
    }

    /// Without what clients and engines can choose: what is left is a small fixed set.
    fn collapse(&mut self) {
        self.tenant = OTHER.into();
        for model in [&mut self.request_model, &mut self.response_model].into_iter().flatten() {
            *model = OTHER.into();
        }
    }
}

/// What tells one kind of request from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct RequestKind {
    pub(super) names: KeptNames,
    pub(super) error_type: Option<Box<str>>,
    /// `None` for one whose end was counted before.
    pub(super) end: Option<End>,
    /// The status that its client got.
    pub(super) told: Option<u16>,
    /// Whose fault it is that it was not served.
    pub(super) fault: Option<Fault>,
    pub(super) method: &'static str,
    /// Of the client's HTTP.
    pub(super) version: Version,
    pub(super) route: Box<str>,
    pub(super) status: Option<u16>,
}

impl RequestKind {
    /// Without what clients and engines can choose: what is left is a small fixed set.
    pub(super) fn collapse(&mut self) {
        self.names.collapse();
        if let Some(word) = &mut self.error_type {
            *word = OTHER_ERROR.into();
        }
    }
}

/// Which instruments of the latest generation an operation is for.
pub(super) fn work(operation: &str) -> Work {
    match operation {
        "chat" | "text_completion" | "generate_content" => Work::Inference,
        "embeddings" => Work::Embeddings,
        _ => Work::Other,
    }
}

/// What an operation is, as far as the latest generation has instruments of its own for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    Inference,
    Embeddings,
    Other,
}

/// Where an upstream is, for `server.address`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) port: u16,
}

impl Server {
    pub(super) fn labels(&self) -> [Label; 2] {
        [label(key::SERVER_ADDRESS, &self.address), label(key::SERVER_PORT, &self.port.to_string())]
    }
}

/// The attributes of one kind of request.
pub(super) struct Attributes {
    genai: Vec<Label>,
    /// `error.type`, on those instruments that have it.
    pub(super) error: Option<Label>,
    pub(super) work: Work,
    /// How it ended, on the counter of requests.
    pub(super) ended: Vec<Label>,
    /// On the HTTP instrument that faces clients.
    pub(super) http_server: Vec<Label>,
    /// On the one that faces the engine; `None` without a known engine.
    pub(super) http_client: Option<Vec<Label>>,
}

impl Attributes {
    pub(super) fn new(kind: &RequestKind, server: Option<&Server>, scheme: &'static str) -> Self {
        let server = server.map(Server::labels);
        let genai = genai(kind.names.get(), server.as_ref());
        let error = kind.error_type.as_deref().map(|word| label(key::ERROR_TYPE, word));
        Self {
            genai,
            ended: ended(kind),
            work: work(&kind.names.operation),
            http_server: http_server(
                (scheme, kind.method, kind.version),
                Some(&kind.route),
                (kind.status, kind.error_type.as_deref()),
                &kind.names.tenant,
            ),
            http_client: server.map(|server| {
                http_client(kind.method, Some(server), (kind.status, kind.error_type.as_deref()))
            }),
            error,
        }
    }

    /// Those of the GenAI instruments, and more.
    pub(super) fn with(&self, more: impl IntoIterator<Item = Label>) -> Vec<Label> {
        self.genai.iter().cloned().chain(more).collect()
    }
}

/// Attributes of the GenAI instruments.
pub(super) fn genai(names: RequestNames<'_>, server: Option<&[Label; 2]>) -> Vec<Label> {
    let mut labels = vec![
        label(key::GEN_AI_OPERATION_NAME, names.operation),
        label(key::GEN_AI_PROVIDER_NAME, names.provider),
        label(key::TENANT, names.tenant),
    ];
    labels.extend(server.into_iter().flatten().cloned());
    for (key, model) in [
        (key::GEN_AI_REQUEST_MODEL, names.request_model),
        (key::GEN_AI_RESPONSE_MODEL, names.response_model),
    ] {
        labels.extend(model.map(|model| label(key, model)));
    }
    labels
}

/// How a request ended: its end, the class of the status that its client got, and whose fault it is.
fn ended(kind: &RequestKind) -> Vec<Label> {
    let class = kind.told.map(|status| format!("{}xx", status / 100));
    let labels = [
        kind.end.map(|end| Label::new(key::END, end.as_str())),
        class.map(|class| Label::new(key::STATUS_CLASS, class)),
        kind.fault.map(|fault| Label::new(key::FAULT, fault.as_str())),
    ];
    labels.into_iter().flatten().collect()
}

fn label(key: &'static str, value: &str) -> Label {
    Label::new(key, value.to_owned())
}

/// Attributes of `http.client.request.duration`: whoever asks has failed with 4xx too.
pub(super) fn http_client(
    method: &'static str,
    server: Option<[Label; 2]>,
    (status, error): (Option<u16>, Option<&str>),
) -> Vec<Label> {
    let mut labels = vec![
        Label::new(key::HTTP_REQUEST_METHOD, method),
        Label::new(key::NETWORK_PROTOCOL_VERSION, UPSTREAM_PROTOCOL_VERSION),
    ];
    labels.extend(server.into_iter().flatten());
    let status = status.map(|status| (status, status.to_string()));
    let refused = status.as_ref().filter(|(status, _)| *status >= 400);
    let error = refused.map(|(_, text)| text.as_str()).or(error);
    labels.extend(error.map(|error| label(key::ERROR_TYPE, error)));
    labels.extend(status.map(|(_, text)| Label::new(key::HTTP_RESPONSE_STATUS_CODE, text)));
    labels
}

/// Flags by the words that records have for them.
pub(super) fn words(flags: &[Flag]) -> impl Iterator<Item = String> {
    let words = serde_json::to_value(flags).ok();
    let words: Option<Vec<String>> = words.and_then(|words| serde_json::from_value(words).ok());
    words.unwrap_or_default().into_iter()
}

/// Methods that OpenTelemetry knows, and one word for all others.
pub(super) const METHODS: [&str; 10] =
    ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "CONNECT", "TRACE", "_OTHER"];

/// A method from the fixed set that OpenTelemetry knows.
pub(super) fn method_label(method: &Method) -> &'static str {
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

/// A version of HTTP as OpenTelemetry writes it.
pub(super) fn version_label(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    }
}

/// Attributes of `http.server.request.duration`, `error.type` as the span has it: what a client did
/// wrong is no failure, and an answer that began well may break off. An empty tenant is none.
pub(super) fn http_server(
    (scheme, method, version): (&'static str, &'static str, Version),
    route: Option<&str>,
    (status, error): (Option<u16>, Option<&str>),
    tenant: &str,
) -> Vec<Label> {
    let mut labels = vec![
        Label::new(key::HTTP_REQUEST_METHOD, method),
        Label::new(key::URL_SCHEME, scheme),
        Label::new(key::NETWORK_PROTOCOL_VERSION, version_label(version)),
    ];
    labels.extend(route.map(|route| label(key::HTTP_ROUTE, route)));
    match status {
        Some(status) => {
            let status_text = status.to_string();
            let error = match status {
                500.. => Some(status_text.as_str()),
                400.. => None,
                _ => error,
            };
            labels.extend(error.map(|error| label(key::ERROR_TYPE, error)));
            labels.push(Label::new(key::HTTP_RESPONSE_STATUS_CODE, status_text));
        }
        None => labels.push(label(key::ERROR_TYPE, error.unwrap_or("client_disconnect"))),
    }
    labels.extend((!tenant.is_empty()).then(|| label(key::TENANT, tenant)));
    labels
}
