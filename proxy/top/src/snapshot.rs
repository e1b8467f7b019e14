//! The data that the screen shows, as numbers.

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::distribution::Quantile;
use super::sample::{Ledger, Running, Store, Upstream};

/// All data that the screen shows at one moment.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    /// The name of the gateway.
    pub(super) gateway: String,
    pub(super) version: String,
    /// Seconds.
    pub(super) uptime: f64,
    pub(super) draining: bool,
    /// Set while the gateway does not answer.
    pub(super) away: Option<Outage>,
    pub(super) running: usize,
    pub(super) streams: usize,
    /// Rates of all requests. `None` before the second poll.
    pub(super) total: Option<Rates>,
    /// The window of the rates, in seconds.
    pub(super) window: f64,
    /// ISO 4217 code. `None` while no request has a known cost.
    pub(super) currency: Option<String>,
    /// `None` before the first answer of the store.
    pub(super) month: Option<Month>,
    pub(super) ledger: Ledger,
    pub(super) store: Store,
    pub(super) tenants: Vec<NamedRates>,
    pub(super) models: Vec<NamedRates>,
    /// Running requests. The ones that run longest come first.
    pub(super) requests: Vec<Running>,
    pub(super) upstreams: Vec<Upstream>,
    /// The time of the poll, by the gateway's clock.
    pub(super) at: Timestamp,
    /// One point for each poll. The oldest comes first.
    pub(super) points: Vec<Point>,
}

/// A gateway that does not answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outage {
    /// Seconds since the first failed poll.
    pub(super) seconds: f64,
    pub(super) why: String,
}

/// The cost of a month so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Month {
    /// The month, such as `2026-11`.
    pub(super) name: String,
    /// The billed cost. `None` means unknown.
    pub(super) billed: Option<Decimal>,
    pub(super) currency: Option<String>,
    /// Whether there are requests of unknown cost. The sum does not include them.
    pub(super) more: bool,
}

/// A tenant or a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NamedRates {
    pub(super) name: String,
    pub(super) running: usize,
    /// `None` before the second poll.
    pub(super) rates: Option<Rates>,
}

/// Rates. They are per second, unless the comment says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    pub(super) requests: f64,
    pub(super) input_tokens: f64,
    pub(super) output_tokens: f64,
    /// Wait of streams for their first token, in seconds, told when it ends. `None` without any.
    pub(super) first_token_p50: Option<Quantile>,
    pub(super) first_token_p95: Option<Quantile>,
    /// Spend per hour. Requests without a known price are not in it.
    pub(super) spend: f64,
    /// Whether some requests have no known price.
    pub(super) unpriced: bool,
    /// Share of all spend. `None` if nothing is spent.
    pub(super) share: Option<f64>,
}

/// One point of the charts. `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Point {
    /// Output tokens per second.
    pub(super) output_tokens: Option<f64>,
    /// Median wait for a first token that ended shortly before, in seconds.
    pub(super) first_token: Option<f64>,
}
