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
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Get,
    Post,
    GetDelete,
    Any,
}

/// What is passed through where the route is not known: `TRACE` would show an engine's headers.
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
            Self::GetDelete => {
                method == Method::GET || method == Method::HEAD || method == Method::DELETE
            }
            Self::Any => ANY.iter().any(|known| known == method),
        }
    }

    const fn header(self) -> &'static str {
        match self {
            Self::Get => "GET, HEAD, OPTIONS",
            Self::Post => "POST, OPTIONS",
            Self::GetDelete => "GET, HEAD, DELETE, OPTIONS",
            Self::Any => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        }
    }
}

impl Route {
    /// Whether a JSON body names a model at its top, where nothing else of it is read.
    pub(crate) const fn names_model(&self) -> bool {
        !matches!(self.operation, Operation::Other | Operation::FetchResponse)
    }
}

const fn route(
    template: &'static str,
    operation: Operation,
    wire: Wire,
    billing: Billing,
    method: Allowed,
) -> Route {
    Route { template, operation, wire, billing, method }
}

use Allowed::{Any, Get, GetDelete, Post};
use Billing::{Free, Ledger};
use Operation as Op;

/// Fixed paths, and templates with one `{…}` segment.
static ROUTES: [Route; 33] = [
    route("/v1/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/v1/completions", Op::TextCompletion, Wire::Completions, Ledger, Post),
    route("/v1/responses", Op::Chat, Wire::Responses, Ledger, Post),
    route("/v1/messages", Op::Chat, Wire::Messages, Ledger, Post),
    route("/v1/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/v1/models", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/models/{model}", Op::Other, Wire::Opaque, Free, Get),
    route("/v1/responses/{id}", Op::FetchResponse, Wire::Opaque, Free, GetDelete),
    route("/v1/responses/{id}/cancel", Op::FetchResponse, Wire::Opaque, Free, Post),
    route("/v1/responses/{id}/input_items", Op::FetchResponse, Wire::Opaque, Free, Get),
    route("/v1/messages/count_tokens", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/tokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/detokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/v1/tokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/v1/detokenize", Op::CountTokens, Wire::Opaque, Free, Post),
    route("/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v1/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v2/rerank", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/score", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v1/score", Op::Rerank, Wire::Embeddings, Ledger, Post),
    route("/v1/moderations", Op::Moderation, Wire::Opaque, Ledger, Post),
    route("/v1/images/generations", Op::ImageGeneration, Wire::Opaque, Ledger, Post),
    route("/v1/images/edits", Op::ImageGeneration, Wire::Opaque, Ledger, Post),
    route("/v1/images/variations", Op::ImageGeneration, Wire::Opaque, Ledger, Post),
    route("/v1/audio/speech", Op::Speech, Wire::Opaque, Ledger, Post),
    route("/v1/audio/transcriptions", Op::Transcription, Wire::Opaque, Ledger, Post),
    route("/v1/audio/translations", Op::Transcription, Wire::Opaque, Ledger, Post),
    route(AZURE_CHAT, Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route(AZURE_COMPLETIONS, Op::TextCompletion, Wire::Completions, Ledger, Post),
    route(AZURE_EMBEDDINGS, Op::Embeddings, Wire::Embeddings, Ledger, Post),
    route("/openai/v1/chat/completions", Op::Chat, Wire::ChatCompletions, Ledger, Post),
    route("/openai/v1/responses", Op::Chat, Wire::Responses, Ledger, Post),
    route("/openai/v1/embeddings", Op::Embeddings, Wire::Embeddings, Ledger, Post),
];

const AZURE_CHAT: &str = "/openai/deployments/{model}/chat/completions";
const AZURE_COMPLETIONS: &str = "/openai/deployments/{model}/completions";
const AZURE_EMBEDDINGS: &str = "/openai/deployments/{model}/embeddings";

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
    let Some((route, parameter)) =
        ROUTES.iter().find_map(|route| Some((route, matches(route.template, path)?)))
    else {
        return match passthrough {
            true if PASSED_THROUGH.method.takes(method) => Ok((&PASSED_THROUGH, None)),
            true => Err(Refusal::MethodNotAllowed { allow: PASSED_THROUGH.method.header() }),
            false => Err(Refusal::UnknownRoute { path: super::super::refuse::shown(path) }),
        };
    };
    if !route.method.takes(method) {
        return Err(Refusal::MethodNotAllowed { allow: route.method.header() });
    }
    let model = route.template.starts_with("/openai/deployments/").then(|| parameter.to_owned());
    Ok((route, model.filter(|model| !model.is_empty())))
}

/// The methods of a route that we know; `None` for other paths.
pub(crate) fn allowed(path: &str) -> Option<&'static str> {
    let route = ROUTES.iter().find(|route| matches(route.template, path).is_some())?;
    Some(route.method.header())
}

/// The parameter of `template` in `path` (empty where it has none), if the path fits.
fn matches<'a>(template: &str, path: &'a str) -> Option<&'a str> {
    let Some((head, rest)) = template.split_once('{') else {
        return (template == path).then_some("");
    };
    let (_, tail) = rest.split_once('}')?;
    let parameter = path.strip_prefix(head)?.strip_suffix(tail)?;
    let plain = !parameter.is_empty()
        && (tail.is_empty() && template.starts_with("/v1/models/") || !parameter.contains('/'));
    plain.then_some(parameter)
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
            "/",
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
    }

    #[test]
    fn azure_names_the_model_in_the_path() {
        let path = "/openai/deployments/my-gpt/chat/completions";
        let (route, model) = find(&Method::POST, path, false).unwrap();
        assert_eq!((route.template, model.as_deref()), (AZURE_CHAT, Some("my-gpt")));
    }

    #[test]
    fn a_response_is_fetched_by_id_and_never_billed() {
        let (route, _) = find(&Method::GET, "/v1/responses/resp_1", false).unwrap();
        assert_eq!((route.operation, route.billing), (Operation::FetchResponse, Billing::Free));
        assert!(find(&Method::GET, "/v1/responses/a/b", false).is_err());
        assert!(find(&Method::GET, "/v1/models/org/model", false).is_ok());
    }

    #[test]
    fn unknown_paths_pass_only_when_configured() {
        let (route, _) = find(&Method::PUT, "/v1/anything", true).unwrap();
        assert_eq!((route.template, route.billing), ("other", Billing::Ledger));
        assert!(find(&Method::TRACE, "/v1/anything", true).is_err());
    }
}
