//! Numbers: their grammar, and whole numbers in range.

/// The value of a member that counts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// `null`.
    Absent,
    /// A whole number from 0 to 2⁵³ − 1.
    Whole(u64),
    /// Anything else.
    Invalid,
}

impl Count {
    /// The largest whole number that every JSON reader reads exactly (RFC 7493).
    pub const MAX: u64 = (1 << 53) - 1;

    /// The count in the text of a number.
    pub(crate) fn of(number: &[u8]) -> Self {
        let digits = |sum: u64, byte: &u8| match byte {
            b'0'..=b'9' => sum.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
            _ => None,
        };
        match number.iter().try_fold(0, digits) {
            Some(number) if number <= Self::MAX => Self::Whole(number),
            _ => Self::Invalid,
        }
    }
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
    use super::*;

    #[test]
    fn only_whole_numbers_in_range_count() {
        assert_eq!(Count::of(b"0"), Count::Whole(0));
        assert_eq!(Count::of(b"9007199254740991"), Count::Whole(Count::MAX));
        for wrong in ["9007199254740992", "-1", "1.5", "1e3", "99999999999999999999999999"] {
            assert_eq!(Count::of(wrong.as_bytes()), Count::Invalid, "{wrong}");
        }
    }
}
