//! The routes that the gateway serves. A path matches byte for byte or not at all.

use http::Method;
use taximeter_meter::Wire;
use taximeter_request::RequestFault;

use super::escape::unescape;
use super::sockets;
use crate::journey::refuse::{Refusal, shown};

/// `gen_ai.operation.name`; values outside the OpenTelemetry registry are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    Chat,
    TextCompletion,
    GenerateContent,
    Embeddings,
    FetchResponse,
    Batch,
    FetchBatch,
    Rerank,
    CountTokens,
    Moderation,
    ImageGeneration,
    Speech,
    Transcription,
    VideoGeneration,
    Ocr,
    /// Models, and what is passed through without being known.
    Other,
}

impl Operation {
    /// The value as telemetry and records have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::TextCompletion => "text_completion",
            Self::GenerateContent => "generate_content",
            Self::Embeddings => "embeddings",
            Self::FetchResponse => "fetch_response",
            Self::Batch => "batch",
            Self::FetchBatch => "fetch_batch",
            Self::Rerank => "rerank",
            Self::CountTokens => "count_tokens",
            Self::Moderation => "moderation",
            Self::ImageGeneration => "image_generation",
            Self::Speech => "speech",
            Self::Transcription => "transcription",
            Self::VideoGeneration => "video_generation",
            Self::Ocr => "ocr",
            Self::Other => "other",
        }
    }
}

/// Whether a route's requests go on the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// They use tokens: reserved and posted.
    Ledger,
    /// They use none (lists, counts, a GET of what was billed before): served, never billed.
    Free,
}

/// What an answer may show of an earlier request: what it has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// A response, by its own id.
    Response,
    /// A chat completion, by the id in the path.
    Deferred,
    /// A batch.
    Batch,
    /// The results of the batch in the path.
    Results,
    /// A file, which may have the results of a batch.
    File,
}

/// One route.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// `http.route`: a template from a fixed set.
    pub template: &'static str,
    /// The operation, as `gen_ai.operation.name` says it.
    pub operation: Operation,
    /// The shape of requests and answers.
    pub wire: Wire,
    /// How the route is charged.
    pub billing: Billing,
    method: Allowed,
    /// Length of the template up to its `{…}` segment.
    fixed: usize,
}

/// Methods that a row takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Get,
    Post,
    Delete,
    Any,
}

/// Longest name of a model in a path, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// What is passed through where the route is not known: `TRACE` would show an engine's headers.
const ANY_HEADER: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const ANY: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

impl Allowed {
    fn takes(self, method: &Method) -> bool {
        match self {
            Self::Get => method == Method::GET || method == Method::HEAD,
            Self::Post => method == Method::POST,
            Self::Delete => method == Method::DELETE,
            Self::Any => ANY.iter().any(|known| known == method),
        }
    }
}

/// The `allow` header of a path that takes what `allows` says.
fn header(allows: impl Fn(Allowed) -> bool) -> &'static str {
    match (allows(Allowed::Get), allows(Allowed::Post), allows(Allowed::Delete)) {
        (true, true, true) => "GET, HEAD, POST, DELETE, OPTIONS",
        (true, true, false) => "GET, HEAD, POST, OPTIONS",
        (true, false, true) => "GET, HEAD, DELETE, OPTIONS",
        (true, false, false) => "GET, HEAD, OPTIONS",
        (false, ..) => "POST, OPTIONS",
    }
}

impl Route {
    /// Whether a JSON body names a model at its top, where nothing else of it is read.
    pub(crate) const fn names_model(&self) -> bool {
        !matches!(
            self.operation,
            Operation::Other | Operation::Batch | Operation::FetchResponse | Operation::FetchBatch
        )
    }

    /// Whether requests usually name a model. On the other routes engines serve the model that they
    /// have loaded, and providers have a default.
    pub(crate) fn expects_model(&self) -> bool {
        self.wire.expects_model()
            && self.operation != Operation::Moderation
            && self.template != "/embedding"
    }

    /// Whether its path asks for a stream.
    pub fn streams(&self) -> bool {
        self.template.contains("stream")
    }

