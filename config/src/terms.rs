//! What is agreed with a tenant, and what GPUs cost: what the file says → what the program may
//! trust.

use std::path::PathBuf;

use rust_decimal::Decimal;
use taximeter_pricing::{Allowance, Currency, GpuPrice, Money, TokenWeights};

use crate::mistake::Invalid;
use crate::model::Tenant;
use crate::money::Percent;
use crate::reader::{At, Optional, Reader};
use crate::schema::{RawAllowance, RawGpu, RawTenant, RawWeights};

/// What is agreed with one tenant; `None` when it has no name. What is wrong is reported.
pub(crate) fn tenant(
    raw: RawTenant,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Option<Tenant> {
    let factor = factor(raw.discount, raw.markup, reader);
    let prices = raw.prices.given().map(|at| readable(&at, reader));
    let allowance = raw.allowance.given().map(|raw| allowance(raw, currency, reader));
    let concurrency = raw.concurrency.given().map(|at| at.value.get());
    Some(Tenant { name: raw.name.0?.value.into(), factor, prices, allowance, concurrency })
}

/// What list prices are multiplied with.
fn factor(
    discount: Optional<At<Percent>>,
    markup: Optional<At<Percent>>,
    reader: &mut Reader<'_>,
) -> Decimal {
    if let (Optional::Given(_), Optional::Given(markup)) = (&discount, &markup) {
        let why = Invalid::new("contradicts `discount`", "one of the two");
        reader.invalid::<Percent>(&markup.spot, &markup.written, &why);
    }
    if let Optional::Given(discount) = &discount
        && discount.value.0 > Decimal::ONE
    {
        let why = Invalid::new("is more than all", "at most 100 %");
        reader.invalid::<Percent>(&discount.spot, &discount.written, &why);
    }
    let fraction = |given: Optional<At<Percent>>| given.given().map(|at| at.value.0);
    Decimal::ONE - fraction(discount).unwrap_or_default() + fraction(markup).unwrap_or_default()
}

fn readable(at: &At<PathBuf>, reader: &mut Reader<'_>) -> PathBuf {
    let path = reader.resolve(&at.value);
    if let Err(error) = (reader.read_file)(&path) {
        let why = Invalid::new(format!("cannot be read: {error}"), "a file of prices");
        reader.invalid::<PathBuf>(&at.spot, &at.written, &why);
    }
    path
}

fn allowance(raw: RawAllowance, currency: Currency, reader: &mut Reader<'_>) -> Allowance {
    let tokens = raw.tokens.given().map(|table| table.0).unwrap_or_default();
    Allowance {
        money: raw.money.given().map(|at| in_currency(at, currency, reader)),
        tokens: tokens.into_iter().map(|(meter, at)| (meter, at.value.0)).collect(),
    }
}

/// The GPUs of an upstream; `None` when a part that must be there is not. What is wrong is
/// reported.
pub(crate) fn gpu(raw: RawGpu, currency: Currency, reader: &mut Reader<'_>) -> Option<GpuPrice> {
    let hourly = raw.hourly.0.map(|at| in_currency(at, currency, reader));
    let weights = raw.weights.given().map(|raw| weights(raw, reader));
    Some(GpuPrice {
        kind: raw.r#type.0?.value.into(),
        count: raw.count.given().map_or(1, |at| at.value.get()),
        hourly: hourly?,
        since: raw.since.given().map(|at| at.value),
        weights: weights.unwrap_or_default(),
    })
}

fn weights(raw: RawWeights, reader: &mut Reader<'_>) -> TokenWeights {
    let [input, output] = [raw.input, raw.output].map(|weight| weight.0);
    if let (Some(input), Some(output)) = (&input, &output)
        && input.value.0 == 0
        && output.value.0 == 0
    {
        reader.report(&output.spot, "and `input` are both 0", "expected one of them above 0");
    }
    let weight = |given: Option<At<crate::money::Weight>>| given.map_or(0, |at| at.value.0);
    TokenWeights { input: weight(input), output: weight(output) }
}

/// Reports money that could not be added to what bills are in.
fn in_currency(at: At<Money>, currency: Currency, reader: &mut Reader<'_>) -> Money {
    if at.value.currency != currency {
        let why = Invalid::new(
            "is in another currency than the bills",
            format!("money in {currency}, which is `prices.currency`"),
        );
        reader.invalid::<Money>(&at.spot, &at.written, &why);
    }
    at.value
}
