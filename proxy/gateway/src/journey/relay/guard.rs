//! Watches an answer on an HTTP/2 stream from outside. hyper polls the body only when the client
//! has opened its window. So the body itself would not notice a client that never reads, or a
//! shutdown.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use taximeter_system::clock;

use super::fault::RelayFault;
use crate::listen::{Peer, Stream};

/// A body that can be given up by others than the client.
pub(super) trait Stall:
    Body<Data = Bytes, Error = RelayFault> + Send + Unpin + 'static
{
    /// The client does not read: what it was not sent is not owed.
    fn stall(self: Box<Self>);
}

/// An answer that its connection can wake and end.
pub(super) struct Guard<B>(Mutex<GuardState<B>>);

struct GuardState<B> {
    /// `None` once the client was given up.
    body: Option<Box<B>>,
    /// Since when the client has not asked for more.
    handed_at: Option<Instant>,
    waiting: Option<Waker>,
}

impl<B: Stall> Guard<B> {
    pub(super) fn new(body: B, peer: &Peer) -> Arc<Self> {
        let state =
            GuardState { body: Some(Box::new(body)), handed_at: Some(clock::now()), waiting: None };
        let guard = Arc::new(Self(Mutex::new(state)));
        let stream: Arc<dyn Stream> = guard.clone();
        peer.keep(&stream);
        guard
    }

    fn lock(&self) -> MutexGuard<'_, GuardState<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn poll_frame(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayFault>>> {
        let mut state = self.lock();
        let Some(body) = &mut state.body else {
            return Poll::Ready(Some(Err(RelayFault::ClientStalled)));
        };
        let frame = std::pin::Pin::new(&mut **body).poll_frame(cx);
        state.handed_at = frame.is_ready().then(clock::now);
        state.waiting = frame.is_pending().then(|| cx.waker().clone());
        frame
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.lock().body.as_ref().is_some_and(|body| body.is_end_stream())
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.lock().body.as_ref().map_or_else(SizeHint::default, |body| body.size_hint())
    }
}

impl<B: Stall> Stream for Guard<B> {
    fn wake(&self) {
        if let Some(waiting) = self.lock().waiting.take() {
            waiting.wake();
        }
    }

    fn judge(&self, now: Instant, write_timeout: Duration) {
        let mut state = self.lock();
        let stalled =
            state.handed_at.is_some_and(|at| now.saturating_duration_since(at) >= write_timeout);
        if !stalled {
            return;
        }
        let body = state.body.take();
        drop(state);
        if let Some(body) = body {
            body.stall();
        }
    }
}
