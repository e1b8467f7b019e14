//! How many tokens a piece is, by byte-pair encoding.
//!
//! Most pieces of prose are tokens as they are and cost one look-up. The others begin as symbols –
//! bytes, or characters – of which two that are neighbours merge into one, the pair of the lowest
//! rank first, until no pair merges.

mod merging;
mod pairs;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::HashMap;
use std::thread;

use foldhash::fast::FixedState;
use merging::Workspace;
use pairs::Pairs;
use tokens::Tokens;

/// What a piece begins as, before anything merges.
pub(crate) enum Alphabet {
    /// Every byte is a symbol: of byte 0 to 255.
    Bytes(Box<[u32; 256]>),
    /// Every character is a symbol; one that has none is its bytes.
    Characters {
        /// Symbols of characters.
        characters: HashMap<char, u32, FixedState>,
        /// Symbols of byte 0 to 255.
        bytes: Box<[u32; 256]>,
    },
}

/// Symbol of a byte that has none in the vocabulary: a token by itself that never merges.
pub(crate) const NO_SYMBOL: u32 = u32::MAX - 1;

/// Two symbols that become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The first.
    pub(crate) left: u32,
    /// The one behind it.
    pub(crate) right: u32,
    /// What they become.
    pub(crate) merged: u32,
}

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
        let mut len = 0;
        for (rank, token) in (0..).zip(tokens.clone()) {
            if let [byte] = *token
                && let Some(symbol) = bytes.get_mut(usize::from(byte))
            {
                *symbol = rank;
            }
            len += 1;
        }
        let alphabet = Alphabet::Bytes(bytes);
        let mut pairs = Pairs::with_capacity(len);
        let mut workspace = Workspace::default();
        for (rank, token) in (0..).zip(tokens.clone()) {
            // What merging makes of it by all that is merged earlier: the pair that becomes it.
            alphabet.begin(token, &mut workspace.symbols);
            if let Some((left, right)) = merging::pair(&pairs, &mut workspace) {
                pairs.insert(left, right, rank, rank);
            }
        }
        Self { alphabet, pairs, tokens: Tokens::new(tokens) }
    }

    /// Of a vocabulary that lists its merges, the earliest first, as `tokenizer.json` does.
    ///
    /// `tokens` are the vocabulary's, as they stand in a text. With `ignore_merges`, a piece that is
    /// one of them is one token; without, only if merging leads to it.
    pub(crate) fn from_rules(
        alphabet: Alphabet,
        rules: &[Rule],
        tokens: &[&[u8]],
        ignore_merges: bool,
    ) -> Self {
        let mut pairs = Pairs::with_capacity(rules.len());
        for (rank, rule) in (0..).zip(rules) {
            pairs.insert(rule.left, rule.right, rank, rule.merged);
        }
        let tokens = if ignore_merges {
            Tokens::new(tokens.iter().copied())
        } else {
            Tokens::new(reached(tokens, &alphabet, &pairs).into_iter())
        };
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

/// Those of `tokens` that merging leads to; found by two threads, since large vocabularies have
/// hundreds of thousands.
fn reached<'a>(tokens: &[&'a [u8]], alphabet: &Alphabet, pairs: &Pairs) -> Vec<&'a [u8]> {
    let among = |tokens: &[&'a [u8]]| -> Vec<&'a [u8]> {
        let mut workspace = Workspace::default();
        let mut is_reached = |token: &[u8]| {
            alphabet.begin(token, &mut workspace.symbols);
            merging::count(pairs, &mut workspace) == 1
        };
        tokens.iter().copied().filter(|token| is_reached(token)).collect()
    };
    let (first, second) = tokens.split_at(tokens.len() / 2);
    thread::scope(|scope| {
        let beside = thread::Builder::new().spawn_scoped(scope, || among(second));
        let mut reached = among(first);
        let beside = beside.ok().and_then(|beside| beside.join().ok());
        reached.extend(beside.unwrap_or_else(|| among(second)));
        reached
    })
}

impl Alphabet {
    /// Writes the symbols that `piece` begins as.
    fn begin(&self, piece: &[u8], symbols: &mut Vec<u32>) {
        symbols.clear();
        match self {
            Self::Bytes(bytes) => symbols.extend(of_bytes(bytes, piece)),
            Self::Characters { characters, bytes } => {
                for chunk in piece.utf8_chunks() {
                    for char in chunk.valid().chars() {
                        match characters.get(&char) {
                            Some(&symbol) => symbols.push(symbol),
                            None => {
                                let mut utf8 = [0; 4];
                                let utf8 = char.encode_utf8(&mut utf8).as_bytes();
                                symbols.extend(of_bytes(bytes, utf8));
                            }
                        }
                    }
                    symbols.extend(of_bytes(bytes, chunk.invalid()));
                }
            }
        }
    }
}

fn of_bytes(symbols: &[u32; 256], bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.iter().map(|&byte| symbols.get(usize::from(byte)).copied().unwrap_or(NO_SYMBOL))
}
