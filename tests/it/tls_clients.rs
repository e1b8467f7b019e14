//! Clients that come by TLS.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::client::Client;
use crate::engine::Engine;
use crate::fixtures::{CHAT, CHAT_ANSWER, DONE, HELLO, STOP, STREAM_CHAT, USAGE};
use crate::gateway::{Gateway, Setup, bounded};
use crate::http::{
    LAST_CHUNK, Message, Unframed, bare, chunk, json_answer, next_chunk, post, read_head,
    read_message,
};
use crate::patience::{PATIENCE, patiently};
use crate::simulated::Simulated;

/// The gateway's certificate and key, and who signs those of clients.
pub(crate) struct Papers {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Papers {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("an authority");
        let papers = Self { folder: tempfile::tempdir().expect("a temporary folder"), issuer };
        fs::write(papers.path("ca.pem"), papers.issuer.pem()).expect("write the authority");
        papers.renew();
        papers
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A certificate of the authority for `localhost`, and its key.
    pub(crate) fn issue(&self) -> (String, KeyPair) {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        (signed.pem(), key)
    }

    /// Puts a new pair in the place of the old one.
    pub(crate) fn renew(&self) {
        let (certificate, key) = self.issue();
        for (name, text) in [("tls.crt", certificate), ("tls.key", key.serialize_pem())] {
            let next = self.path("next");
            fs::write(&next, text).expect("write a file");
            fs::rename(next, self.path(name)).expect("replace a file");
        }
    }

    pub(crate) fn tls(&self, more: &str) -> String {
        let folder = self.folder.path().display();
        format!("tls: {{cert: \"{folder}/tls.crt\", key: \"{folder}/tls.key\"{more}}}")
    }

    fn gateway(&self, engine: &Engine, more: &str) -> Gateway {
        Setup::before(engine).upstream("dialect: openai").with(&self.tls(more)).start()
    }

    /// What a client needs that trusts the authority, and shows a certificate of it if it is to.
    pub(crate) fn client(&self, shows: bool) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        let client = ClientConfig::builder().with_root_certificates(roots);
        if !shows {
            return client.with_no_client_auth();
        }
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["client".to_owned()]).expect("a name");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        client.with_client_auth_cert(vec![signed.der().clone()], key).expect("a pair")
    }

    fn connect(&self, gateway: &Gateway) -> Secured {
        Secured::connect(gateway.address(), self.client(false))
    }
}

/// A client by TLS.
pub(crate) struct Secured {
    stream: StreamOwned<ClientConnection, TcpStream>,
    unread: Vec<u8>,
}

impl Secured {
    pub(crate) fn connect(address: SocketAddr, config: ClientConfig) -> Self {
        let name = ServerName::try_from("localhost").expect("a name");
        let session = ClientConnection::new(Arc::new(config), name).expect("a session");
        let socket = TcpStream::connect(address).expect("connect");
        socket.set_read_timeout(Some(PATIENCE)).expect("set the time limit");
        Self { stream: StreamOwned::new(session, socket), unread: Vec::new() }
    }

    fn send(&mut self, headers: &str, body: &str) {
        let request = post("/v1/chat/completions", headers, body);
        self.stream.write_all(&request).expect("send to the gateway");
    }

    /// GET of this target.
    pub(crate) fn get(&mut self, target: &str, headers: &str) -> Message {
        self.try_get(target, headers).expect("an answer")
    }

    /// The same; with TLS 1.3 who is not let in hears of it with the first answer.
    pub(crate) fn try_get(&mut self, target: &str, headers: &str) -> std::io::Result<Message> {
        self.stream.write_all(&bare("GET", target, headers))?;
        read_message(&mut self.stream, &mut self.unread, Unframed::UntilClose)
    }

    fn answer(&mut self) -> Message {
        read_message(&mut self.stream, &mut self.unread, Unframed::UntilClose).expect("an answer")
    }

    /// Which certificate the gateway has shown.
    pub(crate) fn shown(&mut self) -> CertificateDer<'static> {
        while self.stream.conn.is_handshaking() {
            self.stream.conn.complete_io(&mut self.stream.sock).expect("a handshake");
        }
        let shown = self.stream.conn.peer_certificates().expect("a certificate");
        shown[0].clone().into_owned()
    }
}

fn exchange(client: &mut Secured, engine: &Engine) {
    client.send("", CHAT);
    engine.answer_once(&json_answer(CHAT_ANSWER));
    assert_eq!(client.answer().text(), CHAT_ANSWER);
}

