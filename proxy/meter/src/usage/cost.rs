//! Reads what a provider asks for a request.

use rust_decimal::Decimal;

use super::members::Meaning;
use crate::json::{Malformed, Quantity, Reader};

/// Longest amount kept, in bytes.
const AMOUNT_BYTES_MAX: usize = 40;

/// A tick is so many tenth parts of a dollar: xAI counts ten thousand million of them.
const TICK_SCALE: u32 = 10;

/// What a usage object says of the price, member by member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ReportedCost {
    /// The amount, as it stands.
    stated: Option<String>,
    /// The same in ticks.
    ticks: Option<Decimal>,
    /// The same before it is final, as it stands.
    estimated: Option<String>,
    /// What the provider behind this one asks.
    upstream: Option<Decimal>,
    /// That provider is paid with the client's own key, so that its part is not in the amount.
    has_own_key: bool,
}

impl ReportedCost {
    /// Reads a member that tells something of the price.
    pub(super) fn read(
        &mut self,
        meaning: Meaning,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        match meaning {
            Meaning::CostTicks => self.ticks = number(value)?.or(self.ticks),
            Meaning::UpstreamCost => self.upstream = number(value)?.or(self.upstream),
            Meaning::OwnKey => self.has_own_key |= value.is_true()?,
            Meaning::EstimatedCost => self.estimated = amount(value)?.or(self.estimated.take()),
            _ => self.stated = amount(value)?.or(self.stated.take()),
        }
        Ok(())
    }

    pub(super) const fn is_none(&self) -> bool {
        self.stated.is_none() && self.ticks.is_none() && self.estimated.is_none()
    }

    /// The amount in the provider's currency. With a key of the client's own, what both providers
    /// ask.
    pub(super) fn amount(&self) -> Option<String> {
        if let Some(upstream) = self.upstream.filter(|_| self.has_own_key) {
            let fee = self.stated.as_deref().map_or(Some(Decimal::ZERO), decimal);
            let both = fee.and_then(|fee| fee.checked_add(upstream));
            return both.map(|both| both.normalize().to_string());
        }
        let by_ticks = || {
            let dollars = self.ticks?.checked_mul(Decimal::new(1, TICK_SCALE))?;
            Some(dollars.normalize().to_string())
        };
        self.stated.clone().or_else(by_ticks).or_else(|| self.estimated.clone())
    }

    /// This over an earlier one, member by member.
    pub(super) fn over(self, earlier: Self) -> Self {
        Self {
            stated: self.stated.or(earlier.stated),
            ticks: self.ticks.or(earlier.ticks),
            estimated: self.estimated.or(earlier.estimated),
            upstream: self.upstream.or(earlier.upstream),
            has_own_key: self.has_own_key || earlier.has_own_key,
        }
    }

    /// The sum with what is asked for another part of the same request. It is unknown where one of
    /// them is.
    pub(super) fn plus(self, other: &Self) -> Self {
        let sum = self.amount().zip(other.amount()).and_then(|(one, other)| {
            Some(decimal(&one)?.checked_add(decimal(&other)?)?.to_string())
        });
        Self { stated: sum, ..Self::default() }
    }
}

/// What a header asks.
pub(crate) fn asked(value: &str) -> Option<String> {
    let is_amount = value.len() <= AMOUNT_BYTES_MAX && decimal(value).is_some_and(is_price);
    is_amount.then(|| value.to_owned())
}

