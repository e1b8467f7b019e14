//! One row of the book: the prices of one model, and which of its rates a request pays.

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

/// Rates that replace the standard ones, meter by meter, in a service tier.
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

/// The standard rates, and the rates that replace them in a service tier.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RateCard {
    /// Standard rates.
    pub rates: Rates,
    /// Rates by service tier.
    pub tiers: Tiers,
}

impl RateCard {
    fn in_tier(&self, tier: Option<ServiceTier>) -> Option<&Rates> {
        self.tiers.rates(tier?)
    }
}

/// Prices of the whole request if its input is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongContext {
    /// The smallest input.
    pub threshold: Threshold,
    /// The rates that replace those of the row, meter by meter.
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
    /// Rates that replace all others, meter by meter, before the multiplication.
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
    /// The rates that apply unless something below replaces them.
    pub card: RateCard,
    /// By rising threshold. The last one that applies replaces the card.
    pub long_context: Vec<LongContext>,
    /// Replaces all other rates in its hours.
    pub off_peak: Option<OffPeak>,
    /// What conditions of the answer change.
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

    /// The rates that a request pays.
    pub(crate) fn tariff(&self, context: &PricingContext<'_>) -> Tariff<'_> {
        let off_peak = self.off_peak.as_ref().filter(|off_peak| off_peak.covers(context.at));
        let long = self
            .long_context
            .iter()
            .rev()
            .find(|long| context.input_tokens >= long.threshold.first())
            .map(|long| &long.card);
        let effects = self.when.iter().filter_map(|(condition, words)| {
            words.get(context.conditions.get(condition)?.as_str())
        });
        Tariff {
            layers: [
                off_peak.map(|off_peak| &off_peak.rates),
                long.and_then(|card| card.in_tier(context.tier)),
                long.map(|card| &card.rates),
                self.card.in_tier(context.tier),
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
pub(crate) struct PricingContext<'a> {
    /// Time of admission, UTC.
    pub(crate) at: DateTime,
    /// Service tier of the answer.
    pub(crate) tier: Option<ServiceTier>,
    /// All input of the request.
    pub(crate) input_tokens: u64,
    /// What the answer reports about itself.
    pub(crate) conditions: &'a BTreeMap<Condition, String>,
}

/// The rates of one request. It has several layers: the first one with a rate for a meter decides.
#[derive(Debug, Clone)]
pub(crate) struct Tariff<'a> {
    layers: [Option<&'a Rates>; 5],
    effects: Vec<&'a Effect>,
    cache_without_rate: CacheWithoutRate,
    modality_without_rate: ModalityWithoutRate,
}

impl Tariff<'_> {
    /// The price of one on `meter`, before factors. `None` if the book has none.
    pub(crate) fn rate(&self, meter: MeterName) -> Option<Decimal> {
        self.own(meter).or_else(|| self.rate(self.fallback_meter(meter)?))
    }

    /// The factors of the rates of tokens. All of them apply.
    pub(crate) fn factors(&self) -> impl Iterator<Item = Decimal> + '_ {
        self.effects.iter().filter_map(|effect| effect.times)
    }

    /// Whether the tokens of `meter` are counted apart from those of the meter that would include
    /// them.
    pub(crate) fn is_separate(&self, meter: MeterName) -> bool {
        self.own(meter).is_some() || self.fallback_meter(meter).is_none()
    }

    fn own(&self, meter: MeterName) -> Option<Decimal> {
        let effects = self.effects.iter().map(|effect| &effect.rates);
        effects.chain(self.layers.iter().flatten().copied()).find_map(|rates| rates.rate(meter))
    }

    /// The meter whose rate replaces a missing one, by the rules of the book.
    fn fallback_meter(&self, meter: MeterName) -> Option<MeterName> {
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

    /// Whether all tokens on the side of `whole` (input or output) are free. Then their number need
    /// not be known.
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
