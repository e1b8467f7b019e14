//! Decodes compressed bodies: takes bytes, and hands out decoded pieces.
//!
//! A decoder keeps at most its window. It stops where a small body grows beyond the limit.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

/// Codings one upon the other that are followed.
const CODINGS_MAX: usize = 2;

/// Decoded bytes that are handed out at once, at most.
const PIECE_BYTES: usize = 8 << 10;

/// Most decoded bytes per byte that came, where nothing else is said.
pub const RATIO_MAX: u32 = 200;

/// How much may be decoded from next to nothing before `ratio_max` is asked: every coding makes
/// much of a short run.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// Largest window of a zstd frame, as a power of two: 8 MiB, what RFC 9659 lets senders use.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// Largest window of brotli that is not its "large window", as a power of two: 16 MiB.
const BROTLI_WINDOW_LOG_MAX: u32 = 24;

/// What a decoder keeps beside its window, in bytes: code tables and a block.
const TABLES_BYTES_MAX: usize = 256 << 10;

/// Window of gzip and deflate, as a power of two.
const DEFLATE_WINDOW_BITS: u8 = 15;

/// Why no more of a body is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeFault {
    /// A coding that is not known, or more than two one upon the other.
    #[error("the body's content encoding cannot be read; use gzip, deflate, br or zstd, or none")]
    Unknown,
    /// What came is not what its coding says, or is not all of it.
    #[error("the body is not what its content encoding says, or not all of it; encode it anew")]
    Damaged,
    /// It becomes more than its own length is worth, or more than the caller takes.
    #[error("the body is too large once it is decoded; send less of it")]
    TooLarge,
}

/// Follows one encoded body.
pub struct Decoder {
    /// As they are to be undone.
    layers: Vec<Layer>,
    budget: Budget,
}

#[derive(Debug)]
struct Budget {
    encoded: u64,
    /// Of all layers together.
    decoded: u64,
    ratio_max: u64,
}

impl Budget {
    fn spend(&mut self, decoded: usize) -> Result<(), DecodeFault> {
        self.decoded = self.decoded.saturating_add(decoded as u64);
        let most = self.encoded.saturating_mul(self.ratio_max).max(RATIO_FREE_BYTES);
        if self.decoded > most { Err(DecodeFault::TooLarge) } else { Ok(()) }
    }
}

impl Decoder {
    /// A decoder for the codings of a `content-encoding`, in the order in which they were applied. It
    /// decodes at most `ratio_max` bytes per byte that came.
    ///
    /// Errors: `Unknown`.
    pub fn new(content_encoding: &str, ratio_max: u32) -> Result<Self, DecodeFault> {
        let codings = content_encoding.split(',').filter(|coding| !is_identity(coding));
        let layers = codings
            .map(|coding| Layer::new(Name::parse(coding).ok_or(DecodeFault::Unknown)?))
            .rev()
            .collect::<Result<Vec<_>, _>>()?;
        if layers.len() > CODINGS_MAX {
            return Err(DecodeFault::Unknown);
        }
        let budget = Budget { encoded: 0, decoded: 0, ratio_max: ratio_max.into() };
        Ok(Self { layers, budget })
    }

    /// More of the body has come. Hands what can be decoded of it by now to `each`, in pieces.
    ///
    /// Errors: no more of this body can be decoded, or `each` wants no more.
    pub fn feed<E: From<DecodeFault>>(
        &mut self,
        read: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.budget.encoded = self.budget.encoded.saturating_add(read.len() as u64);
        run(&mut self.layers, &mut self.budget, read, each)
    }

