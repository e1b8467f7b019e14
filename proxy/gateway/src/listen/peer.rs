//! One client connection: its address, and what it is doing, so that one timer can judge it.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use taximeter_config::Limits;
use taximeter_net::framing::{Broken, Framing, FramingFault};
use taximeter_system::clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::calm::Calm;
use super::instead::Instead;
use super::interim::Interim;
use super::socket::{ClientSocket, poll_closed};

/// What a client may still send after it was refused, in bytes and in time.
const LINGER_BYTES_MAX: usize = 64 << 10;
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
/// A byte that stands nowhere in a request but in its data.
const NO_REQUEST_HAS: u8 = 0;
/// hyper looks at a head that comes in parts when it has its end.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// No request head is being read.
const NOT_READING: u64 = u64::MAX;

/// A client connection, as its requests and its timer see it.
pub struct Peer {
    /// The address of the client.
    pub address: SocketAddr,
    /// What an engine answers before its answer.
    pub(crate) interim: Interim,
    opened: Instant,
    requests_open: AtomicU32,
    /// Requests that have begun, open or over.
    requests: AtomicU32,
    /// It has carried as many requests as it may.
    worn_out: AtomicBool,
    /// Milliseconds since `opened` at which the last request ended.
    idle_since: AtomicU64,
    /// Milliseconds since `opened` at which a head began to arrive.
    reading_since: AtomicU64,
    stalled: AtomicBool,
    cut: AtomicBool,
    /// Why nothing more is read of what the client sends.
    broken: OnceLock<Unread>,
    /// A request body has not been read to its end.
    unread: AtomicBool,
    /// Open streams of an HTTP/2 connection.
    streams: Mutex<Vec<Weak<dyn Stream>>>,
}

/// What a connection ended with that the client should not have sent.
#[derive(Debug)]
pub(super) struct Unread {
    /// A fixed word for labels.
    pub(super) cause: &'static str,
    /// How the request begins that cannot be read.
    pub(super) first_line: Vec<u8>,
}

/// One stream of an HTTP/2 connection, as the connection's timer sees it.
pub trait Stream: Send + Sync {
    /// Something has changed for it: polls it once more.
    fn wake(&self);

    /// Ends it if the client has not read for `write_timeout`.
    fn judge(&self, now: Instant, write_timeout: Duration);
}

/// What a connection's timer should do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing before this much time has passed.
    Wait(Duration),
    /// It has idled for too long: finish politely.
    Finish,
    /// Its request head is too slow: close.
    Close,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, opened: Instant) -> Self {
        Self {
            address,
            interim: Interim::default(),
            opened,
            requests_open: AtomicU32::new(0),
            requests: AtomicU32::new(0),
            worn_out: AtomicBool::new(false),
            idle_since: AtomicU64::new(0),
            reading_since: AtomicU64::new(NOT_READING),
            stalled: AtomicBool::new(false),
            cut: AtomicBool::new(false),
            broken: OnceLock::new(),
            unread: AtomicBool::new(false),
            streams: Mutex::new(Vec::new()),
        }
    }

    /// Whether the client stopped reading for longer than the limit.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled.load(Relaxed)
    }

    /// Whether the gateway wants this connection's streams to end now.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut.load(Relaxed)
    }

    /// The gateway wants this connection's streams to end now.
    pub(super) fn cut(&self) {
        self.cut.store(true, Relaxed);
        for stream in self.streams() {
            stream.wake();
        }
    }

    /// Whether the client may still be sending the body of its last request.
    pub(crate) fn body_is_unread(&self, unread: bool) {
        self.unread.store(unread, Relaxed);
    }

    /// Why nothing more is read of what the client sends, if so.
    pub(super) fn unread(&self) -> Option<&Unread> {
        self.broken.get()
    }

    /// Looks after a stream while it lives.
    pub fn keep(&self, stream: &Arc<dyn Stream>) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    fn streams(&self) -> Vec<Arc<dyn Stream>> {
        let streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether the connection has carried as many requests as it may.
    pub(super) fn is_worn_out(&self) -> bool {
        self.worn_out.load(Relaxed)
    }

    /// A request head has been read whole; `most` may be on one connection.
    pub(super) fn request_began(&self, most: u32) {
        if self.requests.fetch_add(1, Relaxed).saturating_add(1) >= most {
            self.worn_out.store(true, Relaxed);
        }
        self.requests_open.fetch_add(1, Relaxed);
        self.reading_since.store(NOT_READING, Relaxed);
    }

    /// Its answer has been handed over, or it was given up.
    pub(super) fn request_ended(&self, now: Instant) {
        self.idle_since.store(self.millis(now), Relaxed);
        self.requests_open.fetch_sub(1, Relaxed);
    }

    fn is_busy(&self) -> bool {
        self.requests_open.load(Relaxed) > 0
    }

    fn bytes_came(&self) {
        if !self.is_busy() && self.reading_since.load(Relaxed) == NOT_READING {
            self.reading_since.store(self.millis(clock::now()), Relaxed);
        }
    }

    /// No part of a head is there without its rest.
    fn head_came(&self) {
        self.reading_since.store(NOT_READING, Relaxed);
    }

    pub(super) fn judge(&self, now: Instant, limits: &Limits) -> Verdict {
        for stream in self.streams() {
            stream.judge(now, limits.client_write_timeout);
        }
        if self.is_busy() {
            return Verdict::Wait(limits.header_read_timeout.min(limits.client_write_timeout));
        }
        let now = self.millis(now);
        let since = |at: u64| Duration::from_millis(now.saturating_sub(at));
        let reading = self.reading_since.load(Relaxed);
        if reading != NOT_READING {
            return match limits.header_read_timeout.checked_sub(since(reading)) {
                Some(left) if !left.is_zero() => Verdict::Wait(left),
                _ => Verdict::Close,
            };
        }
        match limits.idle_timeout.checked_sub(since(self.idle_since.load(Relaxed))) {
            Some(left) if !left.is_zero() => Verdict::Wait(left.min(limits.header_read_timeout)),
            _ => Verdict::Finish,
        }
    }

    fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.opened).as_millis())
            .unwrap_or(u64::MAX - 1)
    }
}

