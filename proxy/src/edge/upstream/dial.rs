//! Opening a connection: name, TCP, TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use taximeter_config::UpstreamUrl;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::edge::socket::Socket;

/// What HTTP/1.1 and HTTP/2 are called when TLS agrees on one.
pub(crate) const HTTP_1: &[u8] = b"http/1.1";
pub(crate) const HTTP_2: &[u8] = b"h2";

/// Why no connection came about. The word is fixed and safe as a label; details go to the log only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DialFault {
    /// The name has no address.
    #[error("the name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// Nothing listens there.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// It listens, but TLS failed.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// It took longer than `upstream_connect_timeout_seconds`.
    #[error("no connection within {}s", .0.as_secs())]
    Timeout(Duration),
    /// hyper would not speak over it.
    #[error("HTTP handshake failed: {0}")]
    Handshake(#[source] hyper::Error),
}

impl DialFault {
    /// A fixed word for labels.
    pub(crate) const fn cause(&self) -> &'static str {
        match self {
            Self::Resolve(_) => "dns",
            Self::Connect(_) => "connect",
            Self::Tls(_) => "tls",
            Self::Timeout(_) => "timeout",
            Self::Handshake(_) => "handshake",
        }
    }
}

/// A socket to an engine.
pub(crate) type EngineSocket = Socket<TlsStream<TcpStream>>;

/// Opens connections; holds the TLS settings.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// `None` where no upstream speaks TLS.
    tls: Option<TlsConnector>,
    timeout: Duration,
}

impl Dialer {
    /// Trusts the system's certificate authorities (`SSL_CERT_FILE` included), or Mozilla's where
    /// the system has none. Without a `tls` upstream nothing is loaded.
    pub(crate) fn new(tls: bool, timeout: Duration) -> Self {
        Self { tls: tls.then(|| connector(system_roots(), HTTP_1)), timeout }
    }

    /// The same with TLS for `protocol`, and for whom the certificates in the file `ca` are all
    /// that is trusted, where one is given.
    ///
    /// Errors: the file cannot be read, or has no certificate.
    pub(crate) fn trusting(
        ca: Option<&Path>,
        protocol: &[u8],
        timeout: Duration,
    ) -> io::Result<Self> {
        let roots = ca.map_or_else(|| Ok(system_roots()), roots_of)?;
        Ok(Self { tls: Some(connector(roots, protocol)), timeout })
    }

    /// A connected socket, TLS done where the URL says so.
    pub(crate) async fn dial(&self, url: &UpstreamUrl) -> Result<EngineSocket, DialFault> {
        match tokio::time::timeout(self.timeout, self.open(url)).await {
            Ok(socket) => socket,
            Err(_) => Err(DialFault::Timeout(self.timeout)),
        }
    }

    async fn open(&self, url: &UpstreamUrl) -> Result<EngineSocket, DialFault> {
        let addresses = lookup_host((&*url.host, url.port)).await.map_err(DialFault::Resolve)?;
        let addresses: Vec<_> = addresses.collect();
        let tcp = TcpStream::connect(&*addresses).await.map_err(DialFault::Connect)?;
        tcp.set_nodelay(true).map_err(DialFault::Connect)?;
        if !url.tls {
            return Ok(Socket::Plain(tcp));
        }
        let name = ServerName::try_from(url.host.clone())
            .map_err(|e| DialFault::Tls(io::Error::new(io::ErrorKind::InvalidInput, e)))?;
        let tls =
            self.tls.as_ref().ok_or_else(|| DialFault::Tls(io::ErrorKind::Unsupported.into()))?;
        let stream = tls.connect(name, tcp).await.map_err(DialFault::Tls)?;
        Ok(Socket::Tls(Box::new(stream)))
    }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

fn roots_of(file: &Path) -> io::Result<RootCertStore> {
    let unfit = |fault: &dyn std::fmt::Display| {
        io::Error::other(format!("the certificates in {}: {fault}", file.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|fault| unfit(&fault))? {
        let certificate = certificate.map_err(|fault| unfit(&fault))?;
        roots.add(certificate).map_err(|fault| unfit(&fault))?;
    }
    if roots.is_empty() { Err(unfit(&"there are none, in PEM")) } else { Ok(roots) }
}

fn connector(roots: RootCertStore, protocol: &[u8]) -> TlsConnector {
    let mut config =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsConnector::from(Arc::new(config))
}