    /// Whether every coding has said its end, and nothing came behind it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.layers.iter().all(|layer| layer.coding.is_whole())
    }

    /// The most memory that it takes, in bytes.
    #[must_use]
    pub fn memory_bytes_max(&self) -> usize {
        self.layers.iter().map(|layer| layer.memory_bytes_max).sum()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// Whether an answer of this coding can be read. Upper and lower case are alike.
#[must_use]
pub fn is_readable(coding: &str) -> bool {
    is_identity(coding) || Name::parse(coding).is_some()
}

/// The codings that can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

impl Name {
    fn parse(coding: &str) -> Option<Self> {
        let is = |name: &str| coding.trim().eq_ignore_ascii_case(name);
        if is("gzip") || is("x-gzip") {
            Some(Self::Gzip)
        } else if is("deflate") {
            Some(Self::Deflate)
        } else if is("br") {
            Some(Self::Brotli)
        } else if is("zstd") {
            Some(Self::Zstd)
        } else {
            None
        }
    }
}

/// Whether a coding leaves the bytes as they are.
#[must_use]
pub fn is_identity(coding: &str) -> bool {
    let coding = coding.trim();
    coding.is_empty() || coding.eq_ignore_ascii_case("identity")
}

fn run<E: From<DecodeFault>>(
    layers: &mut [Layer],
    budget: &mut Budget,
    read: &[u8],
    each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let Some((layer, rest)) = layers.split_first_mut() else { return each(read) };
    let mut read = read;
    loop {
        let step = layer.step(read)?;
        read = read.get(step.taken..).unwrap_or_default();
        budget.spend(step.made)?;
        let piece = layer.piece.get(..step.made).unwrap_or_default();
        if !piece.is_empty() {
            run(rest, budget, piece, each)?;
        }
        // A piece that is not full holds all that could be made so far.
        if read.is_empty() && step.made < PIECE_BYTES {
            return Ok(());
        }
        if step.taken == 0 && step.made == 0 {
            return Err(DecodeFault::Damaged.into());
        }
    }
}

/// One coding being undone.
struct Layer {
    coding: Coding,
    memory_bytes_max: usize,
    piece: Box<[u8]>,
}

/// What one step has used and made, in bytes.
struct Step {
    taken: usize,
    made: usize,
}

enum Coding {
    /// Nothing of it has come yet.
    Unbegun(Wrapping),
    Inflate(Wrapping, Decompress),
    /// A member of gzip has ended; another may follow.
    BetweenMembers,
    Brotli(Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>),
    Zstd {
        decoder: ZstdDecoder<'static>,
        /// A frame has ended; another may follow.
        between_frames: bool,
    },
    /// The coding has said its end; what follows means nothing.
    Over {
        followed: bool,
    },
}

/// What deflate is wrapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrapping {
    Gzip,
    /// zlib's, as the standard says, or none, as many send it: the first byte tells.
    ZlibOrNone,
}

impl Layer {
    fn new(name: Name) -> Result<Self, DecodeFault> {
        let coding = match name {
            Name::Gzip => Coding::Unbegun(Wrapping::Gzip),
            Name::Deflate => Coding::Unbegun(Wrapping::ZlibOrNone),
            Name::Brotli => {
                let [bytes, words, codes] = [(); 3].map(|()| StandardAlloc::default());
                Coding::Brotli(Box::new(BrotliState::new_strict(bytes, words, codes)))
            }
            Name::Zstd => {
                let mut decoder = ZstdDecoder::new().map_err(|_| DecodeFault::Unknown)?;
                let window = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
                decoder.set_parameter(window).map_err(|_| DecodeFault::Unknown)?;
                Coding::Zstd { decoder, between_frames: false }
            }
        };
        let window_log = match name {
            Name::Gzip | Name::Deflate => DEFLATE_WINDOW_BITS.into(),
            Name::Brotli => BROTLI_WINDOW_LOG_MAX,
            Name::Zstd => ZSTD_WINDOW_LOG_MAX,
        };
        let memory_bytes_max = (1 << window_log) + TABLES_BYTES_MAX;
        Ok(Self { coding, memory_bytes_max, piece: vec![0; PIECE_BYTES].into() })
    }

