//! The admission webhook's server: TLS, HTTP/1.1 and HTTP/2, and a limit on everything.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use taximeter_sidecar::{Answered, Reviewer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::signals::Stop;
use super::tls::Tls;
use crate::telemetry::LogEvent;
use crate::telemetry::log::Log;

/// By ALPN's names, the most wanted first.
pub(crate) const PROTOCOLS: &[&[u8]] = &[HTTP2, b"http/1.1"];
const HTTP2: &[u8] = b"h2";

/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 256;
/// Requests at once on one connection.
const HTTP2_STREAMS_MAX: u32 = 64;
/// Request head.
const HEADER_BYTES_MAX: u32 = 64 << 10;
/// One review; an API server sends at most 3 MiB.
const BODY_BYTES_MAX: usize = 8 << 20;
/// From the first byte to a private connection.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// For a whole request head, idle time before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(90);
/// For a whole review; an API server waits 30 s at most.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How old a connection grows, so that none is kept for ever.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(600);
/// How long what still runs has to end, once it was asked to.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an accept that failed, as it does where descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Webhook {
    tls: Tls,
    reviewer: Reviewer,
    log: Arc<Log>,
    draining: watch::Receiver<bool>,
}

/// Answers reviews until told to stop, and lets those end that run; a second word ends at once.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Tls,
    reviewer: Reviewer,
    log: Arc<Log>,
    mut stop: Stop,
) {
    let (drain, draining) = watch::channel(false);
    let webhook = Arc::new(Webhook { tls, reviewer, log: log.clone(), draining });
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accepting = async {
        loop {
            // Never closed.
            let Ok(place) = room.clone().acquire_owned().await else { return };
            let Ok((socket, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let webhook = webhook.clone();
            tokio::spawn(async move {
                connection(webhook, socket).await;
                drop(place);
            });
        }
    };
    tokio::select! {
        () = accepting => {}
        () = stop.wait() => {}
    }
    drop(listener);
    log.tell(LogEvent::Draining, []);
    drain.send_replace(true);
    let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
    tokio::select! {
        _ = timeout(DRAIN_TIMEOUT, room.acquire_many(all)) => {}
        () = stop.wait() => {}
    }
}

async fn connection(webhook: Arc<Webhook>, socket: TcpStream) {
    let _ = socket.set_nodelay(true);
    let Ok(Ok(stream)) = timeout(HANDSHAKE_TIMEOUT, webhook.tls.accept(socket)).await else {
        return;
    };
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    let draining = webhook.draining.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let webhook = webhook.clone();
        async move { Ok::<_, Infallible>(webhook.answer(request).await) }
    });
    let io = TokioIo::new(stream);
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .max_header_list_size(HEADER_BYTES_MAX)
            .keep_alive_interval(HEAD_TIMEOUT)
            .serve_connection(io, service);
        run(connection, draining, |connection| connection.graceful_shutdown()).await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(HEADER_BYTES_MAX as usize)
            .serve_connection(io, service);
        run(connection, draining, |connection| connection.graceful_shutdown()).await;
    }
}

async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    mut draining: watch::Receiver<bool>,
    finish: impl Fn(Pin<&mut C>),
) {
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        // It may have been said before we came.
        _ = draining.wait_for(|draining| *draining) => {}
        () = sleep(CONNECTION_AGE_MAX) => {}
    }
    finish(connection.as_mut());
    // Who does not end then is left.
    let _ = timeout(DRAIN_TIMEOUT, connection).await;
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
                let told = format!("there is no {path} here, only POST /inject and GET /healthz");
                text(StatusCode::NOT_FOUND, &told)
            }
        }
    }

    async fn review(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
        if !kind.trim().eq_ignore_ascii_case("application/json") {
            let told = "send an AdmissionReview as application/json";
            return self.refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, told);
        }
        let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
        let body = match timeout(BODY_TIMEOUT, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(fault)) if fault.is::<http_body_util::LengthLimitError>() => {
                let told = format!("the body is longer than {BODY_BYTES_MAX} bytes");
                return self.refuse(StatusCode::PAYLOAD_TOO_LARGE, &told);
            }
            Ok(Err(_)) => return self.refuse(StatusCode::BAD_REQUEST, "the body breaks off"),
            Err(_) => {
                let told = format!("the body did not come within {} s", BODY_TIMEOUT.as_secs());
                return self.refuse(StatusCode::REQUEST_TIMEOUT, &told);
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
        let (place, name) = (namespace.as_str().into(), pod.as_str().into());
        if *injected {
            self.log.tell(LogEvent::PodInjected, [("namespace", place), ("pod", name)]);
        } else if let Some(reason) = warning {
            let fields = [("namespace", place), ("pod", name), ("reason", reason.as_str().into())];
            self.log.tell(LogEvent::PodNotInjected, fields);
        }
    }

    fn refuse(&self, status: StatusCode, told: &str) -> Response<Full<Bytes>> {
        self.log.tell(LogEvent::ReviewRefused, [("reason", told.into())]);
        text(status, told)
    }
}

fn not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, &format!("only {allowed} here"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

fn text(status: StatusCode, told: &str) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::from(format!("{told}\n")));
    *answer.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    answer.headers_mut().insert(CONTENT_TYPE, plain);
    answer
}
