//! One row of the book: what one model costs, and which of its rates a request pays.

use std::collections::BTreeMap;

use jiff::civil::{Date, DateTime};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::currency::Currency;
use crate::meter::MeterName;
use crate::off_peak::OffPeak;
use crate::rates::{Rates, factor};
use crate::usage::Condition;

/// A service tier with prices of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceTier {
    /// Answered within hours.
    Batch,
    /// Answered when there is room.
    Flex,
    /// Answered before others.
    Priority,
    /// Answered at the highest speed.
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

/// Rates that replace the standard ones, meter by meter, in a service tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tiers {
    /// [`ServiceTier::Batch`].
    pub batch: Option<Rates>,
    /// [`ServiceTier::Flex`].
    pub flex: Option<Rates>,
    /// [`ServiceTier::Priority`].
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

/// Standard rates, and what replaces them in a service tier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Card {
    /// Standard.
    pub rates: Rates,
    /// By service tier.
    pub tiers: Tiers,
}

impl Card {
    fn in_tier(&self, tier: Option<ServiceTier>) -> Option<&Rates> {
        self.tiers.rates(tier?)
    }
}

/// Prices of the whole request once its input is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongContext {
    /// Where it begins.
    pub threshold: Threshold,
    /// What replaces the row's own card, meter by meter.
    pub card: Card,
}

/// Where a long context begins, in input tokens, cached or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threshold {
    /// Above that many.
    Over(u64),
    /// At that many.
    AtLeast(u64),
}

impl Threshold {
    /// The smallest input it applies to.
    #[must_use]
    pub const fn first(self) -> u64 {
        match self {
            Self::Over(tokens) => tokens.saturating_add(1),
            Self::AtLeast(tokens) => tokens,
        }
    }
}

/// What a word of an answer changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Effect {
    /// Multiplies every rate of tokens.
    #[serde(deserialize_with = "factor")]
    pub times: Option<Decimal>,
    /// Replaces all others, meter by meter, before it is multiplied.
    pub rates: Rates,
}

/// By condition and word: what it changes. Words that are not in here change nothing.
pub type When = BTreeMap<Condition, BTreeMap<String, Effect>>;

/// What a part without a rate of its own costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheWithoutRate {
    /// Nobody said: the cost of such a request is unknown.
    #[default]
    Unknown,
    /// What input costs.
    Input,
}

/// What sound and films cost, and pictures that were generated, without a rate of their own.
/// Pictures in the input cost what text does by every list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModalityWithoutRate {
    /// Nobody said: the cost of such a request is unknown.
    #[default]
    Unknown,
    /// What text costs.
    Text,
}

/// What one model costs, from a day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which row of which book in which version: `builtin@2026-11-20#openai/gpt-5.4`, with its
    /// first day behind it where it has one: `…@2027-01-01`.
    pub price_id: String,
    /// `gen_ai.provider.name` of the answers it prices; `None` prices any provider's.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// First day, UTC; `None` is since ever.
    pub from: Option<Date>,
    /// The day on which it no longer holds, UTC; `None` is for ever.
    pub until: Option<Date>,
    /// Of all its rates.
    pub currency: Currency,
    /// The model generates nothing, so that an output nobody reports is none.
    pub input_only: bool,
    /// Rule for cached input without a rate.
    pub cache_without_rate: CacheWithoutRate,
    /// Rule for other than text without a rate.
    pub modality_without_rate: ModalityWithoutRate,
    /// What applies unless something below replaces it.
    pub card: Card,
    /// By rising threshold; the last that applies replaces the card.
    pub long_context: Vec<LongContext>,
    /// Replaces all others in its hours.
    pub off_peak: Option<OffPeak>,
    /// What words of the answer change.
    pub when: When,
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

    /// Whether any service tier has a price of its own.
    pub(crate) fn has_tiers(&self) -> bool {
        let long = self.long_context.iter().map(|long| &long.card);
        std::iter::once(&self.card)
            .chain(long)
            .any(|card| ServiceTier::ALL.iter().any(|tier| card.tiers.rates(*tier).is_some()))
    }

    /// What a request pays.
    pub(crate) fn tariff(&self, terms: &Terms<'_>) -> Tariff<'_> {
        let off_peak = self.off_peak.as_ref().filter(|off_peak| off_peak.covers(terms.at));
        let long = self
            .long_context
            .iter()
            .rev()
            .find(|long| terms.input_tokens >= long.threshold.first())
            .map(|long| &long.card);
        let effects = self
            .when
            .iter()
            .filter_map(|(condition, words)| words.get(terms.conditions.get(condition)?.as_str()));
        Tariff {
            layers: [
                off_peak.map(|off_peak| &off_peak.rates),
                long.and_then(|card| card.in_tier(terms.tier)),
                long.map(|card| &card.rates),
                self.card.in_tier(terms.tier),
                Some(&self.card.rates),
            ],
            effects: effects.collect(),
            cache_without_rate: self.cache_without_rate,
            modality_without_rate: self.modality_without_rate,
        }
    }
}

