//! Writes interim answers (1xx) to an HTTP/1 client. hyper's server sends none but its own 100.
//! This file writes them below hyper: after hyper's earlier bytes have left, and before hyper gets
//! the final answer, which waits.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::AsyncWrite;

/// Interim answers that one connection has not written yet.
#[derive(Debug, Default)]
pub(crate) struct Interim {
    /// Whether there is anything: all that most answers ever look at.
    waiting: AtomicBool,
    heads: Mutex<Heads>,
}

#[derive(Debug, Default)]
struct Heads {
    bytes: BytesMut,
    /// Who has the final answer.
    last: Option<Waker>,
}

impl Interim {
    /// To be written next. Called by whom the connection polls, so that it comes to write.
    pub(crate) fn push(&self, head: &[u8]) {
        self.heads().bytes.extend_from_slice(head);
        self.waiting.store(true, Relaxed);
    }

    /// Ready when all have been written.
    pub(super) fn poll_written(&self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.waiting.load(Relaxed) {
            return Poll::Ready(());
        }
        self.heads().last = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Writes them. Only where one message has left whole and the next has not begun.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        cx: &mut Context<'_>,
        socket: &mut S,
    ) -> Poll<io::Result<()>> {
        if !self.waiting.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let mut heads = self.heads();
        while heads.bytes.has_remaining() {
            let written = ready!(Pin::new(&mut *socket).poll_write(cx, &heads.bytes))?;
            heads.bytes.advance(written);
        }
        self.waiting.store(false, Relaxed);
        if let Some(last) = heads.last.take() {
            last.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn heads(&self) -> MutexGuard<'_, Heads> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
