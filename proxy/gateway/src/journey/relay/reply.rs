//! The body of an answer to a client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::fault::{Flush, RelayFault};
use super::guard::{Guard, Stall};
use super::watch::Watch;
use crate::listen::{Busy, Peer};

/// The body of an answer to a client.
pub struct ReplyBody {
    kind: Kind,
    /// The connection counts as busy while this lives.
    busy: Option<Busy>,
}

enum Kind {
    /// All of it, known beforehand.
    Whole(Bytes),
    /// A part, then the cut that the engine's answer had.
    Broken(Bytes, Option<RelayFault>, Flush),
    /// As it comes.
    Watch(Box<Watch>),
    /// One of these, on a stream of HTTP/2.
    Guarded(Arc<Guard<ReplyBody>>),
}

impl ReplyBody {
    /// All of it, known beforehand.
    pub const fn whole(bytes: Bytes) -> Self {
        Self { kind: Kind::Whole(bytes), busy: None }
    }

    /// A part, and then the message breaks off as the engine's did.
    pub(super) fn broken(bytes: Bytes, fault: RelayFault) -> Self {
        Self { kind: Kind::Broken(bytes, Some(fault), Flush::default()), busy: None }
    }

    /// As it comes.
    pub(super) fn watch(watch: Watch) -> Self {
        Self { kind: Kind::Watch(Box::new(watch)), busy: None }
    }

    /// As a stream of an HTTP/2 connection.
    pub(crate) fn guarded(self, peer: &Peer) -> Self {
        Self { kind: Kind::Guarded(Guard::new(self, peer)), busy: None }
    }

    /// Keeps `busy` until the body is gone.
    pub fn keeping(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }
}

impl Stall for ReplyBody {
    fn stall(self: Box<Self>) {
        if let Kind::Watch(watch) = self.kind {
            watch.stall();
        }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = RelayFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayFault>>> {
        match &mut self.kind {
            Kind::Watch(watch) => watch.poll_frame(cx),
            Kind::Guarded(guard) => guard.poll_frame(cx),
            Kind::Whole(bytes) => Poll::Ready(data(bytes)),
            Kind::Broken(bytes, fault, flush) => match data(bytes) {
                Some(frame) => Poll::Ready(Some(frame)),
                None if fault.is_some() && flush.poll(cx).is_pending() => Poll::Pending,
                None => Poll::Ready(fault.take().map(Err)),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Whole(bytes) => bytes.is_empty(),
            Kind::Broken(bytes, fault, _) => bytes.is_empty() && fault.is_none(),
            Kind::Watch(watch) => watch.is_end(),
            Kind::Guarded(guard) => guard.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Broken(..) | Kind::Watch(_) => SizeHint::default(),
            Kind::Guarded(guard) => guard.size_hint(),
        }
    }
}

fn data(bytes: &mut Bytes) -> Option<Result<Frame<Bytes>, RelayFault>> {
    (!bytes.is_empty()).then(|| Ok(Frame::data(std::mem::take(bytes))))
}
