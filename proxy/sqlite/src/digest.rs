//! The digest of a file.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Whether a file is the one of this length and this SHA-256.
pub(super) fn is_whole(path: &Path, bytes: u64, sha256: [u8; 32]) -> io::Result<bool> {
    Ok(digest(path)? == (bytes, sha256))
}

/// Length and SHA-256 of a file.
pub(super) fn digest(path: &Path) -> io::Result<(u64, [u8; 32])> {
    let mut file = File::open(path)?;
    let (mut digest, mut length) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((length, digest.finalize().into()));
        }
        digest.update(piece.get(..read).unwrap_or_default());
        length += read as u64;
    }
}
