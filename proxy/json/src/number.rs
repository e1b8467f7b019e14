//! Numbers: their grammar, and whole numbers in range.

/// The value of a member that counts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// `null`.
    Absent,
    /// A whole number from 0 to 2⁵³ − 1, however it is written: `37`, `37.0` and `3.7e1` are the
    /// same.
    Whole(u64),
    /// Anything else.
    Invalid,
}

impl Count {
    /// The largest whole number that every JSON reader reads exactly (RFC 7493).
    pub const MAX: u64 = (1 << 53) - 1;

    /// The count in the text of a number.
    pub(crate) fn of(number: &[u8]) -> Self {
        let whole = digits(number).or_else(|| with_point_or_exponent(number));
        whole.filter(|whole| *whole <= Self::MAX).map_or(Self::Invalid, Self::Whole)
    }
}

/// The number that these digits are; `None` if there is anything else, or if it is too large.
fn digits(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number: u64, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The whole number that a number with a point or an exponent is.
#[cold]
fn with_point_or_exponent(number: &[u8]) -> Option<u64> {
    let grammar = number.iter().try_fold(Grammar::Start, |grammar, byte| grammar.then(*byte));
    if !grammar.is_some_and(Grammar::may_end) {
        return None;
    }
    let (mantissa, exponent) = cut(number, |byte| matches!(byte, b'e' | b'E'));
    let (whole, fraction) = cut(mantissa, |byte| *byte == b'.');
    let all = [whole, fraction].concat();
    if all.iter().all(|digit| *digit == b'0') {
        return Some(0);
    }
    let exponent: i32 = match exponent {
        [] => 0,
        _ => str::from_utf8(exponent).ok()?.parse().ok()?,
    };
    let places = exponent.checked_sub_unsigned(u32::try_from(fraction.len()).ok()?)?;
    let beyond = places.unsigned_abs();
    if places >= 0 {
        return digits(&all)?.checked_mul(10_u64.checked_pow(beyond)?);
    }
    let kept = all.len().checked_sub(usize::try_from(beyond).ok()?)?;
    let (whole, fraction) = all.split_at_checked(kept)?;
    fraction.iter().all(|digit| *digit == b'0').then(|| digits(whole))?
}

/// What stands before the first such byte, and what stands behind it.
fn cut(number: &[u8], is_mark: impl FnMut(&u8) -> bool) -> (&[u8], &[u8]) {
    let mut parts = number.splitn(2, is_mark);
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// The part of a number that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grammar {
    Start,
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Grammar {
    /// The next part, after `byte`. `None` if `byte` cannot follow.
    pub(crate) const fn then(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Start, b'-') => Some(Self::Minus),
            (Self::Start | Self::Minus, b'0') => Some(Self::Zero),
            (Self::Start | Self::Minus | Self::Whole, b'1'..=b'9') | (Self::Whole, b'0') => {
                Some(Self::Whole)
            }
            (Self::Zero | Self::Whole, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Some(Self::Exponent),
            (Self::Exponent, b'+' | b'-') => Some(Self::ExponentSign),
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigits, b'0'..=b'9') => {
                Some(Self::ExponentDigits)
            }
            _ => None,
        }
    }

    /// Whether the number may end here.
    pub(crate) const fn may_end(self) -> bool {
        matches!(self, Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigits)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_whole_numbers_in_range_count() {
        assert_eq!(Count::of(b"0"), Count::Whole(0));
        assert_eq!(Count::of(b"9007199254740991"), Count::Whole(Count::MAX));
        let wrong = [
            "9007199254740992",
            "18446744073709551616",
            "99999999999999999999999999",
            "9007199254740992.0",
            "1e308",
            "1e400",
            "1e99999999999",
            "-1",
            "-0",
            "-1.0",
            "1.5",
            "1e-1",
            "1.25e1",
            "1e-99999999999",
            "1.",
            "1e",
            "1.5.0",
            "NaN",
            "-Infinity",
        ];
        for wrong in wrong {
            assert_eq!(Count::of(wrong.as_bytes()), Count::Invalid, "{wrong}");
        }
    }

    #[test]
    fn a_whole_number_may_be_written_with_a_point_or_an_exponent() {
        for literal in ["37", "37.0", "37.000", "3.7e1", "3.7E+1", "370e-1", "0.037e3"] {
            assert_eq!(Count::of(literal.as_bytes()), Count::Whole(37), "{literal}");
        }
        for literal in ["0.0", "0e0", "0e9999", "0.000e-9999"] {
            assert_eq!(Count::of(literal.as_bytes()), Count::Whole(0), "{literal}");
        }
        assert_eq!(Count::of(b"9007199254740991.0"), Count::Whole(Count::MAX));
        assert_eq!(Count::of(b"9007199254740.991e3"), Count::Whole(Count::MAX));
    }

    proptest! {
        /// Moves the point, and moves it back by the exponent.
        #[test]
        fn the_place_of_the_point_changes_nothing(
            number in 0..=Count::MAX,
            places in 0_usize..20,
            zeros in 0_usize..4,
        ) {
            let padded = format!("{number:0>20}");
            let (whole, fraction) = padded.split_at(20 - places);
            let whole = whole.trim_start_matches('0');
            let whole = if whole.is_empty() { "0" } else { whole };
            let literal = format!("{whole}.{fraction}{}e{places}", "0".repeat(zeros + 1));
            prop_assert_eq!(Count::of(literal.as_bytes()), Count::Whole(number), "{}", literal);
        }
    }
}
