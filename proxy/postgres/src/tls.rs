//! TLS with the modes of libpq's `sslmode`.

use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use taximeter_config::{PostgresTls, PostgresUrl};
use taximeter_net::upstream::Anyone;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Stream;

use super::fault::Fault;

/// Makes connections private.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

/// The same for one host.
pub(super) struct TlsTo {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// A private connection.
pub(super) struct Private<S>(Stream<S>);

impl Tls {
    /// Only `verify-full` asks who the server is: by the certificates that the URL names, or the
    /// system's, or Mozilla's where the system has none.
    pub(super) fn new(url: &PostgresUrl) -> Result<Self, Fault> {
        let config = ClientConfig::builder();
        let config = if url.tls == PostgresTls::VerifyFull {
            config.with_root_certificates(roots(url.root_certificates.as_deref())?)
        } else {
            // `prefer` and `require` keep a secret from those who only listen.
            config.dangerous().with_custom_certificate_verifier(Arc::new(Anyone::default()))
        };
        Ok(Self(TlsConnector::from(Arc::new(config.with_no_client_auth()))))
    }
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let unfit = |error: &dyn std::fmt::Display| {
                Fault::Unfit(format!("sslrootcert {}: {error}", file.display()))
            };
            let certificates = CertificateDer::pem_file_iter(file).map_err(|e| unfit(&e))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|e| unfit(&e))?;
                roots.add(certificate).map_err(|e| unfit(&e))?;
            }
            if roots.is_empty() {
                return Err(unfit(&"has no certificate"));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
    }
    Ok(roots)
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Private<S>;
    type TlsConnect = TlsTo;
    type Error = rustls::pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsTo, Self::Error> {
        // A socket in a folder is never encrypted, and its folder is no name.
        let host = if host.starts_with('/') || host.is_empty() { "localhost" } else { host };
        let name = ServerName::try_from(host.to_owned())?;
        Ok(TlsTo { connector: self.0.clone(), name })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for TlsTo {
    type Stream = Private<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Private<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.name, stream).await.map(Private) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Private<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Private<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Private<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
