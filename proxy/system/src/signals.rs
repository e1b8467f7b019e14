//! Waits for signals: SIGTERM and SIGINT to stop, SIGHUP to read the configuration again.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for SIGHUP. A process that listens for it does not end by it.
pub struct Hangup(Signal);

impl Hangup {
    /// Listens from now on. Must be called inside a runtime.
    ///
    /// Errors: the system refuses a handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next SIGHUP.
    pub async fn wait(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Listens for SIGTERM and SIGINT. Each wait returns at one more signal.
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

    /// Waits for the next SIGTERM or SIGINT.
    pub async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
