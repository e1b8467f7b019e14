//! JSON as it stands: numbers by their digits, and every value with its line.

use std::borrow::Cow;
use std::fmt;

use rust_decimal::Decimal;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in their order.
#[derive(Debug)]
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    pub(super) fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| *value)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text(self.get(name)?)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfObject;

        impl<'de> Visitor<'de> for OfObject {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(OfObject)
    }
}

/// A name that is borrowed where it can be.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(value.get()).ok().map(|Name(text)| text)
}

pub(super) fn items(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// An amount of money: a number of JSON by its digits, never through a float.
///
/// `None` when it is none, is below zero, or has more digits than a decimal holds.
pub(super) fn amount(value: &RawValue) -> Option<Decimal> {
    let text = value.get();
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        _ if !is_number => return None,
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // Zeros at the end say nothing, and would take room.
    let fraction = fraction.trim_end_matches('0');
    let mut mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut scale = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    if scale < 0 {
        mantissa = mantissa.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?;
        scale = 0;
    }
    if mantissa == 0 {
        return Some(Decimal::ZERO);
    }
    while scale > 0 && mantissa % 10 == 0 {
        (mantissa, scale) = (mantissa / 10, scale - 1);
    }
    Decimal::try_from_i128_with_scale(mantissa, scale.try_into().ok()?).ok()
}

/// Where the lines of a text begin.
pub(super) struct Lines<'a> {
    text: &'a str,
    ends: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// The line, from 1, that a value of this text begins in.
    pub(super) fn line(&self, value: &RawValue) -> usize {
        // A raw value is borrowed from the text, so its address tells its place.
        let at = value.get().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        self.ends.partition_point(|end| *end < at).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_number_is_its_digits() {
        for (text, expected) in [
            ("4e-06", "0.000004"),
            ("4E-6", "0.000004"),
            ("0.0002833333333333333", "0.0002833333333333333"),
            ("1.25e-06", "0.00000125"),
            ("0.0", "0"),
            ("0e-99", "0"),
            ("12", "12"),
            ("1.5e+2", "150"),
            ("1.4290000000000e-3", "0.001429"),
            ("100e-2", "1"),
        ] {
            assert_eq!(amount(raw(text)).unwrap().to_string(), expected, "{text}");
        }
        for text in ["-1", "\"1\"", "null", "1e-40", "1e99", "[]", "true"] {
            assert_eq!(amount(raw(text)), None, "{text}");
        }
    }

    #[test]
    fn a_value_knows_its_line() {
        let text = "{\n \"a\": 1,\n\n \"b\": {\n  \"c\": 2}}";
        let lines = Lines::of(text);
        let root = serde_json::from_str::<&RawValue>(text).unwrap();
        let members = Members::of(root).unwrap();
        assert_eq!(lines.line(members.get("a").unwrap()), 2);
        let inner = Members::of(members.get("b").unwrap()).unwrap();
        assert_eq!(lines.line(inner.get("c").unwrap()), 5);
        assert_eq!(lines.line(root), 1);
    }
}
