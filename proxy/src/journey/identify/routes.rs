//! The routes that we serve. A path matches byte for byte or not at all.

use http::Method;
use taximeter_meter::Wire;

use crate::journey::refuse::Refusal;

/// `gen_ai.operation.name`; values outside the OpenTelemetry registry are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    Chat,
    TextCompletion,
    Embeddings,
    FetchResponse,
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
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::TextCompletion => "text_completion",
            Self::Embeddings => "embeddings",
            Self::FetchResponse => "fetch_response",
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
pub(crate) enum Billing {
    /// They use tokens: reserved and posted.
    Ledger,
    /// They use none (lists, counts, a GET of what was billed before): served, never billed.
    Free,
}

/// One route.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// `http.route`: a template from a fixed set.
    pub(crate) template: &'static str,
    pub(crate) operation: Operation,
    pub(crate) wire: Wire,
    pub(crate) billing: Billing,
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
        (true, true, _) => "GET, HEAD, POST, OPTIONS",
        (true, false, true) => "GET, HEAD, DELETE, OPTIONS",
        (true, false, false) => "GET, HEAD, OPTIONS",
        (false, ..) => "POST, OPTIONS",
    }
}

impl Route {
    /// Whether a JSON body names a model at its top, where nothing else of it is read.
    pub(crate) const fn names_model(&self) -> bool {
        !matches!(self.operation, Operation::Other | Operation::FetchResponse)
    }

