//! The keys of one tenant and of GPUs → `Tenant` and `GpuPrice`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_collections::Gather as _;
use taximeter_pricing::{Allowance, Currency, Dated, GpuPrice, Money, TokenWeights};

use crate::mistake::Invalid;
use crate::model::Tenant;
use crate::money::Percent;
use crate::numbers::AtLeast32;
use crate::reader::{Optional, Reader, Spanned};
use crate::schema::{RawAllowance, RawGpu, RawTenant, RawWeights};
use crate::versions::{DatedPercent, Since, Versions};

impl Since for RawGpu {
    fn since(&self) -> Optional<&Spanned<Date>> {
        self.since.as_ref()
    }
}

impl Since for RawAllowance {
    fn since(&self) -> Optional<&Spanned<Date>> {
        self.since.as_ref()
    }
}

/// The terms of one tenant; `None` when it has no name. Reports mistakes.
pub(crate) fn tenant(
    raw: RawTenant,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Option<Tenant> {
    let factors = factors(raw.discount, raw.markup, reader);
    let prices = raw.prices.given().map(|at| readable(&at, reader));
    let allowance = raw.allowance.given().map(|raw| allowances(raw, currency, reader));
    let concurrency = raw.concurrency.or(None);
    Some(Tenant { name: raw.name.0?.value.into(), factors, prices, allowance, concurrency })
}

/// The factors on list prices.
fn factors(
    discount: Optional<Versions<DatedPercent>>,
    markup: Optional<Versions<DatedPercent>>,
    reader: &mut Reader<'_>,
) -> Dated<Decimal> {
    let [discounts, markups] = [discount, markup].map(|given| shares(given, reader));
    for discount in discounts.iter().filter_map(|(_, discount)| discount.as_ref()) {
        if discount.value.0 > Decimal::ONE {
            let why = Invalid::new("is more than 100 %", "at most 100 %");
            reader.invalid::<Percent>(&discount.location, &discount.written, &why);
        }
    }
    let days: BTreeSet<_> = discounts.iter().chain(&markups).map(|(since, _)| *since).gather_set();
    let [discounts, markups] = [discounts, markups].map(Dated::new);
    let mut reported = None;
    let factors = days.into_iter().map(|since| {
        let on = |dated: &Dated<Option<Spanned<Percent>>>| {
            dated
                .on(since.unwrap_or(Date::MIN))
                .cloned()
                .flatten()
                .filter(|at| !at.value.0.is_zero())
        };
        let (discount, markup) = (on(&discounts), on(&markups));
        if let (Some(_), Some(markup)) = (&discount, &markup)
            && reported.replace(markup.location.clone()).as_ref() != Some(&markup.location)
        {
            let why =
                Invalid::new("cannot stand beside `discount` on the same day", "only one of them");
            reader.invalid::<Percent>(&markup.location, &markup.written, &why);
        }
        let fraction = |at: Option<Spanned<Percent>>| at.map_or(Decimal::ZERO, |at| at.value.0);
        (since, Decimal::ONE - fraction(discount) + fraction(markup))
    });
    Dated::new(factors.collect())
}

/// The percentages with their first days; `None` for one that cannot be read.
fn shares(
    given: Optional<Versions<DatedPercent>>,
    reader: &mut Reader<'_>,
) -> Vec<(Option<Date>, Option<Spanned<Percent>>)> {
    let versions = given.given().map(|versions| versions.dated(reader)).unwrap_or_default();
    versions.into_iter().map(|(since, share)| (since, share.0.rate.0)).collect()
}

fn readable(at: &Spanned<PathBuf>, reader: &mut Reader<'_>) -> PathBuf {
    let path = reader.resolve(&at.value);
    if let Err(error) = (reader.read_file)(&path) {
        let why = Invalid::new(format!("cannot be read: {error}"), "a price file");
        reader.invalid::<PathBuf>(&at.location, &at.written, &why);
    }
    path
}

fn allowances(
    raw: Versions<RawAllowance>,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Dated<Allowance> {
    let dated = raw.dated(reader).into_iter().map(|(since, raw)| {
        if let Optional::Given(at) = &raw.since
            && at.value.day() != 1
        {
            let why = Invalid::new("is not the first day of a month", "a day such as 2026-12-01");
            reader.invalid::<Date>(&at.location, &at.written, &why);
        }
        (since, allowance(raw, currency, reader))
    });
    Dated::new(dated.collect())
}

fn allowance(raw: RawAllowance, currency: Currency, reader: &mut Reader<'_>) -> Allowance {
    let tokens = raw.tokens.given().map(|table| table.0).unwrap_or_default();
    Allowance {
        money: raw.money.given().map(|at| in_currency(at, currency, reader)),
        tokens: tokens.into_iter().map(|(meter, at)| (meter, at.value.get())).gather(),
    }
}

/// The GPUs of an upstream, in the order of their days; `None` when a required key is missing.
/// Reports mistakes.
pub(crate) fn gpus(
    raw: Versions<RawGpu>,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Option<Vec<GpuPrice>> {
    let dated = raw.dated(reader);
    let next = dated.iter().skip(1).map(|(since, _)| *since).chain([None]).collect::<Vec<_>>();
    let built = dated.into_iter().zip(next).map(|((_, raw), until)| {
        let price = gpu(raw, currency, reader)?;
        Some(GpuPrice { until, ..price })
    });
    // Collected twice, so that every version is checked before a failed one ends it.
    let built: Option<Vec<_>> = built.collect::<Vec<_>>().into_iter().collect();
    built.map(|all| all.into_iter().filter(|price| price.count > 0).collect())
}

fn gpu(raw: RawGpu, currency: Currency, reader: &mut Reader<'_>) -> Option<GpuPrice> {
    let hourly = raw.hourly.0.map(|at| in_currency(at, currency, reader));
    let weights = raw.weights.given().map(|raw| weights(raw, reader));
    Some(GpuPrice {
        kind: raw.r#type.0?.value.into(),
        count: raw.count.or(1),
        hourly: hourly?,
        since: raw.since.given().map(|at| at.value),
        until: None,
        weights: weights.unwrap_or_default(),
    })
}

fn weights(raw: RawWeights, reader: &mut Reader<'_>) -> TokenWeights {
    let [input, output] = [raw.input, raw.output].map(|weight| weight.0);
    if let (Some(input), Some(output)) = (&input, &output)
        && input.value.get() == 0
        && output.value.get() == 0
    {
        reader.report(&output.location, "is 0, and `input` is 0", "expected one of them above 0");
    }
    let weight = |given: Option<Spanned<AtLeast32<0>>>| given.map_or(0, |at| at.value.into());
    TokenWeights { input: weight(input), output: weight(output) }
}

/// Reports money in another currency than the bills.
fn in_currency(at: Spanned<Money>, currency: Currency, reader: &mut Reader<'_>) -> Money {
    if at.value.currency != currency {
        let why = Invalid::new(
            "is not in the currency of the bills",
            format!("money in {currency}, which is `prices.currency`"),
        );
        reader.invalid::<Money>(&at.location, &at.written, &why);
    }
    at.value
}
