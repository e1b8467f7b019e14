//! An entry that waits until the kernel has it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use super::record::Receipt;

/// Ready when the kernel has the entry.
pub(super) type Written = Pin<Box<dyn Future<Output = ()> + Send>>;
/// The same, and what its client may be told.
pub(super) type Posted = (Written, Receipt);

/// An entry on its way to the kernel. Dropping it stops the waiting, not the writing.
pub struct Settling(SettlingState);

enum SettlingState {
    Counting(oneshot::Receiver<Posted>),
    Writing(Written, Receipt),
    Done,
}

impl Settling {
    pub(super) const fn done() -> Self {
        Self(SettlingState::Done)
    }

    pub(super) fn posted((written, receipt): Posted) -> Self {
        Self(SettlingState::Writing(written, receipt))
    }

    pub(super) const fn counting(receiver: oneshot::Receiver<Posted>) -> Self {
        Self(SettlingState::Counting(receiver))
    }
}

impl Future for Settling {
    type Output = Receipt;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Receipt> {
        loop {
            match &mut self.0 {
                SettlingState::Counting(receiver) => match Pin::new(receiver).poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Ok((written, receipt))) => {
                        self.0 = SettlingState::Writing(written, receipt);
                    }
                    // The counter died; it has been told of, and the reserve closes at the next
                    // start.
                    Poll::Ready(Err(_)) => self.0 = SettlingState::Done,
                },
                SettlingState::Writing(written, receipt) => {
                    if written.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                    let receipt = std::mem::take(receipt);
                    self.0 = SettlingState::Done;
                    return Poll::Ready(receipt);
                }
                SettlingState::Done => return Poll::Ready(Receipt::default()),
            }
        }
    }
}