/// Writes out what is said of a request that cannot be read, of which the beginning is known.
pub(super) type Refusal = fn(FramingFault, &[u8]) -> Vec<u8>;

/// What a client speaks, and who reads along with it.
pub(super) enum Spoken {
    Http1(Box<Framing>),
    Http2(Box<Calm>),
}

/// The client's socket; notes when a head begins and gives up on a client that does not read.
pub(super) struct PeerSocket {
    socket: ClientSocket,
    peer: Arc<Peer>,
    write_timeout: Duration,
    spoken: Spoken,
    /// What is said of a request that cannot be read.
    refusal: Refusal,
    /// The same, once there is one.
    instead: Option<Instead>,
    /// What hyper has yet to read of a request that it shall refuse.
    unsaid: &'static [u8],
    /// hyper waits for more bytes, and so will hear of the end.
    watched: bool,
    /// Runs while a write is waiting for the client.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Runs while the client may still be sending after our last word.
    lingering: Option<Pin<Box<Sleep>>>,
    /// What came meanwhile, in bytes.
    lingered: usize,
}

impl PeerSocket {
    pub(super) fn new(
        socket: ClientSocket,
        peer: Arc<Peer>,
        limits: &Limits,
        spoken: Spoken,
        refusal: Refusal,
    ) -> Self {
        Self {
            socket,
            peer,
            write_timeout: limits.client_write_timeout,
            spoken,
            refusal,
            instead: None,
            unsaid: &[],
            watched: false,
            waiting: None,
            lingering: None,
            lingered: 0,
        }
    }

    const fn is_http2(&self) -> bool {
        matches!(self.spoken, Spoken::Http2(_))
    }