    /// Whether a body that is read must name a model: some serve what was loaded, or choose it.
    pub(crate) fn requires_model(&self) -> bool {
        self.operation != Operation::Moderation
            && self.template != "/embedding"
            && self.template != VIDEO_REMIX
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

use Allowed::{Any, Delete, Get, Post};
use Billing::{Free, Ledger};
use Operation as Op;

/// Fixed paths, and templates with one `{…}` segment. A path whose methods differ has a row for
/// each.
///
/// What a batch uses is told in a file, later: it is on the ledger as unknown, its files are not.
static ROUTES: [Route; 104] = [
    route("/v1/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
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
    route("/v1/batches", Op::Other, Wire::Opaque, Ledger, Post),
    route("/v1/batches", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/batches/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/batches/{id}/cancel", Op::Other, Wire::Opaque, Free, Post),
    route("/v1/files", Op::Other, Wire::Opaque, Free, Post),
    route("/v1/files", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/files/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/files/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/v1/files/{id}/content", Op::Other, Wire::Opaque, Free, Get),
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
    route("/generate", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/generate_stream", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/", Op::TextCompletion, Wire::Generate, Ledger, Post),
    route("/completion", Op::TextCompletion, Wire::LlamaCompletion, Ledger, Post),
    route("/embedding", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/api/chat", Op::Chat, Wire::OllamaChat, Ledger, Post),
    route("/api/generate", Op::TextCompletion, Wire::OllamaGenerate, Ledger, Post),
    route("/api/embed", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/api/show", Op::Other, Wire::Opaque, Free, Post),
    route("/api/tags", Op::Other, Wire::Opaque, Free, Get),
    route("/api/ps", Op::Other, Wire::Opaque, Free, Get),
    route("/api/version", Op::Other, Wire::Opaque, Free, Get),
    route(AZURE_CHAT, Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route(
        "/openai/deployments/{model}/completions",
        Op::TextCompletion,
        Wire::Completions,
        Ledger,
        Post,
    ),
    route("/openai/deployments/{model}/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route(
        "/openai/deployments/{model}/images/generations",
        Op::ImageGeneration,
        Wire::Images,
        Ledger,
        Post,
    ),
    route(
        "/openai/deployments/{model}/images/edits",
        Op::ImageGeneration,
        Wire::Images,
        Ledger,
        Post,
    ),
    route("/openai/deployments/{model}/audio/speech", Op::Speech, Wire::Speech, Ledger, Post),
    route(
        "/openai/deployments/{model}/audio/transcriptions",
        Op::Transcription,
        Wire::Transcriptions,
        Ledger,
        Post,
    ),
    route(
        "/openai/deployments/{model}/audio/translations",
        Op::Transcription,
        Wire::Transcriptions,
        Ledger,
        Post,
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
    route("/openai/v1/batches", Op::Other, Wire::Opaque, Ledger, Post),
    route("/openai/v1/batches", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/batches/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/batches/{id}/cancel", Op::Other, Wire::Opaque, Free, Post),
    route("/openai/v1/files", Op::Other, Wire::Opaque, Free, Post),
    route("/openai/v1/files", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/files/{id}", Op::Other, Wire::Opaque, Free, Get),
    route("/openai/v1/files/{id}", Op::Other, Wire::Opaque, Free, Delete),
    route("/openai/v1/files/{id}/content", Op::Other, Wire::Opaque, Free, Get),
    route("/v1beta/openai/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/v1beta/openai/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/v1beta/openai/images/generations", Op::ImageGeneration, Wire::Images, Ledger, Post),
    route("/v1beta/openai/models", Op::Other, Wire::Opaque, Free, Get),
    route("/v1beta/openai/models/{model}", Op::Other, Wire::Opaque, Free, Get),
];

/// The film that it remakes says which model.
const VIDEO_REMIX: &str = "/v1/videos/{id}/remix";
const AZURE_CHAT: &str = "/openai/deployments/{model}/chat/completions";

/// What is passed through without being known: on the ledger, usage unknown.
static PASSED_THROUGH: Route = route("other", Op::Other, Wire::Opaque, Ledger, Any);

/// The route of a request, and the model if its path names one.
///
/// Errors: `UnknownRoute`, `MethodNotAllowed`.
pub(super) fn find(
    method: &Method,
    path: &str,
    passthrough: bool,
) -> Result<(&'static Route, Option<String>), Refusal> {
    let mut is_known = false;
    for route in &ROUTES {
        let Some(parameter) = route.parameter(path) else { continue };
        if route.method.takes(method) {
            let named = route.template.starts_with("/openai/deployments/");
            return Ok((route, named.then(|| parameter.to_owned())));
        }
        is_known = true;
    }
    match passthrough {
        _ if is_known => {
            let allow = allowed(path).unwrap_or_default();
            Err(Refusal::MethodNotAllowed { allow })
        }
        true if PASSED_THROUGH.method.takes(method) => Ok((&PASSED_THROUGH, None)),
        true => Err(Refusal::MethodNotAllowed { allow: ANY_HEADER }),
        false => Err(Refusal::UnknownRoute { path: super::super::refuse::shown(path) }),
    }
}

/// The methods of a route that we know; `None` for other paths.
pub(crate) fn allowed(path: &str) -> Option<&'static str> {
    let rows = || ROUTES.iter().filter(|route| route.parameter(path).is_some());
    rows().next()?;
    Some(header(|method| rows().any(|route| route.method == method)))
}

impl Route {
    /// What stands for the `{…}` segment in `path` (empty where there is none), if the path fits.
    fn parameter<'a>(&self, path: &'a str) -> Option<&'a str> {
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
mod tests {
    use super::*;

    #[test]
    fn a_path_matches_byte_for_byte_or_not_at_all() {
        let (route, _) = find(&Method::POST, "/v1/chat/completions", false).unwrap();
        assert_eq!((route.operation, route.wire), (Operation::Chat, Wire::ChatCompletions));
        for path in [
            "/v1/chat/completions/",
            "/V1/chat/completions",
            "//v1/chat/completions",
            "/v1/chat%2fcompletions",
            "/v1/./chat/completions",
            "",
        ] {
            let refusal = find(&Method::POST, path, false).unwrap_err();
            assert_eq!(refusal.code(), "unknown_route", "{path}");
        }
    }

    #[test]
    fn the_wrong_method_is_told_the_right_one() {
        let refusal = find(&Method::GET, "/v1/chat/completions", false).unwrap_err();
        assert!(matches!(refusal, Refusal::MethodNotAllowed { allow: "POST, OPTIONS" }));
        assert_eq!(allowed("/v1/chat/completions"), Some("POST, OPTIONS"));
        assert_eq!(allowed("/v1/chat"), None);
        assert_eq!(allowed("/v1/responses/resp_1"), Some("GET, HEAD, DELETE, OPTIONS"));
        assert_eq!(allowed("/v1/batches"), Some("GET, HEAD, POST, OPTIONS"));
        assert_eq!(allowed("/v1/models"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(
            find(&Method::PUT, "/v1/batches", true).unwrap_err().code(),
            "method_not_allowed"
        );
    }

    #[test]
    fn azure_names_the_model_in_the_path() {
        let path = "/openai/deployments/my-gpt/chat/completions";
        let (route, model) = find(&Method::POST, path, false).unwrap();
        assert_eq!((route.template, model.as_deref()), (AZURE_CHAT, Some("my-gpt")));
    }

    #[test]
    fn what_a_batch_uses_is_unknown_and_asking_for_it_costs_nothing() {
        let billing = |method: Method, path| {
            let (route, _) = find(&method, path, false).unwrap();
            (route.wire, route.billing)
        };
        assert_eq!(billing(Method::POST, "/v1/batches"), (Wire::Opaque, Billing::Ledger));
        assert_eq!(billing(Method::GET, "/v1/batches"), (Wire::Opaque, Billing::Free));
        assert_eq!(billing(Method::GET, "/v1/batches/b"), (Wire::Opaque, Billing::Free));
        assert_eq!(billing(Method::POST, "/v1/files"), (Wire::Opaque, Billing::Free));
        assert_eq!(billing(Method::GET, "/openai/v1/files/f/content").1, Billing::Free);
    }

    #[test]
    fn a_path_has_one_row_for_each_method() {
        for (at, row) in ROUTES.iter().enumerate() {
            let same =
                |other: &&Route| other.template == row.template && other.method == row.method;
            assert_eq!(ROUTES.iter().filter(same).count(), 1, "{}", row.template);
            assert_eq!(ROUTES.iter().position(|other| other == row), Some(at));
        }
    }

    #[test]
    fn a_response_is_fetched_by_id_and_never_billed() {
        let (route, _) = find(&Method::GET, "/v1/responses/resp_1", false).unwrap();
        assert_eq!((route.operation, route.billing), (Operation::FetchResponse, Billing::Free));
        assert!(find(&Method::GET, "/v1/responses/a/b", false).is_err());
        assert!(find(&Method::GET, "/v1/models/org/model", false).is_ok());
        assert!(find(&Method::GET, "/openai/v1/models/org/model", false).is_ok());
        let cancel = find(&Method::POST, "/openai/v1/responses/resp_1/cancel", false).unwrap().0;
        assert_eq!((cancel.operation, cancel.billing), (Operation::FetchResponse, Billing::Free));
    }

    #[test]
    fn unknown_paths_pass_only_when_configured() {
        let (route, _) = find(&Method::PUT, "/v1/anything", true).unwrap();
        assert_eq!((route.template, route.billing), ("other", Billing::Ledger));
        assert!(find(&Method::TRACE, "/v1/anything", true).is_err());
    }
}
