//! The currency of the price list, if the bill is in another currency.

use rust_decimal::Decimal;
use taximeter_pricing::Currency;

use crate::hours::LineKey;

/// Decimal places of a price that is converted back to the currency of its price list. No exact
/// result needs more. A list price from a third currency has no exact result.
const PLACES: u32 = 12;

/// The currency of a price list, and its exchange rate to the currency of the bill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pricing<'a> {
    pub(super) currency: &'a str,
    rate: Decimal,
}

impl<'a> Pricing<'a> {
    /// The pricing currency of a line. The id of its price names it (`…;USD*0.92`, before the
    /// contract of `tenant`). Without it, the pricing currency is the currency of the bill. So it
    /// is for a further model run: its price is of another model, and no list of it is known.
    pub(super) fn of(line: &'a LineKey, tenant: &str, billed: &'a str) -> Self {
        let told = exchange(&line.price_id, tenant);
        let told = told.filter(|told| told.currency != billed && line.model.is_none());
        told.unwrap_or(Self { currency: billed, rate: Decimal::ONE })
    }

    /// `price` in the currency of the price list.
    pub(super) fn in_list_currency(&self, price: Decimal) -> Decimal {
        if self.rate == Decimal::ONE {
            return price;
        }
        price.checked_div(self.rate).map_or(price, |told| told.round_dp(PLACES))
    }
}

/// The exchange rate at the end of a price id, or before its contract.
fn exchange<'a>(price_id: &'a str, tenant: &str) -> Option<Pricing<'a>> {
    let factor = |id: &'a str| {
        let (name, factor) = id.rsplit_once('*')?;
        Some((name, factor.parse::<Decimal>().ok()?))
    };
    let agreed = factor(price_id).and_then(|(id, _)| id.strip_suffix(tenant)?.strip_suffix(';'));
    let (id, rate) = factor(agreed.unwrap_or(price_id))?;
    let (_, currency) = id.rsplit_once(';')?;
    Currency::new(currency).filter(|_| !rate.is_zero())?;
    Some(Pricing { currency, rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_rate_is_told_apart_from_what_a_tenant_agreed_on() {
        let told = |id| exchange(id, "acme").map(|told| (told.currency, told.rate.to_string()));
        let dollar = Some(("USD", "0.92".to_owned()));
        assert_eq!(told("builtin@2026-11-20#openai/gpt-x;USD*0.92"), dollar);
        assert_eq!(told("builtin@2026-11-20#openai/gpt-x;USD*0.92;acme*0.9"), dollar);
        for id in [
            "builtin@2026-11-20#openai/gpt-x",
            "builtin@2026-11-20#openai/gpt-x;acme*0.9",
            "own#a;b*c",
            "own#a*2",
            "gpu#local/H100",
            "",
        ] {
            assert_eq!(told(id), None, "{id}");
        }
        // A tenant may have the name of a currency.
        assert_eq!(exchange("own#m;EUR*0.9", "EUR"), None);
        assert_eq!(exchange("own#m;USD*0.92;EUR*0.9", "EUR").unwrap().currency, "USD");
    }

    #[test]
    fn a_price_comes_back_as_the_list_has_it() {
        let decimal = |text: &str| text.parse::<Decimal>().unwrap();
        let pricing = Pricing { currency: "USD", rate: decimal("0.92") };
        for list in ["2.5", "0.123456789", "0", "15"] {
            let billed = decimal(list) * decimal("0.92");
            assert_eq!(pricing.in_list_currency(billed), decimal(list));
        }
        assert_eq!(pricing.in_list_currency(Decimal::ONE).to_string(), "1.086956521739");
    }
}
