//! The table of pairs of symbols and what they merge into.
//!
//! Symbols are numbered in the order of merging: of the pairs that may merge, the lowest one merges
//! first.

/// No symbol: what two that do not merge become; higher than all others.
pub(super) const NEVER: u32 = u32::MAX;

/// Bits that a symbol takes.
const SYMBOL_BITS: u32 = 21;

/// Symbol of a byte that has none in the vocabulary: a token by itself that never merges. All
/// others are below it.
pub(crate) const NO_SYMBOL: u32 = (1 << SYMBOL_BITS) - 1;

/// Pairs of symbols, found by open addressing.
pub(super) struct Pairs {
    /// Left, right, and what they become, in one number each. A power of two of them, at most half
    /// of them taken.
    slots: Box<[u64]>,
    /// A bit for each sixteenth of a slot, set where a pair hashes to: most pairs that are asked
    /// for do not merge, and this tells it without a look into memory that is far away.
    taken: Box<[u64]>,
    /// What leaves of a hash as many bits as number the slots.
    shift: u32,
    /// How many are taken.
    len: usize,
}

/// Fewest slots: as many as a hash's bits can be parted for.
const SLOTS_MIN: usize = 8;

/// No pair: three symbols leave the topmost bit unset.
const EMPTY: u64 = u64::MAX;

impl Pairs {
    /// Room for `len` pairs.
    pub(super) fn with_capacity(len: usize) -> Self {
        let slots = (2 * len).next_power_of_two().max(SLOTS_MIN);
        Self {
            slots: vec![EMPTY; slots].into(),
            taken: vec![0; (slots / 4).max(1)].into(),
            shift: 64 - slots.trailing_zeros(),
            len: 0,
        }
    }

    /// Adds a pair, or replaces what it becomes. Pairs beyond the room made for them are left out,
    /// and those of [`NO_SYMBOL`] and above.
    pub(super) fn insert(&mut self, left: u32, right: u32, merged: u32) {
        let mask = self.slots.len() - 1;
        if left.max(right).max(merged) >= NO_SYMBOL || 2 * self.len >= self.slots.len() {
            return;
        }
        let key = key(left, right);
        let hash = hash(key);
        let (word, bit) = bit(hash, self.shift);
        if let Some(word) = self.taken.get_mut(word) {
            *word |= bit;
        }
        let mut at = number(hash, self.shift);
        while let Some(slot) = self.slots.get_mut(at & mask) {
            if *slot == EMPTY || *slot >> SYMBOL_BITS == key {
                self.len += usize::from(*slot == EMPTY);
                *slot = key << SYMBOL_BITS | u64::from(merged);
                return;
            }
            at += 1;
        }
    }

    /// What the pair becomes, or [`NEVER`].
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> u32 {
        let key = key(left, right);
        let hash = hash(key);
        let (word, bit) = bit(hash, self.shift);
        if self.taken.get(word).is_none_or(|word| word & bit == 0) {
            return NEVER;
        }
        let mask = self.slots.len() - 1;
        let mut at = number(hash, self.shift);
        while let Some(&slot) = self.slots.get(at & mask) {
            if slot >> SYMBOL_BITS == key {
                return merged(slot);
            }
            if slot == EMPTY {
                break;
            }
            at += 1;
        }
        NEVER
    }
}

const fn key(left: u32, right: u32) -> u64 {
    (left as u64) << SYMBOL_BITS | right as u64
}

#[expect(clippy::cast_possible_truncation, reason = "the symbol is in the lowest bits")]
const fn merged(slot: u64) -> u32 {
    slot as u32 & NO_SYMBOL
}

const fn hash(key: u64) -> u64 {
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The slot that a hash belongs to.
#[expect(clippy::cast_possible_truncation, reason = "as many bits as number the slots are left")]
const fn number(hash: u64, shift: u32) -> usize {
    (hash >> shift) as usize
}

/// The bit that a hash belongs to: the number of a word of 64, and the bit in it.
const fn bit(hash: u64, shift: u32) -> (usize, u64) {
    (number(hash, shift + 2), 1 << (hash >> (shift - 4) & 63))
}
