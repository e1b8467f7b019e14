//! What we answer when we do not serve: every refusal, its status, its word, its shape. One `match`
//! each.

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderValue, Response, StatusCode};
use taximeter_meter::{DecodeFault, RequestFault, exception};

use crate::edge::framing::FramingFault;

/// One text for a key that is missing, unknown or wrong: it says nothing about which keys exist.
const NO_KEY: &str = "no valid API key was sent; send one as `authorization: Bearer KEY`, \
                      `x-api-key`, `api-key` or `x-goog-api-key`";
/// Model names are cut at this many bytes in messages.
const SHOWN_BYTES_MAX: usize = 128;
/// What Bedrock calls an answer that breaks off.
const STREAM_EXCEPTION: &str = "modelStreamErrorException";
/// Suggested wait where we cannot know better.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Why a request was not served. Each has a fixed word, safe as a label (`facts/robustness.md` §2).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Refusal {
    #[error("two different credentials were sent; send one")]
    CredentialsDiffer,
    #[error("{NO_KEY}")]
    InvalidKey,
    #[error("{NO_KEY}")]
    MissingKey,
    #[error("no route {path}; this gateway serves the OpenAI and Anthropic routes under /v1")]
    UnknownRoute { path: String },
    #[error("this route takes {allow}")]
    MethodNotAllowed { allow: &'static str },
    #[error("no upstream serves the model {model:?}")]
    ModelNotFound { model: String },
    #[error("`model` is missing; name the model to use")]
    ModelRequired,
    #[error("{0}")]
    Request(#[from] RequestFault),
    #[error("the content type must be application/json, or a form's where a file is sent")]
    MediaType,
    #[error("{0}")]
    Encoding(#[from] DecodeFault),
    #[error("the body is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the path is longer than {bytes_max} bytes")]
    UriTooLong { bytes_max: usize },
    #[error("the only expectation that is met is 100-continue")]
    Expectation,
    #[error("this gateway opens no tunnels")]
    NotSupported,
    #[error("the body did not arrive in time")]
    BodyTimeout,
    #[error("the client left within its request")]
    ClientLeft,
    #[error("the request could not be read in one way only; check its framing ({cause})")]
    BadFraming { cause: &'static str },
    #[error("a body's length was not told; send content-length, or transfer-encoding: chunked")]
    LengthMissing,
    #[error("the request could not be read: {0}")]
    Framing(FramingFault),
    #[error("the price of {model:?} is not known, and requests without a price are refused here")]
    UnknownPrice { model: String },
    #[error("{most} of your requests run already, and no more may; ask again when one has ended")]
    ConcurrencyLimited { most: usize },
    #[error("the ledger cannot be written; try again")]
    LedgerUnavailable,
    #[error("too much is going on at once; try again")]
    Overloaded,
    #[error("this gateway is shutting down; try again")]
    Draining,
    #[error("the engine cannot be reached")]
    UpstreamConnect { cause: &'static str },
    #[error("the engine is away; try again")]
    NoUpstream,
    #[error("the engine did not answer in time")]
    UpstreamTimeout,
    #[error("the engine refused the gateway's own credential; tell its operator")]
    UpstreamAuth,
    #[error("the engine's connection broke before it answered")]
    UpstreamReset,
    #[error("the engine's answer is not valid HTTP")]
    UpstreamProtocol,
    #[error("something went wrong in the gateway; its log has the request id")]
    Internal,
}

/// Whose error shape the client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    OpenAi,
    Anthropic,
}

impl Shape {
    /// What is understood by whoever asks for this path.
    pub(crate) fn of(path: &[u8]) -> Self {
        if path.starts_with(b"/v1/messages") { Self::Anthropic } else { Self::OpenAi }
    }
}

impl Refusal {
    /// What of the head can be read in more than one way, as a fixed word for labels.
    pub(crate) const fn framing_cause(&self) -> Option<&'static str> {
        match self {
            Self::BadFraming { cause } => Some(cause),
            Self::LengthMissing => Some("no_length"),
            Self::UriTooLong { .. } => Some(FramingFault::TargetTooLong.cause()),
            Self::Framing(fault) => Some(fault.cause()),
            _ => None,
        }
    }

    /// `error.type` and `code`: a fixed word.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::CredentialsDiffer | Self::Encoding(DecodeFault::Damaged) => "invalid_value",
            Self::InvalidKey => "invalid_api_key",
            Self::MissingKey => "missing_api_key",
            Self::UnknownRoute { .. } => "unknown_route",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::ModelNotFound { .. } => "model_not_found",
            Self::ModelRequired => "model_required",
            Self::Request(fault) => fault.code(),
            Self::MediaType => "unsupported_media_type",
            Self::Encoding(DecodeFault::Unknown) => "unsupported_encoding",
            Self::TooLarge { .. } | Self::Encoding(DecodeFault::TooLarge) => "request_too_large",
            Self::UriTooLong { .. } | Self::Framing(FramingFault::TargetTooLong) => "uri_too_long",
            Self::Framing(FramingFault::HeadTooLarge | FramingFault::TooManyFields) => {
                "headers_too_large"
            }
            Self::Expectation => "expectation_failed",
            Self::NotSupported | Self::Framing(FramingFault::Encoded) => "not_supported",
            Self::BodyTimeout => "request_timeout",
            Self::ClientLeft => "client_left",
            Self::BadFraming { .. } | Self::LengthMissing | Self::Framing(_) => "bad_framing",
            Self::UnknownPrice { .. } => "unknown_price",
            Self::ConcurrencyLimited { .. } => "concurrency_limited",
            Self::LedgerUnavailable => "ledger_unavailable",
            Self::Overloaded => "overloaded",
            Self::Draining => "draining",
            Self::UpstreamConnect { .. } => "upstream_connect",
            Self::NoUpstream => "no_upstream",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamAuth => "upstream_auth",
            Self::UpstreamReset => "upstream_reset",
            Self::UpstreamProtocol => "upstream_protocol",
            Self::Internal => "internal",
        }
    }

    /// Status and `type`.
    pub(crate) const fn status(&self) -> (StatusCode, &'static str) {
        const INVALID: &str = "invalid_request_error";
        match self {
            Self::UriTooLong { .. } | Self::Framing(FramingFault::TargetTooLong) => {
                (StatusCode::URI_TOO_LONG, INVALID)
            }
            Self::Framing(FramingFault::HeadTooLarge | FramingFault::TooManyFields) => {
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, INVALID)
            }
            Self::NotSupported | Self::Framing(FramingFault::Encoded) => {
                (StatusCode::NOT_IMPLEMENTED, INVALID)
            }
            Self::CredentialsDiffer
            | Self::Encoding(DecodeFault::Damaged)
            | Self::Request(_)
            | Self::ModelRequired
            | Self::ClientLeft
            | Self::BadFraming { .. }
            | Self::LengthMissing
            | Self::Framing(_)
            | Self::UnknownPrice { .. } => (StatusCode::BAD_REQUEST, INVALID),
            Self::InvalidKey | Self::MissingKey => (StatusCode::UNAUTHORIZED, INVALID),
            Self::UnknownRoute { .. } | Self::ModelNotFound { .. } => {
                (StatusCode::NOT_FOUND, INVALID)
            }
            Self::MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, INVALID),
            Self::MediaType | Self::Encoding(DecodeFault::Unknown) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID)
            }
            Self::TooLarge { .. } | Self::Encoding(DecodeFault::TooLarge) => {
                (StatusCode::PAYLOAD_TOO_LARGE, INVALID)
            }
            Self::Expectation => (StatusCode::EXPECTATION_FAILED, INVALID),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "timeout_error"),
            Self::ConcurrencyLimited { .. } => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error"),
            Self::LedgerUnavailable | Self::Overloaded | Self::Draining | Self::NoUpstream => {
                (StatusCode::SERVICE_UNAVAILABLE, "overloaded_error")
            }
            Self::UpstreamConnect { .. }
            | Self::UpstreamAuth
            | Self::UpstreamReset
            | Self::UpstreamProtocol => (StatusCode::BAD_GATEWAY, "upstream_error"),
            Self::UpstreamTimeout => (StatusCode::GATEWAY_TIMEOUT, "upstream_error"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        }
    }

    /// `param`: the JSON path or header that is at fault.
    fn param(&self) -> Option<String> {
        match self {
            Self::CredentialsDiffer | Self::InvalidKey | Self::MissingKey => {
                Some("authorization".into())
            }
            Self::ModelNotFound { .. } | Self::ModelRequired | Self::UnknownPrice { .. } => {
                Some("model".into())
            }
            Self::Request(fault) => Some(fault.param().into_owned()),
            Self::MediaType => Some("content-type".into()),
            Self::Expectation => Some("expect".into()),
            Self::Encoding(_) => Some("content-encoding".into()),
            _ => None,
        }
    }

    /// Whether the client's body may still be on its way, so that the connection cannot carry
    /// another request.
    const fn closes(&self) -> bool {
        matches!(
            self,
            Self::NotSupported
                | Self::TooLarge { .. }
                | Self::Encoding(DecodeFault::TooLarge)
                | Self::BodyTimeout
                | Self::BadFraming { .. }
                | Self::LengthMissing
                | Self::Framing(_)
                | Self::UriTooLong { .. }
        )
    }

    /// The answer, in the client's own format.
    pub(crate) fn answer(&self, shape: Shape, request_id: &str) -> Response<Bytes> {
        let (status, kind) = self.status();
        let body = match shape {
            Shape::OpenAi => serde_json::json!({"error": {
                "message": self.to_string(), "type": kind, "param": self.param(),
                "code": self.code(),
            }}),
            Shape::Anthropic => serde_json::json!({"type": "error", "error": {
                "type": anthropic_type(status, kind), "message": self.to_string(),
                "code": self.code(),
            }, "request_id": request_id}),
        };
        let mut answer = Response::new(Bytes::from(body.to_string()));
        let length = HeaderValue::from(answer.body().len());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, length);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        let passes = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
        if status.is_client_error() && !passes || status == StatusCode::NOT_IMPLEMENTED {
            headers.insert("x-should-retry", HeaderValue::from_static("false"));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
            headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS));
        }
        if let Self::MethodNotAllowed { allow } = self {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.closes() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// The answer to `OPTIONS` on a route that takes `allow`.
pub(crate) fn options(allow: &'static str) -> Response<Bytes> {
    let mut answer = Response::new(Bytes::new());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    answer
}

/// Anthropic's word for a status; its clients know these.
const fn anthropic_type(status: StatusCode, kind: &'static str) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        500 | 502 => "api_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        _ => kind,
    }
}

