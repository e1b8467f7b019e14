//! Values of prices: currencies, days and exchange rates.

use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_pricing::Currency;

use crate::mistake::Invalid;
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

/// Money for one of another currency.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate(pub(crate) Decimal);

impl Value for Rate {
    const EXPECTED: &'static str = "money for one of the other currency, such as 0.92";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is no exchange rate", Self::EXPECTED);
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let rate = is_plain.then(|| Decimal::from_str_exact(text).ok()).flatten();
        rate.filter(|rate| !rate.is_zero()).map(Self).ok_or_else(invalid)
    }
}
