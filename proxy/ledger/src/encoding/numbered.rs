//! The numbers of words in entries. A number keeps its meaning for ever, and new words get new
//! numbers.

use taximeter_pricing::{Condition, Flag, Member, Source};

use super::member::DecodeError;
use crate::dimensions::{RequestKind, SessionSource};
use crate::entry::VoidReason;
use crate::record::{End, Identity};
use crate::unknown_cost::UnknownCostReason;

/// A word that is written as a number.
pub(super) trait Numbered: Copy + 'static {
    /// What it is a value of, for errors.
    const NAME: &'static str;
    /// The words, from number 1.
    const WORDS: &'static [Self];

    /// The number of the word.
    fn number(self) -> u64;

    /// The word of a number.
    fn of(number: u64) -> Result<Self, DecodeError> {
        let index = usize::try_from(number.wrapping_sub(1)).ok();
        let word = index.and_then(|index| Self::WORDS.get(index)).copied();
        word.ok_or(DecodeError::UnknownValue(Self::NAME))
    }
}

/// The compiler checks that each word has a number, and a test that the numbers are those of the
/// list.
macro_rules! numbered {
    ($type:ident, $name:literal, $($word:ident = $number:literal),+ $(,)?) => {
        impl Numbered for $type {
            const NAME: &'static str = $name;
            const WORDS: &'static [Self] = &[$(Self::$word),+];

            fn number(self) -> u64 {
                match self {
                    $(Self::$word => $number),+
                }
            }
        }
    };
}

numbered!(Identity, "identity", ApiKey = 1, Header = 2, Unknown = 3);
numbered!(
    End,
    "end",
    Complete = 1,
    ClientLeft = 2,
    ClientStalled = 3,
    Truncated = 4,
    UpstreamError = 5,
    UpstreamStalled = 6,
    UpstreamRefused = 7,
    Deadline = 8,
    BudgetCut = 9,
    Shutdown = 10,
    GatewayDied = 11,
    Refused = 12,
);
numbered!(Source, "source", Reported = 1, Counted = 2, Unknown = 3, None = 4);
numbered!(
    Member,
    "member",
    InputTokens = 1,
    CacheReadInputTokens = 2,
    CacheWriteInputTokens = 3,
    OutputTokens = 4,
    ReasoningOutputTokens = 5,
);
numbered!(
    Flag,
    "flag",
    Estimated = 1,
    Inconsistent = 2,
    Hidden = 3,
    TotalMismatch = 4,
    Changed = 5,
    Invalid = 6,
    Zero = 7,
    Missing = 8,
    Context = 9,
    TokenIds = 10,
    Differs = 11,
    Pending = 12,
    Clock = 13,
    MaybeUnsent = 14,
);
numbered!(Condition, "condition", InferenceGeo = 1, Speed = 2, SearchContextSize = 3, Region = 4,);
numbered!(SessionSource, "session_source", Header = 1, Body = 2, Derived = 3);
numbered!(RequestKind, "kind", Prewarm = 1, Compaction = 2, Title = 3);
numbered!(VoidReason, "reason", NotSent = 1, UpstreamRefused = 2, UpstreamAuth = 3, ClientLeft = 4,);
numbered!(
    UnknownCostReason,
    "cost_unknown",
    NoPrice = 1,
    Ended = 2,
    NotBegun = 3,
    NoRate = 4,
    NoTier = 5,
    NoCondition = 6,
    NoQuantity = 7,
    TooLarge = 8,
);

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Numbered + PartialEq + std::fmt::Debug>() {
        for (index, word) in T::WORDS.iter().enumerate() {
            assert_eq!(word.number(), index as u64 + 1);
            assert_eq!(T::of(word.number()), Ok(*word));
        }
        for number in [0, T::WORDS.len() as u64 + 1, u64::MAX] {
            assert_eq!(T::of(number), Err(DecodeError::UnknownValue(T::NAME)));
        }
    }

    #[test]
    fn each_word_reads_back_and_other_numbers_are_told() {
        check::<Identity>();
        check::<End>();
        check::<Source>();
        check::<Member>();
        check::<Flag>();
        check::<Condition>();
        check::<SessionSource>();
        check::<RequestKind>();
        check::<VoidReason>();
        check::<UnknownCostReason>();
    }
}
