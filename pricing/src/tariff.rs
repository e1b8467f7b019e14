//! Which set of rates a request pays.
//!
//! The service tier, the length of the context, the hours and the conditions of the answer lead to
//! exactly one set of rates in a row. A price that this set lacks is unknown: no other set has it.
//!
//! - A row without rates for any tier costs the same in every tier, and so with contexts and hours.
//! - A rule for a meter without a rate (reasoning costs what output costs, cached input what input
//!   costs) holds within the set. It does not hold for a meter that another set of the row has a
//!   rate for: such a meter has a price of its own, which this set does not tell.
//! - What is charged beside tokens (calls, the request itself) costs what the standard rates say,
//!   unless the set says something else.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use rust_decimal::Decimal;

use crate::meter::{MeterKind, MeterName};
use crate::rates::Rates;
use crate::row::{
    CacheWithoutRate, Effect, LongContext, ModalityWithoutRate, Row, ServiceTier, Threshold,
};
use crate::usage::Condition;

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

/// A way through a row: what leads to one set of rates. The default is the standard rates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Combination {
    /// The service tier. `None` means the standard one, or a row without tiers.
    pub tier: Option<ServiceTier>,
    /// The long context. `None` means a short one.
    pub context: Option<Threshold>,
    /// Whether the request was admitted in off-peak hours.
    pub off_peak: bool,
    /// The conditions that bring rates of their own, with their values.
    pub conditions: Vec<(Condition, String)>,
}

impl Combination {
    /// What to do about a rate that is missing in it.
    pub(crate) const fn advice(&self) -> &'static str {
        let is_of_several = self.tier.is_some() || self.context.is_some();
        match (self.off_peak, self.conditions.len()) {
            (false, 0) => "add it to the overrides",
            (true, 0) | (false, 1) if !is_of_several => "add it to the overrides",
            _ => "no price file can tell the price of this combination",
        }
    }
}

/// For messages, with a space before each part: ` in tier priority with long context (over 272000
/// tokens)`.
impl std::fmt::Display for Combination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(tier) = self.tier {
            write!(f, " in tier {}", tier.as_str())?;
        }
        match self.context {
            Some(Threshold::Over(tokens)) => {
                write!(f, " with long context (over {tokens} tokens)")?;
            }
            Some(Threshold::AtLeast(tokens)) => {
                write!(f, " with long context (at least {tokens} tokens)")?;
            }
            None => {}
        }
        if self.off_peak {
            f.write_str(" in off-peak hours")?;
        }
        for (condition, word) in &self.conditions {
            write!(f, " with {} {word}", condition.as_str())?;
        }
        Ok(())
    }
}

/// The rates of one request.
#[derive(Debug, Clone)]
pub(crate) struct Tariff<'a> {
    row: &'a Row,
    tier: Option<ServiceTier>,
    long: Option<&'a LongContext>,
    is_off_peak: bool,
    effects: Vec<(Condition, &'a str, &'a Effect)>,
    /// The one set of rates. `None` if the row has none for this combination.
    set: Option<&'a Rates>,
}

impl<'a> Tariff<'a> {
    /// The rates of `row` that a request pays.
    pub(crate) fn of(row: &'a Row, context: &PricingContext<'_>) -> Self {
        let tier = context.tier.filter(|_| row.has_tiers());
        let is_off_peak = row.off_peak.as_ref().is_some_and(|off_peak| off_peak.covers(context.at));
        let steps = row.long_context.iter().rev();
        let long = steps.into_iter().find(|long| context.input_tokens >= long.threshold.first());
        let effects = row.when.iter().filter_map(|(condition, words)| {
            let (word, effect) = words.get_key_value(context.conditions.get(condition)?)?;
            Some((*condition, word.as_str(), effect))
        });
        Self::combined(row, tier, long, is_off_peak, effects.collect())
    }

    /// The standard rates.
    pub(crate) fn standard(row: &'a Row) -> Self {
        Self::combined(row, None, None, false, Vec::new())
    }

    /// The rates of one combination.
    pub(crate) fn combined(
        row: &'a Row,
        tier: Option<ServiceTier>,
        long: Option<&'a LongContext>,
        is_off_peak: bool,
        effects: Vec<(Condition, &'a str, &'a Effect)>,
    ) -> Self {
        let off_peak = row.off_peak.as_ref().filter(|_| is_off_peak);
        let mut replacing = effects.iter().filter(|(.., effect)| effect.replaces_rates());
        let set = match (replacing.next(), off_peak, tier, long) {
            (None, None, None, None) => Some(&row.card.rates),
            (None, None, Some(tier), None) => row.card.tiers.rates(tier),
            (None, None, None, Some(long)) => Some(&long.card.rates),
            (None, None, Some(tier), Some(long)) => long.card.tiers.rates(tier),
            (None, Some(off_peak), None, None) => Some(&off_peak.rates),
            (Some((.., effect)), None, None, None) => Some(&effect.rates),
            _ => None,
        };
        let set = set.filter(|_| replacing.next().is_none());
        Self { row, tier, long, is_off_peak, effects, set }
    }

