//! One row of the book: the prices of one model. `tariff.rs` says which of them a request pays.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::currency::Currency;
use crate::meter::MeterSet;
use crate::off_peak::OffPeak;
use crate::rates::{Rates, factor};
use crate::usage::Condition;

/// A service tier with prices of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceTier {
    /// Answers within hours.
    Batch,
    /// Answers when there is capacity.
    Flex,
    /// Answers before others. OpenAI calls it Fast mode.
    Priority,
    /// Answers at the highest speed.
    Ultrafast,
}

impl ServiceTier {
    /// Every tier.
    pub const ALL: [Self; 4] = [Self::Batch, Self::Flex, Self::Priority, Self::Ultrafast];

    /// The key in a price file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Ultrafast => "ultrafast",
        }
    }
}

/// The rates of service tiers. They are used instead of the standard ones and not together with
/// them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tiers {
    /// [`ServiceTier::Batch`].
    pub batch: Option<Rates>,
    /// [`ServiceTier::Flex`].
    pub flex: Option<Rates>,
    /// [`ServiceTier::Priority`].
    #[serde(alias = "fast")]
    pub priority: Option<Rates>,
    /// [`ServiceTier::Ultrafast`].
    pub ultrafast: Option<Rates>,
}

impl Tiers {
    /// The rates of `tier`, if it has any.
    #[must_use]
    pub const fn rates(&self, tier: ServiceTier) -> Option<&Rates> {
        match tier {
            ServiceTier::Batch => self.batch.as_ref(),
            ServiceTier::Flex => self.flex.as_ref(),
            ServiceTier::Priority => self.priority.as_ref(),
            ServiceTier::Ultrafast => self.ultrafast.as_ref(),
        }
    }
}

/// The standard rates, and those of service tiers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateCard {
    /// Standard rates.
    pub rates: Rates,
    /// Rates by service tier.
    pub tiers: Tiers,
}

/// Prices of the whole request if its input is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongContext {
    /// The smallest input.
    pub threshold: Threshold,
    /// The rates.
    pub card: RateCard,
}

/// Where a long context begins, in input tokens, cached or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Above this number.
    Over(u64),
    /// From this number on.
    AtLeast(u64),
}

impl Threshold {
    /// The smallest input in the long context.
    #[must_use]
    pub const fn first(self) -> u64 {
        match self {
            Self::Over(tokens) => tokens.saturating_add(1),
            Self::AtLeast(tokens) => tokens,
        }
    }
}

/// What a condition of an answer changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Effect {
    /// Multiplies every rate of tokens.
    #[serde(deserialize_with = "factor")]
    pub times: Option<Decimal>,
    /// Rates that are used instead of the standard ones, before the multiplication. Rates of calls
    /// alone leave the rates of tokens as they are.
    pub rates: Rates,
}

/// The effects, by condition and its value. Other values change nothing.
pub type When = BTreeMap<Condition, BTreeMap<String, Effect>>;

/// The price of cached input without a rate of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheWithoutRate {
    /// The cost of such a request is unknown.
    #[default]
    Unknown,
    /// The rate of input.
    Input,
}

/// The price of audio, video and generated images without a rate of their own. Images in the input
/// cost the same as text on every price list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModalityWithoutRate {
    /// The cost of such a request is unknown.
    #[default]
    Unknown,
    /// The rate of text.
    Text,
}

/// The prices of one model, from a day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The book, its version and the row: `builtin@2026-11-20#openai/gpt-5.4`. A row with a first
    /// day ends with it: `…@2027-01-01`.
    pub price_id: String,
    /// `gen_ai.provider.name` of the answers that it prices. `None` means any provider.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: String,
    /// Other names of the model.
    pub aliases: Vec<String>,
    /// First day, UTC. `None` means always.
    pub from: Option<Date>,
    /// The day on which it ends, UTC, not included. `None` means never.
    pub until: Option<Date>,
    /// The currency of all rates.
    pub currency: Currency,
    /// Whether the model generates nothing. Then an output that is not reported is zero.
    pub input_only: bool,
    /// The rule for cached input without a rate.
    pub cache_without_rate: CacheWithoutRate,
    /// The rule for modalities without a rate.
    pub modality_without_rate: ModalityWithoutRate,
    /// The rates of requests that nothing below applies to.
    pub card: RateCard,
    /// By rising threshold. The last one that applies is used instead of the card.
    pub long_context: Vec<LongContext>,
    /// Rates of certain hours.
    pub off_peak: Option<OffPeak>,
    /// What conditions of the answer change.
    pub when: When,
    /// The meters that any set of rates has a rate for.
    pub(crate) stated: MeterSet,
}

impl Row {
    /// Whether it prices an answer of `provider` on `day`.
    pub(crate) fn prices(&self, provider: Option<&str>, day: Date) -> bool {
        (self.provider.is_none() || self.provider.as_deref() == provider) && self.holds_on(day)
    }

    /// Whether it is in force on `day`.
    #[must_use]
    pub fn holds_on(&self, day: Date) -> bool {
        self.from.is_none_or(|from| from <= day) && self.until.is_none_or(|until| day < until)
    }

    /// Every set of rates of the row, in no order that means anything.
    pub(crate) fn sets(&self) -> impl Iterator<Item = &Rates> {
        let cards =
            std::iter::once(&self.card).chain(self.long_context.iter().map(|long| &long.card));
        let in_cards = cards.flat_map(|card| {
            let tiers = ServiceTier::ALL.iter().filter_map(|tier| card.tiers.rates(*tier));
            std::iter::once(&card.rates).chain(tiers)
        });
        let off_peak = self.off_peak.iter().map(|off_peak| &off_peak.rates);
        let effects = self.when.values().flat_map(BTreeMap::values).map(|effect| &effect.rates);
        in_cards.chain(off_peak).chain(effects)
    }
}
