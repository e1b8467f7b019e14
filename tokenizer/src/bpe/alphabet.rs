//! The symbols that a piece begins as.

use super::pairs::NO_SYMBOL;

/// What a piece begins as, before anything merges.
pub(crate) enum Alphabet {
    /// Every byte is a symbol: of byte 0 to 255.
    Bytes(Box<[u32; 256]>),
    /// Every character is a symbol; one that has none is its bytes.
    Characters {
        /// Symbols of characters.
        characters: Characters,
        /// Symbols of byte 0 to 255.
        bytes: Box<[u32; 256]>,
    },
}

/// Symbols of characters, in two stages: there are tens of thousands, near each other.
pub(crate) struct Characters {
    /// Of each block of characters, which one of the blocks of symbols is its own.
    block_of: Vec<usize>,
    /// Block by block; the first is of characters that have none.
    symbols: Vec<u32>,
    len: usize,
}

/// Characters of a block.
const BLOCK: usize = 256;

impl Alphabet {
    /// Writes the symbols that `piece` begins as.
    pub(super) fn begin(&self, piece: &[u8], symbols: &mut Vec<u32>) {
        symbols.clear();
        match self {
            Self::Bytes(bytes) => symbols.extend(of_bytes(bytes, piece)),
            Self::Characters { characters, bytes } => {
                for chunk in piece.utf8_chunks() {
                    for char in chunk.valid().chars() {
                        match characters.get(char) {
                            Some(symbol) => symbols.push(symbol),
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

impl Characters {
    /// How many have a symbol.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn get(&self, char: char) -> Option<u32> {
        let (block, within) = place(char);
        let start = self.block_of.get(block)? * BLOCK;
        self.symbols.get(start + within).copied().filter(|symbol| *symbol != NO_SYMBOL)
    }

    fn insert(&mut self, char: char, symbol: u32) {
        let (block, within) = place(char);
        self.block_of.resize(self.block_of.len().max(block + 1), 0);
        let Some(own) = self.block_of.get_mut(block) else { return };
        if *own == 0 {
            *own = self.symbols.len() / BLOCK;
            self.symbols.resize(self.symbols.len() + BLOCK, NO_SYMBOL);
        }
        if let Some(known) = self.symbols.get_mut(*own * BLOCK + within) {
            self.len += usize::from(*known == NO_SYMBOL);
            *known = symbol;
        }
    }
}

impl FromIterator<(char, u32)> for Characters {
    fn from_iter<I: IntoIterator<Item = (char, u32)>>(symbols: I) -> Self {
        let mut made = Self { block_of: Vec::new(), symbols: vec![NO_SYMBOL; BLOCK], len: 0 };
        symbols.into_iter().for_each(|(char, symbol)| made.insert(char, symbol));
        made
    }
}

const fn place(char: char) -> (usize, usize) {
    (char as usize / BLOCK, char as usize % BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_have_their_own_symbols_and_others_have_none() {
        let known = ['\0', 'a', 'b', 'ÿ', '日', '🚕', '\u{10ffff}', 'a'];
        let characters: Characters = known.into_iter().zip(5..).collect();
        let found = known.map(|char| characters.get(char));
        assert_eq!(found, [5, 12, 7, 8, 9, 10, 11, 12].map(Some));
        assert_eq!(characters.len(), 7);
        assert_eq!(['c', 'Ā', '本', '\u{10fffe}'].map(|char| characters.get(char)), [None; 4]);
    }
}
