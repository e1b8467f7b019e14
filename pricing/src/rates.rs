//! Rates by meter, and how price files write them.

use std::collections::BTreeMap;
use std::fmt;

use rust_decimal::Decimal;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor,
};

use crate::meter::MeterName;

/// A price in a file is for this number of tokens, as a power of ten.
const TOKENS_SCALE: u32 = 6;

/// The price per **token**, or per one of what a meter counts, exact. These rates say nothing about
/// a meter that is missing here.
///
/// Price files give prices per 1,000,000 tokens, and for one of anything else.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rates(BTreeMap<MeterName, Decimal>);

impl Rates {
    /// The price of one on `meter`.
    #[must_use]
    pub fn rate(&self, meter: MeterName) -> Option<Decimal> {
        self.0.get(&meter).copied()
    }

    /// Each meter with its rate, in the order of bills.
    pub fn iter(&self) -> impl Iterator<Item = (MeterName, Decimal)> + '_ {
        self.0.iter().map(|(meter, rate)| (*meter, *rate))
    }

    /// Whether there are no rates.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(MeterName, Decimal)> for Rates {
    fn from_iter<I: IntoIterator<Item = (MeterName, Decimal)>>(rates: I) -> Self {
        Self(rates.into_iter().collect())
    }
}

/// The price that price files and price lists show for a rate: per 1,000,000 tokens.
///
/// `None` if a decimal cannot hold it.
#[must_use]
pub fn list_price(meter: MeterName, rate: Decimal) -> Option<Decimal> {
    if !meter.counts_tokens() {
        return Some(rate.normalize());
    }
    let scale = rate.scale();
    let mantissa = match TOKENS_SCALE.checked_sub(scale) {
        Some(missing) => rate.mantissa().checked_mul(10_i128.checked_pow(missing)?)?,
        None => rate.mantissa(),
    };
    let scale = scale.saturating_sub(TOKENS_SCALE);
    Some(Decimal::try_from_i128_with_scale(mantissa, scale).ok()?.normalize())
}

/// A price in plain digits. It is read as decimal text and never as a float.
pub(crate) fn plain(text: &str) -> Option<Decimal> {
    // The parser also accepts signs and underscores.
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    Decimal::from_str_exact(text).ok()
}

/// The rate for a price in a file.
fn of_file(meter: MeterName, text: &str) -> Option<Decimal> {
    let mut price = plain(text)?;
    if meter.counts_tokens() {
        price.set_scale(price.scale().checked_add(TOKENS_SCALE)?).ok()?;
    }
    Some(price.normalize())
}

impl<'de> Deserialize<'de> for Rates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMeters;

        impl<'de> Visitor<'de> for OfMeters {
            type Value = Rates;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("prices by meter, like {input: 2.50, output: 10}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Rates, A::Error> {
                let mut rates = BTreeMap::new();
                while let Some(meter) = entries.next_key()? {
                    rates.insert(meter, entries.next_value_seed(PriceOf(meter))?);
                }
                Ok(Rates(rates))
            }
        }

        deserializer.deserialize_map(OfMeters)
    }
}

/// Reads the price of one meter.
struct PriceOf(MeterName);

impl<'de> DeserializeSeed<'de> for PriceOf {
    type Value = Decimal;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Decimal, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for PriceOf {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.counts_tokens() {
            true => f.write_str("a price per 1,000,000 tokens in plain digits, like 2.50"),
            false => f.write_str("a price for one in plain digits, like 0.01"),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Decimal, E> {
        of_file(self.0, text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// A factor above 0 in plain digits, such as 1.1.
pub(crate) fn factor<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Decimal>, D::Error> {
    struct Factor;

    impl Visitor<'_> for Factor {
        type Value = Decimal;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a factor above 0 in plain digits, like 1.1")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Decimal, E> {
            plain(text)
                .filter(|factor| !factor.is_zero())
                .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(Factor).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_shown_as_files_say_it() {
        for (meter, text) in [
            (MeterName::Input, "2.5"),
            (MeterName::Output, "0.0000001"),
            (MeterName::CacheRead, "0"),
            (MeterName::Input, "3000000"),
            (MeterName::WebSearchRequests, "0.01"),
            (MeterName::AudioSeconds, "0.0001"),
        ] {
            let rate = of_file(meter, text).unwrap();
            assert_eq!(list_price(meter, rate).unwrap().to_string(), text);
        }
        assert_eq!(of_file(MeterName::Input, "2.50").unwrap().to_string(), "0.0000025");
        assert_eq!(of_file(MeterName::Images, "2.50").unwrap().to_string(), "2.5");
    }
}
