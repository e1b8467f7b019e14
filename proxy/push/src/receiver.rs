//! Sends batches to the receiver and interprets its answers.

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use taximeter_billing::export::CLOUDEVENTS_BATCH_TYPE;
use taximeter_config::{Push, UpstreamUrl};
use taximeter_net::fetch::fetch;
use taximeter_net::retry::retry_after;
use taximeter_net::upstream::{Dialer, RequestBody};

/// Time to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a batch and its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// What is kept of an answer that refuses, in characters.
const REASON_CHARS_MAX: usize = 1000;
/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The receiver has it.
    Stored,
    /// The receiver will never take it.
    Refused {
        /// What it said.
        reason: String,
    },
    /// The receiver may take it later, or has it already but could not confirm it.
    Later {
        /// What it said.
        reason: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
}

/// Where events go.
pub(super) struct Receiver {
    url: UpstreamUrl,
    authorization: Option<HeaderValue>,
    dialer: Dialer,
}

impl Receiver {
    pub(super) fn new(config: &Push) -> Self {
        let bearer = |token: &str| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        Self {
            url: config.url.clone(),
            authorization: config.token.as_ref().and_then(|token| bearer(token.expose())),
            dialer: Dialer::new(config.url.tls, CONNECT_TIMEOUT),
        }
    }

    /// Sends `events`, each one a JSON object, as one batch.
    pub(super) async fn send<'a>(&self, events: impl Iterator<Item = &'a [u8]>) -> Answer {
        let later = |reason| Answer::Later { reason, wait: None };
        let request = match self.request(events) {
            Ok(request) => request,
            Err(fault) => return later(fault.to_string()),
        };
        let answer = fetch(&self.dialer, &self.url, request, ANSWER_BYTES_MAX);
        match tokio::time::timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(answer)) => meaning(&answer.map(|body| String::from_utf8_lossy(&body).into())),
            Ok(Err(fault)) => later(fault.to_string()),
            Err(_) => later(format!("no answer within {}s", ANSWER_TIMEOUT.as_secs())),
        }
    }

    fn request<'a>(
        &self,
        events: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Request<RequestBody>, http::Error> {
        let mut json = b"[".to_vec();
        for event in events {
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(event);
        }
        json.push(b']');
        let mut body = RequestBody::default();
        body.push(json.into());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&self.url.prefix)
            .header(CONTENT_TYPE, CLOUDEVENTS_BATCH_TYPE);
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.body(body)
    }
}

/// What an answer means for the batch. That a key is wrong or a path is not there is no fault of
/// the events: they wait.
fn meaning(answer: &Response<String>) -> Answer {
    const LATER: [StatusCode; 6] = [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    let status = answer.status();
    if status.is_success() {
        return Answer::Stored;
    }
    let said: String = answer.body().chars().take(REASON_CHARS_MAX).collect();
    let reason = format!("{status}: {said}");
    if status.is_client_error() && !LATER.contains(&status) {
        Answer::Refused { reason }
    } else {
        Answer::Later { reason, wait: retry_after(answer.headers()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, headers: &[(&'static str, &str)]) -> Answer {
        let mut answer = Response::builder().status(status);
        for (name, value) in headers {
            answer = answer.header(*name, *value);
        }
        meaning(&answer.body("said".to_owned()).unwrap())
    }

    #[test]
    fn only_what_is_wrong_with_the_events_refuses_them() {
        for status in [200, 202, 204] {
            assert_eq!(answered(status, &[]), Answer::Stored, "{status}");
        }
        for status in [400, 409, 413, 415, 422] {
            assert!(matches!(answered(status, &[]), Answer::Refused { .. }), "{status}");
        }
        for status in [301, 401, 403, 404, 405, 408, 429, 500, 502, 503] {
            assert!(matches!(answered(status, &[]), Answer::Later { .. }), "{status}");
        }
    }

    #[test]
    fn a_receiver_may_ask_for_a_pause() {
        let asked = answered(429, &[("retry-after", "7")]);
        assert!(matches!(asked, Answer::Later { wait: Some(Duration { .. }), .. }), "{asked:?}");
    }
}
