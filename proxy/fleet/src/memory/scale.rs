//! Values as whole numbers: so many decimal places, by the unit of the quantity.

use crate::quantity::{Instrument, Quantity};

/// Numbers beyond are not exact as floats, and no quantity has any.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Decimal places of the values of a quantity. Below zero: so many zeros at their end are left out.
#[must_use]
pub const fn scale_of(quantity: &Quantity) -> i32 {
    let is_gauge = matches!(quantity.instrument, Instrument::Gauge);
    match quantity.unit.as_bytes() {
        // Shares by the hundredth of a percent.
        b"1" => 4,
        // A tenth of a millisecond where single requests count, a millisecond of what is added up.
        b"s" if matches!(quantity.instrument, Instrument::Histogram) => 4,
        b"s" => 3,
        b"W" | b"J" | b"Cel" | b"GT/s" => 1,
        // Clocks are whole MHz.
        b"Hz" => -6,
        b"By" | b"By/s" | b"{code}" => 0,
        b"{thread}" => 2,
        // Means of counts are no whole numbers.
        _ if is_gauge => 2,
        b"{token}" if matches!(quantity.instrument, Instrument::Histogram) => 1,
        _ => 0,
    }
}

/// A value with so many decimal places, as a whole number. What is not 0 never becomes 0. `None` for what
/// is no number or has too many digits.
#[must_use]
pub fn whole(value: f64, scale: i32) -> Option<i64> {
    let scaled = value * 10_f64.powi(scale);
    let rounded = scaled.round();
    if !rounded.is_finite() || rounded.abs() >= WHOLE_MAX {
        return None;
    }
    if rounded == 0.0 && value != 0.0 {
        return Some(if value > 0.0 { 1 } else { -1 });
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and small enough")]
    Some(rounded as i64)
}

/// The value that a whole number stands for.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "whole numbers are below 2^53")]
pub fn value(whole: i64, scale: i32) -> f64 {
    if scale < 0 { whole as f64 * 10_f64.powi(-scale) } else { whole as f64 / 10_f64.powi(scale) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantity::QUANTITIES;

    #[test]
    fn what_is_no_number_has_no_whole_one_and_little_is_not_nothing() {
        for none in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300] {
            assert_eq!(whole(none, 4), None);
        }
        assert_eq!([whole(0.0, 4), whole(-0.0, 4)], [Some(0); 2]);
        assert_eq!([whole(0.000_01, 4), whole(-0.000_01, 4)], [Some(1), Some(-1)]);
        assert_eq!(whole(1.41e9, -6), Some(1_410));
        assert_eq!(
            [value(1_410, -6), value(3_125, 1)].map(|it| it.to_string()),
            ["1410000000", "312.5"]
        );
    }

    proptest! {
        #[test]
        fn a_value_comes_back_within_half_of_its_last_place(value_ in 0.1..1e9_f64, at in 0..QUANTITIES.len()) {
            let scale = scale_of(QUANTITIES[at]);
            let step = 10_f64.powi(-scale);
            let back = value(whole(value_, scale).unwrap(), scale);
            prop_assert!((back - value_).abs() <= step.max(1e-6) && back != 0.0);
        }
    }
}
