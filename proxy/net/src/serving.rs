//! The server below the admin address and the webhook: TLS, HTTP/1.1 and HTTP/2, with a limit on
//! everything.

mod head;

use std::convert::Infallible;
use std::error::Error;
use std::future::{Future, pending, ready};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::Either;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::concurrency::ConcurrencyLimit;
use crate::listening::Listeners;
use crate::tls::Tls;
use crate::upstream::{HTTP_1, HTTP_2};

pub use head::HeadBounds;

/// The ALPN names of the protocols, the preferred one first. Without TLS the server speaks
/// HTTP/1.1.
pub const PROTOCOLS: &[&[u8]] = &[HTTP_2, HTTP_1];

/// Requests at once on one connection.
const HTTP2_STREAMS_MAX: u32 = 64;
/// How long what still runs has to end, once it was asked to.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an accept that failed, as it does where descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The limits of connections: how many, and how long each step may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at once. Further ones wait to be accepted.
    pub connections_max: u16,
    /// Connections of one address at once. Further ones are closed, so that others can connect.
    /// `None` is no limit.
    pub connections_per_peer_max: Option<usize>,
    /// Time for the TLS handshake.
    pub handshake_timeout: Duration,
    /// Time for the first request head, after the handshake.
    pub first_head_timeout: Duration,
    /// Time for each further head, including idle time.
    pub head_timeout: Duration,
    /// The age at which a connection is asked to end.
    pub age_max: Duration,
}

impl Bounds {
    /// The usual limits. One address may have all connections.
    pub const fn of_age(age_max: Duration) -> Self {
        Self {
            connections_max: 256,
            connections_per_peer_max: None,
            handshake_timeout: Duration::from_secs(5),
            first_head_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(90),
            age_max,
        }
    }
}

/// What a connection says about the caller.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Its address; one of IPv4 as such.
    pub address: SocketAddr,
    /// Whether the caller showed a certificate that one of the configured authorities has signed.
    pub is_certified: bool,
}

/// A server and its connections.
pub struct Server {
    bounds: Bounds,
    connections: Arc<Semaphore>,
    /// Connections of each address.
    peers: Arc<ConcurrencyLimit<IpAddr>>,
    draining: watch::Sender<bool>,
}

impl Server {
    /// A server without connections.
    pub fn new(bounds: Bounds) -> Self {
        let connections = Arc::new(Semaphore::new(bounds.connections_max.into()));
        Self { bounds, connections, peers: Arc::default(), draining: watch::Sender::new(false) }
    }

    /// Accepts connections until this future is dropped. It asks for the limits of heads at each
    /// connection.
    pub async fn serve<F, A, B>(
        &self,
        listeners: impl Into<Listeners>,
        tls: Option<Tls>,
        heads: impl Fn() -> HeadBounds,
        answer: F,
    ) where
        F: Fn(Request<Incoming>, Caller) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Response<B>> + Send + 'static,
        B: Reply,
    {
        let mut listeners = listeners.into();
        loop {
            // Never closed.
            let Ok(connection_permit) = self.connections.clone().acquire_owned().await else {
                return;
            };
            let Ok((socket, peer)) = listeners.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            // An address of IPv4 is the same on a socket that takes both.
            let address = peer.ip().to_canonical();
            let most = self.bounds.connections_per_peer_max.unwrap_or(usize::MAX);
            let Some(peer_permit) = self.peers.admit(&address, most) else { continue };
            let (tls, answer) = (tls.clone(), answer.clone());
            let draining = self.draining.subscribe();
            let term = Term { bounds: self.bounds, heads: heads(), draining };
            tokio::spawn(async move {
                let address = SocketAddr::new(address, peer.port());
                connection((socket, address), tls, answer, term).await;
                // In this order: who comes next finds both.
                drop(peer_permit);
                drop(connection_permit);
            });
        }
    }

    /// Lets the open connections end. It stops waiting after a time limit.
    pub async fn drain(&self) {
        self.draining.send_replace(true);
        let all = self.connections.acquire_many(self.bounds.connections_max.into());
        let _ = timeout(DRAIN_TIMEOUT, all).await;
    }
}

/// The body of an answer. The server itself can make one too.
pub trait Reply:
    Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + From<&'static str> + Send + 'static
{
}

impl<B> Reply for B where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>>
        + From<&'static str>
        + Send
        + 'static
{
}

/// How long a connection may last, and what it may ask.
struct Term {
    bounds: Bounds,
    heads: HeadBounds,
    draining: watch::Receiver<bool>,
}

async fn connection<F, A, B>(
    (socket, address): (TcpStream, SocketAddr),
    tls: Option<Tls>,
    answer: F,
    term: Term,
) where
    F: Fn(Request<Incoming>, Caller) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Reply,
{
    let _ = socket.set_nodelay(true);
    let Some(tls) = tls else {
        let caller = Caller { address, is_certified: false };
        return http(socket, false, caller, answer, term).await;
    };
    let Ok(Ok(stream)) = timeout(term.bounds.handshake_timeout, tls.accept(socket)).await else {
        return;
    };
    let session = stream.get_ref().1;
    let is_http2 = session.alpn_protocol() == Some(HTTP_2);
    let caller = Caller { address, is_certified: session.peer_certificates().is_some() };
    http(stream, is_http2, caller, answer, term).await;
}

async fn http<S, F, A, B>(stream: S, is_http2: bool, caller: Caller, answer: F, term: Term)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>, Caller) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Reply,
{
    let heads = term.heads;
    let asked = Arc::new(AtomicBool::new(false));
    let asks = asked.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        asks.store(true, Relaxed);
        let answered = match heads.refuse(&request) {
            Some(refusal) => Either::Left(ready(refused(refusal))),
            None => Either::Right(answer(request, caller)),
        };
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let io = TokioIo::new(stream);
    if is_http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(HTTP2_STREAMS_MAX)
            .max_header_list_size(u32::try_from(heads.bytes_max).unwrap_or(u32::MAX))
            .keep_alive_interval(term.bounds.head_timeout)
            .serve_connection(io, service);
        run(connection, term, &asked, |connection| connection.graceful_shutdown()).await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(term.bounds.head_timeout)
            .max_buf_size(heads.bytes_max)
            .max_headers(heads.fields_max)
            .serve_connection(io, service);
        run(connection, term, &asked, |connection| connection.graceful_shutdown()).await;
    }
}

/// An answer to a head that is too large; nothing more is read of who sent it.
fn refused<B: Reply>((status, text): (StatusCode, &'static str)) -> Response<B> {
    let mut answer = Response::new(B::from(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

async fn run<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    Term { bounds, mut draining, .. }: Term,
    asked: &AtomicBool,
    finish: impl Fn(Pin<&mut C>),
) {
    let mut connection = pin!(connection);
    let silent = async {
        sleep(bounds.first_head_timeout).await;
        if asked.load(Relaxed) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        _ = connection.as_mut() => return,
        () = silent => return,
        // It may have been said before we came.
        _ = draining.wait_for(|draining| *draining) => {}
        () = sleep(bounds.age_max) => {}
    }
    finish(connection.as_mut());
    // Who does not end then is left.
    let _ = timeout(DRAIN_TIMEOUT, connection).await;
}

#[cfg(test)]
mod tests;
