//! Reads pieces of a file, and checks each before anybody sees it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Buf as _, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

/// Bytes of a piece that has a check of its own.
pub(super) const BLOCK_BYTES: u64 = 16 << 10;
/// Pieces that are kept for whoever needs them next: small columns are side by side in them.
const KEPT_MAX: usize = 32;

/// Bytes that are read by their position.
pub trait ReadAt: Send + Sync {
    /// How many there are.
    ///
    /// # Errors
    /// The file cannot be read.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// There are not so many, or they cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn length(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let from = start.checked_add(buffer.len()).and_then(|end| self.get(start..end));
        buffer.copy_from_slice(from.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn length(&self) -> io::Result<u64> {
        self.as_slice().length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_at(offset, buffer)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Arc<R> {
    fn length(&self) -> io::Result<u64> {
        (**self).length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        (**self).read_at(offset, buffer)
    }
}

/// The row groups of a file. No byte of a piece whose check is wrong leaves it, so that what is
/// decoded is what was written.
pub(super) struct Blocks<R> {
    reader: R,
    /// Length of the row groups.
    length: u64,
    /// Of each piece.
    checks: Bytes,
    kept: Mutex<VecDeque<(u64, Bytes)>>,
}

impl<R: ReadAt> Blocks<R> {
    /// `checks` has four bytes for each piece of `length` bytes.
    pub(super) const fn new(reader: R, length: u64, checks: Bytes) -> Self {
        Self { reader, length, checks, kept: Mutex::new(VecDeque::new()) }
    }

    /// Number of pieces.
    pub(super) const fn count(&self) -> u64 {
        self.length.div_ceil(BLOCK_BYTES)
    }

    /// Piece number `block`.
    pub(super) fn block(&self, block: u64) -> io::Result<Bytes> {
        self.blocks(block, block + 1)
    }

    /// Some bytes.
    pub(super) fn range(&self, start: u64, length: usize) -> io::Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.length);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let (first, last) = (start / BLOCK_BYTES, end.div_ceil(BLOCK_BYTES));
        let bytes = if first + 1 == last { self.kept(first)? } else { self.blocks(first, last)? };
        let start = usize::try_from(start - first * BLOCK_BYTES).map_err(io::Error::other)?;
        if start + length > bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.slice(start..start + length))
    }

    fn kept(&self, block: u64) -> io::Result<Bytes> {
        let find = |kept: &VecDeque<(u64, Bytes)>| {
            kept.iter().find(|(at, _)| *at == block).map(|(_, bytes)| bytes.clone())
        };
        if let Some(bytes) = find(&self.kept.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(bytes);
        }
        let bytes = self.block(block)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back((block, bytes.clone()));
        Ok(bytes)
    }

    /// The pieces from `first` up to `end`, checked.
    fn blocks(&self, first: u64, end: u64) -> io::Result<Bytes> {
        let (start, end) = (first * BLOCK_BYTES, (end * BLOCK_BYTES).min(self.length));
        let length = end.checked_sub(start).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.reader.read_at(start, &mut bytes)?;
        let block_bytes = usize::try_from(BLOCK_BYTES).map_err(io::Error::other)?;
        for (block, piece) in (first..).zip(bytes.chunks(block_bytes)) {
            let at = usize::try_from(4 * block).map_err(io::Error::other)?;
            let check = self.checks.get(at..at + 4).ok_or(io::ErrorKind::UnexpectedEof)?;
            if check != crc32c::crc32c(piece).to_le_bytes() {
                let at = block * BLOCK_BYTES;
                let what = format!("the bytes from {at} on are not those that were written");
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
        }
        Ok(bytes.into())
    }
}

impl<R: ReadAt> Length for Blocks<R> {
    fn len(&self) -> u64 {
        self.length
    }
}

impl<R: ReadAt> ChunkReader for Blocks<R> {
    type T = Box<dyn Read>;

    /// Pages are read by their place, so nobody calls this for a page.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let rest = usize::try_from(self.length.saturating_sub(start).min(BLOCK_BYTES));
        let bytes = self.get_bytes(start, rest.unwrap_or_default())?;
        Ok(Box::new(bytes.reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.range(start, length)?)
    }
}