fn decimal(text: &str) -> Option<Decimal> {
    Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

fn number(value: &mut Reader<'_>) -> Result<Option<Decimal>, Malformed> {
    Ok(match Quantity::read(value)? {
        Quantity::Exact(number) => Some(number),
        Quantity::Absent | Quantity::Invalid => None,
    })
}

/// OpenRouter tells it as a number, other gateways as text, Perplexity as an object with the total
/// in it.
fn amount(value: &mut Reader<'_>) -> Result<Option<String>, Malformed> {
    let text = match value.peek() {
        Some(b'0'..=b'9') => Some(value.verbatim()?),
        Some(b'"') => value.text()?.filter(|text| decimal(&text.decode()).is_some_and(is_price)),
        Some(b'{') => {
            let mut total = None;
            value.object(|key, value| match (key, value.peek()) {
                (b"total_cost", Some(b'0'..=b'9' | b'"')) => {
                    total = amount(value)?;
                    Ok(())
                }
                _ => value.skip(),
            })?;
            return Ok(total);
        }
        _ => {
            value.skip()?;
            None
        }
    };
    let text = text.map(|text| text.decode().into_owned());
    Ok(text.filter(|text| text.len() <= AMOUNT_BYTES_MAX))
}

fn is_price(amount: Decimal) -> bool {
    !amount.is_sign_negative()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Report;
    use super::*;

    fn cost(usage: &str) -> Option<String> {
        Report::read(&mut Reader::new(usage.as_bytes())).unwrap().unwrap().cost()
    }

    #[test]
    fn what_a_provider_asks_is_read_in_each_form() {
        for (usage, asked) in [
            (r#"{"cost":0.000850}"#, Some("0.000850")),
            (r#"{"cost":"0.0045405"}"#, Some("0.0045405")),
            (r#"{"cost":{"input_tokens_cost":1,"total_cost":0.00923}}"#, Some("0.00923")),
            (r#"{"cost":{"total_cost":{"a":1}}}"#, None),
            (r#"{"cost_in_usd_ticks":37756000}"#, Some("0.0037756")),
            (r#"{"cost_in_usd_ticks":200000000}"#, Some("0.02")),
            (r#"{"cost_in_usd_ticks":1}"#, Some("0.0000000001")),
            (r#"{"cost_in_usd_ticks":0}"#, Some("0")),
            (r#"{"cost_in_usd_ticks":-5}"#, None),
            (r#"{"estimated_cost":0.00012}"#, Some("0.00012")),
            (r#"{"estimated_cost":0.00012,"cost":0.0001}"#, Some("0.0001")),
            (r#"{"cost":0.95,"cost_details":{"upstream_inference_cost":19}}"#, Some("0.95")),
            (
                r#"{"is_byok":true,"cost":0.95,"cost_details":{"upstream_inference_cost":19}}"#,
                Some("19.95"),
            ),
            (r#"{"is_byok":false,"cost":2,"cost_details":null}"#, Some("2")),
            (
                r#"{"is_byok":true,"cost":2,"cost_details":{"upstream_inference_cost":null}}"#,
                Some("2"),
            ),
            (r#"{"cost":"free"}"#, None),
            (r#"{"cost":null}"#, None),
            (r#"{"cost":-1}"#, None),
            (r#"{"cost":true,"cost_in_usd_ticks":10000000000}"#, Some("1")),
        ] {
            assert_eq!(cost(usage).as_deref(), asked, "{usage}");
        }
    }

    proptest! {
        #[test]
        fn the_order_of_the_members_does_not_matter(
            order in Just(vec![
                r#""cost":0.5"#,
                r#""cost_in_usd_ticks":20000000000"#,
                r#""estimated_cost":4"#,
                r#""is_byok":true"#,
                r#""cost_details":{"upstream_inference_cost":8}"#,
            ]).prop_shuffle(),
            keep in prop::collection::vec(any::<bool>(), 5),
        ) {
            let members = |sorted: bool| {
                let mut kept: Vec<_> = order
                    .iter()
                    .zip(&keep)
                    .filter_map(|(member, keep)| keep.then_some(*member))
                    .collect();
                if sorted {
                    kept.sort_unstable();
                }
                format!("{{{}}}", kept.join(","))
            };
            prop_assert_eq!(cost(&members(false)), cost(&members(true)));
        }
    }
}
