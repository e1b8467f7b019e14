//! Values of prices and bills: currencies, money, percentages, days, zones and exchange rates.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;
use taximeter_pricing::{Currency, Money};

use crate::mistake::Invalid;
use crate::shape::Shape;
use crate::values::Value;

impl Value for Currency {
    const EXPECTED: &'static str = "a currency of ISO 4217, such as EUR";

    fn parse(text: &str) -> Result<Self, Invalid> {
        Self::new(text).ok_or_else(|| Invalid::new("is no currency", Self::EXPECTED))
    }
}

impl Value for Date {
    const EXPECTED: &'static str = "a day such as 2026-11-01";

    fn parse(text: &str) -> Result<Self, Invalid> {
        text.parse().map_err(|_| Invalid::new("is no day", Self::EXPECTED))
    }
}

impl Value for TimeZone {
    const EXPECTED: &'static str = "a name of the IANA database, such as Europe/Berlin or UTC";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let zone = Self::get(text).ok().filter(|zone| !zone.is_unknown());
        zone.ok_or_else(|| Invalid::new("is no time zone", Self::EXPECTED))
    }
}

/// Money for one of another currency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(pub(crate) Decimal);

impl Value for Rate {
    const EXPECTED: &'static str = "money for one of the other currency, such as 0.92";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is no exchange rate", Self::EXPECTED);
        plain(text).filter(|rate| !rate.is_zero()).map(Self).ok_or_else(invalid)
    }
}

/// A number in plain digits: no sign, no exponent.
fn plain(text: &str) -> Option<Decimal> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    is_plain.then(|| Decimal::from_str_exact(text).ok()).flatten()
}

impl Value for Money {
    const EXPECTED: &'static str = "money such as 2.50 USD";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let money = text.split_once(' ').and_then(|(amount, currency)| {
            Some(Self { amount: plain(amount)?, currency: Currency::new(currency)? })
        });
        money.ok_or_else(|| Invalid::new("is no money", Self::EXPECTED))
    }
}

/// A part of something: 0.1 is 10 %.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Percent(pub(crate) Decimal);

impl Value for Percent {
    const EXPECTED: &'static str = "a percentage such as 10 %";

    fn parse(text: &str) -> Result<Self, Invalid> {
        /// More places would leave none for the prices that it multiplies.
        const PLACES_MAX: u32 = 4;
        let percent = text.strip_suffix('%').and_then(|number| plain(number.trim_end()));
        percent
            .filter(|percent| percent.scale() <= PLACES_MAX)
            .and_then(|percent| percent.checked_mul(Decimal::new(1, 2)))
            .map(|fraction| Self(fraction.normalize()))
            .ok_or_else(|| Invalid::new("is no percentage", Self::EXPECTED))
    }
}

/// How many are free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Free(pub(crate) u64);

impl Value for Free {
    const EXPECTED: &'static str = "a number of tokens such as 1000000";

    fn parse(text: &str) -> Result<Self, Invalid> {
        whole(text).map(Self).ok_or_else(|| Invalid::new("is no number", Self::EXPECTED))
    }

    fn shape() -> Shape {
        Shape::Whole(0)
    }
}

/// How many of something, which may be none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(pub(crate) u32);

impl Value for Count {
    const EXPECTED: &'static str = "a whole number such as 2";

    fn parse(text: &str) -> Result<Self, Invalid> {
        whole(text).map(Self).ok_or_else(|| Invalid::new("is no number", Self::EXPECTED))
    }

    fn shape() -> Shape {
        Shape::Whole(0)
    }
}

/// What a token weighs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight(pub(crate) u32);

impl Value for Weight {
    const EXPECTED: &'static str = "a whole number such as 4";

    fn parse(text: &str) -> Result<Self, Invalid> {
        whole(text).map(Self).ok_or_else(|| Invalid::new("is no weight", Self::EXPECTED))
    }

    fn shape() -> Shape {
        Shape::Whole(0)
    }
}

/// A whole number in plain digits.
fn whole<N: std::str::FromStr>(text: &str) -> Option<N> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}
