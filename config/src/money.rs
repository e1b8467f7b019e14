//! Values of prices and bills: currencies, amounts, percentages, days, zones and exchange rates.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use taximeter_pricing::{Currency, Money};

use crate::mistake::Invalid;
use crate::value::Value;

impl Value for Currency {
    const EXPECTED: &'static str = "an ISO 4217 currency code, such as EUR";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text).ok_or_else(|| Invalid::new("is not a currency", Self::EXPECTED))
    }
}

impl Value for Date {
    const EXPECTED: &'static str = "a day such as 2026-11-01";

    fn parse(text: &str) -> Result<Self, Invalid> {
        // The parser also takes other forms of days, and drops a time behind one.
        let has_form = text.len() == "2026-11-01".len()
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let day = text.parse().ok().filter(|_| has_form);
        day.ok_or_else(|| Invalid::new("is not a day", Self::EXPECTED))
    }
}

impl Value for TimeZone {
    const EXPECTED: &'static str = "the IANA name of a time zone, such as Europe/Berlin or UTC";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let zone = Self::get(text).ok().filter(|zone| !zone.is_unknown());
        zone.ok_or_else(|| Invalid::new("is not a time zone", Self::EXPECTED))
    }
}

/// What one unit of another currency is worth.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(pub(crate) Decimal);

impl Value for Rate {
    const EXPECTED: &'static str = "a number above 0, such as 0.92";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is not an exchange rate", Self::EXPECTED);
        plain(text).filter(|rate| !rate.is_zero()).map(Self).ok_or_else(invalid)
    }
}

/// A number in plain digits: no sign, no exponent.
fn plain(text: &str) -> Option<Decimal> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| Decimal::from_str_exact(text).ok()).flatten()
}

impl Value for Money {
    const EXPECTED: &'static str = "an amount and a currency, such as 2.50 USD";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let money = text.split_once(' ').and_then(|(amount, currency)| {
            Some(Self { amount: plain(amount)?, currency: Currency::new(currency)? })
        });
        money.ok_or_else(|| Invalid::new("is not an amount of money", Self::EXPECTED))
    }
}

/// A percentage as a fraction: 0.1 is 10 %.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percent(pub(crate) Decimal);

impl Value for Percent {
    const EXPECTED: &'static str = "a percentage such as 10 %";

    fn parse(text: &str) -> Result<Self, Invalid> {
        /// With more places, prices that it multiplies would lose digits.
        const PLACES_MAX: u32 = 4;
        let percent = text.strip_suffix('%').and_then(|number| plain(number.trim_end()));
        percent
            .filter(|percent| percent.scale() <= PLACES_MAX)
            .and_then(|percent| percent.checked_mul(Decimal::new(1, 2)))
            .map(|fraction| Self(fraction.normalize()))
            .ok_or_else(|| Invalid::new("is not a percentage", Self::EXPECTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_written_in_one_form_and_has_no_time() {
        assert_eq!(Date::parse("2026-11-01").unwrap(), jiff::civil::date(2026, 11, 1));
        for text in
            ["1", "2026-11", "20261101", "2026-11-01 10:00", "2026-11-01T00:00", "2026-02-30"]
        {
            assert!(Date::parse(text).is_err(), "{text}");
        }
    }
}
