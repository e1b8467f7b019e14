//! What a usage object says of each number that it may have.

use crate::json::{Count, Malformed, Reader};

/// What is said of one number. Of two readings the greater one says more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reading {
    /// Nothing.
    #[default]
    Absent,
    /// Something that is no whole number in range.
    Unreadable,
    /// The number.
    Number(u64),
}

impl Reading {
    /// Reads a value. `null` says nothing.
    pub(super) fn read(value: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match value.count()? {
            Count::Absent => Self::Absent,
            Count::Whole(number) => Self::Number(number),
            Count::Invalid => Self::Unreadable,
        })
    }

    /// The number, if it is one.
    pub(crate) const fn number(self) -> Option<u64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Absent | Self::Unreadable => None,
        }
    }

    /// Whether it is a number above zero.
    pub(crate) fn is_positive(self) -> bool {
        self > Self::Number(0)
    }

    /// The sum where one of both may be left out because it is zero.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => Self::Number(one.saturating_add(other)),
            (Self::Unreadable, _) | (_, Self::Unreadable) => Self::Unreadable,
            (reading, Self::Absent) | (Self::Absent, reading) => reading,
        }
    }

    /// The sum of what two parts of a request say. It is unknown where one of them says nothing.
    pub(super) fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Absent, Self::Number(_)) | (Self::Number(_), Self::Absent) => Self::Absent,
            _ => self.and(other),
        }
    }

    /// What counts where an earlier report said `earlier`: the later word, unless that is a zero in
    /// the place of a number.
    pub(crate) fn over(self, earlier: Self) -> Self {
        match self {
            Self::Absent => earlier,
            Self::Number(0) if earlier.is_positive() => earlier,
            _ => self,
        }
    }
}

macro_rules! tokens {
    ($($(#[doc = $words:literal])+ $tokens:ident,)+) => {
        /// The numbers of tokens that a usage object may have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Tokens {
            $($(#[doc = $words])+ $tokens,)+
        }

        impl Tokens {
            /// Each of them.
            pub(super) const ALL: &[Self] = &[$(Self::$tokens),+];

            /// What it counts, in words.
            #[cfg(test)]
            pub(super) const fn words(self) -> &'static str {
                match self {
                    $(Self::$tokens => concat!($($words),+),)+
                }
            }
        }
    };
}

tokens! {
    /// All input, the cached part included.
    Input,
    /// Input that may leave out what was cached.
    BareInput,
    /// Input that is billed.
    BilledInput,
    /// Input that tools brought, beside the prompt.
    ToolInput,
    /// Input of images, beside the text.
    ImageInput,
    /// Output.
    Output,
    /// Output that is billed.
    BilledOutput,
    /// Output of answers that were not chosen, beside the one that was.
    OtherOutput,
    /// Input and output.
    Total,
    /// Read from a cache, and part of the input.
    CacheRead,
    /// Read from a cache, beside an input that leaves it out.
    CacheReadBeside,
    /// Written to a cache, and part of the input.
    CacheWrite,
    /// Written to a cache, beside an input that leaves it out.
    CacheWriteBeside,
    /// The part of the cache writes with the short time to live.
    CacheWriteShort,
    /// The part of the cache writes with the long time to live.
    CacheWriteLong,
    /// Reasoning.
    Reasoning,
    /// Reasoning, beside the output.
    ReasoningBeside,
    /// Citations, beside the output.
    Citations,
}

/// Names for one number, by rank. A report may use several.
const SAME: [&[Tokens]; 2] = [
    &[Tokens::BilledInput, Tokens::Input, Tokens::BareInput],
    &[Tokens::BilledOutput, Tokens::Output],
];

impl Tokens {
    /// Whether the choices of one prompt share it.
    const fn is_of_prompt(self) -> bool {
        !matches!(
            self,
            Self::Output
                | Self::BilledOutput
                | Self::OtherOutput
                | Self::Total
                | Self::Reasoning
                | Self::ReasoningBeside
                | Self::Citations
        )
    }
}

/// What is said of each number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Readings([Reading; Tokens::ALL.len()]);

impl Readings {
    #[expect(clippy::indexing_slicing, reason = "there is a place for each of `Tokens`")]
    pub(super) const fn get(&self, tokens: Tokens) -> Reading {
        self.0[tokens as usize]
    }

    #[expect(clippy::indexing_slicing, reason = "there is a place for each of `Tokens`")]
    pub(super) const fn get_mut(&mut self, tokens: Tokens) -> &mut Reading {
        &mut self.0[tokens as usize]
    }

    /// Takes what one more name says. What says more counts, in any order: a number before a zero,
    /// and a zero before what cannot be read.
    pub(super) fn take(&mut self, tokens: Tokens, reading: Reading) {
        let known = self.get_mut(tokens);
        *known = reading.max(*known);
    }

    /// The first number above zero, or else what says most.
    pub(super) fn first(&self, names: &[Tokens]) -> Reading {
        let readings = || names.iter().map(|tokens| self.get(*tokens));
        let positive = readings().find(|reading| reading.is_positive());
        positive.or_else(|| readings().max()).unwrap_or_default()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Reading> + '_ {
        self.0.iter().copied()
    }

    /// These over earlier ones, number by number.
    pub(super) fn over(self, earlier: &Self) -> Self {
        let mut all = self;
        for tokens in Tokens::ALL {
            *all.get_mut(*tokens) = self.get(*tokens).over(earlier.get(*tokens));
        }
        for names in SAME {
            if self.first(names).is_positive() {
                names.iter().for_each(|tokens| *all.get_mut(*tokens) = self.get(*tokens));
            }
        }
        all
    }

    /// The sum of these and those of another part of the request, whose prompt may be the same.
    pub(super) fn plus(self, other: &Self, share_prompt: bool) -> Self {
        let mut sum = self;
        for tokens in Tokens::ALL {
            let (one, other) = (self.get(*tokens), other.get(*tokens));
            *sum.get_mut(*tokens) = if share_prompt && tokens.is_of_prompt() {
                one.max(other)
            } else {
                one.plus(other)
            };
        }
        sum
    }
}
