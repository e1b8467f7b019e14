//! Why a client's answer was cut, and how that leaves it what came before.

use std::task::{Context, Poll};

/// Why a client's answer was cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RelayFault {
    /// The engine's message broke off.
    #[error("the engine's answer broke off")]
    UpstreamReset(#[source] hyper::Error),
    /// The engine fell silent.
    #[error("the engine was silent for too long")]
    UpstreamStalled,
    /// The whole request took longer than allowed.
    #[error("the request took longer than this gateway allows")]
    Deadline,
    /// The client has not read for too long.
    #[error("the client did not read for too long")]
    ClientStalled,
    /// We are shutting down.
    #[error("the gateway is shutting down")]
    Shutdown,
}

/// Lets the connection write what it has before it hears of a fault: hyper drops its buffer with
/// the connection when the body fails.
#[derive(Debug, Default)]
pub(super) struct Flush(bool);

impl Flush {
    /// Pending once, and then ready.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
