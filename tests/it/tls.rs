//! Engines behind TLS, as hosted providers are.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER};
use crate::gateway::Gateway;
use crate::unused::assert_unused;

/// Takes the TLS off in front of an engine, or whatever listens; ends with the test.
pub(crate) struct Terminator {
    pub(crate) address: SocketAddr,
    /// The certificate that it shows, for those who should trust it.
    pub(crate) certificate: PathBuf,
    _folder: TempDir,
    _runtime: tokio::runtime::Runtime,
}

impl Terminator {
    fn before(engine: &Engine) -> Self {
        Self::before_address(engine.address())
    }

    pub(crate) fn before_address(inside: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .expect("a certificate for localhost");
        let certificate = folder.path().join("ca.pem");
        std::fs::write(&certificate, signed.cert.pem()).expect("write the certificate");
        let key = PrivateKeyDer::Pkcs8(signed.signing_key.serialize_der().into());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .expect("a matching key");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a free port");
        let address = listener.local_addr().expect("its address");
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(socket).await else { return };
                    let mut inside = TcpStream::connect(inside).await.expect("who listens");
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Self { address, certificate, _folder: folder, _runtime: runtime }
    }

    fn gateway(&self, trusted: &Path) -> Gateway {
        let url = format!("https://localhost:{}", self.address.port());
        Gateway::by_flags_with(&["--upstream", &url], &[("SSL_CERT_FILE", trusted)])
    }
}

#[test]
fn an_engine_behind_tls_is_served_when_its_certificate_is_trusted() {
    let engine = Engine::start();
    let terminator = Terminator::before(&engine);
    let gateway = terminator.gateway(&terminator.certificate);
    let mut client = gateway.chat("", CHAT);
    engine.serve_until_answered(CHAT_ANSWER);
    assert_eq!(client.answer().text(), CHAT_ANSWER);
    assert_eq!(gateway.record()["usage"]["source"], "reported");
}

#[test]
fn an_engine_whose_certificate_nobody_trusts_is_a_502_and_gets_nothing() {
    let engine = Engine::start();
    let terminator = Terminator::before(&engine);
    let stranger = Terminator::before(&engine);
    let gateway = terminator.gateway(&stranger.certificate);
    let answer = gateway.chat("", CHAT).answer();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "upstream_connect");
    engine.assert_untouched();
    assert_unused(&gateway.record());
}
