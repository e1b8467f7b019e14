//! The set of pieces that are tokens themselves.

use std::collections::HashSet;

use foldhash::fast::FixedState;

/// Longest token that is compared in one step.
const SHORT_BYTES_MAX: usize = 15;

/// In place of a token that was removed, so that those behind it are found: no key, since these have
/// a length.
const LEFT: u128 = 1;

/// A set of byte strings, asked about a part of a text.
pub(crate) struct Tokens {
    /// Those of up to 15 bytes, by open addressing: their bytes and, on top, their length. A power
    /// of two of slots, at most two thirds of them taken; an empty one is 0, one that was left is `LEFT`.
    short: Box<[u128]>,
    /// What leaves of a hash as many bits as number the slots.
    shift: u32,
    long: HashSet<Box<[u8]>, FixedState>,
    /// How many there are.
    len: usize,
    /// Length of the longest.
    pub(super) bytes_max: usize,
}

impl Tokens {
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let is_short = |token: &&[u8]| token.len() <= SHORT_BYTES_MAX;
        let short = tokens.clone().filter(is_short).count();
        let long = tokens.clone().count() - short;
        let slots = (short * 3 / 2).next_power_of_two().max(2);
        let mut set = Self {
            short: vec![0; slots].into(),
            shift: 64 - slots.trailing_zeros(),
            long: HashSet::with_capacity_and_hasher(long, FixedState::default()),
            len: 0,
            bytes_max: 0,
        };
        let mut keys = Vec::with_capacity(short);
        for token in tokens {
            set.bytes_max = set.bytes_max.max(token.len());
            if !is_short(&token) {
                set.long.insert(token.into());
            } else if let Some(key) = key(token, 0, token.len()) {
                keys.push(key);
            }
        }
        for key in neighbours(&keys, set.shift) {
            set.insert(key);
        }
        set.len += set.long.len();
        set
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn remove(&mut self, token: &[u8]) {
        if token.len() > SHORT_BYTES_MAX {
            self.len -= usize::from(self.long.remove(token));
            return;
        }
        let Some(key) = key(token, 0, token.len()) else { return };
        let mask = self.short.len() - 1;
        let mut at = hash(key, self.shift);
        while let Some(slot) = self.short.get_mut(at & mask).filter(|slot| **slot != 0) {
            if *slot == key {
                *slot = LEFT;
                self.len -= 1;
                return;
            }
            at += 1;
        }
    }

    fn insert(&mut self, key: u128) {
        let mask = self.short.len() - 1;
        let mut at = hash(key, self.shift);
        while let Some(slot) = self.short.get_mut(at & mask) {
            if *slot == 0 || *slot == key {
                self.len += usize::from(*slot == 0);
                *slot = key;
                return;
            }
            at += 1;
        }
    }

    /// Whether `text[at..end]` is a token.
    #[inline]
    pub(super) fn contains(&self, text: &[u8], at: usize, end: usize) -> bool {
        if end - at > SHORT_BYTES_MAX {
            return end - at <= self.bytes_max
                && text.get(at..end).is_some_and(|piece| self.long.contains(piece));
        }
        let Some(key) = key(text, at, end - at) else { return false };
        let mask = self.short.len() - 1;
        let mut slot = hash(key, self.shift);
        while let Some(&found) = self.short.get(slot & mask) {
            if found == key || found == 0 {
                return found == key;
            }
            slot += 1;
        }
        false
    }
}

/// The `len` bytes of `text` from `at`, and `len` itself; `None` if there are none.
#[inline]
fn key(text: &[u8], at: usize, len: usize) -> Option<u128> {
    if len == 0 {
        return None;
    }
    let rest = text.get(at..)?;
    let bytes = match rest.first_chunk::<16>() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 16];
            bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            bytes
        }
    };
    let unused = 128 - 8 * len;
    let piece = u128::from_le_bytes(bytes) << unused >> unused;
    Some(piece | (len as u128) << 120)
}

/// Parts of a table that are filled one after the other.
const PARTS: usize = 256;

/// `keys`, those whose slots are in the same part of the table side by side: filling a large table in
/// any order waits for memory at each key.
fn neighbours(keys: &[u128], shift: u32) -> Vec<u128> {
    let slots_a_part = ((1_usize << (64 - shift)) / PARTS).max(1);
    let part = |key: u128| hash(key, shift) / slots_a_part;
    let mut next = [0; PARTS + 1];
    for key in keys {
        if let Some(len) = next.get_mut(part(*key) + 1) {
            *len += 1;
        }
    }
    let mut sum = 0;
    for start in &mut next {
        sum += *start;
        *start = sum;
    }
    let mut sorted = vec![0; keys.len()];
    for key in keys {
        let Some(next) = next.get_mut(part(*key)) else { continue };
        if let Some(place) = sorted.get_mut(*next) {
            *place = *key;
        }
        *next += 1;
    }
    sorted
}

#[expect(clippy::cast_possible_truncation, reason = "halves, and what numbers the slots")]
const fn hash(key: u128, shift: u32) -> usize {
    let (low, high) = (key as u64, (key >> 64) as u64);
    let folded = low ^ high.wrapping_mul(0xd6e8_feb8_6659_fd93);
    ((folded ^ folded >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}
