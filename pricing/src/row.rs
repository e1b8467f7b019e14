//! One row of the book: what one model costs, and which of its rates a request pays.

use std::borrow::Cow;

use jiff::civil::{Date, DateTime, Time, Weekday};
use rust_decimal::Decimal;
use serde::Deserialize;

use crate::per_million::per_token;

/// Currency of a book.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
pub enum Currency {
    /// US dollar.
    #[default]
    #[serde(rename = "USD")]
    Usd,
}

impl Currency {
    /// ISO 4217.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Usd => "USD",
        }
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is counted. The meters of one request are disjoint: each token is on exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeterName {
    /// Input neither read from nor written to a cache.
    Input,
    /// Input served from a cache.
    CacheRead,
    /// Input written to a cache with the short time to live.
    CacheWrite,
    /// Input written to a cache with the long time to live.
    CacheWriteLong,
    /// Output; without the reasoning when that has a rate of its own.
    Output,
    /// Reasoning, when it has a rate of its own.
    Reasoning,
}

impl MeterName {
    /// The word on a record; also the key in a price file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::CacheRead => "cache_read",
            Self::CacheWrite => "cache_write",
            Self::CacheWriteLong => "cache_write_long",
            Self::Output => "output",
            Self::Reasoning => "reasoning",
        }
    }
}

impl std::fmt::Display for MeterName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

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

/// Prices of one thing, in money per **token**, exact. `None`: this card says nothing about that
/// meter.
///
/// Files say them per 1,000,000 tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Of [`MeterName::Input`].
    #[serde(deserialize_with = "per_token")]
    pub input: Option<Decimal>,
    /// Of [`MeterName::CacheRead`].
    #[serde(deserialize_with = "per_token")]
    pub cache_read: Option<Decimal>,
    /// Of [`MeterName::CacheWrite`].
    #[serde(deserialize_with = "per_token")]
    pub cache_write: Option<Decimal>,
    /// Of [`MeterName::CacheWriteLong`].
    #[serde(deserialize_with = "per_token")]
    pub cache_write_long: Option<Decimal>,
    /// Of [`MeterName::Output`].
    #[serde(deserialize_with = "per_token")]
    pub output: Option<Decimal>,
    /// Of [`MeterName::Reasoning`].
    #[serde(deserialize_with = "per_token")]
    pub reasoning: Option<Decimal>,
}

impl Rates {
    /// Money per token on `meter`.
    #[must_use]
    pub const fn rate(&self, meter: MeterName) -> Option<Decimal> {
        match meter {
            MeterName::Input => self.input,
            MeterName::CacheRead => self.cache_read,
            MeterName::CacheWrite => self.cache_write,
            MeterName::CacheWriteLong => self.cache_write_long,
            MeterName::Output => self.output,
            MeterName::Reasoning => self.reasoning,
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

/// Rates that replace all others in certain hours of the week, UTC.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OffPeak {
    /// The rates.
    pub rates: Rates,
    /// When.
    pub windows: Vec<Window>,
}

/// The same hours on some days of the week.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Days.
    pub days: Vec<Day>,
    /// Hours of each of them.
    pub hours: Vec<Hours>,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

impl From<Weekday> for Day {
    fn from(weekday: Weekday) -> Self {
        match weekday {
            Weekday::Monday => Self::Mon,
            Weekday::Tuesday => Self::Tue,
            Weekday::Wednesday => Self::Wed,
            Weekday::Thursday => Self::Thu,
            Weekday::Friday => Self::Fri,
            Weekday::Saturday => Self::Sat,
            Weekday::Sunday => Self::Sun,
        }
    }
}

/// A part of one day, UTC, in minutes since midnight: `from` included, `until` (at most 1440) not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Cow<'_, str>")]
pub struct Hours {
    /// First minute.
    pub from: u16,
    /// The minute after the last.
    pub until: u16,
}

/// As files say them, `22:00-24:00`.
impl TryFrom<Cow<'_, str>> for Hours {
    type Error = &'static str;

    fn try_from(text: Cow<'_, str>) -> Result<Self, Self::Error> {
        const EXPECTED: &str = "hours are like \"22:00-24:00\", within one day; split at midnight";
        let minute = |text: &str| {
            let (hour, minute) = text.split_once(':')?;
            let two_digits = |text: &str| {
                (text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit()))
                    .then(|| text.parse::<u16>().ok())?
            };
            let (hour, minute) = (two_digits(hour)?, two_digits(minute)?);
            (minute < 60 && hour * 60 + minute <= 24 * 60).then_some(hour * 60 + minute)
        };
        let (from, until) = text.split_once('-').ok_or(EXPECTED)?;
        let (from, until) = (minute(from).ok_or(EXPECTED)?, minute(until).ok_or(EXPECTED)?);
        if from < until { Ok(Self { from, until }) } else { Err(EXPECTED) }
    }
}