#[test]
fn a_stream_by_tls_is_metered_as_any_other() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    let mut client = papers.connect(&gateway);
    client.send("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    read_head(&mut client.stream, &mut client.unread).expect("a head");
    let mut came = String::new();
    for event in [HELLO, STOP, USAGE, DONE] {
        connection.send(&chunk(event));
    }
    connection.send(LAST_CHUNK);
    while let Some(data) = next_chunk(&mut client.stream, &mut client.unread).expect("a chunk") {
        if data.is_empty() {
            break;
        }
        came += &String::from_utf8(data).expect("text");
    }
    assert_eq!(came, [HELLO, STOP, DONE].concat());
    let record = gateway.record();
    assert_eq!(
        (&record["end"], &record["usage"]["source"]),
        (&"complete".into(), &"reported".into())
    );
    gateway.await_metric("url_scheme=\"https\"");
}

#[test]
fn by_tls_too_a_request_that_cannot_be_read_is_refused_behind_those_before_it() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    let good = bare("GET", "/nowhere", "");
    for (before, bad) in
        [(0, "\u{16}\u{3}\u{1}"), (2, "\n"), (2, "GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n")]
    {
        let all = [good.repeat(before), bad.into()].concat();
        let mut client = papers.connect(&gateway);
        client.stream.write_all(&all).expect("send to the gateway");
        for _ in 0..before {
            assert_eq!(client.answer().status(), 404);
        }
        let refused = client.answer();
        assert_eq!((refused.status(), refused.header("connection")), (400, Some("close")));
        assert_eq!(refused.json()["error"]["code"], "bad_framing");
        // An end that TLS has announced, so that nothing can be missing.
        assert_eq!(client.stream.read(&mut [0]).expect("an announced end"), 0);
    }
    gateway.await_metric("taximeter_bad_framing_total{taximeter_cause=\"line_end\"} 1");
    engine.assert_untouched();
}

#[test]
fn http2_is_spoken_with_those_who_want_it() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    for (wanted, agreed) in [
        ([b"h2".to_vec(), b"http/1.1".to_vec()].as_slice(), Some(b"h2".as_slice())),
        (&[b"http/1.1".to_vec()], Some(b"http/1.1")),
        (&[], None),
    ] {
        let mut config = papers.client(false);
        config.alpn_protocols = wanted.to_vec();
        let mut client = Secured::connect(gateway.address(), config);
        client.shown();
        assert_eq!(client.stream.conn.alpn_protocol(), agreed);
        if agreed == Some(b"h2") {
            client
                .stream
                .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
                .expect("a preface");
            let mut head = [0; 9];
            client.stream.read_exact(&mut head).expect("a frame");
            assert_eq!(head[3], 4, "it answers with its settings: {head:?}");
        } else {
            exchange(&mut client, &engine);
        }
    }
}

#[test]
fn who_shows_no_certificate_is_not_let_in_where_one_is_asked_for() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let ca = papers.path("ca.pem");
    let gateway = papers.gateway(&engine, &format!(", client_ca: \"{}\"", ca.display()));
    exchange(&mut Secured::connect(gateway.address(), papers.client(true)), &engine);
    for stranger in [papers.client(false), Papers::new().client(true)] {
        let mut client = Secured::connect(gateway.address(), stranger);
        let request = post("/v1/chat/completions", "", CHAT);
        // With TLS 1.3 a client hears of it with the first answer.
        let _ = client.stream.write_all(&request);
        assert!(client.stream.read(&mut [0; 64]).is_err());
    }
    engine.assert_untouched();
    assert_eq!(gateway.records().len(), 1);
}

#[test]
fn who_speaks_no_tls_is_told_of_and_reaches_nobody() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    let mut client = Client::saying(gateway.address(), &post("/v1/chat/completions", "", CHAT));
    // TLS has words of its own for it.
    let _ = client.try_answer();
    assert_eq!(gateway.await_event("bad_framing")["cause"], "tls");
    engine.assert_untouched();
    // Who only looks whether somebody listens is not worth a line.
    drop(Client::connect(gateway.address()));
    exchange(&mut papers.connect(&gateway), &engine);
    assert!(!gateway.has_said("bad_framing"));
}

#[test]
fn certificates_change_under_connections_that_stay() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    let mut before = papers.connect(&gateway);
    let old = before.shown();
    exchange(&mut before, &engine);
    papers.renew();
    gateway.await_event("tls_renewed");
    let mut after = papers.connect(&gateway);
    assert_ne!(after.shown(), old);
    exchange(&mut after, &engine);
    exchange(&mut before, &engine);
    // Half of a pair leaves what was in force.
    let (other, _) = papers.issue();
    fs::write(papers.path("tls.crt"), other).expect("write a file");
    gateway.await_event("tls_refused");
    assert_eq!(papers.connect(&gateway).shown(), after.shown());
}

