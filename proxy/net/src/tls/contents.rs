//! Reads certificates and keys from files and makes the rustls configuration from them.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{Error, RootCertStore, ServerConfig};

/// Longest file that is read, in bytes; a chain has some ten thousand.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 20;

/// The PEM files with the certificate, the key and the authorities of clients.
#[derive(Debug, Clone)]
pub struct Files {
    /// Our certificate, then the intermediate ones up to its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities that sign the certificates of clients; `None` asks clients for no
    /// certificate.
    pub client_ca: Option<PathBuf>,
    /// Whether clients without a certificate may connect too. The code that answers can tell them
    /// apart.
    pub is_client_optional: bool,
}

/// What the files held at one moment.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

/// Why files cannot be used. The text names the file and what it should contain.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not PEM, or lacks what it should contain.
    #[error("{path} has no {wanted} in PEM: {problem}", path = path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// What it should have.
        wanted: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificate and key do not belong together.
    #[error(
        "the key in {key} is not that of the first certificate in {certificate}; write both anew, \
         together",
        key = key.display(),
        certificate = certificate.display()
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
}

impl Files {
    /// What they hold now.
    ///
    /// Errors: the first that cannot be read.
    pub(super) fn read(&self) -> Result<Contents, TlsFault> {
        Ok(Contents {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            client_ca: self.client_ca.as_deref().map(read).transpose()?,
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsFault> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(bytes),
        Err(source) => Err(TlsFault::Unreadable { path: path.to_owned(), source }),
    }
}

impl Contents {
    /// What a server needs of them; `files` are named in faults.
    pub(super) fn config(
        &self,
        files: &Files,
        protocols: &[&[u8]],
    ) -> Result<ServerConfig, TlsFault> {
        let chain = certificates(&self.certificate, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|fault| unfit(&files.key, "private key", &pem_problem(&fault)))?;
        let builder = ServerConfig::builder();
        let builder = match (&self.client_ca, &files.client_ca) {
            (Some(bytes), Some(path)) => {
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots(bytes, path)?));
                let verifier = if files.is_client_optional {
                    verifier.allow_unauthenticated()
                } else {
                    verifier
                };
                let verifier = verifier.build();
                builder.with_client_cert_verifier(
                    verifier.map_err(|fault| unfit(path, "certificate", &fault))?,
                )
            }
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|fault| match fault {
            Error::InconsistentKeys(_) => TlsFault::Mismatch {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            },
            Error::InvalidCertificate(_) => unfit(&files.certificate, "certificate", &fault),
            fault => unfit(&files.key, "private key", &fault),
        })?;
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Ok(config)
    }
}

fn certificates(bytes: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    let found = found.map_err(|fault| unfit(path, "certificate", &pem_problem(&fault)))?;
    if found.is_empty() {
        return Err(unfit(path, "certificate", &pem_problem(&pem::Error::NoItemsFound)));
    }
    Ok(found)
}

fn roots(bytes: &[u8], path: &Path) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(bytes, path)? {
        roots.add(certificate).map_err(|fault| unfit(path, "certificate", &fault))?;
    }
    Ok(roots)
}

fn unfit(path: &Path, wanted: &'static str, problem: &dyn ToString) -> TlsFault {
    TlsFault::Unfit { path: path.to_owned(), wanted, problem: problem.to_string() }
}

/// What is wrong with a text as PEM. The library's own words may quote a line of it, and that line
/// may be a part of a key.
fn pem_problem(fault: &pem::Error) -> &'static str {
    match fault {
        pem::Error::MissingSectionEnd { .. } => "it breaks off",
        pem::Error::NoItemsFound => "there is none in it",
        pem::Error::Base64Decode(_) => "its base64 is damaged",
        _ => "it is damaged",
    }
}