    /// Whether its path names the model that is to answer.
    fn names_model_in_path(&self) -> bool {
        self.method == Post && self.template.contains("{model}")
    }

    /// Whether clients may send their key in the query: Google's do, on its own routes.
    pub(super) fn takes_key_in_query(&self) -> bool {
        let begins = |with: &&str| self.template.starts_with(with);
        self.template.contains("{model}:")
            || ["/v1beta/models", "/v1beta/batches", "/download/v1beta/"].iter().any(begins)
    }

    /// What the answers of this route may show of an earlier request.
    pub(crate) fn shows(&self) -> Option<Shows> {
        let ends = |with: &str| self.template.ends_with(with);
        match self.operation {
            _ if self.method == Delete || ends("/input_items") => None,
            Operation::FetchResponse if ends("/chat/deferred-completion/{id}") => {
                Some(Shows::Deferred)
            }
            Operation::FetchResponse => Some(Shows::Response),
            Operation::FetchBatch if ends("/results") => Some(Shows::Results),
            Operation::FetchBatch if ends("/content") || ends(":download") => Some(Shows::File),
            Operation::FetchBatch => Some(Shows::Batch),
            _ => None,
        }
    }

    /// Whether bodies are JSON whatever their type says: Ollama never looks, and its documentation
    /// has requests without one.
    pub(crate) fn takes_any_type(&self) -> bool {
        self.template.starts_with("/api/")
    }
}

const fn route(
    template: &'static str,
    operation: Operation,
    wire: Wire,
    billing: Billing,
    method: Allowed,
) -> Route {
    let bytes = template.as_bytes();
    let mut fixed = bytes.len();
    let mut at = 0;
    while let Some((&byte, _)) = bytes.split_at(at).1.split_first() {
        if byte == b'{' {
            fixed = at;
        }
        at += 1;
    }
    Route { template, operation, wire, billing, method, fixed }
}

/// A method of Gemini's own API; one that is not read counts tokens.
const fn gemini(template: &'static str, wire: Wire) -> Route {
    let (operation, billing) = match wire {
        Wire::GenerateContent => (Op::GenerateContent, Ledger),
        Wire::Embeddings => (Op::Embeddings, Ledger),
        _ => (Op::CountTokens, Free),
    };
    route(template, operation, wire, billing, Post)
}

/// A route of one of Azure's deployments.
const fn deployment(template: &'static str, operation: Operation, wire: Wire) -> Route {
    route(template, operation, wire, Ledger, Post)
}

/// What makes a batch. What it uses is told later, by its object or in a file.
const fn batch(template: &'static str) -> Route {
    route(template, Op::Batch, Wire::Batches, Ledger, Post)
}

/// A batch that is asked for, cancelled or deleted, or its results.
const fn batch_by_id(template: &'static str, method: Allowed) -> Route {
    route(template, Op::FetchBatch, Wire::Opaque, Free, method)
}

/// A list of what belongs to the client.
const fn list(template: &'static str) -> Route {
    route(template, Op::Other, Wire::Opaque, Free, Get)
}

use Allowed::{Any, Delete, Get, Post};
use Billing::{Free, Ledger};
use Operation as Op;

