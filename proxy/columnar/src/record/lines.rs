//! The lines of a cost as JSON.
//!
//! Each row of an export and of a day has them. Serde writes the same bytes with nearly twice the
//! instructions.

use rust_decimal::Decimal;
use taximeter_ledger::RecordLine;

/// Bytes that most lines are shorter than.
const LINE_BYTES: usize = 128;

/// The list of all lines.
///
/// Errors: none, as it is written to memory.
pub(super) fn json(lines: &[RecordLine]) -> serde_json::Result<Vec<u8>> {
    let mut to = Vec::with_capacity(LINE_BYTES * lines.len() + 2);
    to.push(b'[');
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            to.push(b',');
        }
        let RecordLine {
            meter,
            model,
            price_match,
            tokens,
            quantity,
            unit,
            unit_price,
            list_unit_price,
            amount,
        } = line;
        to.extend_from_slice(b"{\"meter\":");
        text(&mut to, meter)?;
        if let Some(model) = model {
            to.extend_from_slice(b",\"model\":");
            text(&mut to, model)?;
        }
        if let Some(price_match) = price_match {
            to.extend_from_slice(b",\"price_match\":");
            text(&mut to, price_match)?;
        }
        if let Some(tokens) = tokens {
            to.extend_from_slice(b",\"tokens\":");
            number(&mut to, *tokens, 0);
        }
        if let Some(quantity) = quantity {
            to.extend_from_slice(b",\"quantity\":");
            decimal(&mut to, quantity)?;
        }
        if let Some(unit) = unit {
            to.extend_from_slice(b",\"unit\":");
            text(&mut to, unit)?;
        }
        to.extend_from_slice(b",\"unit_price\":");
        decimal(&mut to, unit_price)?;
        if let Some(price) = list_unit_price {
            to.extend_from_slice(b",\"list_unit_price\":");
            decimal(&mut to, price)?;
        }
        to.extend_from_slice(b",\"amount\":");
        decimal(&mut to, amount)?;
        to.push(b'}');
    }
    to.push(b']');
    Ok(to)
}

fn text(to: &mut Vec<u8>, text: &str) -> serde_json::Result<()> {
    if text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\') {
        return serde_json::to_writer(to, text);
    }
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
    to.push(b'"');
    Ok(())
}

fn decimal(to: &mut Vec<u8>, value: &Decimal) -> serde_json::Result<()> {
    let digits = u64::try_from(value.mantissa()).ok().filter(|_| !value.is_sign_negative());
    let Some(digits) = digits else { return serde_json::to_writer(to, value) };
    to.push(b'"');
    number(to, digits, value.scale() as usize);
    to.push(b'"');
    Ok(())
}

/// A number with so many of its digits behind a point. A digit stands before the point.
fn number(to: &mut Vec<u8>, number: u64, places: usize) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    if places == 0 {
        to.extend_from_slice(digits);
        return;
    }
    let (whole, part) = digits.split_at(digits.len().saturating_sub(places));
    to.extend_from_slice(if whole.is_empty() { b"0" } else { whole });
    to.push(b'.');
    to.resize(to.len() + places - part.len(), b'0');
    to.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::lines;

    proptest! {
        #[test]
        fn the_bytes_are_those_of_serde(lines in prop::collection::vec(lines(), 0..4)) {
            let expected = String::from_utf8(serde_json::to_vec(&lines).unwrap()).unwrap();
            prop_assert_eq!(String::from_utf8(json(&lines).unwrap()).unwrap(), expected);
        }

        #[test]
        fn a_decimal_has_the_digits_of_serde(mantissa: i128, scale in 0_u32..=28, bits in 1..96) {
            let mantissa = mantissa >> (127 - bits);
            let value = Decimal::from_i128_with_scale(mantissa, scale);
            let mut to = Vec::new();
            decimal(&mut to, &value).unwrap();
            prop_assert_eq!(to, serde_json::to_vec(&value).unwrap());
        }
    }

    #[test]
    fn zero_and_the_longest_numbers_have_all_their_digits() {
        for text in ["0", "0.00", "-0", "18446744073709551615", "0.0000000000000000000000000001"] {
            let value: Decimal = text.parse().unwrap();
            let mut to = Vec::new();
            decimal(&mut to, &value).unwrap();
            assert_eq!(to, serde_json::to_vec(&value).unwrap());
        }
    }
}