impl OffPeak {
    fn covers(&self, at: DateTime) -> bool {
        let day = Day::from(at.weekday());
        let minute = minutes(at.time());
        self.windows.iter().any(|window| {
            window.days.contains(&day)
                && window.hours.iter().any(|hours| (hours.from..hours.until).contains(&minute))
        })
    }
}

fn minutes(time: Time) -> u16 {
    u16::from(time.hour().unsigned_abs()) * 60 + u16::from(time.minute().unsigned_abs())
}

/// What cached input without a rate of its own costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheWithoutRate {
    /// Nobody said: the cost of such a request is unknown.
    #[default]
    Unknown,
    /// What input costs.
    Input,
}

/// What one model costs, from a day on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Which row of which book in which version: `builtin@2026-11-20#openai/gpt-5.4`.
    pub price_id: String,
    /// `gen_ai.provider.name` of the answers it prices; `None` prices any provider's.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// First day, UTC; `None` is since ever.
    pub from: Option<Date>,
    /// The model generates nothing, so that an output nobody reports is none.
    pub input_only: bool,
    /// Rule for cached input without a rate.
    pub cache_without_rate: CacheWithoutRate,
    /// What applies unless something below replaces it.
    pub card: Card,
    /// By rising threshold; the last that applies replaces the card.
    pub long_context: Vec<LongContext>,
    /// Replaces all others in its hours.
    pub off_peak: Option<OffPeak>,
}

impl Row {
    /// Whether it prices an answer of `provider` on `day`.
    pub(crate) fn prices(&self, provider: Option<&str>, day: Date) -> bool {
        (self.provider.is_none() || self.provider.as_deref() == provider)
            && self.from.is_none_or(|from| from <= day)
    }

    /// Whether any service tier has a price of its own.
    pub(crate) fn has_tiers(&self) -> bool {
        let long = self.long_context.iter().map(|long| &long.card);
        std::iter::once(&self.card)
            .chain(long)
            .any(|card| ServiceTier::ALL.iter().any(|tier| card.tiers.rates(*tier).is_some()))
    }

    /// What a request with that much input pays, sent at `at` (UTC) and answered in `tier`.
    pub(crate) fn tariff(
        &self,
        at: DateTime,
        tier: Option<ServiceTier>,
        input_tokens: u64,
    ) -> Tariff<'_> {
        let off_peak = self.off_peak.as_ref().filter(|off_peak| off_peak.covers(at));
        let long = self
            .long_context
            .iter()
            .rev()
            .find(|long| input_tokens >= long.threshold.first())
            .map(|long| &long.card);
        Tariff {
            layers: [
                off_peak.map(|off_peak| &off_peak.rates),
                long.and_then(|card| card.in_tier(tier)),
                long.map(|card| &card.rates),
                self.card.in_tier(tier),
                Some(&self.card.rates),
            ],
            cache_without_rate: self.cache_without_rate,
        }
    }
}

/// The rates of one request: of several layers, the first that names a meter decides it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tariff<'a> {
    layers: [Option<&'a Rates>; 5],
    cache_without_rate: CacheWithoutRate,
}

impl Tariff<'_> {
    /// Money per token on `meter`; `None` when the book does not say.
    pub(crate) fn rate(&self, meter: MeterName) -> Option<Decimal> {
        let own = self.layers.iter().flatten().find_map(|rates| rates.rate(meter));
        let at_input = self.cache_without_rate == CacheWithoutRate::Input
            && matches!(
                meter,
                MeterName::CacheRead | MeterName::CacheWrite | MeterName::CacheWriteLong
            );
        if own.is_none() && at_input { self.rate(MeterName::Input) } else { own }
    }
}
