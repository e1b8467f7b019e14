//! The price of GPUs: money per hour, whether they are busy or idle.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::terms::Money;

/// The price of the GPUs of an engine. Its requests are charged with shares of this price, and not
/// by the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuPrice {
    /// Name of the GPU model, such as `H100`.
    pub kind: String,
    /// Number of GPUs.
    pub count: u32,
    /// Price of one GPU for one hour, at least 0.
    pub hourly: Money,
    /// First day on which they cost something, UTC. `None` means always.
    pub since: Option<Date>,
    /// First day on which other GPUs replace them, UTC. `None` means never.
    pub until: Option<Date>,
    /// The weights of tokens when the time of the GPUs is shared out.
    pub weights: TokenWeights,
}

/// The weight of a token. Not both are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenWeights {
    /// A token of the input, cached or not.
    pub input: u32,
    /// A token of the output.
    pub output: u32,
}

impl GpuPrice {
    /// The first instant at which they cost something. `None` means always.
    #[must_use]
    pub fn since(&self) -> Option<Timestamp> {
        midnight(self.since?)
    }

    /// The first instant at which they no longer cost something. `None` means never.
    #[must_use]
    pub fn until(&self) -> Option<Timestamp> {
        midnight(self.until?)
    }

    /// Whether a request that was admitted at `at` is charged with a share.
    #[must_use]
    pub fn covers(&self, at: Timestamp) -> bool {
        self.since().is_none_or(|since| since <= at) && self.until().is_none_or(|until| at < until)
    }

    /// The id of this price on bills.
    #[must_use]
    pub fn price_id(&self, upstream: &str) -> String {
        let since = self.since.map_or_else(String::new, |since| format!("@{since}"));
        format!("gpu{since}#{upstream}/{}", self.kind)
    }
}

fn midnight(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

/// Generating a token takes an engine longer than reading one. In the built-in price book, hosts of
/// open models charge four times as much for a token of output as for one of input (the median).
impl Default for TokenWeights {
    fn default() -> Self {
        Self { input: 1, output: 4 }
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::currency::Currency;

    #[test]
    fn gpus_cost_from_their_first_day_up_to_that_of_others() {
        let mut price = GpuPrice {
            kind: "H100".to_owned(),
            count: 2,
            hourly: Money { amount: Decimal::new(25, 1), currency: Currency::USD },
            since: None,
            until: None,
            weights: TokenWeights::default(),
        };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(price.covers(Timestamp::MIN));
        assert_eq!(price.price_id("local"), "gpu#local/H100");
        price.since = Some(jiff::civil::date(2026, 11, 20));
        assert!(price.covers(at("2026-11-20T00:00:00Z")));
        assert!(!price.covers(at("2026-11-19T23:59:59.999999Z")));
        assert_eq!(price.price_id("local"), "gpu@2026-11-20#local/H100");
        price.until = Some(jiff::civil::date(2026, 12, 1));
        assert!(price.covers(at("2026-11-30T23:59:59.999999Z")));
        assert!(!price.covers(at("2026-12-01T00:00:00Z")));
    }
}
