//! What a segment is, in 32 bytes.
//!
//! Checks and chain are CRCs: they show accidents, and whoever alters an entry can make them right.
//! So each segment says in its header the SHA-256 of the one before it. To alter an entry without a
//! trace, all segments behind it would have to be written anew, and the last digest that somebody
//! else has been told would still differ.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// SHA-256 of a segment's header and its entries up to one of them; marks are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Digest([u8; Self::BYTES]);

impl Digest {
    /// Its length.
    pub(crate) const BYTES: usize = 32;

    /// Its bytes, or zeros for none: no SHA-256 is known to be that.
    pub(crate) fn to_bytes(digest: Option<Self>) -> [u8; Self::BYTES] {
        digest.map_or([0; Self::BYTES], |digest| digest.0)
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        (bytes != [0; Self::BYTES]).then_some(Self(bytes))
    }
}

/// As people compare them: two lower-case digits a byte.
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

/// What has been written to a segment, or read of it.
#[derive(Debug, Clone)]
pub struct Digester {
    hash: Sha256,
    /// What the header says of the segment before.
    follows: Option<Digest>,
    /// There is no entry yet.
    is_empty: bool,
}

impl Digester {
    /// Of a segment with this header.
    pub(crate) fn new(header: &[u8], follows: Option<Digest>) -> Self {
        Self { hash: Sha256::new_with_prefix(header), follows, is_empty: true }
    }

    /// Adds whole entries, in order.
    pub fn add(&mut self, frames: &[u8]) {
        self.is_empty &= frames.is_empty();
        self.hash.update(frames);
    }

    /// Digest of the segment that has the last entry, up to that: the one before, while there is
    /// none in this. `None` where that is not known.
    #[must_use]
    pub fn digest(&self) -> Option<Digest> {
        if self.is_empty {
            return self.follows;
        }
        Some(Digest(self.hash.clone().finalize().into()))
    }
}
