//! Writes the tables that the tokenizer needs: the classes of Unicode characters, and OpenAI's
//! vocabularies.
//!
//! The vocabularies come from tiktoken-rs and are stored in a form that loads fast and takes little
//! space. The classes come from `regex-syntax`, so that our scanner and the regexes that it
//! replaces agree on every character.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;
use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

/// Above the rank of every token.
const RANKS_MAX: u32 = 1 << 18;
/// Tokens of one byte, which are the first of each vocabulary.
const SINGLES: usize = 256;

/// Characters that share one entry of the first stage.
const BLOCK: usize = 256;

/// Number of a class, as `src/scan/class.rs` knows it, and what belongs to it.
const CLASSES: &[(u8, &str)] = &[
    (0, r"[\p{Lu}\p{Lt}]"),
    (1, r"\p{Ll}"),
    (2, r"[\p{Lm}\p{Lo}]"),
    (3, r"\p{M}"),
    (4, r"\p{N}"),
    (5, r"[\p{P}\p{S}]"),
    (6, r"[\s--[\r\n]]"),
    (7, r"[\r\n]"),
];
/// Of everything else: controls, joiners, what is not assigned.
const OTHER: u8 = 8;

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    let out = Path::new(&out);
    write_classes(out)?;
    write_tokens(&out.join("o200k_base"), &tiktoken_rs::o200k_base()?)?;
    write_tokens(&out.join("cl100k_base"), &tiktoken_rs::cl100k_base()?)?;
    // `r50k_base` is the first 50,256 of these.
    write_tokens(&out.join("p50k_base"), &tiktoken_rs::p50k_base()?)
}

/// Every token but the special ones in the order of merging: the 256 bytes, then of each token which
/// two earlier ones it is put together from. Of their numbers first all low bytes, then all middle ones,
/// then what is above them, both in one byte. So deflate finds the most that is alike.
fn write_tokens(path: &Path, vocabulary: &CoreBPE) -> Result<(), AnyError> {
    let special = vocabulary.special_tokens();
    let decoded = (0..RANKS_MAX).filter_map(|rank| vocabulary.decode_bytes(&[rank]).ok());
    let tokens: Vec<Vec<u8>> = decoded
        .filter(|token| !str::from_utf8(token).is_ok_and(|token| special.contains(token)))
        .collect();
    let numbers: HashMap<&[u8], u32> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
    let (bytes, _) = tokens.split_at_checked(SINGLES).ok_or("a token for each byte")?;
    let singles = bytes.concat();
    if singles.len() != SINGLES {
        return Err("the first tokens are not the bytes".into());
    }
    let mut planes: [Vec<u8>; 5] = Default::default();
    for (number, token) in (0..).zip(&tokens).skip(SINGLES) {
        let halves = |at| {
            let (left, right) = token.split_at(at);
            Some((*numbers.get(left)?, *numbers.get(right)?))
        };
        let earlier = |&(left, right): &(u32, u32)| left.max(right) < number;
        // Small numbers come more often than large ones.
        let size = |&(left, right): &(u32, u32)| u64::from(left + 1) * u64::from(right + 1);
        let (left, right) = (1..token.len())
            .filter_map(halves)
            .filter(earlier)
            .min_by_key(size)
            .ok_or("a token of no two earlier")?;
        let ([l0, l1, l2, _], [r0, r1, r2, _]) = (left.to_le_bytes(), right.to_le_bytes());
        let bytes = [l0, l1, r0, r1, l2 | r2 << 2];
        planes.iter_mut().zip(bytes).for_each(|(plane, byte)| plane.push(byte));
    }
    let mut packed = DeflateEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&singles)?;
    packed.write_all(&planes.concat())?;
    Ok(std::fs::write(path, packed.finish()?)?)
}

/// Two stages: the number of the block that a character is in, and the blocks, each once.
fn write_classes(out: &Path) -> Result<(), AnyError> {
    let mut classes = vec![OTHER; char::MAX as usize + 1];
    for &(class, members) in CLASSES {
        let parsed = regex_syntax::parse(members)?;
        let HirKind::Class(Class::Unicode(ranges)) = parsed.kind() else {
            return Err(format!("{members} is no class").into());
        };
        for range in ranges.iter() {
            classes
                .get_mut(range.start() as usize..=range.end() as usize)
                .ok_or("beyond Unicode")?
                .fill(class);
        }
    }
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut block_of = Vec::new();
    for block in classes.chunks(BLOCK) {
        let at = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        block_of.push(u8::try_from(at)?);
    }
    std::fs::write(out.join("class_block_of"), block_of)?;
    std::fs::write(out.join("class_blocks"), blocks.concat())?;
    Ok(())
}