/// Times that the certificate changes under load; `tests/soak` has more of them.
const ROTATIONS: &str = "TAXIMETER_TEST_ROTATIONS";
/// Clients that ask all the time, on one connection or each time on a new one.
const CLIENTS_STAY: [bool; 3] = [true, false, false];

#[test]
fn no_request_fails_while_certificates_are_renewed() {
    let rotations: u32 = std::env::var(ROTATIONS).map_or(5, |n| n.parse().expect("a number"));
    let (papers, engine) = (Papers::new(), Simulated::start());
    let url = format!("name: engine, url: \"http://{}\", dialect: openai", engine.address);
    let gateway = Setup::with_upstream(&url).with(&papers.tls("")).start();
    let address = gateway.address();
    let connect = || Secured::connect(address, papers.client(false));
    let over = AtomicBool::new(false);
    let asked = |stays: bool| {
        let (mut client, mut asked) = (connect(), 0);
        while !over.load(Relaxed) {
            client.send("", if asked % 2 == 0 { CHAT } else { STREAM_CHAT });
            let answer = client.answer();
            assert!(answer.status() == 200 && answer.complete, "request {asked}: {answer:?}");
            asked += 1;
            if !stays {
                client = connect();
            }
        }
        asked
    };
    let asked: usize = std::thread::scope(|scope| {
        let clients = CLIENTS_STAY.map(|stays| scope.spawn(move || asked(stays)));
        for _ in 0..rotations {
            let before = connect().shown();
            papers.renew();
            let renewed = || (connect().shown() != before).then_some(());
            assert!(patiently(renewed).is_some(), "the old certificate is shown");
        }
        over.store(true, Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    println!("{rotations} certificates, {asked} requests, 0 failed");
    let records = gateway.await_records(asked);
    assert!(records.iter().all(|record| record["end"] == "complete"));
}

#[test]
fn a_client_that_leaves_by_tls_is_noticed() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = papers.gateway(&engine, "");
    let mut client = papers.connect(&gateway);
    client.send("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    connection.send(&chunk(HELLO));
    read_head(&mut client.stream, &mut client.unread).expect("a head");
    next_chunk(&mut client.stream, &mut client.unread).expect("a chunk");
    client.stream.conn.send_close_notify();
    client.stream.flush().expect("say goodbye");
    drop(client);
    connection.assert_closed_by_gateway();
    let records = gateway.await_records(1);
    assert_eq!(records[0]["end"], "client_left");
}

#[test]
fn a_client_that_does_not_read_by_tls_is_given_up() {
    let (engine, papers) = (Engine::start(), Papers::new());
    let gateway = Setup::before(&engine)
        .upstream("dialect: openai")
        .with(&papers.tls(""))
        .with("limits: {client_write_timeout_seconds: 1}")
        .start();
    let mut client = papers.connect(&gateway);
    client.send("", STREAM_CHAT);
    let mut connection = engine.begin_stream();
    let much = chunk(HELLO.repeat(500));
    let stalled = patiently(|| {
        let ended = connection.try_send(&much).is_err();
        ended.then_some(())
    });
    assert!(stalled.is_some(), "it reads for ever");
    assert_eq!(gateway.await_records(1)[0]["end"], "client_stalled");
}

#[test]
fn files_that_do_not_do_start_nothing_and_are_named() {
    let papers = Papers::new();
    let (certificate, _) = papers.issue();
    fs::write(papers.path("tls.crt"), certificate).expect("write a file");
    let file = papers.path("taximeter.yaml");
    let write = |tls: &str| {
        let upstreams = "upstreams: [{name: e, url: \"http://127.0.0.1:1\"}]";
        let data = papers.path("data");
        let data = data.display();
        fs::write(&file, format!("data_dir: \"{data}\"\n{upstreams}\n{tls}\n"))
            .expect("write the configuration");
    };
    let said = |words: &[&str], file: &Path| {
        let output = bounded().args(words).arg(file).output().expect("run taximeter");
        assert_eq!(output.status.code(), Some(64), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for words in [["check"].as_slice(), &["serve", "--config"]] {
        write(&papers.tls(""));
        let told = said(words, &file);
        assert!(told.contains("tls.key") && told.contains("not that of"), "{told}");
        write(&papers.tls(", client_ca: none.pem"));
        assert!(said(words, &file).contains("none.pem"));
        write("tls: {cert: a.pem}");
        assert!(said(words, &file).contains("tls.key"));
    }
    assert!(!papers.path("data").exists(), "no ledger was begun");
}
