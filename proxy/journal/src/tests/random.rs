//! Small random numbers that are the same for the same seed, and the source of a test's seed.

use std::hash::{BuildHasher, RandomState};

/// Set it to what a failed run has printed, to have the same run again.
const SEED_VARIABLE: &str = "TAXIMETER_TEST_SEED";

/// xorshift64*.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

/// The seed of this run, which is printed: given, or new.
pub(super) fn seed() -> u64 {
    let given = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| RandomState::new().hash_one(0));
    println!("{SEED_VARIABLE}={seed}");
    seed
}

impl Random {
    /// The numbers of one part of a run.
    pub(super) fn new(seed: u64, part: u64) -> Self {
        let mut random = Self((seed ^ part.wrapping_mul(0x9E37_79B9_7F4A_7C15)) | 1);
        random.index(1);
        random
    }

    /// Less than `bound`.
    pub(super) fn index(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        usize::try_from(number).unwrap() % bound
    }

    pub(super) fn one_in(&mut self, many: usize) -> bool {
        self.index(many) == 0
    }

    pub(super) fn byte(&mut self) -> u8 {
        u8::try_from(self.index(256)).unwrap()
    }
}
