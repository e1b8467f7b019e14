//! What the admission webhook answers, and how much of a review it takes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use taximeter_config::Limits;
use taximeter_net::serving::{Bounds, HeadBounds, Server};
use taximeter_net::tls::Tls;
use taximeter_sidecar::{Answered, Reviewer};
use taximeter_system::signals::Stop;
use taximeter_telemetry::LogEvent;
use taximeter_telemetry::log::Log;
use tokio::net::TcpListener;
use tokio::time::timeout;

/// One review; an API server sends at most 3 MiB.
const BODY_BYTES_MAX: usize = 8 << 20;
/// For a whole review; an API server waits 30 s at most.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How old a connection grows, so that none is kept for ever.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(600);

struct Webhook {
    reviewer: Reviewer,
    log: Arc<Log>,
}

/// Answers reviews until told to stop, and lets those end that run; a second word ends at once.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Tls,
    reviewer: Reviewer,
    log: Arc<Log>,
    mut stop: Stop,
) {
    let webhook = Arc::new(Webhook { reviewer, log: log.clone() });
    let answer = move |request, _| {
        let webhook = webhook.clone();
        async move { webhook.answer(request).await }
    };
    let heads = || HeadBounds::of(&Limits::default());
    let server = Server::new(Bounds::of_age(CONNECTION_AGE_MAX));
    tokio::select! {
        () = server.serve(listener, Some(tls), heads, answer) => {}
        () = stop.wait() => {}
    }
    log.tell(LogEvent::Draining, []);
    tokio::select! {
        () = server.drain() => {}
        () = stop.wait() => {}
    }
}

impl Webhook {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match (request.uri().path(), request.method()) {
            ("/healthz", &Method::GET | &Method::HEAD) => text(StatusCode::OK, "ok"),
            ("/inject", &Method::POST) => self.review(request).await,
            ("/healthz", _) => not_allowed("GET, HEAD"),
            ("/inject", _) => not_allowed("POST"),
            (path, _) => {
                let path: String = path.chars().take(80).collect();
                let message =
                    format!("there is no {path} here, only POST /inject and GET /healthz");
                text(StatusCode::NOT_FOUND, &message)
            }
        }
    }

    async fn review(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            let message = "send an AdmissionReview as application/json";
            return self.refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(fault)) if fault.is::<http_body_util::LengthLimitError>() => {
                let message = format!("the body is longer than {BODY_BYTES_MAX} bytes");
                return self.refuse(StatusCode::PAYLOAD_TOO_LARGE, &message);
            }
            Ok(Err(_)) => return self.refuse(StatusCode::BAD_REQUEST, "the body breaks off"),
            Err(_) => {
                let message = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
                return self.refuse(StatusCode::REQUEST_TIMEOUT, &message);
            }
        };
        match self.reviewer.answer(&body) {
            Ok(answered) => {
                self.tell(&answered);
                let mut answer = Response::new(Full::from(answered.review.to_string()));
                let json = HeaderValue::from_static("application/json");
                answer.headers_mut().insert(CONTENT_TYPE, json);
                answer
            }
            Err(malformed) => self.refuse(StatusCode::BAD_REQUEST, &malformed.to_string()),
        }
    }

    fn tell(&self, Answered { namespace, pod, injected, warning, .. }: &Answered) {
        let (namespace, name) = (namespace.as_str().into(), pod.as_str().into());
        if *injected {
            self.log.tell(LogEvent::PodInjected, [("namespace", namespace), ("pod", name)]);
        } else if let Some(reason) = warning {
            let fields =
                [("namespace", namespace), ("pod", name), ("reason", reason.as_str().into())];
            self.log.tell(LogEvent::PodNotInjected, fields);
        }
    }

    fn refuse(&self, status: StatusCode, message: &str) -> Response<Full<Bytes>> {
        self.log.tell(LogEvent::ReviewRefused, [("reason", message.into())]);
        text(status, message)
    }
}

fn not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, &format!("only {allowed} here"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn text(status: StatusCode, message: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(format!("{message}\n")));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
