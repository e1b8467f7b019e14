//! The most that a request can cost, before it is sent.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::exact::{plus, times};
use crate::meter::{MeterKind, MeterName};
use crate::row::{PricingContext, Row, ServiceTier, Tariff};

impl PriceBook {
    /// The most that a request without further model runs can cost for its tokens and for the
    /// request itself. It covers every context length up to `input_tokens_max`, every service tier,
    /// every state of the cache and every condition. Tool calls such as web searches have no bound
    /// and are not included.
    ///
    /// `None` if the book has no price, no exact price, or a price for something that is charged
    /// instead of tokens, which has no bound either.
    #[must_use]
    pub fn upper_bound(
        &self,
        query: &Query<'_>,
        input_tokens_max: u64,
        output_tokens_max: u64,
    ) -> Option<Decimal> {
        let row = self.find(query)?;
        let meters = meters(row);
        if meters.iter().any(|meter| meter.kind() == MeterKind::InPlaceOfTokens) {
            return None;
        }
        let context = PricingContext {
            at: TimeZone::UTC.to_datetime(query.at),
            tier: None,
            input_tokens: 0,
            conditions: &BTreeMap::new(),
        };
        let steps = row.long_context.iter().map(|long| long.threshold.first());
        let mut most = Decimal::ZERO;
        for input_tokens in std::iter::once(0).chain(steps).filter(|step| *step <= input_tokens_max)
        {
            for tier in std::iter::once(None).chain(ServiceTier::ALL.map(Some)) {
                let tariff = row.tariff(&PricingContext { tier, input_tokens, ..context });
                let dearest = |kind| dearest(row, &tariff, &meters, kind);
                let input = times(input_tokens_max.into(), dearest(MeterKind::InputTokens))?;
                let output = times(output_tokens_max.into(), dearest(MeterKind::OutputTokens))?;
                let tokens = row.when.values().try_fold(plus(input, output)?, |most, words| {
                    let factors = words.values().filter_map(|effect| effect.times);
                    times(most, factors.fold(Decimal::ONE, Decimal::max))
                })?;
                let itself = rate(row, &tariff, MeterName::Requests).unwrap_or_default();
                most = most.max(plus(tokens, itself)?);
            }
        }
        times(most, self.exchange(row.currency, query.at)?)
    }
}

/// Every meter that has a rate in the row. All other meters cost what one of these costs.
fn meters(row: &Row) -> BTreeSet<MeterName> {
    let cards = std::iter::once(&row.card).chain(row.long_context.iter().map(|long| &long.card));
    let in_cards = cards.flat_map(|card| {
        let tiers = ServiceTier::ALL.iter().filter_map(|tier| card.tiers.rates(*tier));
        std::iter::once(&card.rates).chain(tiers)
    });
    let off_peak = row.off_peak.iter().map(|off_peak| &off_peak.rates);
    let conditional = row.when.values().flat_map(BTreeMap::values).map(|effect| &effect.rates);
    let rates = in_cards.chain(off_peak).chain(conditional);
    rates.flat_map(|rates| rates.iter().map(|(meter, _)| meter)).collect()
}

fn dearest(
    row: &Row,
    tariff: &Tariff<'_>,
    meters: &BTreeSet<MeterName>,
    kind: MeterKind,
) -> Decimal {
    let of_kind = meters.iter().filter(|meter| meter.kind() == kind);
    of_kind.filter_map(|meter| rate(row, tariff, *meter)).max().unwrap_or_default()
}

/// The highest rate of a meter, under any condition.
fn rate(row: &Row, tariff: &Tariff<'_>, meter: MeterName) -> Option<Decimal> {
    let effects = row.when.values().flat_map(BTreeMap::values);
    let conditional = effects.filter_map(|effect| effect.rates.rate(meter));
    tariff.rate(meter).into_iter().chain(conditional).max()
}
