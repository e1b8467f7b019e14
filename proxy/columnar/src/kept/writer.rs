//! Writes a file whose bytes are checked when they are read.

use std::io::{self, Write};

use parquet::file::metadata::KeyValue;
use sha2::{Digest as _, Sha256};

use super::blocks::BLOCK_BYTES;
use super::checks::{BODY_KEY, CHECK_KEY, CHECK_LENGTH, check_position, check_text};
use crate::error::WriteError;
use crate::table::{Field, Layout, ParquetWriter, Rows};

/// Writes rows to a file that is kept.
pub struct KeptWriter<W: Write + Send>(ParquetWriter<Output<W>>);

/// A file that is written whole.
#[derive(Debug)]
pub struct Sealed<W> {
    /// The output.
    pub out: W,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of all its bytes.
    pub sha256: [u8; 32],
}

impl<W: Write + Send> KeptWriter<W> {
    /// A file without rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(
        out: W,
        name: &'static str,
        layout: &Layout,
        fields: impl Iterator<Item = Field>,
    ) -> Result<Self, WriteError> {
        ParquetWriter::new(Output::new(out), name, layout, fields).map(Self)
    }

    /// Writes rows, and clears them.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add(&mut self, rows: &mut Rows) -> Result<(), WriteError> {
        self.0.add(rows)
    }

    /// Ends the open row group.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end_group(&mut self) -> Result<(), WriteError> {
        self.0.end_group()
    }

    /// Row groups that are written.
    pub fn groups(&self) -> usize {
        self.0.groups()
    }

    /// Ends the file. Its footer has `json` under this key.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self, key: &str, json: String) -> Result<Sealed<W>, WriteError> {
        let Self(mut writer) = self;
        writer.end_group()?;
        let file = writer.inner();
        file.flush()?;
        let (body, table) = file.inner_mut().end_body();
        file.write_all(&table)?;
        // The checks come last: they are looked for from the end of the file.
        let checks = "0".repeat(2 * CHECK_LENGTH);
        for (key, value) in [(key, json), (BODY_KEY, body.to_string()), (CHECK_KEY, checks)] {
            file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        writer.finish()?.seal()
    }
}

/// The output: it takes the CRC32C of each piece of the row groups, and holds back what is behind
/// them until its checks can be filled in.
struct Output<W> {
    out: W,
    bytes: u64,
    sha256: Sha256,
    /// Of the last piece, which may not be whole.
    block: u32,
    checks: Vec<u8>,
    tail: Option<Vec<u8>>,
}

impl<W: Write> Output<W> {
    fn new(out: W) -> Self {
        Self { out, bytes: 0, sha256: Sha256::new(), block: 0, checks: Vec::new(), tail: None }
    }

    /// The length of the row groups, and the checks of their pieces. What is written from here on
    /// is held back.
    fn end_body(&mut self) -> (u64, Vec<u8>) {
        if !self.bytes.is_multiple_of(BLOCK_BYTES) {
            self.checks.extend(self.block.to_le_bytes());
        }
        self.tail = Some(Vec::new());
        (self.bytes, std::mem::take(&mut self.checks))
    }

    fn write_body(&mut self, mut bytes: &[u8]) {
        self.sha256.update(bytes);
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.bytes % BLOCK_BYTES;
            let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let (now, rest) = bytes.split_at(room);
            self.block = crc32c::crc32c_append(self.block, now);
            self.bytes += now.len() as u64;
            if self.bytes.is_multiple_of(BLOCK_BYTES) {
                self.checks.extend(self.block.to_le_bytes());
                self.block = 0;
            }
            bytes = rest;
        }
    }

    /// Fills in the checks and writes the rest.
    fn seal(mut self) -> Result<Sealed<W>, WriteError> {
        let mut tail = self.tail.take().unwrap_or_default();
        let lost = || WriteError::Write(io::Error::other("the footer has no place for its check"));
        let length =
            tail.last_chunk::<8>().and_then(|end| end.first_chunk::<4>()).ok_or_else(lost)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| lost())? + 8;
        let start = tail.len().checked_sub(length).ok_or_else(lost)?;
        let (index, footer) = tail.split_at_mut(start);
        let position = check_position(footer).ok_or_else(lost)?;
        let of_index = check_text(crc32c::crc32c(index));
        patch(footer, position - CHECK_LENGTH, &of_index).ok_or_else(lost)?;
        let of_footer = check_text(crc32c::crc32c(footer));
        patch(footer, position, &of_footer).ok_or_else(lost)?;
        self.out.write_all(&tail)?;
        self.out.flush()?;
        self.sha256.update(&tail);
        let bytes = self.bytes + tail.len() as u64;
        Ok(Sealed { out: self.out, bytes, sha256: self.sha256.finalize().into() })
    }
}

fn patch(bytes: &mut [u8], at: usize, text: &str) -> Option<()> {
    bytes.get_mut(at..at + text.len())?.copy_from_slice(text.as_bytes());
    Some(())
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(tail) = &mut self.tail {
            return tail.write(bytes);
        }
        let written = self.out.write(bytes)?;
        self.write_body(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
