//! Sends one request over one connection and reads its answer. The task that polls the exchange
//! drives the connection.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use super::dial::{DialFault, EngineSocket};
use super::wire::{Progress, Wire};
use crate::fields::KEEP_ALIVE;

/// Response head from an engine, in bytes.
const RESPONSE_HEAD_BYTES_MAX: usize = 64 << 10;
/// Response header fields from an engine.
const RESPONSE_HEADERS_MAX: usize = 100;
/// Taken off what `keep-alive: timeout=` promises, so that the engine does not close first.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// Pieces up to this size are copied when they are kept: the buffer that they came in is larger
/// than they are, and would stay as long.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// A request body held in pieces, sent as they are.
#[derive(Debug, Clone, Default)]
pub struct RequestBody {
    pieces: VecDeque<Bytes>,
    left: u64,
}

impl RequestBody {
    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.left += piece.len() as u64;
            self.pieces.push_back(piece);
        }
    }

    /// Length in bytes.
    pub const fn len(&self) -> u64 {
        self.left
    }

    /// Whether it has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }

    /// The same body in a form to keep: small pieces are copied out of the buffers that they came
    /// in.
    pub fn compact(mut self) -> Self {
        for piece in self.pieces.iter_mut().filter(|piece| piece.len() <= COPIED_BYTES_MAX) {
            *piece = Bytes::copy_from_slice(piece);
        }
        self
    }

    /// The body with `text` in place of the bytes from `start` to `end`. The pieces around it are
    /// shared, not copied.
    pub fn spliced(&self, start: u64, end: u64, text: &Bytes) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        let mut done = false;
        for piece in &self.pieces {
            let next = at + piece.len() as u64;
            let inside = |offset: u64| usize::try_from(offset.clamp(at, next) - at).unwrap_or(0);
            out.push(piece.slice(..inside(start)));
            if !done && start <= next {
                out.push(text.clone());
                done = true;
            }
            out.push(piece.slice(inside(end)..));
            at = next;
        }
        out
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pieces.pop_front().map(|piece| {
            self.left -= piece.len() as u64;
            Ok(Frame::data(piece))
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub enum SendFault {
    /// Nothing was sent. The whole request is returned and may go to another connection.
    NotSent(Box<Request<RequestBody>>),
    /// The connection broke, or what came is not HTTP.
    Broken(hyper::Error),
}

/// A body on its way: tells when the last of it has been given to hyper.
struct SendingBody {
    body: RequestBody,
    progress: Arc<Progress>,
}

impl Body for SendingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if self.body.is_end_stream() {
            self.progress.given();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection to an engine.
pub struct Link {
    sender: http1::SendRequest<SendingBody>,
    driver: http1::Connection<TokioIo<Wire>, SendingBody>,
    progress: Arc<Progress>,
    /// The connection future has finished and must not be polled again.
    over: bool,
    requests: u64,
    /// What the engine promised in `keep-alive:`; `None` when it said nothing.
    promise: Option<KeepAlive>,
}

#[derive(Debug, Clone, Copy)]
struct KeepAlive {
    idle: Duration,
    requests: u64,
}

impl Link {
    /// Starts HTTP/1.1 on a new socket. The link is boxed, because it has a thousand bytes and
    /// moves with every request.
    pub async fn new(socket: EngineSocket) -> Result<Box<Self>, DialFault> {
        let progress = Arc::<Progress>::default();
        let wire = Wire::new(socket, progress.clone(), RESPONSE_HEAD_BYTES_MAX);
        let (sender, driver) = http1::Builder::new()
            .preserve_header_case(true)
            .max_headers(RESPONSE_HEADERS_MAX)
            .max_buf_size(RESPONSE_HEAD_BYTES_MAX)
            .handshake(TokioIo::new(wire))
            .await
            .map_err(DialFault::Handshake)?;
        let (over, requests, promise) = (false, 0, None);
        Ok(Box::new(Self { sender, driver, progress, over, requests, promise }))
    }

    /// Whether another request may be sent. It looks at the socket first, because engines close
    /// idle connections.
    pub(super) fn is_open(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        !self.over && self.sender.is_ready()
    }

    /// How long it may idle in the pool; zero when the engine will take no further request.
    pub(super) fn idle_max(&self, default: Duration) -> Duration {
        match self.promise {
            Some(promise) if self.requests >= promise.requests => Duration::ZERO,
            Some(promise) => default.min(promise.idle.saturating_sub(KEEP_ALIVE_MARGIN)),
            None => default,
        }
    }

    /// Sends the request and returns the answer's head. It drives the connection meanwhile.
    pub async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendFault> {
        self.requests += 1;
        let Self { sender, driver, over, progress, .. } = self;
        progress.begin(request.method() == Method::HEAD, request.body().is_end_stream());
        let request = request.map(|body| SendingBody { body, progress: progress.clone() });
        let mut answer = pin!(sender.try_send_request(request));
        let answer = poll_fn(|cx| {
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
            if !*over && Pin::new(&mut *driver).poll(cx).is_ready() {
                *over = true;
            }
            answer.as_mut().poll(cx)
        })
        .await;
        match answer {
            Ok(answer) => {
                self.promise = keep_alive(answer.headers()).or(self.promise);
                Ok(answer)
            }
            Err(mut fault) => match fault.take_message() {
                Some(request) => Err(SendFault::NotSent(Box::new(request.map(|sent| sent.body)))),
                None => Err(SendFault::Broken(fault.into_error())),
            },
        }
    }

    /// Whether the kernel has taken all of the last request.
    pub fn has_sent(&self) -> bool {
        self.progress.is_written()
    }

    /// Whether anything of the answer to the last request has come.
    pub fn has_answer(&self) -> bool {
        self.progress.has_answer()
    }

    /// Polls the connection, unless it has finished. Its error shows at the body or the answer.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.over && Pin::new(&mut self.driver).poll(cx).is_ready() {
            self.over = true;
        }
    }
}

/// What `keep-alive: timeout=5, max=100` promises.
fn keep_alive(headers: &HeaderMap) -> Option<KeepAlive> {
    let value = headers.get(&KEEP_ALIVE)?.to_str().ok()?;
    let mut promise = KeepAlive { idle: Duration::MAX, requests: u64::MAX };
    for (name, value) in value.split(',').filter_map(|part| part.split_once('=')) {
        match (name.trim(), value.trim().parse()) {
            ("timeout", Ok(seconds)) => promise.idle = Duration::from_secs(seconds),
            ("max", Ok(requests)) => promise.requests = requests,
            _ => {}
        }
    }
    Some(promise)
}

/// An answer being read: its connection and its body.
pub struct Exchange {
    /// `None` once the connection has been taken back.
    link: Option<Box<Link>>,
    body: Incoming,
    /// What was read before it was asked for, in order; the last may be the end.
    ahead: VecDeque<Option<Result<Frame<Bytes>, hyper::Error>>>,
}

impl Exchange {
    /// The body of an answer, with the connection that carries it.
    pub const fn new(link: Box<Link>, body: Incoming) -> Self {
        Self { link: Some(link), body, ahead: VecDeque::new() }
    }

    /// Reads the body ahead, up to its end or at least `bytes_max` bytes. The frames that are read
    /// come again, those of a reading that was given up too.
    pub async fn peek(&mut self, bytes_max: usize) -> Vec<u8> {
        while self.ahead_bytes() < bytes_max && !self.body.is_end_stream() {
            let frame = poll_fn(|cx| self.poll_body(cx)).await;
            let is_last = !matches!(frame, Some(Ok(_)));
            self.ahead.push_back(frame);
            if is_last {
                break;
            }
        }
        self.ahead_data().flatten().copied().collect()
    }

    fn ahead_data(&self) -> impl Iterator<Item = &Bytes> {
        let frames = self.ahead.iter().flatten().flatten();
        frames.filter_map(Frame::data_ref)
    }

    fn ahead_bytes(&self) -> usize {
        self.ahead_data().map(Bytes::len).sum()
    }

    /// The next frame of the body.
    #[inline]
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.ahead.is_empty() {
            return self.poll_body(cx);
        }
        Poll::Ready(self.ahead.pop_front().flatten())
    }

    /// The next frame of hyper's body. It drives the connection in this task.
    fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        if let Some(link) = &mut self.link {
            link.drive(cx);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    /// Whether the body's framing says that nothing more will come.
    #[inline]
    pub fn is_end(&self) -> bool {
        match self.ahead.front() {
            Some(frame) => frame.is_none(),
            None => self.body.is_end_stream(),
        }
    }

    /// The remaining bytes, if the answer says its length.
    pub fn left(&self) -> Option<u64> {
        Some(self.body.size_hint().exact()? + self.ahead_bytes() as u64)
    }

    /// The connection, if it can carry another request. Call it once, after the end of the body.
    pub fn take_link(&mut self, cx: &mut Context<'_>) -> Option<Box<Link>> {
        let mut link = self.link.take()?;
        link.is_open(cx).then_some(link)
    }
}

/// An exchange as an ordinary body, for callers that read it whole.
pub struct ExchangeBody(pub Exchange);

impl Body for ExchangeBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.0.poll_frame(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(pieces: &[&'static str]) -> RequestBody {
        let mut body = RequestBody::default();
        for piece in pieces {
            body.push(Bytes::from_static(piece.as_bytes()));
        }
        body
    }

    fn text(body: &RequestBody) -> String {
        body.pieces().map(|piece| std::str::from_utf8(piece).unwrap()).collect()
    }

    #[test]
    fn a_splice_lands_wherever_pieces_begin_and_end() {
        let whole = "abcdef";
        for cut in 0..=whole.len() {
            let (head, tail) = whole.split_at(cut);
            let inserted = body(&[head, tail]).spliced(2, 2, &Bytes::from_static(b"--"));
            assert_eq!((text(&inserted).as_str(), inserted.len()), ("ab--cdef", 8), "cut at {cut}");
            let replaced = body(&[head, tail]).spliced(1, 4, &Bytes::from_static(b"-"));
            assert_eq!((text(&replaced).as_str(), replaced.len()), ("a-ef", 4), "cut at {cut}");
        }
    }

    #[test]
    fn an_engine_s_keep_alive_promise_is_read() {
        let mut headers = HeaderMap::new();
        assert!(keep_alive(&headers).is_none());
        headers.insert("keep-alive", "timeout=5, max=100".parse().unwrap());
        let promise = keep_alive(&headers).unwrap();
        assert_eq!((promise.idle, promise.requests), (Duration::from_secs(5), 100));
        headers.insert("keep-alive", "nonsense".parse().unwrap());
        assert_eq!(keep_alive(&headers).unwrap().requests, u64::MAX);
    }
}