    /// The smallest input, in tokens, that pays these rates.
    pub(crate) fn first_input(&self) -> u64 {
        self.long.map_or(0, |long| long.threshold.first())
    }

    /// What led to this set.
    fn combination(&self) -> Combination {
        let replacing = self.effects.iter().filter(|(.., effect)| effect.replaces_rates());
        Combination {
            tier: self.tier,
            context: self.long.map(|long| long.threshold),
            off_peak: self.is_off_peak,
            conditions: replacing
                .map(|(condition, word, _)| (*condition, (*word).to_owned()))
                .collect(),
        }
    }

    /// The combination in which `meter` has no rate. The default if it has none anywhere.
    pub(crate) fn combination_without(&self, meter: MeterName) -> Combination {
        match self.states(meter) || self.replacement(meter).is_some() {
            true => self.combination(),
            false => Combination::default(),
        }
    }

    /// The price of one on `meter`, before factors. `None` if the book has none.
    pub(crate) fn rate(&self, meter: MeterName) -> Option<Decimal> {
        self.own(meter).or_else(|| self.rate(self.replacement(meter)?))
    }

    /// The factors of the rates of tokens. All of them apply.
    pub(crate) fn factors(&self) -> impl Iterator<Item = Decimal> + '_ {
        self.effects.iter().filter_map(|(.., effect)| effect.times)
    }

    /// Whether the tokens of `meter` are counted apart from those of the meter that would include
    /// them.
    pub(crate) fn is_separate(&self, meter: MeterName) -> bool {
        self.own(meter).is_some() || self.replacement(meter).is_none()
    }

    /// The rate of the set itself.
    pub(crate) fn own(&self, meter: MeterName) -> Option<Decimal> {
        let of_set = || self.set.and_then(|set| set.rate(meter));
        match meter.kind() {
            MeterKind::Beside => {
                let mut effects = self.effects.iter();
                let of_effects = effects.find_map(|(.., effect)| effect.rates.rate(meter));
                of_effects.or_else(of_set).or_else(|| self.row.card.rates.rate(meter))
            }
            MeterKind::InputTokens | MeterKind::OutputTokens | MeterKind::InPlaceOfTokens => {
                of_set()
            }
        }
    }

    /// The meter whose rate replaces a missing one.
    fn replacement(&self, meter: MeterName) -> Option<MeterName> {
        self.row.replacement(meter)
    }

    /// Whether all tokens on the side of `whole` (input or output) are free. Then their number need
    /// not be known.
    pub(crate) fn is_free(&self, whole: MeterName) -> bool {
        let is_free = |meter| match self.rate(meter) {
            Some(rate) => rate.is_zero(),
            None => meter != whole && !self.row.stated.contains(meter),
        };
        is_free(whole)
            && MeterName::ALL.into_iter().filter(|meter| meter.kind() == whole.kind()).all(is_free)
    }

    /// Whether the row has any rate of tokens, in this set or another.
    pub(crate) fn prices_tokens(&self) -> bool {
        MeterName::ALL.into_iter().any(|meter| meter.counts_tokens() && self.states(meter))
    }

    /// Whether any number of `meter`, one at least, costs money or has an unknown price.
    pub(crate) fn may_charge(&self, meter: MeterName) -> bool {
        self.rate(meter).map_or_else(|| self.row.stated.contains(meter), |rate| !rate.is_zero())
    }

    /// Whether the row has a rate for `meter`, in this set or another.
    pub(crate) fn states(&self, meter: MeterName) -> bool {
        self.row.stated.contains(meter)
    }
}

impl Effect {
    /// Whether it brings a set of rates of its own, and not only prices of calls.
    fn replaces_rates(&self) -> bool {
        self.rates.iter().any(|(meter, _)| meter.kind() != MeterKind::Beside)
    }
}

/// The rates of one combination, as the book shows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedRates {
    /// What leads to them.
    pub combination: Combination,
    /// The rates, before factors.
    pub rates: Rates,
    /// The meters that other combinations of the row have a rate for, and this one has none. What
    /// they count has no price in this combination.
    pub lacking: Vec<MeterName>,
}

impl CombinedRates {
    /// Whether anything but calls has a rate.
    #[must_use]
    pub fn has_rates(&self) -> bool {
        self.rates.iter().any(|(meter, _)| meter.kind() != MeterKind::Beside)
    }
}

