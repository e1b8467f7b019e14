//! The socket below hyper. It checks an engine's answers before hyper reads them, and knows how
//! much of a request has been sent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::EngineSocket;
use crate::framing::{Broken, Framing, FramingFault};

/// How far the exchange on a connection has come; shared by those above hyper and beneath it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// A request has been given to hyper, and nothing of its answer has come.
    awaits_answer: AtomicBool,
    /// That request is a HEAD.
    to_head: AtomicBool,
    /// hyper has all of the request's body.
    given: AtomicBool,
    /// The kernel has all of the request.
    written: AtomicBool,
}

impl Progress {
    /// A request is about to be given to hyper.
    pub(super) fn begin(&self, to_head: bool, bodiless: bool) {
        self.to_head.store(to_head, Relaxed);
        self.given.store(bodiless, Relaxed);
        self.written.store(false, Relaxed);
        self.awaits_answer.store(true, Relaxed);
    }

    /// hyper has been given the last piece of the request.
    pub(super) fn given(&self) {
        self.given.store(true, Relaxed);
    }

    /// Whether anything of the answer has come.
    pub(super) fn has_answer(&self) -> bool {
        !self.awaits_answer.load(Relaxed)
    }

    /// Whether the kernel has all of the request.
    pub(super) fn is_written(&self) -> bool {
        self.written.load(Relaxed)
    }
}

/// The socket beneath hyper.
pub(super) struct Wire {
    socket: EngineSocket,
    progress: Arc<Progress>,
    framing: Framing,
    fault: Option<FramingFault>,
}

impl Wire {
    /// For answers with heads of at most `head_bytes_max`.
    pub(super) fn new(
        socket: EngineSocket,
        progress: Arc<Progress>,
        head_bytes_max: usize,
    ) -> Self {
        Self { socket, progress, framing: Framing::answers(head_bytes_max), fault: None }
    }
}

impl AsyncRead for Wire {
    /// What is good before a fault is passed on; the fault is the next read's.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if this.fault.is_none() {
            ready!(Pin::new(&mut this.socket).poll_read(cx, buf))?;
            let new = buf.filled().get(before..).unwrap_or_default();
            if !new.is_empty() && !this.progress.has_answer() {
                this.progress.awaits_answer.store(false, Relaxed);
                this.framing.expect(this.progress.to_head.load(Relaxed));
            }
            let Err(Broken { at, fault }) = this.framing.read(new) else {
                return Poll::Ready(Ok(()));
            };
            buf.set_filled(before + at);
            this.fault = Some(fault);
        }
        match this.fault {
            Some(fault) if buf.filled().len() == before => {
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    /// hyper asks for this when it has written all that it had.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(Pin::new(&mut this.socket).poll_flush(cx))?;
        if this.progress.given.load(Relaxed) {
            this.progress.written.store(true, Relaxed);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
