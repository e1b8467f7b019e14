//! One client connection, from its first bytes to its end.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Method, Request, Response, Version};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use taximeter_config::Limits;
use taximeter_net::framing::{Framing, FramingFault};
use taximeter_net::tls::Tls;
use taximeter_net::upstream::HTTP_2;
use taximeter_system::clock;
use taximeter_telemetry::Active;
use taximeter_telemetry::events::BadFraming;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::flood_guard::FloodGuard;
use super::peer::{Peer, PeerSocket, Spoken, Verdict};
use super::socket::{ClientSocket, secured};
use super::unreadable::Unreadable;
use super::worker::{Phase, Shift, Worker};
use crate::gateway::Gateway;
use crate::journey::{self, ReplyBody};

/// The first bytes of an HTTP/2 connection (RFC 9113 §3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Pause before the second look at a connection whose first byte may yet become either protocol.
const PEEK_PAUSE: Duration = Duration::from_millis(5);
/// Longest pause between two looks: who says a part and no more costs little until its time is over.
const PEEK_PAUSE_MAX: Duration = Duration::from_millis(250);
/// Streams that are told to end have this long to tell their clients.
const CUT_GRACE: Duration = Duration::from_millis(300);

/// Serves one connection to its end.
pub(super) async fn serve(shift: Arc<Shift>, socket: TcpStream, phase: watch::Receiver<Phase>) {
    let Ok(address) = socket.peer_addr() else { return };
    if socket.set_nodelay(true).is_err() {
        return;
    }
    let limits = shift.worker().gateway.config.limits.clone();
    let peer = Arc::new(Peer::new(address, clock::now()));
    let opened = tokio::time::timeout(limits.header_read_timeout, open(socket, shift.tls())).await;
    let (socket, http2) = match opened {
        Ok(Ok(opened)) => opened,
        // Who only looks whether somebody listens.
        Ok(Err(fault)) if fault.kind() == io::ErrorKind::UnexpectedEof => return,
        Ok(Err(_)) => {
            let event = BadFraming { cause: "tls", peer: address, place: None };
            return shift.worker().gateway.telemetry.emit(&event);
        }
        Err(_) => return,
    };
    let spoken = spoken(http2, &limits);
    let io = TokioIo::new(PeerSocket::new(socket, peer.clone(), &limits, spoken));
    let service = service_fn(|request: Request<Incoming>| {
        let (worker, peer) = (shift.worker(), peer.clone());
        // From here on and not from the first poll, so that no read comes between.
        let busy = Busy::new(&worker, peer.clone(), request.method());
        // Boxed, so that a connection holds a request's many locals only while it answers.
        let answer = Box::pin(answer(worker, peer.clone(), request, busy));
        async move {
            let reply = answer.await;
            let guarded = |body: ReplyBody| if http2 { body.guarded(&peer) } else { body };
            Ok::<_, Infallible>(reply.map(guarded))
        }
    });
    if http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.http2_streams_max)
            .initial_stream_window_size(limits.http2_window_bytes)
            .initial_connection_window_size(limits.http2_connection_window_bytes)
            .max_send_buf_size(limits.relay_buffer_bytes)
            // Resets that come before their streams are seen, and those that we are made to send: who
            // reads along counts both by their time, and h2 by default only twenty of the former.
            .max_pending_accept_reset_streams(limits.http2_resets_per_10s_max as usize)
            .max_local_error_reset_streams(None)
            .max_header_list_size(u32::try_from(limits.header_bytes_max).unwrap_or(u32::MAX))
            .auto_date_header(false)
            .serve_connection(io, service);
        run(pin!(connection), &peer, &shift, phase, |c| c.graceful_shutdown()).await;
    } else {
        let mut connection = http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(limits.headers_max)
            // Whoever reads along refuses a head that is too large before hyper does.
            .max_buf_size(limits.header_bytes_max + 1)
            .auto_date_header(false)
            .serve_connection(io, service);
        let rest = phase.clone();
        run(Pin::new(&mut connection), &peer, &shift, phase, |c| c.graceful_shutdown()).await;
        if let Some((fault, first_line)) = peer.take_refusal() {
            let socket = connection.into_parts().io.into_inner();
            let refusal =
                Box::pin(refuse(socket, refusal(&shift.worker().gateway, fault, first_line)));
            run(pin!(refusal), &peer, &shift, rest, |_| {}).await;
        }
    }
}

