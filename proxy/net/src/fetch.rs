//! Sends one request on a connection of its own and reads the whole answer.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Limited};
use taximeter_config::UpstreamUrl;

use crate::upstream::{DialFault, Dialer, Exchange, ExchangeBody, Link, RequestBody};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchFault {
    /// No connection.
    #[error(transparent)]
    Dial(#[from] DialFault),
    /// The connection broke before an answer.
    #[error("the connection broke, or what came is not HTTP")]
    Broken,
    /// The connection broke during the answer, or the answer is longer than the limit.
    #[error("the answer breaks off, or is too long: {0}")]
    Answer(Box<dyn std::error::Error + Send + Sync>),
    /// The host is not valid in a header.
    #[error("the host of the URL is none")]
    Host,
}

/// Sends `request`, whose target is a path, to the host of `url`; an answer of at most
/// `bytes_max` bytes.
///
/// Errors: as [`FetchFault`] says. There is no time limit but the dialer's.
pub async fn fetch(
    dialer: &Dialer,
    url: &UpstreamUrl,
    mut request: Request<RequestBody>,
    bytes_max: usize,
) -> Result<Response<Bytes>, FetchFault> {
    let host = HeaderValue::from_str(&url.authority()).map_err(|_| FetchFault::Host)?;
    let length = request.body().len();
    let headers = request.headers_mut();
    headers.insert(HOST, host);
    if length > 0 {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    let mut link = Link::new(dialer.dial(url).await?).await?;
    let Ok(answer) = link.send(request).await else { return Err(FetchFault::Broken) };
    let (parts, body) = answer.into_parts();
    let body = ExchangeBody(Exchange::new(link, body));
    let body = Limited::new(body, bytes_max).collect().await.map_err(FetchFault::Answer)?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}
