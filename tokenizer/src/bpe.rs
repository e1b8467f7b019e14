//! Counts the tokens of a piece by byte-pair encoding.
//!
//! Most pieces of prose are tokens themselves and cost one look-up. Other pieces begin as symbols:
//! bytes or characters. Two neighbouring symbols merge into one, the lowest symbol first, until no
//! pair merges.

mod alphabet;
mod learning;
mod merging;
mod pairs;
#[cfg(test)]
mod tests;
mod tokens;

pub(crate) use alphabet::{Alphabet, Characters};
pub(crate) use learning::{Lefts, Merges, Product};
use merging::Workspace;
pub(crate) use pairs::NO_SYMBOL;
use pairs::Pairs;
pub(crate) use tokens::Tokens;

/// Counts the tokens of pieces.
pub(crate) struct Bpe {
    alphabet: Alphabet,
    pairs: Pairs,
    /// Pieces that are one token each.
    tokens: Tokens,
}

/// Memory that counting uses again and again.
#[derive(Default)]
pub(crate) struct Scratch(Workspace);

impl Bpe {
    /// Of a vocabulary whose tokens' order is the order of merging: `.tiktoken` files, tekken.
    ///
    /// A piece that is a token is one token, whether or not merging leads to it.
    pub(crate) fn from_ranks<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let mut bytes = Box::new([NO_SYMBOL; 256]);
        for (rank, token) in (0..).zip(tokens.clone()) {
            if let [byte] = *token
                && let Some(symbol) = bytes.get_mut(usize::from(byte))
            {
                *symbol = rank;
            }
        }
        let products = (0..).zip(tokens.clone());
        let products = products.map(|(symbol, text)| Product { symbol, text, lefts: Lefts::Any });
        let count = tokens.clone().count();
        Self::new(Merges::learn(Alphabet::Bytes(bytes), products, count), Tokens::new(tokens))
    }

    /// A piece that is one of `tokens` is one token; others are what merging makes of them.
    pub(crate) fn new(merges: Merges, tokens: Tokens) -> Self {
        let Merges { alphabet, pairs, .. } = merges;
        Self { alphabet, pairs, tokens }
    }

    /// Tokens of the piece `text[at..end]`.
    #[inline]
    pub(crate) fn count(&self, text: &str, at: usize, end: usize, scratch: &mut Scratch) -> u64 {
        if self.tokens.contains(text.as_bytes(), at, end) {
            return 1;
        }
        self.merge(text.as_bytes().get(at..end).unwrap_or_default(), scratch)
    }

    /// Bytes of the longest token: a text has at least its length by this many tokens.
    pub(crate) const fn token_bytes_max(&self) -> usize {
        self.tokens.bytes_max
    }

    #[inline(never)]
    fn merge(&self, piece: &[u8], scratch: &mut Scratch) -> u64 {
        self.alphabet.begin(piece, &mut scratch.0.symbols);
        merging::count(&self.pairs, &mut scratch.0) as u64
    }
}
