//! Prices as files and price lists say them: per 1,000,000 tokens.

use std::fmt;

use rust_decimal::Decimal;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// A price per 1,000,000 tokens, read as decimal text and never through a float, as a price per
/// token.
pub(crate) fn per_token<'de, D>(deserializer: D) -> Result<Option<Decimal>, D::Error>
where
    D: Deserializer<'de>,
{
    struct PerMillion;

    impl Visitor<'_> for PerMillion {
        type Value = Decimal;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a price per 1,000,000 tokens in plain digits, like 2.50")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Decimal, E> {
            million_to_one(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }

    deserializer.deserialize_str(PerMillion).map(Some)
}

fn million_to_one(text: &str) -> Option<Decimal> {
    // The parser alone would also take signs and underscores.
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let mut price = Decimal::from_str_exact(text).ok()?;
    price.set_scale(price.scale().checked_add(6)?).ok()?;
    Some(price.normalize())
}
