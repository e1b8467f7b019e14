//! JSON values by their text: numbers by their digits, and every value with its line.

use std::borrow::Cow;

use rust_decimal::Decimal;
use taximeter_json::Value;

/// The members of an object, in order.
#[derive(Debug, Default)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Members<'a> {
    pub(super) fn of(value: Value<'a>) -> Option<Self> {
        value.members().map(Self)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    pub(super) fn get(&self, name: &str) -> Option<Value<'a>> {
        self.each().find(|(member, _)| *member == name).map(|(_, value)| value)
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name)?.text()
    }
}

/// An amount of money: a JSON number by its digits, never as a float.
///
/// `None` if it is not a number, is below zero, or has more digits than a decimal holds.
pub(super) fn amount(value: Value<'_>) -> Option<Decimal> {
    let text = value.as_str();
    let is_number = text.starts_with(|first: char| first.is_ascii_digit());
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        _ if !is_number => return None,
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    // Zeros at the end take up room and mean nothing.
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

/// Finds the line of a value in a text.
pub(super) struct Lines<'a> {
    text: &'a str,
    ends: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, ends: text.match_indices('\n').map(|(at, _)| at).collect() }
    }

    /// The line in which a value of this text begins, from 1.
    pub(super) fn line(&self, value: Value<'_>) -> usize {
        // The value is a slice of the text, so its address gives its position.
        let at = value.as_str().as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        self.ends.partition_point(|end| *end < at).saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(amount(Value::checked(text)).unwrap().to_string(), expected, "{text}");
        }
        for text in ["-1", "\"1\"", "null", "1e-40", "1e99", "[]", "true"] {
            assert_eq!(amount(Value::checked(text)), None, "{text}");
        }
    }

    #[test]
    fn a_value_knows_its_line() {
        let text = "{\n \"a\": 1,\n\n \"b\": {\n  \"c\": 2}}";
        let lines = Lines::of(text);
        let root = Value::checked(text);
        let members = Members::of(root).unwrap();
        assert_eq!(lines.line(members.get("a").unwrap()), 2);
        let inner = Members::of(members.get("b").unwrap()).unwrap();
        assert_eq!(lines.line(inner.get("c").unwrap()), 5);
        assert_eq!(lines.line(root), 1);
    }
}
