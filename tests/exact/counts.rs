//! Counts the texts that come, for a program that knows what to expect.
//!
//! usage: `counts whole|split VOCABULARY`, the vocabulary by a model's name or a file's path.
//!
//! Reads texts, each behind its length in bytes (four bytes, little-endian); writes their tokens the
//! same way. With `split`, each text is also counted as it would stream, in random deltas, and what
//! differs from the whole is told and ends the program with 1.

use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use taximeter_tokenizer::Tokenizer;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    let [_, manner, vocabulary] = words.as_slice() else { bail!("usage: counts whole|split NAME") };
    let tokenizer = if Path::new(vocabulary).is_file() {
        let file = std::fs::read(vocabulary).context(vocabulary.clone())?;
        let loaded = Tokenizer::from_file(vocabulary, &file).context(vocabulary.clone())?;
        loaded.tokenizer
    } else {
        let choice = Tokenizer::for_model(vocabulary);
        anyhow::ensure!(choice.exact, "{vocabulary}: no such file, and no model that is known");
        choice.tokenizer
    };
    let mut texts = BufReader::with_capacity(1 << 20, std::io::stdin().lock());
    let mut counts = BufWriter::new(std::io::stdout().lock());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    while let Some(text) = next(&mut texts)? {
        let tokens = tokenizer.count([&text]).tokens;
        counts.write_all(&u32::try_from(tokens)?.to_le_bytes())?;
        if manner == "split" {
            let mut counter = tokenizer.counter();
            let mut rest = text.as_bytes();
            let step_max = 1 + random.below(24);
            while !rest.is_empty() {
                let (delta, behind) = rest.split_at(rest.len().min(1 + random.below(step_max)));
                counter.push(delta);
                rest = behind;
            }
            let streamed = counter.finish().tokens;
            anyhow::ensure!(streamed == tokens, "{text:?}: {tokens} whole, {streamed} streamed");
        }
    }
    Ok(counts.flush()?)
}

fn next(texts: &mut impl Read) -> anyhow::Result<Option<String>> {
    let mut length = [0; 4];
    match texts.read_exact(&mut length) {
        Err(fault) if fault.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut text = vec![0; usize::try_from(u32::from_le_bytes(length))?];
    texts.read_exact(&mut text)?;
    Ok(Some(String::from_utf8(text)?))
}

/// A stream of numbers that is the same in every run.
struct Random(u64);

impl Random {
    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % bound
    }
}
