//! What pieces begin as.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::pairs::NO_SYMBOL;

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

impl Alphabet {
    /// Writes the symbols that `piece` begins as.
    pub(super) fn begin(&self, piece: &[u8], symbols: &mut Vec<u32>) {
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
