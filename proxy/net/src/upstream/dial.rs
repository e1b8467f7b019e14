//! Opens a connection: resolves the name, connects by TCP, and does the TLS handshake.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use taximeter_config::{UpstreamUrl, is_public_host};
use taximeter_system::descriptors;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::anyone::Anyone;
use crate::socket::Socket;

/// ALPN's name for HTTP/1.1.
pub const HTTP_1: &[u8] = b"http/1.1";
/// ALPN's name for HTTP/2.
pub const HTTP_2: &[u8] = b"h2";

/// Why there is no connection. The cause is a fixed word and safe as a label. Details go only to
/// the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialFault {
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
    /// Only addresses that are not public were to be connected to.
    #[error("the name is that of a public address, {0}")]
    Public(IpAddr),
    /// The file descriptor would be one that is reserved for the ledger.
    #[error("file descriptors are nearly used up; raise the limit (`ulimit -n`)")]
    Descriptors,
    /// hyper could not start HTTP on the connection.
    #[error("HTTP handshake failed: {0}")]
    Handshake(#[source] hyper::Error),
}

impl DialFault {
    /// A fixed word for labels.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Resolve(_) => "dns",
            Self::Connect(_) => "connect",
            Self::Tls(_) => "tls",
            Self::Timeout(_) => "timeout",
            Self::Public(_) => "public_address",
            Self::Descriptors => "file_descriptors",
            Self::Handshake(_) => "handshake",
        }
    }

    /// Whether another attempt may succeed.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Resolve(_) | Self::Connect(_) | Self::Timeout(_))
    }
}

/// A socket to an engine.
pub type EngineSocket = Socket<TlsStream<TcpStream>>;

/// Opens a connected socket to who listens at a path of this machine.
///
/// Errors: nobody does, or descriptors are nearly used up.
pub async fn dial_path(path: &Path) -> Result<EngineSocket, DialFault> {
    if !descriptors::has_room_for_engine() {
        return Err(DialFault::Descriptors);
    }
    let unix = UnixStream::connect(path).await.map_err(DialFault::Connect)?;
    // A connected stream is one like any other: with a type of its own, all of HTTP/2 would be in the
    // program twice.
    let unix = unix.into_std().map_err(DialFault::Connect)?;
    let stream = TcpStream::from_std(OwnedFd::from(unix).into());
    stream.map(Socket::Plain).map_err(DialFault::Connect)
}

/// Files, in PEM, with a certificate and its key.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The file with the certificate chain.
    pub certificate: &'a Path,
    /// The file with the private key.
    pub key: &'a Path,
}

/// Opens connections; holds the TLS settings.
#[derive(Clone)]
pub struct Dialer {
    /// `None` where no upstream speaks TLS.
    tls: Option<TlsConnector>,
    timeout: Duration,
    /// Whether public addresses are left alone.
    is_private: bool,
}

impl Dialer {
    /// Trusts the system's certificate authorities (`SSL_CERT_FILE` included), or Mozilla's where
    /// the system has none. Without a `tls` upstream nothing is loaded.
    pub fn new(tls: bool, timeout: Duration) -> Self {
        Self { tls: tls.then(|| connector(system_roots(), HTTP_1)), timeout, is_private: false }
    }

    /// The same with TLS for `protocol`. If `ca` is given, only the certificates in that file are
    /// trusted.
    ///
    /// Errors: the file cannot be read, or has no certificate.
    pub fn trusting(ca: Option<&Path>, protocol: &[u8], timeout: Duration) -> io::Result<Self> {
        let roots = ca.map_or_else(|| Ok(system_roots()), roots_of)?;
        Ok(Self { tls: Some(connector(roots, protocol)), timeout, is_private: false })
    }

    /// Trusts as `trusting` does, and shows a certificate to servers that ask for one.
    ///
    /// Errors: a file cannot be read, or does not have what it should.
    pub fn certified(
        ca: Option<&Path>,
        pair: Pair<'_>,
        protocol: &[u8],
        timeout: Duration,
    ) -> io::Result<Self> {
        let roots = ca.map_or_else(|| Ok(system_roots()), roots_of)?;
        let chain = certificates_of(pair.certificate)?;
        let key = PrivateKeyDer::from_pem_file(pair.key).map_err(|fault| {
            io::Error::other(format!("the key in {}: {fault}", pair.key.display()))
        })?;
        let config = ClientConfig::builder().with_root_certificates(roots);
        let config = config.with_client_auth_cert(chain, key).map_err(io::Error::other)?;
        Ok(Self { tls: Some(connector_of(config, protocol)), timeout, is_private: false })
    }

    /// Trusts every server. For checks of whether a server answers at all.
    pub fn of_anyone(timeout: Duration) -> Self {
        let config = ClientConfig::builder().dangerous();
        let config = config.with_custom_certificate_verifier(Arc::new(Anyone::default()));
        let tls = Some(connector_of(config.with_no_client_auth(), HTTP_1));
        Self { tls, timeout, is_private: false }
    }

    /// The same for loopback, private and cluster addresses only, whatever a name stands for.
    pub fn private(self) -> Self {
        Self { is_private: true, ..self }
    }

    /// Opens a connected socket, with TLS if the URL says so.
    pub async fn dial(&self, url: &UpstreamUrl) -> Result<EngineSocket, DialFault> {
        match tokio::time::timeout(self.timeout, self.open(url)).await {
            Ok(socket) => socket,
            Err(_) => Err(DialFault::Timeout(self.timeout)),
        }
    }

    async fn open(&self, url: &UpstreamUrl) -> Result<EngineSocket, DialFault> {
        let addresses = lookup_host((&*url.host, url.port)).await.map_err(DialFault::Resolve)?;
        let addresses: Vec<_> = addresses.collect();
        let is_public = |address: &&SocketAddr| is_public_host(&address.ip().to_string());
        if let Some(public) = addresses.iter().find(is_public).filter(|_| self.is_private) {
            return Err(DialFault::Public(public.ip()));
        }
        if !descriptors::has_room_for_engine() {
            return Err(DialFault::Descriptors);
        }
        let tcp =
            TcpStream::connect(&*addresses).await.map_err(|fault| match fault.raw_os_error() {
                Some(code) if descriptors::is_used_up(code) => DialFault::Descriptors,
                _ => DialFault::Connect(fault),
            })?;
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
    let mut roots = RootCertStore::empty();
    for certificate in certificates_of(file)? {
        roots.add(certificate).map_err(|fault| unfit(file, &fault))?;
    }
    Ok(roots)
}

fn certificates_of(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found = found.map_err(|fault| unfit(file, &fault))?;
    if found.is_empty() { Err(unfit(file, &"there are none, in PEM")) } else { Ok(found) }
}

fn unfit(file: &Path, fault: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("the certificates in {}: {fault}", file.display()))
}

fn connector(roots: RootCertStore, protocol: &[u8]) -> TlsConnector {
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    connector_of(config, protocol)
}

fn connector_of(mut config: ClientConfig, protocol: &[u8]) -> TlsConnector {
    config.alpn_protocols = vec![protocol.to_vec()];
    TlsConnector::from(Arc::new(config))
}
