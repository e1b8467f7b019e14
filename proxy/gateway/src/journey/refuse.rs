//! Every refusal of the gateway: its status, its code, its message and its shape, with one `match`
//! each.

mod stream;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{HeaderValue, Response, StatusCode};
use taximeter_framing::DecodeFault;
use taximeter_net::fields::KEY;
use taximeter_net::framing::FramingFault;
use taximeter_request::RequestFault;

pub(crate) use self::stream::{StreamShape, stream_error};

/// One text for a key that is missing, unknown or wrong: it says nothing about which keys exist.
const NO_KEY: &str = "no valid API key was sent; send one as `authorization: Bearer KEY`, \
                      `x-api-key`, `api-key`, `x-goog-api-key` or `x-taximeter-key`";
/// Model names are cut at this many bytes in messages.
const SHOWN_BYTES_MAX: usize = 128;
/// Suggested wait where we cannot know better.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Why a request was not served. Each has a fixed word, safe as a label.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request carries two credentials that differ.
    #[error(
        "two different credentials were sent; send one, or the key of this gateway in \
         `x-taximeter-key` beside a credential of the provider"
    )]
    CredentialsDiffer,
    /// The credential is unknown.
    #[error("{NO_KEY}")]
    InvalidKey,
    /// `x-taximeter-key` has no key of this gateway.
    #[error(
        "`x-taximeter-key` is no valid key of this gateway; it alone says who asks, so send a valid \
         one or leave it out"
    )]
    WrongKey,
    /// A credential is required, and there is none.
    #[error("{NO_KEY}")]
    MissingKey,
    /// The tenant header comes from a peer that is not trusted.
    #[error(
        "the header `{header}` is taken from the peers in `tenants.header.trusted_peers` only, and \
         this connection comes from another; {NO_KEY}"
    )]
    UntrustedPeer {
        /// The header.
        header: String,
    },
    /// A trusted peer's header names no tenant.
    #[error(
        "the header `{header}` names no tenant; send it once, with a name of 1 to 128 bytes in UTF-8 \
         that has no control or invisible character, no `/`, `\\` or `..`, no blank at either end, \
         and does not begin with `=`, `+`, `-` or `@`"
    )]
    TenantName {
        /// The header.
        header: String,
    },
    /// A web page of another origin asks, and nothing says that it may.
    #[error(
        "web pages of other origins may not use this gateway; its operator can list the page's \
         origin in `cors.origins`"
    )]
    OtherOrigin,
    /// The request is for a name that is not this machine's.
    #[error(
        "{host:?} is not a name of this machine; use 127.0.0.1 or localhost, or let the gateway ask \
         for keys (`tenants.unknown: refuse`)"
    )]
    Misdirected {
        /// The name.
        host: String,
    },
    /// No route has this path.
    #[error(
        "no route {path}; the page \"Routes\" of Taximeter's documentation (docs/reference/routes.md) \
         lists all routes of this gateway"
    )]
    UnknownRoute {
        /// The path.
        path: String,
    },
    /// The path belongs to an API of WebSockets.
    #[error(
        "no route {path}: it belongs to an API of WebSockets, which this gateway does not serve; \
         send POST {instead} and set `stream` to stream the answer"
    )]
    SocketRoute {
        /// The path.
        path: String,
        /// The route to use instead.
        instead: &'static str,
    },
    /// The request asks for a WebSocket.
    #[error(
        "this gateway does not serve WebSockets; send each request as POST {instead} over HTTP and \
         set `stream` to stream the answer"
    )]
    WebSocket {
        /// The route to use instead.
        instead: &'static str,
    },
    /// The route does not take this method.
    #[error("this route takes {allow}")]
    MethodNotAllowed {
        /// The methods that it takes.
        allow: &'static str,
    },
    /// No upstream serves the model.
    #[error("no upstream serves the model {model:?}")]
    ModelNotFound {
        /// The model.
        model: String,
    },
    /// The request names no model, and its price must be known before it is served.
    #[error("`model` is missing; name the model to use, so that its price is known")]
    ModelRequired,
    /// The body cannot be read, or would be misread.
    #[error("{0}")]
    Request(#[from] RequestFault),
    /// The body says that it is not JSON.
    #[error("the content type must be application/json, or a form's where a file is sent")]
    MediaType,
    /// The compressed body cannot be decoded.
    #[error("{0}")]
    Encoding(#[from] DecodeFault),
    /// The body is longer than the limit.
    #[error("the body is larger than {bytes_max} bytes")]
    TooLarge {
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The target is longer than the limit.
    #[error("the path is longer than {bytes_max} bytes")]
    UriTooLong {
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// `expect` asks for something else than `100-continue`.
    #[error("the only expectation that is met is 100-continue")]
    Expectation,
    /// The method or transfer coding is not implemented.
    #[error("this gateway opens no tunnels")]
    NotSupported,
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    BodyTimeout,
    /// The client left before its request was whole.
    #[error("the client left within its request")]
    ClientLeft,
    /// The framing is ambiguous.
    #[error("the request could not be read in one way only; check its framing ({cause})")]
    BadFraming {
        /// A fixed word for the cause.
        cause: &'static str,
    },
    /// The body has no length.
    #[error("a body's length was not told; send content-length, or transfer-encoding: chunked")]
    LengthMissing,
    /// The head or the framing breaks HTTP.
    #[error("the request could not be read: {0}")]
    Framing(FramingFault),
    /// The model has no price, and `prices.unknown` is `refuse`.
    #[error("the price of {model:?} is not known, and requests without a price are refused here")]
    UnknownPrice {
        /// The model.
        model: String,
    },
    /// The tenant has as many requests running as it may.
    #[error("{most} of your requests run already, and no more may; ask again when one has ended")]
    ConcurrencyLimited {
        /// The limit.
        most: usize,
    },
    /// The ledger cannot be written.
    #[error("the ledger cannot be written; try again")]
    LedgerUnavailable,
    /// Memory or something else is short.
    #[error("too much is going on at once; try again")]
    Overloaded {
        /// A fixed word for what is short.
        limit: &'static str,
    },
    /// The gateway is shutting down.
    #[error("this gateway is shutting down; try again")]
    Draining,
    /// No connection to the upstream.
    #[error("the engine cannot be reached")]
    UpstreamConnect {
        /// A fixed word for the cause.
        cause: &'static str,
    },
    /// The upstream has failed before, and cannot be reached.
    #[error("the engine is away; try again")]
    NoUpstream,
    /// The upstream did not answer in time.
    #[error("the engine did not answer in time")]
    UpstreamTimeout,
    /// The upstream refused the gateway's credential.
    #[error("the engine refused the gateway's own credential; tell its operator")]
    UpstreamAuth,
    /// The upstream closed the connection before it answered.
    #[error("the engine's connection broke before it answered")]
    UpstreamReset,
    /// The upstream's answer breaks HTTP.
    #[error("the engine's answer is not valid HTTP")]
    UpstreamProtocol,
    /// The gateway failed.
    #[error("something went wrong in the gateway; its log has the request id")]
    Internal,
}

/// Whose error shape the client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// OpenAI's error object.
    OpenAi,
    /// Anthropic's error object.
    Anthropic,
}

impl Shape {
    /// What is understood by whoever asks for this path.
    pub fn of(path: &[u8]) -> Self {
        let mut segments = path
            .split(|byte| *byte == b'/')
            .filter(|segment| !segment.is_empty() && *segment != b".");
        let first = segments.next().filter(|segment| *segment != b"v1").or_else(|| segments.next());
        let first = first.and_then(|segment| segment.split(|byte| *byte == b'?').next());
        if first == Some(b"messages") { Self::Anthropic } else { Self::OpenAi }
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

    /// The limit of the gateway that was reached, as a fixed word for labels. What a tenant has
    /// reached is told where it is refused.
    pub(crate) const fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Overloaded { limit } => Some(limit),
            _ => None,
        }
    }

    /// `error.type` and `code`: a fixed word.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::CredentialsDiffer
            | Self::TenantName { .. }
            | Self::Encoding(DecodeFault::Damaged) => "invalid_value",
            Self::InvalidKey | Self::WrongKey => "invalid_api_key",
            Self::MissingKey | Self::UntrustedPeer { .. } => "missing_api_key",
            Self::OtherOrigin => "origin_not_allowed",
            Self::Misdirected { .. } => "misdirected",
            Self::UnknownRoute { .. } | Self::SocketRoute { .. } => "unknown_route",
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
            Self::NotSupported | Self::WebSocket { .. } | Self::Framing(FramingFault::Encoded) => {
                "not_supported"
            }
            Self::BodyTimeout => "request_timeout",
            Self::ClientLeft => "client_left",
            Self::BadFraming { .. } | Self::LengthMissing | Self::Framing(_) => "bad_framing",
            Self::UnknownPrice { .. } => "unknown_price",
            Self::ConcurrencyLimited { .. } => "concurrency_limited",
            Self::LedgerUnavailable => "ledger_unavailable",
            Self::Overloaded { .. } => "overloaded",
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
    pub const fn status(&self) -> (StatusCode, &'static str) {
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
            | Self::TenantName { .. }
            | Self::Encoding(DecodeFault::Damaged)
            | Self::Request(_)
            | Self::ModelRequired
            | Self::ClientLeft
            | Self::BadFraming { .. }
            | Self::LengthMissing
            | Self::Framing(_)
            | Self::UnknownPrice { .. } => (StatusCode::BAD_REQUEST, INVALID),
            Self::InvalidKey | Self::WrongKey | Self::MissingKey | Self::UntrustedPeer { .. } => {
                (StatusCode::UNAUTHORIZED, INVALID)
            }
            Self::OtherOrigin => (StatusCode::FORBIDDEN, "permission_error"),
            Self::Misdirected { .. } => (StatusCode::MISDIRECTED_REQUEST, INVALID),
            Self::UnknownRoute { .. } | Self::SocketRoute { .. } | Self::ModelNotFound { .. } => {
                (StatusCode::NOT_FOUND, INVALID)
            }
            // Clients that try a socket first, such as Codex, then send requests at once.
            Self::WebSocket { .. } => (StatusCode::UPGRADE_REQUIRED, INVALID),
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
            Self::LedgerUnavailable
            | Self::Overloaded { .. }
            | Self::Draining
            | Self::NoUpstream => (StatusCode::SERVICE_UNAVAILABLE, "overloaded_error"),
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
            Self::WrongKey => Some(KEY.as_str().into()),
            Self::TenantName { header } | Self::UntrustedPeer { header } => Some(header.clone()),
            Self::OtherOrigin => Some("origin".into()),
            Self::Misdirected { .. } => Some("host".into()),
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
    pub fn answer(&self, shape: Shape, request_id: &str) -> Response<Bytes> {
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
        match self {
            Self::MethodNotAllowed { allow } => {
                headers.insert(ALLOW, HeaderValue::from_static(allow));
            }
            // A 426 says what to speak instead (RFC 9110 §15.5.22).
            Self::WebSocket { .. } => {
                headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            }
            _ => {}
        }
        if self.closes() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

/// The answer to `OPTIONS` on a route that takes `allow`.
pub fn options(allow: &'static str) -> Response<Bytes> {
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

/// A name from a client, cut for a message.
pub fn shown(name: &str) -> String {
    let end = (0..=SHOWN_BYTES_MAX.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    name.get(..end.unwrap_or(0)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
