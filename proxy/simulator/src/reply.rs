//! The bodies of answers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::Notify;

use crate::broken::Broken;
use crate::stream::Stream;

/// The body of an answer.
pub(crate) struct Reply {
    kind: Kind,
    /// Hangs up when the body is over.
    _hang_up: Option<HangUp>,
}

enum Kind {
    /// All at once, with its length.
    Whole(Option<Bytes>),
    /// Less than its head promises, then the connection breaks.
    Short {
        bytes: Option<Bytes>,
        flushed: bool,
    },
    Stream(Box<Stream>),
}

/// Tells the connection to close, when dropped.
pub(crate) struct HangUp(pub(crate) Arc<Notify>);

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Reply {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Whole(Some(bytes.into())), _hang_up: None }
    }

    /// Fewer bytes than the head promises; then the connection breaks.
    pub(crate) fn short(bytes: impl Into<Bytes>) -> Self {
        let kind = Kind::Short { bytes: Some(bytes.into()), flushed: false };
        Self { kind, _hang_up: None }
    }

    pub(crate) fn stream(stream: Stream) -> Self {
        Self { kind: Kind::Stream(Box::new(stream)), _hang_up: None }
    }

    pub(crate) fn then(self, hang_up: HangUp) -> Self {
        Self { _hang_up: Some(hang_up), ..self }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Short { bytes, flushed } => match bytes.take() {
                Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None if *flushed => Poll::Ready(Some(Err(Broken))),
                None => {
                    // Only a body that waits is flushed; what was sent has to arrive.
                    *flushed = true;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
            },
            Kind::Stream(stream) => {
                stream.poll_next(context).map(|next| next.map(|bytes| bytes.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Kind::Short { .. } | Kind::Stream(_) => SizeHint::default(),
        }
    }
}
