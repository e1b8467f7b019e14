//! Tests of TLS and of files that change.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client;

use super::*;

const PROTOCOLS: &[&[u8]] = &[b"h2", b"http/1.1"];
/// Longest that anything here is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for localhost, and its key, both in PEM.
fn signed_by(authority: &Authority) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap().pem(), key.serialize_pem())
}

/// A folder as Kubernetes mounts a secret: what is read is a link through a link.
struct Secret {
    folder: TempDir,
    versions: u32,
}

impl Secret {
    fn of(pair: &(String, String)) -> Self {
        let mut secret = Self { folder: tempfile::tempdir().unwrap(), versions: 0 };
        secret.swap(pair);
        for name in ["tls.crt", "tls.key"] {
            let target = Path::new("..data").join(name);
            std::os::unix::fs::symlink(target, secret.path(name)).unwrap();
        }
        secret
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn swap(&mut self, (certificate, key): &(String, String)) {
        self.versions += 1;
        let version = format!("..{}", self.versions);
        std::fs::create_dir(self.path(&version)).unwrap();
        std::fs::write(self.path(&version).join("tls.crt"), certificate).unwrap();
        std::fs::write(self.path(&version).join("tls.key"), key).unwrap();
        std::os::unix::fs::symlink(&version, self.path("..tmp")).unwrap();
        std::fs::rename(self.path("..tmp"), self.path("..data")).unwrap();
    }

    fn files(&self, client_ca: Option<PathBuf>) -> Files {
        let (certificate, key) = (self.path("tls.crt"), self.path("tls.key"));
        Files { certificate, key, client_ca, is_client_optional: false }
    }
}

/// Whom a client trusts, and what it shows.
fn client(trusted: &Authority, shown: Option<&(String, String)>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.der().clone()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match shown {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

type Ends = (client::TlsStream<TcpStream>, TlsStream<TcpStream>);

/// Both ends of a connection over loopback.
async fn connect(tls: &Tls, client: &TlsConnector) -> io::Result<Ends> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let outside = TcpStream::connect(listener.local_addr()?).await?;
    let (inside, _) = listener.accept().await?;
    let name = ServerName::try_from("localhost").unwrap();
    let (outside, inside) = tokio::join!(client.connect(name, outside), tls.accept(inside));
    Ok((outside?, inside?))
}

async fn pass(one: &mut (impl AsyncWrite + Unpin), other: &mut (impl AsyncRead + Unpin)) {
    one.write_all(b"ping").await.unwrap();
    one.flush().await.unwrap();
    let mut heard = [0; 4];
    other.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"ping");
}

fn shown(ends: &Ends) -> Vec<u8> {
    ends.0.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn open(files: Files) -> (Tls, Watch) {
    Tls::open(files, PROTOCOLS).unwrap()
}

fn told(fault: Result<(Tls, Watch), TlsFault>) -> String {
    fault.err().expect("a fault").to_string()
}

#[tokio::test]
async fn a_client_that_trusts_the_authority_is_served_in_the_protocol_that_it_asks_for() {
    let authority = authority("ours");
    let secret = Secret::of(&signed_by(&authority));
    let (tls, _watch) = open(secret.files(None));
    let (mut outside, mut inside) = connect(&tls, &client(&authority, None)).await.unwrap();
    assert_eq!(inside.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    pass(&mut outside, &mut inside).await;
}

#[tokio::test]
async fn a_swapped_secret_is_shown_to_the_next_client_and_running_connections_go_on() {
    let authority = authority("ours");
    let (first, second) = (signed_by(&authority), signed_by(&authority));
    let mut secret = Secret::of(&first);
    let (tls, watch) = open(secret.files(None));
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(watch.run(move |told| {
        let _ = said.send(matches!(told, Reload::Renewed(_)));
    }));
    let mut before = connect(&tls, &client(&authority, None)).await.unwrap();
    secret.swap(&second);
    let renewed = tokio::time::timeout(PATIENCE, heard.recv()).await.unwrap();
    assert_eq!(renewed, Some(true), "the first that is told is the renewal");
    let after = connect(&tls, &client(&authority, None)).await.unwrap();
    let der = |pair: &(String, String)| {
        CertificateDer::from_pem_slice(pair.0.as_bytes()).unwrap().to_vec()
    };
    assert_eq!(shown(&before), der(&first));
    assert_eq!(shown(&after), der(&second));
    pass(&mut before.0, &mut before.1).await;
}

#[tokio::test]
async fn a_client_without_a_certificate_of_the_client_authority_is_not_let_in() {
    let (ours, theirs, other) = (authority("ours"), authority("theirs"), authority("other"));
    let secret = Secret::of(&signed_by(&ours));
    std::fs::write(secret.path("ca.crt"), theirs.pem()).unwrap();
    let (tls, _watch) = open(secret.files(Some(secret.path("ca.crt"))));
    let nobody = client(&ours, None);
    assert!(connect(&tls, &nobody).await.is_err(), "shows nothing");
    let (friend, stranger) = (signed_by(&theirs), signed_by(&other));
    assert!(connect(&tls, &client(&ours, Some(&stranger))).await.is_err(), "shows another's");
    let (mut outside, mut inside) = connect(&tls, &client(&ours, Some(&friend))).await.unwrap();
    pass(&mut outside, &mut inside).await;
}

#[test]
fn a_pair_that_does_not_fit_leaves_the_old_in_force_and_is_told_once() {
    let authority = authority("ours");
    let (first, second) = (signed_by(&authority), signed_by(&authority));
    let mut secret = Secret::of(&first);
    let files = secret.files(None);
    let (_tls, mut watch) = open(files.clone());
    let mut look = || watch.seen.look(&files, files.read());
    assert!(matches!(look(), Look::Nothing));

    secret.swap(&(second.0.clone(), first.1.clone()));
    assert!(matches!(look(), Look::Nothing), "it may be about to fit");
    let Look::Fault(fault) = look() else { panic!("told") };
    let text = fault.to_string();
    assert!(text.contains("is not that of the first certificate in"), "{text}");
    assert!(matches!(look(), Look::Nothing), "told once");

    let half = &second.0[..second.0.len() / 2];
    secret.swap(&(half.to_owned(), second.1.clone()));
    let Look::Fault(fault) = look() else { panic!("another fault is told") };
    assert!(fault.to_string().ends_with("tls.crt has no certificate in PEM: it breaks off"));

    std::fs::remove_file(secret.path("..data")).unwrap();
    let Look::Fault(fault) = look() else { panic!("a file that is gone is told") };
    assert!(fault.to_string().contains("tls.crt: No such file"), "{fault}");

    secret.swap(&second);
    assert!(matches!(look(), Look::New(_)));
    assert!(matches!(look(), Look::Nothing));
    secret.swap(&(second.0.clone(), first.1.clone()));
    assert!(matches!(look(), Look::Nothing), "since all was well, a fault is new again");
    assert!(matches!(look(), Look::Fault(_)));
}

#[test]
fn what_does_not_do_is_told_with_its_file_and_never_with_the_key() {
    let authority = authority("ours");
    let pair = signed_by(&authority);
    let fault = |pair: (&str, &str)| {
        let secret = Secret::of(&(pair.0.to_owned(), pair.1.to_owned()));
        told(Tls::open(secret.files(None), PROTOCOLS))
    };
    let ends = |text: &str, end: &str| assert!(text.ends_with(end), "{text}");
    ends(&fault(("", &pair.1)), "tls.crt has no certificate in PEM: there is none in it");
    ends(&fault((&pair.0, "")), "tls.key has no private key in PEM: there is none in it");
    ends(&fault((&pair.0, &pair.0)), "tls.key has no private key in PEM: there is none in it");
    let damaged = pair.1.replacen("MIG", "!!!", 1);
    let secret = damaged.lines().nth(1).unwrap();
    let text = fault((&pair.0, &damaged));
    ends(&text, "tls.key has no private key in PEM: its base64 is damaged");
    assert!(!text.contains(secret));

    let secret = Secret::of(&pair);
    let missing = told(Tls::open(secret.files(Some(secret.path("ca.crt"))), PROTOCOLS));
    assert!(missing.contains("ca.crt: No such file"), "{missing}");
    std::fs::write(secret.path("ca.crt"), "no PEM").unwrap();
    let text = told(Tls::open(secret.files(Some(secret.path("ca.crt"))), PROTOCOLS));
    ends(&text, "ca.crt has no certificate in PEM: there is none in it");
}
