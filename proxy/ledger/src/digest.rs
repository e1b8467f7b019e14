//! The SHA-256 of a segment.
//!
//! CRCs show accidents, but anyone who alters an entry can also correct its CRC. So the header of
//! each segment contains the SHA-256 of the segment before it. To hide a change, an attacker would
//! have to write all later segments again. Even then, the last digest would differ from the one
//! that someone else has already received.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// SHA-256 of the header of a segment and its entries, up to one of them. It leaves out sync marks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; Self::BYTES]);

impl Digest {
    /// Length of a digest, in bytes.
    pub(crate) const BYTES: usize = 32;

    /// The bytes of a digest. Zeros mean that there is none: no known input has this SHA-256.
    pub(crate) fn to_bytes(digest: Option<Self>) -> [u8; Self::BYTES] {
        digest.map_or([0; Self::BYTES], |digest| digest.0)
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        (bytes != [0; Self::BYTES]).then_some(Self(bytes))
    }
}

/// Two lower-case hexadecimal digits per byte.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Computes the digest of a segment while it is written or read.
#[derive(Debug, Clone)]
pub struct Digester {
    hash: Sha256,
    /// The digest of the segment before, from the header.
    follows: Option<Digest>,
    /// Whether the segment has no entry yet.
    is_empty: bool,
    /// Frames that are not entries, until an entry follows them.
    held: Vec<u8>,
}

impl Digester {
    /// Begins with the header of a segment.
    pub(crate) fn new(header: &[u8], follows: Option<Digest>) -> Self {
        Self { hash: Sha256::new_with_prefix(header), follows, is_empty: true, held: Vec::new() }
    }

    /// Adds whole entries, in order.
    pub fn add(&mut self, frames: &[u8]) {
        if frames.is_empty() {
            return;
        }
        self.is_empty = false;
        self.hash.update(&self.held);
        self.held.clear();
        self.hash.update(frames);
    }

    /// Adds frames that are not entries. They count once an entry follows them.
    pub fn hold(&mut self, frames: &[u8]) {
        self.held.extend_from_slice(frames);
    }

    /// Leaves out the frames behind the last entry: they are cut off.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.held.clear();
        self
    }

    /// Digest of the segment that contains the last entry, up to that entry. If this segment has no
    /// entry yet, that is the segment before. `None` if its digest is not known.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        if self.is_empty {
            return self.follows;
        }
        Some(Digest(self.hash.clone().finalize().into()))
    }
}