/// What decides which rates a request pays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms<'a> {
    /// Admission, UTC.
    pub(crate) at: DateTime,
    /// The tier that it was answered in.
    pub(crate) tier: Option<ServiceTier>,
    /// All of its input.
    pub(crate) input_tokens: u64,
    /// What the answer says of itself.
    pub(crate) conditions: &'a BTreeMap<Condition, String>,
}

/// The rates of one request: of several layers, the first that names a meter decides it.
#[derive(Debug, Clone)]
pub(crate) struct Tariff<'a> {
    layers: [Option<&'a Rates>; 5],
    effects: Vec<&'a Effect>,
    cache_without_rate: CacheWithoutRate,
    modality_without_rate: ModalityWithoutRate,
}

impl Tariff<'_> {
    /// Money per one on `meter` before factors; `None` when the book does not say.
    pub(crate) fn rate(&self, meter: MeterName) -> Option<Decimal> {
        self.own(meter).or_else(|| self.rate(self.stand_in(meter)?))
    }

    /// What multiplies the rates of tokens; several stand one behind another.
    pub(crate) fn factors(&self) -> impl Iterator<Item = Decimal> + '_ {
        self.effects.iter().filter_map(|effect| effect.times)
    }

    /// Whether `meter` is told apart from the one that would include it.
    pub(crate) fn tells_apart(&self, meter: MeterName) -> bool {
        self.own(meter).is_some() || self.stand_in(meter).is_none()
    }

    fn own(&self, meter: MeterName) -> Option<Decimal> {
        let effects = self.effects.iter().map(|effect| &effect.rates);
        effects.chain(self.layers.iter().flatten().copied()).find_map(|rates| rates.rate(meter))
    }

    /// Which rate stands in for one that lacks, by the rules of the book.
    fn stand_in(&self, meter: MeterName) -> Option<MeterName> {
        let as_text = self.modality_without_rate == ModalityWithoutRate::Text;
        let as_input = self.cache_without_rate == CacheWithoutRate::Input;
        match meter {
            MeterName::InputImage => Some(MeterName::Input),
            MeterName::CacheReadImage => Some(MeterName::CacheRead),
            MeterName::Reasoning => Some(MeterName::Output),
            MeterName::CacheRead | MeterName::CacheWrite | MeterName::CacheWriteLong => {
                as_input.then_some(MeterName::Input)
            }
            MeterName::InputAudio | MeterName::InputVideo => as_text.then_some(MeterName::Input),
            MeterName::CacheReadAudio => as_text.then_some(MeterName::CacheRead),
            MeterName::OutputAudio | MeterName::OutputImage | MeterName::OutputVideo => {
                as_text.then_some(MeterName::Output)
            }
            _ => None,
        }
    }

    /// Whether no token on the side of `meters` costs anything, so that nobody need count them.
    pub(crate) fn is_free(&self, whole: MeterName) -> bool {
        self.rate(whole).is_some_and(|rate| rate.is_zero())
            && MeterName::ALL
                .into_iter()
                .filter(|meter| meter.kind() == whole.kind())
                .all(|meter| self.rate(meter).is_none_or(|rate| rate.is_zero()))
    }

    /// Whether it has any rate of tokens.
    pub(crate) fn prices_tokens(&self) -> bool {
        MeterName::ALL.into_iter().any(|meter| meter.counts_tokens() && self.own(meter).is_some())
    }
}