/// An event for a stream that must be cut after its head went out. No `[DONE]` follows: a client
/// must be able to tell a cut from an end.
pub(crate) fn stream_error(shape: StreamShape, code: &str, message: &str) -> Bytes {
    let error = match shape {
        StreamShape::Data => serde_json::json!({"error": {
            "message": message, "type": "upstream_error", "param": null, "code": code}}),
        StreamShape::Event => serde_json::json!({"type": "error", "code": code, "message": message,
            "error": {"type": "api_error", "message": message}}),
        StreamShape::Line => serde_json::json!({"error": message}),
        StreamShape::Message => serde_json::json!({"message": message, "code": code}),
    };
    Bytes::from(match shape {
        StreamShape::Data => format!("data: {error}\n\n"),
        StreamShape::Event => format!("event: error\ndata: {error}\n\n"),
        StreamShape::Line => format!("{error}\n"),
        StreamShape::Message => return exception(STREAM_EXCEPTION, &error.to_string()).into(),
    })
}

/// How a stream carries an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamShape {
    /// Chat and completions: a data line.
    Data,
    /// Responses and messages: a typed event.
    Event,
    /// Lines of JSON: a line, as Ollama has it.
    Line,
    /// Bedrock: a message of an exception.
    Message,
}

/// A name from a client, cut for a message.
pub(crate) fn shown(name: &str) -> String {
    let end = (0..=SHOWN_BYTES_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    name.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Refusal> {
        vec![
            Refusal::CredentialsDiffer,
            Refusal::InvalidKey,
            Refusal::MissingKey,
            Refusal::UnknownRoute { path: "/x".into() },
            Refusal::MethodNotAllowed { allow: "POST" },
            Refusal::ModelNotFound { model: "m".into() },
            Refusal::MediaType,
            Refusal::Encoding(DecodeFault::Unknown),
            Refusal::Encoding(DecodeFault::Damaged),
            Refusal::Encoding(DecodeFault::TooLarge),
            Refusal::TooLarge { bytes_max: 1 },
            Refusal::UriTooLong { bytes_max: 1 },
            Refusal::Expectation,
            Refusal::NotSupported,
            Refusal::BodyTimeout,
            Refusal::BadFraming { cause: "host" },
            Refusal::LengthMissing,
            Refusal::Framing(FramingFault::LineEnd),
            Refusal::Framing(FramingFault::TooManyFields),
            Refusal::Framing(FramingFault::Encoded),
            Refusal::Framing(FramingFault::TargetTooLong),
            Refusal::UnknownPrice { model: "m".into() },
            Refusal::ConcurrencyLimited { most: 3 },
            Refusal::LedgerUnavailable,
            Refusal::Overloaded,
            Refusal::Draining,
            Refusal::UpstreamConnect { cause: "connect" },
            Refusal::NoUpstream,
            Refusal::UpstreamTimeout,
            Refusal::UpstreamAuth,
            Refusal::UpstreamReset,
            Refusal::UpstreamProtocol,
            Refusal::Internal,
        ]
    }

    #[test]
    fn every_refusal_speaks_both_shapes() {
        for refusal in all() {
            let openai = refusal.answer(Shape::OpenAi, "r");
            let body: serde_json::Value = serde_json::from_slice(openai.body()).unwrap();
            assert_eq!(body["error"]["code"], refusal.code());
            assert!(!body["error"]["message"].as_str().unwrap().is_empty());
            assert!(body["error"].as_object().unwrap().contains_key("param"));
            let anthropic = refusal.answer(Shape::Anthropic, "r");
            let body: serde_json::Value = serde_json::from_slice(anthropic.body()).unwrap();
            assert_eq!((&body["type"], &body["request_id"]), (&"error".into(), &"r".into()));
            assert_eq!(openai.status(), anthropic.status());
        }
    }

    #[test]
    fn a_client_is_told_whether_to_try_again() {
        for refusal in all() {
            let answer = refusal.answer(Shape::OpenAi, "r");
            let never = answer.headers().contains_key("x-should-retry");
            match answer.status().as_u16() {
                408 | 429 | 500 | 502..600 => assert!(!never, "{refusal:?}"),
                _ => assert!(never, "{refusal:?}"),
            }
            let passes_soon = matches!(answer.status().as_u16(), 429 | 503);
            assert_eq!(answer.headers().contains_key(RETRY_AFTER), passes_soon, "{refusal:?}");
        }
    }

    #[test]
    fn wrong_and_unknown_keys_read_the_same() {
        let answer = Refusal::InvalidKey.answer(Shape::OpenAi, "r");
        assert_eq!(answer.headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(shown("short"), "short");
        let long = "é".repeat(100);
        assert_eq!(shown(&long).len(), 128);
        assert_eq!(shown(&format!("a{long}")).len(), 127);
    }
}
