//! Signals, heard from the first moment on.

use anyhow::Context as _;
use taximeter_system::signals::{Hangup, Stop};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// What we may be told, from the first moment on: whoever does not listen is ended by it.
pub(super) struct Signals {
    pub(super) stop: Stop,
    pub(super) hangup: Hangup,
}

impl Signals {
    /// Listens from now on.
    ///
    /// Errors: the system refuses a handler.
    pub(super) fn new(runtime: &Runtime) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
        let listen =
            || Ok::<_, std::io::Error>(Self { stop: Stop::new()?, hangup: Hangup::new()? });
        listen().context("cannot listen for signals")
    }

    /// What `start` comes to, or nothing where we are told to stop before: a long journal may take
    /// its time, and is as it was after any other end.
    ///
    /// Errors: no thread can be had, or the start panics.
    pub(super) fn unless_told<T: Send + 'static>(
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
                started = started => Ok(Some(started.context("the start ended without a word")?)),
                () = self.stop.wait() => Ok(None),
            }
        })
    }
}
