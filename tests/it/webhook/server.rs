//! The webhook as a child process, and who connects to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;

use crate::gateway::binary;
use crate::patience::{Limit, PATIENCE};

/// Signs certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    fn sign(&self) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        (params.signed_by(&key, &self.0).expect("a certificate"), key)
    }
}

/// A running webhook; killed when dropped.
pub(super) struct Webhook {
    child: Child,
    address: SocketAddr,
    log: Receiver<String>,
    authority: Authority,
    /// Of those who connect.
    clients: Option<Authority>,
    folder: TempDir,
}

impl Webhook {
    /// With further flags.
    pub(super) fn start(flags: &[&str]) -> Self {
        Self::run(flags, None)
    }

    /// Whoever connects shows a certificate.
    pub(super) fn with_client_authority() -> Self {
        Self::run(&[], Some(Authority::new("clients")))
    }

    fn run(flags: &[&str], clients: Option<Authority>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let authority = Authority::new("ours");
        write(&folder, &authority, true);
        let file = |name: &str| folder.path().join(name);
        let mut command = Command::new(binary());
        command.args(["webhook", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.arg("--cert").arg(file("tls.crt")).arg("--key").arg(file("tls.key"));
        if let Some(clients) = &clients {
            std::fs::write(file("ca.crt"), clients.0.pem()).expect("write the authority");
            command.arg("--client-ca").arg(file("ca.crt"));
        }
        command.args(flags).env_remove("K8S_NAMESPACE_NAME");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("run the webhook");
        let lines = BufReader::new(child.stderr.take().expect("its log")).lines();
        let (sender, log) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|l| sender.send(l)));
        let none = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut webhook = Self { child, address: none, log, authority, clients, folder };
        let listening = webhook.await_event("listening");
        webhook.address =
            listening["listen"].as_str().and_then(|text| text.parse().ok()).expect("its address");
        webhook
    }

    /// Waits for a line of the log.
    pub(super) fn await_event(&self, name: &str) -> Value {
        let limit = Limit::begin();
        loop {
            let line = self.log.recv_timeout(limit.left());
            let line = line.unwrap_or_else(|_| panic!("it never said {name}"));
            let line: Value = serde_json::from_str(&line).expect("JSON");
            if line["event"] == name {
                return line;
            }
        }
    }

    fn client(&self, shown: Option<&Authority>) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.0.der().clone()).expect("trust the authority");
        let config = ClientConfig::builder().with_root_certificates(roots);
        match shown {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let (certificate, key) = authority.sign();
                let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
                let chain = vec![certificate.der().clone()];
                config.with_client_auth_cert(chain, key).expect("a pair")
            }
        }
    }

    fn connect_as(&self, shown: Option<&Authority>) -> StreamOwned<ClientConnection, TcpStream> {
        let socket = self.connect_plainly();
        let name = ServerName::try_from("localhost").expect("a name");
        let config = Arc::new(self.client(shown));
        StreamOwned::new(ClientConnection::new(config, name).expect("a client"), socket)
    }

    /// A connection without TLS, on which nothing was said.
    pub(super) fn connect_plainly(&self) -> TcpStream {
        let socket = TcpStream::connect(self.address).expect("connect");
        socket.set_read_timeout(Some(PATIENCE)).expect("a limit");
        socket
    }

    /// A private connection, on which nothing was said.
    pub(super) fn connect(&self) -> StreamOwned<ClientConnection, TcpStream> {
        self.connect_as(self.clients.as_ref())
    }

    /// Status and body of the answer to a request, on a connection of its own.
    pub(super) fn ask(&self, request: &[u8]) -> (u16, String) {
        heard(self.connect(), request).expect("an answer")
    }

    /// The same of a review.
    pub(super) fn review(&self, body: &[u8]) -> (u16, String) {
        // As an API server does, which says how long it waits.
        self.ask(&post("/inject?timeout=10s", "application/json", body))
    }

    /// The same by whoever has this authority's certificate; `None` where nobody answers.
    pub(super) fn try_as(&self, authority: &Authority, body: &[u8]) -> Option<(u16, String)> {
        let request = post("/inject", "application/json", body);
        heard(self.connect_as(Some(authority)), &request)
    }

    /// Statuses of so many reviews at once on one connection.
    pub(super) fn review_by_http2(&self, body: &[u8], times: usize) -> Vec<u16> {
        let mut config = self.client(None);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let socket = tokio::net::TcpStream::connect(self.address).await.expect("connect");
            let name = ServerName::try_from("localhost").expect("a name");
            let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
            let stream = connector.connect(name, socket).await.expect("a handshake");
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
            let handshake = hyper::client::conn::http2::handshake;
            let connected = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            let (sender, connection) = connected.expect("HTTP/2");
            tokio::spawn(connection);
            let asked = (0..times).map(|_| {
                let request = hyper::Request::post("https://localhost/inject")
                    .header("content-type", "application/json")
                    .body(Full::new(Bytes::copy_from_slice(body)))
                    .expect("a request");
                let answer = sender.clone().send_request(request);
                async move {
                    let answer = answer.await.expect("an answer");
                    let status = answer.status().as_u16();
                    answer.into_body().collect().await.expect("its body");
                    status
                }
            });
            futures_util::future::join_all(asked).await
        })
    }

    /// The certificate that it shows.
    pub(super) fn shown(&self) -> Vec<u8> {
        let mut stream = self.connect();
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).expect("a handshake");
        }
        stream.conn.peer_certificates().expect("a certificate")[0].to_vec()
    }

    /// Another certificate of the same authority.
    pub(super) fn rotate(&self) {
        write(&self.folder, &self.authority, true);
    }

    /// A certificate without its key.
    pub(super) fn spoil(&self) {
        write(&self.folder, &self.authority, false);
    }

    /// Asks politely to end.
    pub(super) fn terminate(&self) {
        let kill = Command::new("kill").arg(self.child.id().to_string()).status();
        assert!(kill.expect("run kill").success(), "the webhook is gone");
    }

    /// How it ended; its log ends with it.
    pub(super) fn exit(&mut self) -> ExitStatus {
        self.await_event("stopped");
        self.child.wait().expect("its status")
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pair in place of the one that is there: each file is whole whenever it is read.
fn write(folder: &TempDir, authority: &Authority, fits: bool) {
    let (certificate, key) = authority.sign();
    let mut files = vec![("tls.crt", certificate.pem())];
    if fits {
        files.push(("tls.key", key.serialize_pem()));
    }
    for (name, text) in files {
        let (new, file) = (folder.path().join("new"), folder.path().join(name));
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &file)).expect("replace it");
    }
}

/// A request that ends its connection.
pub(super) fn post(target: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn heard(
    mut stream: StreamOwned<ClientConnection, TcpStream>,
    request: &[u8],
) -> Option<(u16, String)> {
    // Who is refused for its length may be cut off while it still sends.
    let _ = stream.write_all(request).and_then(|()| stream.flush());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, body.to_owned()))
}