/// Answers what cannot be read as a request, and closes.
async fn refuse(mut socket: PeerSocket, answer: Vec<u8>) -> hyper::Result<()> {
    // A client that has left or does not read learns nothing.
    if socket.write_all(&answer).await.is_ok() {
        let _ = socket.shutdown().await;
    }
    Ok(())
}

/// One request on this connection; the connection counts as busy until the answer's body is gone.
async fn answer(
    worker: Arc<Worker>,
    peer: Arc<Peer>,
    request: Request<Incoming>,
    busy: Busy,
) -> Response<ReplyBody> {
    let is_http2 = request.version() == Version::HTTP_2;
    let (mut head, body) = journey::journey(&worker, &peer, request).await.into_parts();
    poll_fn(|cx| peer.interim.poll_written(cx)).await;
    // Who has more to ask connects anew; HTTP/2 has a frame for it.
    if (worker.gateway.is_leaving() || peer.is_worn_out()) && !is_http2 {
        head.headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Response::from_parts(head, body.keeping(busy))
}

/// Marks a connection as busy while it lives.
pub struct Busy(Arc<Peer>, #[expect(dead_code, reason = "ends with it")] Active);

impl Busy {
    fn new(worker: &Worker, peer: Arc<Peer>, method: &Method) -> Self {
        let gateway = &worker.gateway;
        peer.request_began(gateway.config.limits.requests_per_connection_max);
        Self(peer, gateway.telemetry.metrics.request_began(method))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.request_ended(clock::now());
    }
}

/// Finds out what is spoken, below a TLS that is made first where there is one.
///
/// Errors: TLS fails.
async fn open(socket: TcpStream, tls: Option<&Tls>) -> io::Result<(ClientSocket, bool)> {
    let Some(tls) = tls else {
        let http2 = speaks_http2(&socket).await;
        return Ok((ClientSocket::Plain(socket), http2));
    };
    let stream = tls.accept(socket).await?;
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    Ok((secured(stream), http2))
}

/// Who reads along with what a client speaks.
fn spoken(http2: bool, limits: &Limits) -> Spoken {
    if http2 {
        let control_frames_max = limits.http2_control_frames_per_10s_max;
        let guard =
            FloodGuard::new(clock::now(), limits.http2_resets_per_10s_max, control_frames_max);
        Spoken::Http2(Box::new(guard))
    } else {
        let framing = Framing::requests(limits.header_bytes_max, limits.headers_max);
        Spoken::Http1(Box::new(framing))
    }
}

/// An answer to a request that cannot be read, as it is sent.
fn refusal(gateway: &Gateway, fault: FramingFault, first_line: &[u8]) -> Vec<u8> {
    let (head, body) = journey::unreadable(gateway, fault, first_line).into_parts();
    let mut bytes = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"\r\n");
    // The answer to HEAD has no body.
    if !first_line.starts_with(b"HEAD ") {
        bytes.extend_from_slice(&body);
    }
    bytes
}

async fn speaks_http2(socket: &TcpStream) -> bool {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut pauses = peek_pauses();
    loop {
        match socket.peek(&mut first).await {
            Ok(read) if read == first.len() => return first == HTTP2_PREFACE,
            Ok(read) if read > 0 && HTTP2_PREFACE.starts_with(first.get(..read).unwrap_or(&[])) => {
                tokio::time::sleep(pauses.next().unwrap_or(PEEK_PAUSE_MAX)).await;
            }
            _ => return false,
        }
    }
}

/// Between looks, since no event tells of more bytes than were seen: each pause is twice the one
/// before.
fn peek_pauses() -> impl Iterator<Item = Duration> {
    std::iter::successors(Some(PEEK_PAUSE), |pause| Some((*pause * 2).min(PEEK_PAUSE_MAX)))
}

/// Polls a connection with its timer and the gateway's phase beside it, to its end or until a request
/// is to be refused that cannot be read.
async fn run<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    peer: &Peer,
    shift: &Shift,
    mut phase: watch::Receiver<Phase>,
    finish: impl Fn(Pin<&mut C>),
) {
    // Looked up anew each time: a connection keeps no configuration in force.
    let worker = || shift.worker();
    let header_timeout = || worker().gateway.config.limits.header_read_timeout;
    let tell = |cause| {
        let (cause, place) = match peer.unreadable() {
            Some(unreadable) => (unreadable.cause(), unreadable.place()),
            None => (cause, Some("head")),
        };
        let event = BadFraming { cause, peer: peer.address, place };
        worker().gateway.telemetry.emit(&event);
    };
    let mut timer = pin!(tokio::time::sleep(header_timeout()));
    let mut finishing = false;
    loop {
        let turn = {
            let mut changed = pin!(phase.changed());
            poll_fn(|cx: &mut Context<'_>| {
                if let Poll::Ready(end) = connection.as_mut().poll(cx) {
                    return Poll::Ready(Turn::Over(end));
                }
                if peer.is_refusal_due() {
                    return Poll::Ready(Turn::Refusal);
                }
                if !finishing && peer.is_worn_out() {
                    return Poll::Ready(Turn::WornOut);
                }
                if changed.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Turn::Phase);
                }
                timer.as_mut().poll(cx).map(|()| Turn::Timer)
            })
            .await
        };
        match turn {
            Turn::Refusal => return,
            Turn::Over(end) => {
                let cause = end.err().as_ref().and_then(unreadable);
                if let Some(cause) = cause.or(peer.unreadable().map(Unreadable::cause)) {
                    tell(cause);
                }
                return;
            }
            Turn::Phase => match *phase.borrow_and_update() {
                Phase::Serving => {}
                Phase::Draining => finish(connection.as_mut()),
                Phase::Cutting => {
                    peer.cut();
                    timer.set(tokio::time::sleep(CUT_GRACE));
                }
            },
            Turn::WornOut => {
                finishing = true;
                finish(connection.as_mut());
            }
            Turn::Timer if peer.is_cut() => return,
            Turn::Timer => match peer.judge(clock::now(), &worker().gateway.config.limits) {
                Verdict::Close => return tell("slow_header"),
                // It was asked politely.
                Verdict::Finish if finishing => return,
                Verdict::Finish => {
                    finishing = true;
                    finish(connection.as_mut());
                    timer.set(tokio::time::sleep(header_timeout()));
                }
                Verdict::Wait(left) => timer.set(tokio::time::sleep(left)),
            },
        }
    }
}

/// Why hyper could not read a request, if that is what ended the connection.
fn unreadable(fault: &hyper::Error) -> Option<&'static str> {
    match fault {
        fault if fault.is_parse_too_large() => Some("head_too_large"),
        fault if fault.is_parse() => Some("head"),
        _ => None,
    }
}

/// Why a connection's task woke up.
enum Turn {
    Over(hyper::Result<()>),
    Refusal,
    WornOut,
    Phase,
    Timer,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_a_part_of_a_word_is_looked_at_less_and_less() {
        let pauses: Vec<_> = peek_pauses().take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 250, 250]);
        // What a slow head may take by default.
        let limit = Duration::from_secs(10);
        let mut waited = Duration::ZERO;
        let looks = peek_pauses().take_while(|pause| {
            waited += *pause;
            waited <= limit
        });
        assert!(looks.count() < 50);
    }
}