    fn step(&mut self, read: &[u8]) -> Result<Step, DecodeFault> {
        let Self { coding, piece, .. } = self;
        // A decoder that fails on what an engine sends must not cost the client its answer.
        catch_unwind(AssertUnwindSafe(|| coding.step(read, piece)))
            .unwrap_or(Err(DecodeFault::Damaged))
    }
}

impl Coding {
    const OVER: Self = Self::Over { followed: false };

    fn step(&mut self, read: &[u8], piece: &mut [u8]) -> Result<Step, DecodeFault> {
        match self {
            Self::Unbegun(wrapping) => {
                let Some(first) = read.first() else { return Ok(Step::NONE) };
                let inflate = match wrapping {
                    Wrapping::Gzip => Decompress::new_gzip(DEFLATE_WINDOW_BITS),
                    Wrapping::ZlibOrNone => Decompress::new(is_zlib(*first)),
                };
                *self = Self::Inflate(*wrapping, inflate);
                self.step(read, piece)
            }
            Self::Inflate(wrapping, inflate) => {
                let (step, ended) = inflated(inflate, read, piece)?;
                if ended {
                    *self = match wrapping {
                        Wrapping::Gzip => Self::BetweenMembers,
                        Wrapping::ZlibOrNone => Self::OVER,
                    };
                }
                Ok(step)
            }
            Self::BetweenMembers => {
                *self = match read.first() {
                    None => return Ok(Step::NONE),
                    Some(&GZIP_MAGIC) => Self::Unbegun(Wrapping::Gzip),
                    Some(_) => Self::OVER,
                };
                self.step(read, piece)
            }
            Self::Brotli(state) => {
                let (mut step, mut left, mut room) = (Step::NONE, read.len(), piece.len());
                let result = BrotliDecompressStream(
                    &mut left,
                    &mut step.taken,
                    read,
                    &mut room,
                    &mut step.made,
                    piece,
                    &mut 0,
                    state,
                );
                match result {
                    BrotliResult::ResultFailure => return Err(DecodeFault::Damaged),
                    BrotliResult::ResultSuccess => *self = Self::OVER,
                    BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
                }
                Ok(step)
            }
            Self::Zstd { decoder, between_frames } => {
                let (mut input, mut output) = (InBuffer::around(read), OutBuffer::around(piece));
                let hint =
                    decoder.run(&mut input, &mut output).map_err(|_| DecodeFault::Damaged)?;
                let step = Step { taken: input.pos(), made: output.pos() };
                if step.taken > 0 || step.made > 0 {
                    *between_frames = hint == 0;
                }
                Ok(step)
            }
            Self::Over { followed } => {
                *followed |= !read.is_empty();
                Ok(Step { taken: read.len(), made: 0 })
            }
        }
    }

    const fn is_whole(&self) -> bool {
        match self {
            Self::Unbegun(_) | Self::Inflate(..) | Self::Brotli(_) => false,
            Self::BetweenMembers => true,
            Self::Zstd { between_frames, .. } => *between_frames,
            Self::Over { followed } => !*followed,
        }
    }
}

impl Step {
    const NONE: Self = Self { taken: 0, made: 0 };
}

/// What each member of gzip begins with.
const GZIP_MAGIC: u8 = 0x1f;

/// Whether deflate begins with zlib's header: its low half says how it is compressed, and 8 is the
/// only way there is; without a header this would be a stored block with its padding set.
const fn is_zlib(first: u8) -> bool {
    first & 0x0f == 8
}

/// One step of inflating, and whether the stream has ended.
fn inflated(
    inflate: &mut Decompress,
    read: &[u8],
    piece: &mut [u8],
) -> Result<(Step, bool), DecodeFault> {
    let (taken, made) = (inflate.total_in(), inflate.total_out());
    let status =
        inflate.decompress(read, piece, FlushDecompress::None).map_err(|_| DecodeFault::Damaged)?;
    let since = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(usize::MAX);
    let step =
        Step { taken: since(inflate.total_in(), taken), made: since(inflate.total_out(), made) };
    Ok((step, status == Status::StreamEnd))
}

#[cfg(test)]
mod tests;
