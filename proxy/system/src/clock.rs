//! Reads the clocks. No other file of the product reads one: everything else takes time as an
//! argument.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Monotonic time, for durations.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Wall time, for time stamps on records. It may be set back or forward, so no duration is computed
/// from it.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]
pub fn wall() -> Timestamp {
    Timestamp::now()
}

/// Waits for `future`, but no longer than `limit`. It sets a timer only if the future is not ready
/// at once.
pub async fn within<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        Poll::Ready(output) => Some(output),
        Poll::Pending => tokio::time::timeout(limit, future).await.ok(),
    }
}
