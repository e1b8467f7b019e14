//! Waits for signals: SIGTERM and SIGINT to stop, SIGHUP to read the configuration again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGHUP, which ends no process that listens.
pub struct Hangup(Signal);

impl Hangup {
    /// Listens from now on. Must be called inside a runtime.
    ///
    /// Errors: the system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// The next time.
    pub async fn wait(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Listens for both; each wait hears one more.
pub struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    /// Listens from now on. Must be called inside a runtime.
    ///
    /// Errors: the system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next time that we are told to stop.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
