//! Reads the numbers that limit the output of a request: `max_tokens`, `n` and others.

use rust_decimal::prelude::ToPrimitive as _;

/// A limit that a request sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// A number from one on.
    AtMost(u64),
    /// A number below one. Some engines refuse it. Others take 0 or −1 for no limit.
    Open,
}

impl Limit {
    /// The limit that a JSON number sets. `None` for numbers beyond ±(2⁶⁴ − 1), as readers do not
    /// agree on their values.
    pub(crate) fn read(literal: &str) -> Option<Self> {
        if let Ok(whole) = literal.parse::<u64>() {
            return Some(if whole == 0 { Self::Open } else { Self::AtMost(whole) });
        }
        let number: f64 = literal.parse().ok()?;
        let is_readable = number.abs() < u64::MAX.to_f64()?;
        if number < 1.0 {
            return is_readable.then_some(Self::Open);
        }
        // Some engines drop a fraction, and others refuse it.
        number.ceil().to_u64().filter(|_| is_readable).map(Self::AtMost)
    }

    /// The number, if it is a limit to every engine.
    pub(crate) const fn at_most(self) -> Option<u64> {
        match self {
            Self::AtMost(number) => Some(number),
            Self::Open => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_one_is_no_limit_and_a_fraction_is_rounded_up() {
        for literal in ["-1", "0", "-0", "0.0", "0.9", "1e-400", "-9223372036854775808", "-1.5e3"] {
            assert_eq!(Limit::read(literal), Some(Limit::Open), "{literal}");
        }
        for (literal, limit) in [
            ("1", 1),
            ("1.0", 1),
            ("1.5", 2),
            ("1e3", 1_000),
            ("99999999999999", 99_999_999_999_999),
            ("9007199254740993", 9_007_199_254_740_993),
            ("18446744073709551615", u64::MAX),
            ("1e19", 10_000_000_000_000_000_000),
        ] {
            assert_eq!(Limit::read(literal), Some(Limit::AtMost(limit)), "{literal}");
        }
    }

    #[test]
    fn a_number_that_readers_do_not_agree_on_cannot_be_read() {
        for literal in ["18446744073709551616", "1e20", "1e308", "1e400", "-1e400", "-1e20", "many"]
        {
            assert_eq!(Limit::read(literal), None, "{literal}");
        }
    }
}
