//! TLS for connections to us. Certificate, key and client authorities come from files, which are
//! read again while the server runs. A connection after a change gets all of the new files or all
//! of the old ones.
//!
//! The files are read twice a second, and their contents are compared. Modification times and
//! inodes would miss changes: Kubernetes swaps a secret by a symbolic link, and tools set old times
//! on new files.

mod contents;
mod validity;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use self::contents::Contents;

pub use self::contents::{Files, TlsFault};
pub use self::validity::Validity;

/// Between two looks at the files, so that what is new holds within a second.
const LOOK_PERIOD: Duration = Duration::from_millis(500);
/// Looks in a row that find a fault before it is told: a file may be missing, or not fit the other,
/// for the moment in which it is replaced.
const LOOKS_BEFORE_REPORT: u32 = 2;

/// The current certificate and key: the newest ones that the files had complete.
#[derive(Clone)]
pub struct Tls {
    config: watch::Receiver<Arc<ServerConfig>>,
}

/// Watches the files; see [`Watch::run`].
pub struct Watch {
    files: Files,
    seen: Seen,
    newest: watch::Sender<Arc<ServerConfig>>,
}

/// The result of a check of the files.
pub enum Reload<'a> {
    /// The new files are in force.
    Renewed(&'a Files),
    /// The new files cannot be used. The old ones stay in force.
    Refused(&'a TlsFault),
}

impl Tls {
    /// Reads the files once; `protocols` are ALPN names, the preferred one first. The files are
    /// read again only while the watch runs.
    ///
    /// Errors: a file that cannot be read, or that does not do.
    pub fn open(
        files: Files,
        protocols: &'static [&'static [u8]],
    ) -> Result<(Self, Watch), TlsFault> {
        let contents = files.read()?;
        let config = contents.config(&files, protocols)?;
        let (newest, config) = watch::channel(Arc::new(config));
        let seen = Seen { in_force: contents, protocols, faults: 0, reported: None };
        Ok((Self { config }, Watch { files, seen, newest }))
    }

    /// Does the TLS handshake on `stream`. It has no time limit of its own.
    ///
    /// Errors: the other side leaves, speaks no TLS, or lacks a certificate that we ask for.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        let config = self.config.borrow().clone();
        TlsAcceptor::from(config).accept(stream).await
    }
}

impl Watch {
    /// Checks the files until no server uses them.
    pub async fn run(mut self, tell: impl Fn(&Reload<'_>)) {
        loop {
            tokio::time::sleep(LOOK_PERIOD).await;
            if self.newest.is_closed() {
                return;
            }
            let files = self.files.clone();
            // A slow disk delays no connection.
            let Ok(read) = tokio::task::spawn_blocking(move || files.read()).await else { return };
            match self.seen.look(&self.files, read) {
                Look::Nothing => {}
                Look::New(config) => {
                    self.newest.send_replace(Arc::new(config));
                    tell(&Reload::Renewed(&self.files));
                }
                Look::Fault(fault) => tell(&Reload::Refused(&fault)),
            }
        }
    }
}

/// What earlier looks came to.
struct Seen {
    in_force: Contents,
    protocols: &'static [&'static [u8]],
    /// Looks in a row that found one.
    faults: u32,
    /// The fault that was told since all was well.
    reported: Option<String>,
}

enum Look {
    Nothing,
    New(ServerConfig),
    /// To be told.
    Fault(TlsFault),
}

impl Seen {
    fn look(&mut self, files: &Files, read: Result<Contents, TlsFault>) -> Look {
        let config = match read {
            Ok(contents) if contents == self.in_force => Ok(None),
            Ok(contents) => contents.config(files, self.protocols).map(|new| {
                self.in_force = contents;
                Some(new)
            }),
            Err(fault) => Err(fault),
        };
        match config {
            Ok(new) => {
                (self.faults, self.reported) = (0, None);
                new.map_or(Look::Nothing, Look::New)
            }
            Err(fault) => self.fault(fault),
        }
    }

    fn fault(&mut self, fault: TlsFault) -> Look {
        self.faults = self.faults.saturating_add(1);
        let text = fault.to_string();
        if self.faults < LOOKS_BEFORE_REPORT || self.reported.as_ref() == Some(&text) {
            return Look::Nothing;
        }
        self.reported = Some(text);
        Look::Fault(fault)
    }
}

#[cfg(test)]
mod tests;
