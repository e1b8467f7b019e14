//! Whether names are kept as they are, as a keyed hash, or not at all.

use hmac::digest::{InvalidLength, KeyInit};
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// What becomes of names that clients send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// They stay as they are.
    Keep,
    /// A keyed hash takes their place.
    Hash,
    /// They are left out.
    Off,
}

/// Bytes of a hash that are shown: what remains of 256 bits is enough to tell 2⁶⁴ names apart.
const SHOWN_BYTES: usize = 16;

/// Makes hashes with one key: HMAC-SHA-256, of which the first 16 bytes count.
#[derive(Clone)]
pub struct Hasher(Hmac<Sha256>);

impl Hasher {
    /// With this secret.
    ///
    /// # Errors
    /// None: a secret may have any length.
    pub fn new(secret: &[u8]) -> Result<Self, InvalidLength> {
        Hmac::new_from_slice(secret).map(Self)
    }

    /// The hash of a session, or of an agent or a turn in it, in 32 hexadecimal digits.
    #[must_use]
    pub fn session(&self, name: &str) -> String {
        self.hash(b"session", name)
    }

    /// The hash of an end user, in 32 hexadecimal digits.
    #[must_use]
    pub fn end_user(&self, name: &str) -> String {
        self.hash(b"end_user", name)
    }

    fn hash(&self, of: &[u8], name: &str) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut mac = self.0.clone();
        mac.update(of);
        mac.update(&[0]);
        mac.update(name.as_bytes());
        let hash = mac.finalize().into_bytes();
        let mut shown = String::with_capacity(2 * SHOWN_BYTES);
        for byte in hash.iter().take(SHOWN_BYTES) {
            for digit in [byte >> 4, byte & 15] {
                let digit = DIGITS.get(usize::from(digit)).copied().unwrap_or_default();
                shown.push(char::from(digit));
            }
        }
        shown
    }
}

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_its_key_and_its_dimension() {
        let hasher = Hasher::new(b"secret").unwrap();
        // printf 'end_user\0anna@example.org' | openssl dgst -sha256 -hmac secret
        assert_eq!(hasher.end_user("anna@example.org"), "ac7120611568a87e3f2d3c823c5aabbd");
        let other = Hasher::new(b"other").unwrap();
        let hashes =
            [hasher.end_user("a"), hasher.end_user("b"), hasher.session("a"), other.end_user("a")];
        for (at, hash) in hashes.iter().enumerate() {
            assert_eq!(hash.len(), 32);
            assert!(!hashes[..at].contains(hash));
        }
        assert_eq!(format!("{hasher:?}"), "Hasher(…)");
    }
}
