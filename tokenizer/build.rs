//! Writes what the tokenizer needs to know of Unicode.
//!
//! The classes come from `regex-syntax`, so that our scanner and the regexes that it stands for
//! agree on every character.

use std::path::Path;

use regex_syntax::hir::{Class, HirKind};

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
    write_classes(Path::new(&out))
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