impl Row {
    /// The meter whose rate replaces that of `meter`, by the rules of the book. `None` if `meter`
    /// has a rate of its own in any set, or no rule holds for it.
    fn replacement(&self, meter: MeterName) -> Option<MeterName> {
        let is_stated = |meter| self.stated.contains(meter);
        let as_text = self.modality_without_rate == ModalityWithoutRate::Text;
        let as_input = self.cache_without_rate == CacheWithoutRate::Input;
        let (rule, has_own) = match meter {
            MeterName::InputImage => (Some(MeterName::Input), false),
            MeterName::CacheReadImage => (Some(MeterName::CacheRead), false),
            MeterName::Reasoning => (Some(MeterName::Output), false),
            MeterName::CacheRead => (as_input.then_some(MeterName::Input), false),
            // The two lives of a cache write differ in price: who states one, states both.
            MeterName::CacheWrite => {
                (as_input.then_some(MeterName::Input), is_stated(MeterName::CacheWriteLong))
            }
            MeterName::CacheWriteLong => {
                (as_input.then_some(MeterName::Input), is_stated(MeterName::CacheWrite))
            }
            MeterName::InputAudio | MeterName::InputVideo => {
                (as_text.then_some(MeterName::Input), false)
            }
            MeterName::CacheReadAudio => (as_text.then_some(MeterName::CacheRead), false),
            MeterName::OutputAudio | MeterName::OutputImage | MeterName::OutputVideo => {
                (as_text.then_some(MeterName::Output), false)
            }
            _ => (None, false),
        };
        rule.filter(|_| !has_own && !is_stated(meter))
    }

    /// Whether any service tier has rates of its own.
    pub(crate) fn has_tiers(&self) -> bool {
        ServiceTier::ALL.into_iter().any(|tier| self.has_tier(tier))
    }

    fn has_tier(&self, tier: ServiceTier) -> bool {
        let long = self.long_context.iter().map(|long| &long.card);
        std::iter::once(&self.card).chain(long).any(|card| card.tiers.rates(tier).is_some())
    }

    /// Every way through the row in these hours (off-peak or not): each service tier that it names,
    /// with each length of the context, under all conditions with rates of their own.
    pub(crate) fn tariffs(&self, is_off_peak: bool) -> Vec<Tariff<'_>> {
        let tiers = ServiceTier::ALL.into_iter().filter(|tier| self.has_tier(*tier)).map(Some);
        let contexts = std::iter::once(None).chain(self.long_context.iter().map(Some));
        let effects = self.replacing_effects();
        let mut tariffs = Vec::new();
        for long in contexts {
            for tier in std::iter::once(None).chain(tiers.clone()) {
                for effects in &effects {
                    tariffs.push(Tariff::combined(self, tier, long, is_off_peak, effects.clone()));
                }
            }
        }
        tariffs
    }

    /// The conditions with rates of their own, alone and together. The first is none of them.
    fn replacing_effects(&self) -> Vec<Vec<(Condition, &str, &Effect)>> {
        let mut combined = vec![Vec::new()];
        for (condition, words) in &self.when {
            for before in combined.clone() {
                let replacing = words.iter().filter(|(_, effect)| effect.replaces_rates());
                combined.extend(replacing.map(|(word, effect)| {
                    let mut with = before.clone();
                    with.push((*condition, word.as_str(), effect));
                    with
                }));
            }
        }
        combined
    }

    /// Every combination of what the row names, with its rates and what it lacks. A row with tiers
    /// prices nothing in a tier that it does not name.
    #[must_use]
    pub fn combinations(&self) -> Vec<CombinedRates> {
        let shown = |tariff: Tariff<'_>| {
            let meters = MeterName::ALL.into_iter().filter(|meter| self.stated.contains(*meter));
            let (known, lacking): (Vec<_>, Vec<_>) = meters
                .map(|meter| (meter, tariff.own(meter)))
                .partition(|(_, rate)| rate.is_some());
            CombinedRates {
                combination: tariff.combination(),
                rates: known.into_iter().filter_map(|(meter, rate)| Some((meter, rate?))).collect(),
                lacking: lacking.into_iter().map(|(meter, _)| meter).collect(),
            }
        };
        let off_peak = self.off_peak.iter().flat_map(|_| self.tariffs(true));
        self.tariffs(false).into_iter().chain(off_peak).map(shown).collect()
    }

    /// What has no price, by combination: `cache_write_long in tier batch`, `all in tier priority
    /// with long context (over 272000 tokens)`.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let combinations = self.combinations();
        let lacking = combinations.iter().filter(|combined| !combined.lacking.is_empty());
        let mut gaps: Vec<_> = lacking
            .map(|combined| {
                let meters: Vec<_> = combined.lacking.iter().map(|meter| meter.as_str()).collect();
                let meters =
                    if combined.has_rates() { meters.join(", ") } else { "all".to_owned() };
                format!("{meters}{}", combined.combination)
            })
            .collect();
        let unnamed = ServiceTier::ALL.into_iter().filter(|tier| !self.has_tier(*tier));
        let unnamed: Vec<_> = unnamed.map(ServiceTier::as_str).collect();
        if self.has_tiers() && !unnamed.is_empty() {
            gaps.push(format!("all in tier {}", unnamed.join(", ")));
        }
        gaps
    }

    /// The meter whose rates `meter` has by the rules of the book, because it has none of its own.
    #[must_use]
    pub fn costs_as(&self, meter: MeterName) -> Option<MeterName> {
        let whole = self.replacement(meter)?;
        if self.stated.contains(whole) { Some(whole) } else { self.costs_as(whole) }
    }
}
