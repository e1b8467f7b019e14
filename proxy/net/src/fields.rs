//! Names of header fields that the `http` crate has no constant for. A name that is looked up by
//! text is parsed and checked each time. These are ready.

use http::HeaderName;

/// `api-key`: Azure OpenAI.
pub static API_KEY: HeaderName = HeaderName::from_static("api-key");
/// `keep-alive`.
pub static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// `proxy-connection`.
pub static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
/// `traceparent`: W3C Trace Context.
pub static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// `tracestate`: W3C Trace Context.
pub static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// `x-api-key`: Anthropic.
pub static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// `x-forwarded-for`.
pub static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// `x-goog-api-key`: Gemini.
pub static X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
/// `x-request-id`.
pub static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Asks for a receipt. Beside it and `x-taximeter-key`, clients may set no name that begins with
/// `x-taximeter-`.
pub static RECEIPT: HeaderName = HeaderName::from_static("x-taximeter-receipt");
/// A key of this gateway, beside the client's own credential.
pub static KEY: HeaderName = HeaderName::from_static("x-taximeter-key");
/// Taximeter's id of a request.
pub static REQUEST_ID: HeaderName = HeaderName::from_static("x-taximeter-request-id");
/// The tokens, in a receipt.
pub static TOKENS: HeaderName = HeaderName::from_static("x-taximeter-tokens");
/// The cost, in a receipt.
pub static COST: HeaderName = HeaderName::from_static("x-taximeter-cost");
