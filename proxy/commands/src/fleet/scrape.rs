//! Asks a URL for its metrics, once.

use std::time::Duration;

use http::header::{ACCEPT, LOCATION};
use http::{HeaderValue, Request};
use taximeter_config::UpstreamUrl;
use taximeter_net::fetch::fetch;
use taximeter_net::upstream::{Dialer, RequestBody};

use crate::failure::Failure;

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for the whole answer. llama.cpp answers only between two steps of its model.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Text that is preferred to Prometheus' messages in binary form.
const TEXT: &str =
    "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1";

/// The body of the answer to a GET of `url`, of at most `bytes_max` bytes. Redirects are not followed,
/// because they may lead to somewhere inside.
///
/// Errors: it is no URL, or there is no answer with status 200 and so few bytes in time.
pub(super) fn get(url: &str, bytes_max: usize) -> Result<Vec<u8>, Failure> {
    let fault = |why: String| Failure::Scrape { from: url.to_owned(), why };
    let (base, query) =
        url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    // Its text is not repeated: there may be a password in it.
    let mistake = Failure::ScrapeUrl;
    let target = UpstreamUrl::parse(base).map_err(|why| mistake(why.to_string()))?;
    let path = match target.prefix.as_str() {
        "" => "/metrics",
        path => path,
    };
    let path = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let mut request = Request::new(RequestBody::default());
    *request.uri_mut() = path.parse().map_err(|_| mistake("has a path that is none".to_owned()))?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(TEXT));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|why| fault(why.to_string()))?;
    let answer = runtime.block_on(async {
        let dialer = Dialer::new(target.tls, CONNECT_TIMEOUT);
        let asked = fetch(&dialer, &target, request, bytes_max);
        tokio::time::timeout(ANSWER_TIMEOUT, asked).await
    });
    let answer = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => return Err(fault(why.to_string())),
        Err(_) => return Err(fault(format!("no whole answer in {} s", ANSWER_TIMEOUT.as_secs()))),
    };
    if answer.status() == http::StatusCode::OK {
        return Ok(answer.into_body().into());
    }
    let status = answer.status();
    let to = answer.headers().get(LOCATION).map(|to| String::from_utf8_lossy(to.as_bytes()));
    Err(fault(match to {
        Some(to) => format!("it answers {status} with {to}, and redirects are not followed"),
        None => format!("it answers {status}"),
    }))
}
