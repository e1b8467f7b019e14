//! Names of header fields that the `http` crate has no constant for. Looked up by text, a name is
//! read and checked each time; these are ready.

use http::HeaderName;

pub(crate) static API_KEY: HeaderName = HeaderName::from_static("api-key");
pub(crate) static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
pub(crate) static PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
pub(crate) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
pub(crate) static X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) static X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Asks for a receipt; every other name under `x-taximeter-` is ours alone.
pub(crate) static RECEIPT: HeaderName = HeaderName::from_static("x-taximeter-receipt");
/// Our number of a request.
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-taximeter-request-id");
/// In a receipt, the tokens.
pub(crate) static TOKENS: HeaderName = HeaderName::from_static("x-taximeter-tokens");
/// In a receipt, the price.
pub(crate) static COST: HeaderName = HeaderName::from_static("x-taximeter-cost");
