//! The most that a request can cost, before it is sent.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::book::{PriceBook, Query};
use crate::exact::{plus, times};
use crate::meter::{MeterKind, MeterName};
use crate::row::Row;
use crate::tariff::Tariff;
use crate::terms::Contract;

impl PriceBook {
    /// The most that a request without further model runs can cost for its tokens and for the
    /// request itself: the dearest combination of service tier, context length up to
    /// `input_tokens_max`, state of the cache and conditions. Tool calls such as web searches have
    /// no bound and are not included.
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
        let meters = || MeterName::ALL.into_iter().filter(|meter| row.stated.contains(*meter));
        if meters().any(|meter| meter.kind() == MeterKind::InPlaceOfTokens) {
            return None;
        }
        let at = TimeZone::UTC.to_datetime(query.at);
        let is_off_peak = row.off_peak.as_ref().is_some_and(|off_peak| off_peak.covers(at));
        let factor = row.when.values().try_fold(Decimal::ONE, |product, words| {
            let factors = words.values().filter_map(|effect| effect.times);
            times(product, factors.fold(Decimal::ONE, Decimal::max))
        })?;
        let mut most = Decimal::ZERO;
        for tariff in row.tariffs(is_off_peak) {
            if tariff.first_input() > input_tokens_max {
                continue;
            }
            // Every other meter costs what one of these costs.
            let dearest = |kind| {
                let of_kind = meters().filter(|meter| meter.kind() == kind);
                of_kind.filter_map(|meter| tariff.own(meter)).max().unwrap_or_default()
            };
            let input = times(input_tokens_max.into(), dearest(MeterKind::InputTokens))?;
            let output = times(output_tokens_max.into(), dearest(MeterKind::OutputTokens))?;
            let tokens = times(plus(input, output)?, factor)?;
            most = most.max(plus(tokens, dearest_request(row, &tariff))?);
        }
        times(most, self.exchange(row.currency, query.at)?)
    }

    /// The same as [`upper_bound`](Self::upper_bound) for a customer with `contract`.
    #[must_use]
    pub fn contracted_upper_bound(
        &self,
        contract: &Contract,
        query: &Query<'_>,
        input_tokens_max: u64,
        output_tokens_max: u64,
    ) -> Option<Decimal> {
        match contract.fixed(query) {
            Some(fixed) => fixed.upper_bound(query, input_tokens_max, output_tokens_max),
            None => {
                let most = self.upper_bound(query, input_tokens_max, output_tokens_max)?;
                times(most, contract.factor(query.at))
            }
        }
    }
}

/// The highest price of the request itself, under any condition.
fn dearest_request(row: &Row, tariff: &Tariff<'_>) -> Decimal {
    let effects = row.when.values().flat_map(BTreeMap::values);
    let conditional = effects.filter_map(|effect| effect.rates.rate(MeterName::Requests));
    tariff.own(MeterName::Requests).into_iter().chain(conditional).max().unwrap_or_default()
}
