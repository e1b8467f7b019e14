//! Signals. The process handles them from its start on.

use anyhow::Context as _;
use taximeter_system::signals::{Hangup, Stop};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The handlers of signals. Without a handler, a signal would end the process.
pub(super) struct Signals {
    pub(super) stop: Stop,
    pub(super) hangup: Hangup,
}

impl Signals {
    /// Installs the handlers.
    ///
    /// Errors: the system refuses a handler.
    pub(super) fn new(runtime: &Runtime) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let listen =
            || Ok::<_, std::io::Error>(Self { stop: Stop::new()?, hangup: Hangup::new()? });
        listen().context("cannot listen for signals")
    }

    /// Runs `start` and returns its result. Returns `None` if a signal comes first: a long journal
    /// takes time to read, and an interrupted start changes nothing that another end would not.
    ///
    /// Errors: the system has no thread; the start panics.
    pub(super) fn unless_stopped<T: Send + 'static>(
        &mut self,
        runtime: Runtime,
        start: impl FnOnce(Runtime) -> T + Send + 'static,
    ) -> anyhow::Result<Option<T>> {
        let handle = runtime.handle().clone();
        let (tell, started) = oneshot::channel();
        let starting = std::thread::Builder::new().name("start".to_owned());
        starting.spawn(move || drop(tell.send(start(runtime)))).context("cannot start a thread")?;
        handle.block_on(async {
            tokio::select! {
                biased;
                started = started => Ok(Some(started.context("the start panicked")?)),
                () = self.stop.wait() => Ok(None),
            }
        })
    }
}
