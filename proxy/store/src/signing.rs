//! Ed25519 keys in files, in the format of `openssl genpkey -algorithm ed25519`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

/// What precedes the 32 bytes of a secret in PKCS #8 (RFC 8410).
const PKCS8_PREFIX: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// What precedes the 32 bytes of a public key in SubjectPublicKeyInfo (RFC 8410).
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The key's file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// The file contains something else.
    #[error("{} is no {kind} Ed25519 key in PEM; make one with `taximeter keys signing`", path.display())]
    Foreign {
        /// The key's file.
        path: PathBuf,
        /// `private` or `public`.
        kind: &'static str,
    },
    /// The system provides no randomness.
    #[error(
        "cannot create {}: the system provides no random bytes: {source}; allow the system call \
         getrandom, or copy a key here that `taximeter keys signing` made on another machine",
        path.display()
    )]
    Randomness {
        /// The key's file.
        path: PathBuf,
        /// What the system said.
        source: getrandom::Error,
    },
}

/// A private key that signs.
pub struct SigningKey(Ed25519KeyPair);

/// A public key that checks signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl SigningKey {
    /// Makes a key and writes it to the new file `path`, which only its owner may read.
    ///
    /// Errors: `Io`, `Randomness`.
    pub fn create(path: &Path) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io { action: "create", path: path.to_owned(), source };
        let mut secret = [0; 32];
        let randomness = |source| KeyError::Randomness { path: path.to_owned(), source };
        getrandom::fill(&mut secret).map_err(randomness)?;
        let der = [PKCS8_PREFIX.as_slice(), &secret].concat();
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(io)?;
        file.write_all(pem("PRIVATE KEY", &der).as_bytes()).map_err(io)?;
        Self::from_der(path, &der)
    }

    /// Reads the key in `path`.
    ///
    /// Errors: `Io`, `Foreign`.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(&text(path)?);
        let der = der.map_err(|_| foreign(path, "private"))?;
        Self::from_der(path, der.secret_pkcs8_der())
    }

    fn from_der(path: &Path, der: &[u8]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
        pair.map(Self).map_err(|_| foreign(path, "private"))
    }

    /// Signs `message`. The signature has 64 bytes.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }

    /// The public key, with which others check signatures.
    pub fn public(&self) -> PublicKey {
        let mut key = [0; 32];
        for (to, from) in key.iter_mut().zip(self.0.public_key().as_ref()) {
            *to = *from;
        }
        PublicKey(key)
    }
}

impl PublicKey {
    /// Reads the key in `path`.
    ///
    /// Errors: `Io`, `Foreign`.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(&text(path)?);
        let der = der.map_err(|_| foreign(path, "public"))?;
        let key = der.strip_prefix(&SPKI_PREFIX).and_then(|key| key.try_into().ok());
        key.map(Self).ok_or_else(|| foreign(path, "public"))
    }

    /// The key with these bytes in base64. `None` if they are no key.
    pub(crate) fn from_base64(text: &str) -> Option<Self> {
        BASE64.decode(text).ok()?.try_into().ok().map(Self)
    }

    /// The key in PEM.
    pub fn pem(&self) -> String {
        pem("PUBLIC KEY", &[SPKI_PREFIX.as_slice(), &self.0].concat())
    }

    /// Whether `signature` of `message` was made with the private key of this one.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }

    /// The bytes of the key in base64, to identify it.
    pub fn base64(&self) -> String {
        BASE64.encode(self.0)
    }
}

fn text(path: &Path) -> Result<Vec<u8>, KeyError> {
    std::fs::read(path).map_err(|source| KeyError::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })
}

fn foreign(path: &Path, kind: &'static str) -> KeyError {
    KeyError::Foreign { path: path.to_owned(), kind }
}

/// Keys are short enough for one line of base64.
fn pem(label: &str, der: &[u8]) -> String {
    let key = BASE64.encode(der);
    format!("-----BEGIN {label}-----\n{key}\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_signs_and_its_public_half_checks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signing.pem");
        let made = SigningKey::create(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let public = dir.path().join("public.pem");
        std::fs::write(&public, made.public().pem()).unwrap();
        let (key, public) = (SigningKey::read(&path).unwrap(), PublicKey::read(&public).unwrap());
        assert_eq!(key.public(), public);
        let signature = key.sign(b"owed");
        assert!(public.verifies(b"owed", &signature));
        assert!(!public.verifies(b"owned", &signature));
        assert!(!public.verifies(b"owed", &signature[1..]));
    }

    #[test]
    fn a_key_is_never_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("signing.pem");
        SigningKey::create(&path).unwrap();
        let again = SigningKey::create(&path).map(|_| ()).unwrap_err();
        assert!(again.to_string().contains("cannot create"), "{again}");
    }

    /// The keys of RFC 8410 §10, as OpenSSL writes them.
    const PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n\
        -----END PRIVATE KEY-----\n";
    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
        MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n\
        -----END PUBLIC KEY-----\n";

    #[test]
    fn keys_of_openssl_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (private, public) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&private, PRIVATE).unwrap();
        std::fs::write(&public, PUBLIC).unwrap();
        let key = SigningKey::read(&private).unwrap();
        assert_eq!(key.public(), PublicKey::read(&public).unwrap());
        assert_eq!(key.public().pem(), PUBLIC);
        for read in [SigningKey::read(&public).map(|_| ()), PublicKey::read(&private).map(|_| ())] {
            assert!(matches!(read, Err(KeyError::Foreign { .. })));
        }
    }
}