    /// Whether the client has closed while nobody reads: with a pipelined request in its buffer
    /// hyper looks no further, and the engine would work for nobody.
    fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        if std::mem::take(&mut self.watched) || self.is_http2() || !self.peer.is_busy() {
            return false;
        }
        poll_closed(&mut self.socket, cx)
    }

    /// Drops what still comes: closing with bytes unread resets the connection, and the client
    /// may lose an answer that it has not read yet.
    fn linger(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let lingering =
            self.lingering.get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER_TIME_MAX)));
        let mut dropped = [0; 4 << 10];
        while self.lingered < LINGER_BYTES_MAX && lingering.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut dropped);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                break;
            }
            self.lingered += buf.filled().len();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads along with what came behind `before`.
    fn read_along(&mut self, buf: &mut ReadBuf<'_>, before: usize) {
        let new = buf.filled_mut().get_mut(before..).unwrap_or_default();
        match &mut self.spoken {
            // Spoils a request from where it could be read in more than one way, so that hyper
            // refuses it in its place: of several on a connection the ones before it are served.
            Spoken::Http1(framing) => {
                self.peer.bytes_came();
                let Err(Broken { at, fault }) = framing.read(new) else { return };
                if let Some(byte) = new.get_mut(at) {
                    *byte = NO_REQUEST_HAS;
                }
                buf.set_filled(before + at + 1);
                self.unsaid = HEAD_END;
                let first_line = framing.first_line();
                self.instead = Some(Instead::new((self.refusal)(fault, first_line)));
                let unread = Unread { cause: fault.cause(), first_line: first_line.to_vec() };
                // It is told once; nothing is read after it.
                let _ = self.peer.broken.set(unread);
            }
            Spoken::Http2(calm) => {
                let came = calm.came(clock::now(), new);
                // Other bytes between requests are housekeeping, not the start of a head.
                if calm.is_in_head() {
                    self.peer.bytes_came();
                } else {
                    self.peer.head_came();
                }
                let Err(excess) = came else { return };
                buf.set_filled(before);
                let unread = Unread { cause: excess.cause(), first_line: Vec::new() };
                let _ = self.peer.broken.set(unread);
            }
        }
    }

    /// Ends a connection whose client sent what it should not.
    fn poll_end(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Spoken::Http2(calm) = &self.spoken else {
            let (said, unsaid) = self.unsaid.split_at(self.unsaid.len().min(buf.remaining()));
            if said.is_empty() {
                return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
            }
            buf.put_slice(said);
            self.unsaid = unsaid;
            return Poll::Ready(Ok(()));
        };
        if self.lingering.is_none()
            && let Some(goodbye) = calm.goodbye()
        {
            // A client that does not read learns nothing.
            let _ = Pin::new(&mut self.socket).poll_write(cx, &goodbye);
            let _ = Pin::new(&mut self.socket).poll_shutdown(cx);
        }
        self.linger(cx)
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let timeout = self.write_timeout;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if waiting.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.peer.stalled.store(true, Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for PeerSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.peer.broken.get().is_some() {
            return this.poll_end(cx, buf);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, buf);
        this.watched = read.is_pending();
        if buf.filled().len() > before {
            this.read_along(buf, before);
            if buf.filled().len() == before {
                return this.poll_end(cx, buf);
            }
        }
        read
    }
}

impl AsyncWrite for PeerSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_http2() && this.peer.broken.get().is_some() {
            // Nothing stands behind our last word.
            return Poll::Ready(Ok(bufs.iter().map(|buf| buf.len()).sum()));
        }
        let instead = match (&mut this.instead, bufs) {
            (Some(instead), [wanted, rest @ ..]) if rest.iter().all(|rest| rest.is_empty()) => {
                instead.poll_write(cx, &mut this.socket, wanted)
            }
            _ => None,
        };
        let written =
            instead.unwrap_or_else(|| Pin::new(&mut this.socket).poll_write_vectored(cx, bufs));
        if let (Spoken::Http2(calm), Poll::Ready(Ok(written))) = (&mut this.spoken, &written) {
            let mut left = *written;
            for buf in bufs {
                let part = buf.get(..left).unwrap_or(buf);
                calm.went(part);
                left -= part.len();
            }
        }
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.has_left(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        // hyper flushes when it has nothing left to write.
        let written = this.peer.interim.poll_write(cx, &mut this.socket);
        ready!(this.watch(cx, written))?;
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        this.watch(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.lingering.is_none() {
            ready!(Pin::new(&mut this.socket).poll_shutdown(cx))?;
        }
        let more_comes = this.peer.unread.load(Relaxed) || this.peer.broken.get().is_some();
        if more_comes && !this.is_http2() { this.linger(cx) } else { Poll::Ready(Ok(())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(peer: &Peer, seconds: u64) -> Instant {
        peer.opened + Duration::from_secs(seconds)
    }

    fn peer() -> Peer {
        Peer::new("127.0.0.1:1".parse().unwrap(), clock::now())
    }

    #[test]
    fn an_idle_connection_is_finished_and_a_busy_one_never() {
        let (peer, limits) = (peer(), Limits::default());
        assert_eq!(peer.judge(at(&peer, 74), &limits), Verdict::Wait(Duration::from_secs(1)));
        assert_eq!(peer.judge(at(&peer, 75), &limits), Verdict::Finish);
        peer.request_began(10);
        assert!(matches!(peer.judge(at(&peer, 7_500), &limits), Verdict::Wait(_)));
        peer.request_ended(at(&peer, 8_000));
        assert!(matches!(peer.judge(at(&peer, 8_001), &limits), Verdict::Wait(_)));
        assert_eq!(peer.judge(at(&peer, 8_075), &limits), Verdict::Finish);
    }

    #[test]
    fn a_head_that_dribbles_in_is_cut() {
        let (peer, limits) = (peer(), Limits::default());
        peer.bytes_came();
        peer.bytes_came();
        assert!(matches!(peer.judge(at(&peer, 9), &limits), Verdict::Wait(_)));
        assert_eq!(peer.judge(at(&peer, 11), &limits), Verdict::Close);
    }
}
