//! The prefix cache: remembers the beginnings of earlier prompts.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Words that are cached together, as engines cache blocks of tokens.
const BLOCK_WORDS: usize = 16;

/// Blocks remembered; beyond it the cache starts afresh.
const BLOCKS_MAX: usize = 1 << 18;

/// Remembers prompts by the hashes of their leading blocks.
#[derive(Debug, Default)]
pub(crate) struct PrefixCache {
    seen: Mutex<HashSet<u64>>,
}

/// Tokens of one prompt that the cache had, and that it has from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

impl PrefixCache {
    /// Looks the prompt up and remembers it.
    pub(crate) fn visit(&self, prompt: &str) -> Prefix {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= BLOCKS_MAX {
            seen.clear();
        }
        let mut hasher = DefaultHasher::new();
        let mut prefix = Prefix::default();
        for (index, word) in prompt.split_whitespace().enumerate() {
            word.hash(&mut hasher);
            if (index + 1).is_multiple_of(BLOCK_WORDS) {
                if seen.insert(hasher.finish()) {
                    prefix.written += BLOCK_WORDS as u64;
                } else {
                    prefix.read += BLOCK_WORDS as u64;
                }
            }
        }
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_leading_blocks_that_were_seen_before_are_read() {
        let cache = PrefixCache::default();
        let system = "word ".repeat(40);
        let first = cache.visit(&format!("{system} how are you"));
        assert_eq!(first, Prefix { read: 0, written: 32 });
        let second = cache.visit(&format!("{system} and what is this"));
        assert_eq!(second, Prefix { read: 32, written: 0 });
        let other = cache.visit(&format!("another {system}"));
        assert_eq!(other, Prefix { read: 0, written: 32 });
    }
}
