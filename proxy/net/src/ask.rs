//! Sends one question to an engine on a connection of its own, with fixed limits of time and size.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, StatusCode};
use taximeter_config::UpstreamUrl;

use crate::fetch::fetch;
use crate::upstream::{Dialer, RequestBody};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the whole answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest answer that is read, in bytes: the ids of four million tokens.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[error("{url} does not answer: {cause}")]
pub struct AskFault {
    url: String,
    cause: String,
}

/// Sends `body`, or nothing, to `path` of an engine; the status and the body of its answer.
///
/// Errors: no connection, an answer that breaks off, is longer than 64 MiB or takes over a minute.
pub async fn ask(
    url: &UpstreamUrl,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<(StatusCode, Bytes), AskFault> {
    ask_by(&Dialer::new(url.tls, CONNECT_TIMEOUT), url, path, body).await
}

/// The same, on a connection that `dialer` opens.
///
/// Errors: as `ask`.
pub async fn ask_by(
    dialer: &Dialer,
    url: &UpstreamUrl,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<(StatusCode, Bytes), AskFault> {
    let fault = |cause: String| {
        let scheme = if url.tls { "https" } else { "http" };
        AskFault { url: format!("{scheme}://{}{}{path}", url.authority(), url.prefix), cause }
    };
    match tokio::time::timeout(ANSWER_TIMEOUT, exchange(dialer, url, path, body)).await {
        Ok(answer) => answer.map_err(|cause| fault(cause.to_string())),
        Err(_) => Err(fault(format!("nothing within {}s", ANSWER_TIMEOUT.as_secs()))),
    }
}

async fn exchange(
    dialer: &Dialer,
    url: &UpstreamUrl,
    path: &str,
    body: Option<Vec<u8>>,
) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
    let method = if body.is_some() { Method::POST } else { Method::GET };
    let mut sent = RequestBody::default();
    sent.push(body.unwrap_or_default().into());
    let mut request = Request::new(sent);
    *request.method_mut() = method;
    *request.uri_mut() = format!("{}{path}", url.prefix).parse()?;
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let answer = fetch(dialer, url, request, ANSWER_BYTES_MAX).await?;
    Ok((answer.status(), answer.into_body()))
}
