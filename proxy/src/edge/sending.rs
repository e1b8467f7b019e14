//! A thread that sends to somewhere else until it is stopped, on a runtime of its own: however slow
//! the other end is, nothing else waits for it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::runtime::Builder;
use tokio::sync::Notify;

/// The thread.
#[derive(Debug)]
pub(super) struct Sending {
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Sending {
    /// Starts a thread called `name`, which sends from `queue` until it is stopped, wherever it is
    /// then, and sends the `rest` after that.
    ///
    /// Errors: the system has no thread for it, or no runtime.
    pub(super) fn start<Q: Send + 'static>(
        name: &str,
        mut queue: Q,
        send: impl AsyncFnOnce(&mut Q) + Send + 'static,
        rest: impl AsyncFnOnce(&mut Q) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = send(&mut queue) => {}
                    () = stopped.notified() => {}
                }
                rest(&mut queue).await;
            });
        })?;
        Ok(Self { stop, thread })
    }

    /// Ends it, once the rest is sent or given up.
    pub(super) fn stop(self) {
        self.stop.notify_one();
        // One that panicked has told what it could.
        let _ = self.thread.join();
    }
}
