//! Which two symbols merge, in which order, into which.

/// What a pair merges into. Lower is merged earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Merge(u64);

impl Merge {
    /// Of a pair that does not merge; later than all others.
    pub(super) const NONE: Self = Self(u64::MAX);

    const fn new(rank: u32, merged: u32) -> Self {
        Self((rank as u64) << 32 | merged as u64)
    }

    /// Its rank, and a place below: less is earlier, and of equals the left one.
    pub(super) const fn rank_and(self, place: u32) -> u64 {
        self.0 >> 32 << 32 | place as u64
    }

    /// The place in what [`Merge::rank_and`] made.
    #[expect(clippy::cast_possible_truncation, reason = "the place is in the lower half")]
    pub(super) const fn place(rank_and_place: u64) -> u32 {
        rank_and_place as u32
    }

    /// The symbol that takes the place of both.
    #[expect(clippy::cast_possible_truncation, reason = "the symbol is in the lower half")]
    pub(super) const fn merged(self) -> u32 {
        self.0 as u32
    }
}

/// Pairs of symbols, found by open addressing.
pub(super) struct Pairs {
    /// A power of two of them, at most half of them taken.
    slots: Box<[(u64, Merge)]>,
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

/// No pair: symbols are numbered from 0, and there are fewer than 2³².
const EMPTY: (u64, Merge) = (u64::MAX, Merge::NONE);

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

    /// Adds a pair, or replaces what it merges into. Pairs beyond the room made for them are left
    /// out.
    pub(super) fn insert(&mut self, left: u32, right: u32, rank: u32, merged: u32) {
        let key = key(left, right);
        let mask = self.slots.len() - 1;
        if 2 * self.len >= self.slots.len() {
            return;
        }
        let hash = hash(key);
        let (word, bit) = bit(hash, self.shift);
        if let Some(word) = self.taken.get_mut(word) {
            *word |= bit;
        }
        let mut at = number(hash, self.shift);
        while let Some(slot) = self.slots.get_mut(at & mask) {
            if slot.0 == EMPTY.0 {
                *slot = (key, Merge::new(rank, merged));
                self.len += 1;
                return;
            }
            if slot.0 == key {
                slot.1 = Merge::new(rank, merged);
                return;
            }
            at += 1;
        }
    }

    /// What the pair merges into, or [`Merge::NONE`].
    #[inline]
    pub(super) fn get(&self, left: u32, right: u32) -> Merge {
        let key = key(left, right);
        let hash = hash(key);
        let (word, bit) = bit(hash, self.shift);
        if self.taken.get(word).is_none_or(|word| word & bit == 0) {
            return Merge::NONE;
        }
        let mask = self.slots.len() - 1;
        let mut at = number(hash, self.shift);
        while let Some(&(found, merge)) = self.slots.get(at & mask) {
            if found == key || found == EMPTY.0 {
                return merge;
            }
            at += 1;
        }
        Merge::NONE
    }
}

const fn key(left: u32, right: u32) -> u64 {
    (left as u64) << 32 | right as u64
}

const fn hash(key: u64) -> u64 {
    let folded = (key >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ key;
    folded.wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