/// Fixed paths, and templates with one `{…}` segment. A path whose methods differ has a row for
/// each.
static ROUTES: [Route; 154] = [
    route("/v1/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/v1/chat/completions/batch", Op::Chat, Wire::ChatBatch, Ledger, Post),
    route("/v1/completions", Op::TextCompletion, Wire::Completions, Ledger, Post),
    route("/v1/responses", Op::Chat, Wire::Responses, Ledger, Post),
    route("/v1/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/v1/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Delete),
    route("/v1/responses/{id}/cancel", Op::FetchResponse, Wire::Opaque, Free, Post),
    route("/v1/responses/{id}/input_items", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/v1/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/v1/moderations", Op::Moderation, Wire::Embeddings, Ledger, Post),
    route("/v1/images/generations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/v1/images/edits", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/v1/images/variations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/v1/audio/speech", Op::Speech, Wire::Speech, Ledger, Post),
    route("/v1/audio/transcriptions", Op::Transcription, Wire::Transcriptions, Ledger, Post),
    route("/v1/audio/translations", Op::Transcription, Wire::Transcriptions, Ledger, Post),
    route("/v1/videos", Op::VideoGeneration, Wire::Videos, Ledger, Post),
    route("/v1/videos", Op::Other, Wire::Opaque, Free, Get),
    route(VIDEO_REMIX, Op::VideoGeneration, Wire::Videos, Ledger, Post),
    route("/v1/videos/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/videos/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/v1/videos/{id}/content", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/ocr", Op::Ocr, Wire::Ocr, Ledger, Post),
    route("/v1/models", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/models/{model}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/files", Op::Other, Wire::Opaque, Free, Post),
    route("/v1/files", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/files/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/files/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/v1/files/{id}/content", Op::FetchBatch, Wire::Opaque, Free, Get),
    route("/v1/messages", Op::Chat, Wire::Messages, Ledger, Post),
    route("/v1/messages/count_tokens", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/v1/chat/completions/input_tokens", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/tokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/detokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/v1/tokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/v1/detokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v1/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v2/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/score", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v1/score", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/classify", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/pooling", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/inference/v1/generate", Op::TextCompletion, Wire::TokenIds, Ledger, Post),
    route("/invocations", Op::Chat, Wire::Invocations, Ledger, Post),
    route("/generate", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/generate_stream", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/vertex_generate", Op::TextCompletion, Wire::VertexGenerate, Ledger, Post),
    route("/completion", Op::TextCompletion, Wire::LlamaCompletion, Ledger, Post),
    route("/embedding", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/api/chat", Op::Chat, Wire::OllamaChat, Ledger, Post),
    route("/api/generate", Op::TextCompletion, Wire::OllamaGenerate, Ledger, Post),
    route("/api/embed", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/api/show", Op::Other, Wire::Opaque, Free, Post),
    route("/api/tags", Op::Other, Wire::Opaque, Free, Get),
    route("/api/ps", Op::Other, Wire::Opaque, Free, Get),
    route("/api/version", Op::Other, Wire::Opaque, Free, Get),
    deployment(AZURE_CHAT, Op::Chat, Wire::ChatCompletions),
    deployment("/openai/deployments/{model}/completions", Op::TextCompletion, Wire::Completions),
    deployment("/openai/deployments/{model}/embeddings", Op::Embeddings, Wire::Embeddings),
    deployment("/openai/deployments/{model}/images/generations", Op::ImageGeneration, Wire::Images),
    deployment("/openai/deployments/{model}/images/edits", Op::ImageGeneration, Wire::Images),
    route("/openai/deployments/{model}/audio/speech", Op::Speech, Wire::Speech, Ledger, Post),
    deployment(
        "/openai/deployments/{model}/audio/transcriptions",
        Op::Transcription,
        Wire::Transcriptions,
    ),
    deployment(
        "/openai/deployments/{model}/audio/translations",
        Op::Transcription,
        Wire::Transcriptions,
    ),
    route("/openai/responses", Op::Chat, Wire::Responses, Ledger, Post),
    route("/openai/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/openai/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Delete),
    route("/openai/responses/{id}/cancel", Op::FetchResponse, Wire::Opaque, Free, Post),
    route("/openai/responses/{id}/input_items", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/openai/v1/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/openai/v1/completions", Op::TextCompletion, Wire::Completions, Ledger, Post),
    route("/openai/v1/responses", Op::Chat, Wire::Responses, Ledger, Post),
    route("/openai/v1/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/openai/v1/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, Delete),
    route("/openai/v1/responses/{id}/cancel", Op::FetchResponse, Wire::Opaque, Free, Post),
    route("/openai/v1/responses/{id}/input_items", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/openai/v1/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/openai/v1/moderations", Op::Moderation, Wire::Embeddings, Ledger, Post),
    route("/openai/v1/images/generations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/openai/v1/images/edits", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/openai/v1/images/variations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/openai/v1/audio/speech", Op::Speech, Wire::Speech, Ledger, Post),
    route("/openai/v1/audio/transcriptions", Op::Transcription, Wire::Transcriptions, Ledger, Post),
    route("/openai/v1/audio/translations", Op::Transcription, Wire::Transcriptions, Ledger, Post),
    route("/openai/v1/videos", Op::VideoGeneration, Wire::Videos, Ledger, Post),
    route("/openai/v1/models", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/models/{model}", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/files", Op::Other, Wire::Opaque, Free, Post),
    route("/openai/v1/files", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/files/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/files/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/openai/v1/files/{id}/content", Op::FetchBatch, Wire::Opaque, Free, Get),
    route("/openai/files", Op::Other, Wire::Opaque, Free, Post),
    route("/openai/files", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/files/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/files/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/openai/files/{id}/content", Op::FetchBatch, Wire::Opaque, Free, Get),
    route("/v1beta/openai/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/v1beta/openai/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/v1beta/openai/images/generations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/v1beta/openai/models", Op::Other, Wire::Opaque, Free, Get),
    route("/v1beta/openai/models/{model}", Op::Other, Wire::Opaque, Free, Get),
    gemini("/v1beta/models/{model}:generateContent", Wire::GenerateContent),
    gemini("/v1beta/models/{model}:streamGenerateContent", Wire::GenerateContent),
    gemini("/v1beta/models/{model}:embedContent", Wire::Embeddings),
    gemini("/v1beta/models/{model}:batchEmbedContents", Wire::Embeddings),
    gemini("/v1beta/models/{model}:countTokens", Wire::Opaque),
    gemini("/v1/models/{model}:generateContent", Wire::GenerateContent),
    gemini("/v1/models/{model}:streamGenerateContent", Wire::GenerateContent),
    gemini("/v1/models/{model}:embedContent", Wire::Embeddings),
    gemini("/v1/models/{model}:batchEmbedContents", Wire::Embeddings),
    gemini("/v1/models/{model}:countTokens", Wire::Opaque),
    route("/v1beta/models", Op::Other, Wire::Opaque, Free, Get),
    route("/v1beta/models/{model}", Op::Other, Wire::Opaque, Free, Get),
    route("/v2/chat", Op::Chat, Wire::CohereChat, Ledger, Post),
    route("/v2/embed", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/model/{model}/converse", Op::Chat, Wire::Converse, Ledger, Post),
    route("/model/{model}/converse-stream", Op::Chat, Wire::Converse, Ledger, Post),
    route("/model/{model}/count-tokens", Op::CountTokens, Wire::Opaque, Free, Post),
    batch("/v1/batches"),
    list("/v1/batches"),
    batch_by_id("/v1/batches/{id}", Get),
    batch_by_id("/v1/batches/{id}/cancel", Post),
    batch_by_id("/v1/batches/{id}/results", Get),
    batch("/openai/v1/batches"),
    list("/openai/v1/batches"),
    batch_by_id("/openai/v1/batches/{id}", Get),
    batch_by_id("/openai/v1/batches/{id}/cancel", Post),
    batch("/openai/batches"),
    list("/openai/batches"),
    batch_by_id("/openai/batches/{id}", Get),
    batch_by_id("/openai/batches/{id}/cancel", Post),
    batch("/v1/messages/batches"),
    list("/v1/messages/batches"),
    batch_by_id("/v1/messages/batches/{id}", Get),
    batch_by_id("/v1/messages/batches/{id}", Delete),
    batch_by_id("/v1/messages/batches/{id}/cancel", Post),
    batch_by_id("/v1/messages/batches/{id}/results", Get),
    batch("/v1/batch/jobs"),
    list("/v1/batch/jobs"),
    batch_by_id("/v1/batch/jobs/{id}", Get),
    batch_by_id("/v1/batch/jobs/{id}", Delete),
    batch_by_id("/v1/batch/jobs/{id}/cancel", Post),
    batch("/v1beta/models/{model}:batchGenerateContent"),
    batch("/v1beta/models/{model}:asyncBatchEmbedContent"),
    list("/v1beta/batches"),
    batch_by_id("/v1beta/batches/{id}:cancel", Post),
    batch_by_id("/v1beta/batches/{id}", Get),
    batch_by_id("/v1beta/batches/{id}", Delete),
    batch_by_id("/download/v1beta/files/{id}:download", Get),
    route("/v1/chat/deferred-completion/{id}", Op::FetchResponse, Wire::Opaque, Free, Get),
];

/// Serves in plain requests what others serve over WebSockets.
const INSTEAD_OF_SOCKET: &str = "/v1/responses";
/// The film that it remakes says which model.
const VIDEO_REMIX: &str = "/v1/videos/{id}/remix";
const AZURE_CHAT: &str = "/openai/deployments/{model}/chat/completions";

/// What is passed through without being known: on the ledger, usage unknown.
static PASSED_THROUGH: Route = route("other", Op::Other, Wire::Opaque, Ledger, Any);

/// The route of a request, and the model if its path names one.
///
/// Errors: `UnknownRoute`, `SocketRoute`, `MethodNotAllowed`; `InvalidValue` where the model's name is none.
pub(super) fn find(
    method: &Method,
    path: &str,
    passthrough: bool,
) -> Result<(&'static Route, Option<String>), Refusal> {
    let mut is_known = false;
    for route in &ROUTES {
        let Some(parameter) = route.parameter(path) else { continue };
        if route.method.takes(method) {
            let named = route.names_model_in_path().then(|| model_of(parameter));
            return Ok((route, named.transpose()?));
        }
        is_known = true;
    }
    match passthrough && path.starts_with('/') {
        _ if is_known => {
            let allow = allowed(path).unwrap_or_default();
            Err(Refusal::MethodNotAllowed { allow })
        }
        true if PASSED_THROUGH.method.takes(method) => Ok((&PASSED_THROUGH, None)),
        true => Err(Refusal::MethodNotAllowed { allow: ANY_HEADER }),
        false if sockets::need(path) => {
            Err(Refusal::SocketRoute { path: shown(path), instead: INSTEAD_OF_SOCKET })
        }
        false => Err(Refusal::UnknownRoute { path: shown(path) }),
    }
}

/// What serves what a WebSocket at `path` would: the route there that takes a POST, or else OpenAI's.
pub(super) fn instead_of_socket(path: &str) -> &'static str {
    let is_posted = |route: &&Route| route.method == Post && route.parameter(path).is_some();
    ROUTES.iter().find(is_posted).map_or(INSTEAD_OF_SOCKET, |route| route.template)
}

/// The model that a segment of a path names. What stands for a `:` or a `/` in it is undone.
fn model_of(segment: &str) -> Result<String, Refusal> {
    let fits =
        |model: &String| model.len() <= MODEL_BYTES_MAX && !model.chars().any(char::is_control);
    let what = "a text of at most 256 bytes without control characters";
    let fault = RequestFault::InvalidValue { param: "model", what };
    String::from_utf8(unescape(segment)).ok().filter(fits).ok_or(fault.into())
}

/// The methods of a route that we know, or of all routes together (`*`); `None` for other paths.
pub fn allowed(path: &str) -> Option<&'static str> {
    let is_asked = |route: &&Route| path == "*" || route.parameter(path).is_some();
    let rows = || ROUTES.iter().filter(is_asked);
    rows().next()?;
    Some(header(|method| rows().any(|route| route.method == method)))
}

impl Route {
    /// What stands for the `{…}` segment in `path` (empty where there is none), if the path fits.
    pub(crate) fn parameter<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (head, rest) = self.template.split_at_checked(self.fixed)?;
        let behind = path.strip_prefix(head)?;
        let Some((_, tail)) = rest.split_once('}') else {
            return behind.is_empty().then_some("");
        };
        let parameter = behind.strip_suffix(tail)?;
        let takes_slashes = tail.is_empty() && head.ends_with("/models/");
        let plain = !parameter.is_empty() && (takes_slashes || !parameter.contains('/'));
        plain.then_some(parameter)
    }
}

#[cfg(test)]
mod tests;
