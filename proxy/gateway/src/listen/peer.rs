//! The socket and the state of one client connection. One timer per connection reads the state.

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

use super::flood_guard::FloodGuard;
use super::interim::Interim;
use super::socket::{ClientSocket, poll_closed};
use super::unreadable::Unreadable;

/// What a client may still send after it was refused, in bytes and in time.
const LINGER_BYTES_MAX: usize = 64 << 10;
const LINGER_TIME_MAX: Duration = Duration::from_secs(1);
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
    broken: OnceLock<Unreadable>,
    /// All requests before one that cannot be read have their answers.
    refusal_due: AtomicBool,
    /// A request body has not been read to its end.
    unread: AtomicBool,
    /// Open streams of an HTTP/2 connection.
    streams: Mutex<Vec<Weak<dyn Stream>>>,
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
            refusal_due: AtomicBool::new(false),
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
    pub(super) fn unreadable(&self) -> Option<&Unreadable> {
        self.broken.get()
    }

    /// Whether a request is to be refused now, because its head cannot be read.
    pub(super) fn is_refusal_due(&self) -> bool {
        self.refusal_due.load(Relaxed)
    }

    /// The request that is to be refused now, because its head cannot be read: its fault, and how it
    /// begins. Says so once.
    pub(super) fn take_refusal(&self) -> Option<(FramingFault, &[u8])> {
        match self.broken.get() {
            Some(Unreadable::Head(fault, first_line)) if self.refusal_due.swap(false, Relaxed) => {
                Some((*fault, first_line))
            }
            _ => None,
        }
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

/// What a client speaks, and who reads along with it.
pub(super) enum Spoken {
    Http1(Box<Framing>),
    Http2(Box<FloodGuard>),
}

/// The client's socket; notes when a head begins and gives up on a client that does not read.
pub(super) struct PeerSocket {
    socket: ClientSocket,
    peer: Arc<Peer>,
    write_timeout: Duration,
    spoken: Spoken,
    /// Requests that had begun when all of them were over and their answers written out.
    answered: u32,
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
    ) -> Self {
        Self {
            socket,
            peer,
            write_timeout: limits.client_write_timeout,
            spoken,
            answered: 0,
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

    /// Reads along with what came behind `before`, and leaves there what is good of it.
    fn read_along(&mut self, buf: &mut ReadBuf<'_>, before: usize) {
        let new = buf.filled().get(before..).unwrap_or_default();
        let (good, unreadable) = match &mut self.spoken {
            Spoken::Http1(framing) => {
                self.peer.bytes_came();
                let Err(Broken { at, fault }) = framing.read(new) else { return };
                let unreadable = if framing.is_in_body() {
                    Unreadable::Body(fault)
                } else {
                    Unreadable::Head(fault, framing.first_line().to_vec())
                };
                (at, unreadable)
            }
            Spoken::Http2(guard) => {
                let came = guard.came(clock::now(), new);
                // Other bytes between requests are housekeeping, not the start of a head.
                if guard.is_in_head() {
                    self.peer.bytes_came();
                } else {
                    self.peer.head_came();
                }
                let Err(excess) = came else { return };
                (0, Unreadable::Excess(excess))
            }
        };
        buf.set_filled(before + good);
        // It is told once; nothing is read after it.
        let _ = self.peer.broken.set(unreadable);
    }

    /// What is read behind the last good byte.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.peer.broken.get() {
            Some(Unreadable::Body(fault)) => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, *fault)))
            }
            Some(Unreadable::Excess(_)) => self.poll_goodbye(cx),
            // Nothing, until the requests before it have their answers; then whoever polls the
            // connection answers this one.
            Some(Unreadable::Head(..)) | None => {
                if self.is_answered() {
                    self.peer.refusal_due.store(true, Relaxed);
                }
                Poll::Pending
            }
        }
    }

    /// Whether each request that was read is over and its answer written out.
    fn is_answered(&self) -> bool {
        !self.peer.is_busy() && self.answered == self.peer.requests.load(Relaxed)
    }

    /// Ends an HTTP/2 connection whose client sent what it should not.
    fn poll_goodbye(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Spoken::Http2(guard) = &self.spoken
            && self.lingering.is_none()
            && let Some(goodbye) = guard.goodbye()
        {
            // A client that does not read learns nothing.
            let _ = Pin::new(&mut self.socket).poll_write(cx, &goodbye);
            let _ = Pin::new(&mut self.socket).poll_shutdown(cx);
        }
        self.linger(cx)
    }

    /// All that was written has left. Who has yet to refuse a request asks again.
    fn flushed(&mut self, cx: &mut Context<'_>) {
        let begun = self.peer.requests.load(Relaxed);
        if self.answered != begun && !self.peer.is_busy() {
            self.answered = begun;
            if self.peer.broken.get().is_some() {
                cx.waker().wake_by_ref();
            }
        }
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
            return this.poll_end(cx);
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut this.socket).poll_read(cx, buf);
        this.watched = read.is_pending();
        if buf.filled().len() > before {
            this.read_along(buf, before);
            if buf.filled().len() == before {
                return this.poll_end(cx);
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
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, bufs);
        if let (Spoken::Http2(guard), Poll::Ready(Ok(written))) = (&mut this.spoken, &written) {
            let mut left = *written;
            for buf in bufs {
                let part = buf.get(..left).unwrap_or(buf);
                guard.went(part);
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
        ready!(this.watch(cx, flushed))?;
        this.flushed(cx);
        Poll::Ready(Ok(()))
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
