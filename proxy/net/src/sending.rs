//! Runs a sender on a thread and runtime of its own until it is stopped, so that a slow receiver
//! holds up nothing else.

use std::io;
use std::sync::Arc;

use taximeter_system::thread::Started;
use tokio::runtime::Builder;
use tokio::sync::Notify;

/// A thread that sends.
#[derive(Debug)]
pub struct SenderThread {
    stop: Arc<Notify>,
    thread: Started,
}

impl SenderThread {
    /// Starts a thread called `name`, which sends from `queue` until it is stopped, wherever it is
    /// then, and sends the `rest` after that.
    ///
    /// Errors: the system has no thread for it, or no runtime.
    pub fn start<Q: Send + 'static>(
        name: &str,
        mut queue: Q,
        send: impl AsyncFnOnce(&mut Q) + Send + 'static,
        rest: impl AsyncFnOnce(&mut Q) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let thread = Started::new(name, move || {
            runtime.block_on(async {
                tokio::select! {
                    () = send(&mut queue) => {}
                    () = stopped.notified() => {}
                }
                rest(&mut queue).await;
            });
            // A name that is looked up may take its time; nobody needs it any more.
            runtime.shutdown_background();
        })?;
        Ok(Self { stop, thread })
    }

    /// Asks the thread to end after it has sent the rest or has given up.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Waits until the thread has ended.
    pub async fn ended(self) {
        self.thread.ended().await;
    }
}
