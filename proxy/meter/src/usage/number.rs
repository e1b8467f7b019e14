//! Reads and adds the whole numbers of usage objects.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

use crate::json::{Malformed, Reader};

/// The largest whole number that every JSON reader reads exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Reads a number into `member`. `null` leaves `member` as it is. A value that is no whole number
/// from 0 to 2⁵³ − 1 does so too, and adds one to `invalid`.
pub(super) fn put(
    value: &mut Reader<'_>,
    member: &mut Option<u64>,
    invalid: &mut u32,
) -> Result<(), Malformed> {
    let first = value.peek();
    let literal = value.verbatim()?;
    match first {
        Some(b'n') => {}
        Some(b'0'..=b'9') => match whole(&literal.decode()) {
            Some(number) => *member = Some(number),
            None => *invalid = invalid.saturating_add(1),
        },
        _ => *invalid = invalid.saturating_add(1),
    }
    Ok(())
}

/// The sum of both numbers, or the known one. For numbers that engines leave out where they are
/// zero.
pub(super) const fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (Some(number), None) | (None, Some(number)) => Some(number),
        (None, None) => None,
    }
}

/// The whole number that a JSON number stands for: `37`, `37.0` and `3.7e1` are the same.
fn whole(literal: &str) -> Option<u64> {
    let number = literal.parse().ok().or_else(|| {
        let number =
            Decimal::from_str_exact(literal).or_else(|_| Decimal::from_scientific(literal));
        number.ok().filter(Decimal::is_integer)?.to_u64()
    });
    number.filter(|number| *number <= NUMBER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(literal: &str) -> (Option<u64>, u32) {
        let (mut member, mut invalid) = (None, 0);
        put(&mut Reader::new(literal.as_bytes()), &mut member, &mut invalid).unwrap();
        (member, invalid)
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point_or_an_exponent() {
        for literal in ["37", "37.0", "37.000", "3.7e1", "3.7E+1", "370e-1"] {
            assert_eq!(read(literal), (Some(37), 0), "{literal}");
        }
        for (literal, number) in [("0", 0), ("0.0", 0), ("9007199254740991", NUMBER_MAX)] {
            assert_eq!(read(literal), (Some(number), 0), "{literal}");
        }
        assert_eq!(read("null"), (None, 0));
    }

    #[test]
    fn what_is_no_whole_number_in_range_is_invalid() {
        let wrong = [
            "-1",
            "-0",
            "1.5",
            "1e-1",
            "9007199254740992",
            "18446744073709551616",
            "1e308",
            "1e400",
            "9007199254740992.0",
            "\"7\"",
            "\"\"",
            "true",
            "false",
            "[1]",
            "{}",
            "NaN",
            "-Infinity",
        ];
        for literal in wrong {
            assert_eq!(read(literal), (None, 1), "{literal}");
        }
    }
}
