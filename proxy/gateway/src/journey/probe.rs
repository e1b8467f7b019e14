//! Answers a probe of an engine (`/health` and its like). Whoever asks may be a load balancer that
//! has no key, so everybody is answered, without any credential and with nothing on the ledger.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, SET_COOKIE, USER_AGENT};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use taximeter_net::fetch::{FetchFault, fetch};
use taximeter_net::upstream::RequestBody;
use taximeter_system::clock;

use super::refuse::Refusal;
use super::relay::drop_hop_by_hop;
use crate::gateway::Gateway;
use crate::probes::{Answer, ProbeFault};

/// The upstream that is probed: the first.
const UPSTREAM: usize = 0;
/// Time for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is kept, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What the engine answers to a probe, or has answered within the last second.
///
/// Errors: the gateway is shutting down, too many different probes come at once, or the engine has
/// not answered.
pub(super) async fn answer(gateway: &Gateway, head: &Parts) -> Result<Response<Bytes>, Refusal> {
    if gateway.is_draining() {
        return Err(Refusal::Draining);
    }
    let target = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let question = (head.method.clone(), target.to_owned());
    let ask = || Box::pin(ask(gateway, &head.method, target));
    let answer = gateway.probes(UPSTREAM).answer(question, clock::now, ask).await;
    answer.ok_or(Refusal::Overloaded { limit: "probes" })?.map_err(|fault| match fault {
        ProbeFault::Connect(cause) => Refusal::UpstreamConnect { cause },
        ProbeFault::Descriptors => Refusal::Overloaded { limit: "file_descriptors" },
        ProbeFault::Reset => Refusal::UpstreamReset,
        ProbeFault::Protocol => Refusal::UpstreamProtocol,
        ProbeFault::Timeout => Refusal::UpstreamTimeout,
    })
}

async fn ask(gateway: &Gateway, method: &Method, target: &str) -> Answer {
    let url = &gateway.upstream(UPSTREAM).url;
    let mut request = Request::new(RequestBody::default());
    *request.method_mut() = method.clone();
    *request.uri_mut() =
        format!("{}{target}", url.prefix).parse().map_err(|_| ProbeFault::Protocol)?;
    // The answer is for everybody, so nothing of one client is in the question.
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(USER_AGENT, HeaderValue::from_static("taximeter"));
    let asked = fetch(&gateway.dialer, url, request, ANSWER_BYTES_MAX);
    match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        Ok(Ok(answer)) if answer.status() != StatusCode::SWITCHING_PROTOCOLS => {
            Ok(for_everybody(answer, method))
        }
        Ok(Ok(_) | Err(FetchFault::Answer(_) | FetchFault::Host)) => Err(ProbeFault::Protocol),
        Ok(Err(FetchFault::Broken)) => Err(ProbeFault::Reset),
        Ok(Err(FetchFault::Dial(fault))) => Err(ProbeFault::from(&fault)),
        Err(_) => Err(ProbeFault::Timeout),
    }
}

/// The answer as every client gets it.
fn for_everybody(mut answer: Response<Bytes>, method: &Method) -> Response<Bytes> {
    // Which version the engine speaks is between it and us.
    *answer.version_mut() = Version::HTTP_11;
    let length = answer.body().len();
    let headers = answer.headers_mut();
    drop_hop_by_hop(headers);
    headers.remove(SET_COOKIE);
    if method != Method::HEAD && length > 0 {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    answer
}
