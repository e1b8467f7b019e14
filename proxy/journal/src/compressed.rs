//! A compressed segment: its bytes in pieces that are compressed one by one, and where each is.
//!
//! The file is in the seekable format of Zstandard: independent frames, then a skippable frame with
//! the length of each. So every zstd tool decompresses it to the plain segment. The first piece is
//! the header. Each further piece is whole frames of the journal.
//!
//! A piece that cannot be decompressed costs no other piece anything: it is read as bytes that no
//! frame begins with. So a reader finds damage there, and goes on behind it as in a plain segment.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use taximeter_ledger::{ENTRY_BYTES_MAX, HEADER_BYTES, frame_bytes};
use zstd::bulk::{Compressor, Decompressor};
use zstd::stream::raw::CParameter;
use zstd::zstd_safe;

use super::disk::OpenFile;

/// By measurement: higher ones take twice the time or the memory and save a hundredth. Another level
/// needs its strategy in the image's zstd (`deploy/image/program.sh`).
const LEVEL: i32 = 6;
/// Bytes of a piece before compression, but for a longer frame. Longer ones save little, and cost
/// more where one is damaged or looked up.
pub(super) const PIECE_BYTES: usize = 32 << 10;
/// Longest piece: the longest frame.
pub(super) const PIECE_BYTES_MAX: usize = ENTRY_BYTES_MAX + 1024;
/// Pieces of a segment. It bounds the memory of a reader.
const PIECES_MAX: usize = 1 << 18;
/// How a frame of zstd begins.
const FRAME_MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// How the table begins: a skippable frame.
const TABLE_MAGIC: [u8; 4] = 0x184d_2a5e_u32.to_le_bytes();
/// How the table ends.
const TABLE_END_MAGIC: [u8; 4] = 0x8f92_eab1_u32.to_le_bytes();
/// The head of the table: a magic and a length.
const TABLE_HEAD_BYTES: usize = 8;
/// The end of the table: the number of pieces, what is said of each, and a magic.
const TABLE_END_BYTES: usize = 9;
/// The lengths of one piece in the table.
const PIECE_ENTRY_BYTES: usize = 8;
/// What a piece is read as that cannot be decompressed: no frame of the journal is so long.
const LOST: u8 = 0xff;
/// The length of a lost piece that does not say it: more than the head of a frame.
const LOST_BYTES: u32 = 32;

/// Compresses pieces, one after the other.
pub(super) struct Packer {
    compressor: Compressor<'static>,
    /// Compressed and plain length of each piece.
    lengths: Vec<(u32, u32)>,
}

impl Packer {
    pub(super) fn new() -> io::Result<Self> {
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self { compressor, lengths: Vec::new() })
    }

    /// The next piece, compressed.
    pub(super) fn pack(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        if self.lengths.len() == PIECES_MAX {
            return Err(io::Error::new(ErrorKind::FileTooLarge, "the segment is too long"));
        }
        let packed = self.compressor.compress(piece)?;
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(io::Error::other);
        self.lengths.push((length(&packed)?, length(piece)?));
        Ok(packed)
    }

    /// The table of all pieces, with which the file ends.
    pub(super) fn table(&self) -> Vec<u8> {
        let length = PIECE_ENTRY_BYTES * self.lengths.len() + TABLE_END_BYTES;
        let [number, length] =
            [self.lengths.len(), length].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let mut table = [TABLE_MAGIC, length.to_le_bytes()].concat();
        for (packed, plain) in &self.lengths {
            table.extend_from_slice(&packed.to_le_bytes());
            table.extend_from_slice(&plain.to_le_bytes());
        }
        table.extend_from_slice(&number.to_le_bytes());
        table.push(0);
        table.extend_from_slice(&TABLE_END_MAGIC);
        table
    }
}

/// Where the next piece of a segment ends, if `bytes` are what is left of the segment or more than
/// a piece. `is_header` for the first one.
pub(super) fn piece_length(bytes: &[u8], is_header: bool) -> usize {
    if is_header {
        return bytes.len().min(HEADER_BYTES);
    }
    let mut length = 0;
    while let Some(frame) = frame_bytes(bytes.get(length..).unwrap_or_default()) {
        let end = length + frame;
        let is_too_long = end > if length == 0 { PIECE_BYTES_MAX } else { PIECE_BYTES };
        if is_too_long || end > bytes.len() {
            break;
        }
        length = end;
    }
    // What is no frame is cut anywhere.
    if length == 0 { bytes.len().min(PIECE_BYTES) } else { length }
}

/// A compressed segment that is read as the plain one.
#[derive(Debug)]
pub(super) struct CompressedFile {
    file: Arc<dyn OpenFile>,
    pieces: Vec<Piece>,
    /// The pieces were looked for in the file, because the table is wrong.
    is_searched: bool,
    /// The last piece that was read.
    cached: Option<(usize, Vec<u8>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// Where it is in the file.
    packed_at: u64,
    packed: u32,
    /// Where it is in the segment.
    at: u64,
    length: u32,
}

impl Piece {
    const fn end(self) -> u64 {
        self.at + self.length as u64
    }
}

impl CompressedFile {
    pub(super) fn open(file: Arc<dyn OpenFile>) -> io::Result<Self> {
        let (pieces, is_searched) = match read_table(&*file)? {
            Some(pieces) => (pieces, false),
            None => (search(&*file)?, true),
        };
        Ok(Self { file, pieces, is_searched, cached: None })
    }

    /// Length of the segment.
    pub(super) fn length(&self) -> u64 {
        self.pieces.last().map_or(0, |last| last.end())
    }

    pub(super) fn file(&self) -> &dyn OpenFile {
        &*self.file
    }

    /// Bytes of the segment from `offset` on, at most those of one piece.
    pub(super) fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            let index = self.pieces.partition_point(|piece| piece.end() <= offset);
            let Some(piece) = self.pieces.get(index).copied() else { return Ok(0) };
            if self.cached.as_ref().is_none_or(|(cached, _)| *cached != index) {
                let plain = match self.unpack(piece)? {
                    Some(plain) => plain,
                    None if !self.is_searched => {
                        // The table may be what is damaged.
                        (self.pieces, self.is_searched) = (search(&*self.file)?, true);
                        self.cached = None;
                        continue;
                    }
                    None => vec![LOST; piece.length as usize],
                };
                self.cached = Some((index, plain));
            }
            let plain = self.cached.as_ref().map(|(_, plain)| plain.as_slice()).unwrap_or_default();
            let from = usize::try_from(offset - piece.at).unwrap_or(usize::MAX);
            let rest = plain.get(from..).unwrap_or_default();
            let length = rest.len().min(bytes.len());
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            return Ok(length);
        }
    }

    /// The bytes of a piece. `None` if they are damaged.
    fn unpack(&self, piece: Piece) -> io::Result<Option<Vec<u8>>> {
        let packed = read(&*self.file, piece.packed_at, piece.packed as usize)?;
        let plain = Decompressor::new()?.decompress(&packed, piece.length as usize);
        Ok(plain.ok().filter(|plain| plain.len() == piece.length as usize))
    }
}

/// The bytes from `at` on, fewer at the end of the file.
fn read(file: &dyn OpenFile, at: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// The pieces that the table at the end of the file names. `None` if it does not fit the file.
fn read_table(file: &dyn OpenFile) -> io::Result<Option<Vec<Piece>>> {
    let length = file.status()?.length;
    let Some(end_at) = length.checked_sub(TABLE_END_BYTES as u64) else { return Ok(None) };
    let end = read(file, end_at, TABLE_END_BYTES)?;
    let Some(([a, b, c, d, of_each], magic)) = end.split_first_chunk() else { return Ok(None) };
    let number = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
    if *of_each != 0 || *magic != TABLE_END_MAGIC || number > PIECES_MAX {
        return Ok(None);
    }
    let bytes = PIECE_ENTRY_BYTES * number;
    let pairs_at = end_at.checked_sub(bytes as u64);
    let Some(at) = pairs_at.and_then(|at| at.checked_sub(TABLE_HEAD_BYTES as u64)) else {
        return Ok(None);
    };
    let table = read(file, at + TABLE_HEAD_BYTES as u64, bytes)?;
    let (mut pieces, mut before) = (Vec::with_capacity(number), Piece::START);
    for lengths in table.as_chunks::<PIECE_ENTRY_BYTES>().0 {
        let [a, b, c, d, e, f, g, h] = *lengths;
        let packed = u32::from_le_bytes([a, b, c, d]);
        let length = u32::from_le_bytes([e, f, g, h]);
        if length as usize > PIECE_BYTES_MAX || packed as usize > packed_bytes_max() {
            return Ok(None);
        }
        before = before.followed_by(packed, length);
        pieces.push(before);
    }
    Ok(Some(pieces).filter(|_| before.packed_at + u64::from(before.packed) == at))
}

impl Piece {
    /// Before the first one.
    const START: Self = Self { packed_at: 0, packed: 0, at: 0, length: 0 };

    const fn followed_by(self, packed: u32, length: u32) -> Self {
        Self { packed_at: self.packed_at + self.packed as u64, packed, at: self.end(), length }
    }
}

/// The longest that a piece can be when it is compressed.
fn packed_bytes_max() -> usize {
    zstd_safe::compress_bound(PIECE_BYTES_MAX)
}

/// The pieces of a file without its table. What is no piece is a lost one, up to the next.
fn search(file: &dyn OpenFile) -> io::Result<Vec<Piece>> {
    let length = file.status()?.length;
    let (mut pieces, mut before) = (Vec::new(), Piece::START);
    let mut at = 0;
    while at < length && pieces.len() < PIECES_MAX {
        let bytes = read(file, at, packed_bytes_max())?;
        if bytes.is_empty() || bytes.starts_with(&TABLE_MAGIC) {
            break;
        }
        let plain = zstd_safe::get_frame_content_size(&bytes).ok().flatten();
        let plain = plain.filter(|plain| *plain <= PIECE_BYTES_MAX as u64);
        let packed = zstd_safe::find_frame_compressed_size(&bytes).ok();
        let packed = packed.filter(|_| plain.is_some()).unwrap_or_else(|| {
            let next = bytes.windows(4).skip(1).position(|window| {
                window == FRAME_MAGIC.as_slice() || window == TABLE_MAGIC.as_slice()
            });
            next.map_or(bytes.len(), |next| next + 1)
        });
        let plain = plain.and_then(|plain| u32::try_from(plain).ok()).unwrap_or(LOST_BYTES);
        before = before.followed_by(u32::try_from(packed).unwrap_or(u32::MAX), plain);
        pieces.push(before);
        at += packed as u64;
    }
    Ok(pieces)
}
