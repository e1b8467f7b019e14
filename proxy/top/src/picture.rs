//! What there is to show: figures, not yet text.

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::distribution::Quantile;
use super::sample::{Ledger, Running, Store, Upstream};

/// A gateway as it is shown at one moment.
#[derive(Debug, Clone)]
pub(super) struct Picture {
    /// Its name.
    pub(super) gateway: String,
    pub(super) version: String,
    /// Seconds.
    pub(super) uptime: f64,
    pub(super) draining: bool,
    /// Since when there is no answer, if there is none now.
    pub(super) away: Option<Away>,
    pub(super) running: usize,
    pub(super) streams: usize,
    /// Of all requests; `None` after the first look.
    pub(super) total: Option<Rates>,
    /// Seconds that rates are of.
    pub(super) window: f64,
    /// ISO 4217; `None` while no request had a known cost.
    pub(super) currency: Option<String>,
    /// `None` until the store has said.
    pub(super) month: Option<Month>,
    pub(super) ledger: Ledger,
    pub(super) store: Store,
    pub(super) tenants: Vec<Row>,
    pub(super) models: Vec<Row>,
    /// Those that run longest.
    pub(super) requests: Vec<Running>,
    pub(super) upstreams: Vec<Upstream>,
    /// When, by the gateway's clock.
    pub(super) at: Timestamp,
    /// The oldest first, one a look.
    pub(super) points: Vec<Point>,
}

/// A gateway that does not answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Away {
    /// So many seconds ago.
    pub(super) seconds: f64,
    pub(super) why: String,
}

/// What is owed for a month so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Month {
    /// `2026-11`.
    pub(super) name: String,
    /// `None` is unknown.
    pub(super) billed: Option<Decimal>,
    pub(super) currency: Option<String>,
    /// Whether there are requests whose cost is unknown, in no sum.
    pub(super) more: bool,
}

/// A tenant, or a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) running: usize,
    /// `None` after the first look.
    pub(super) rates: Option<Rates>,
}

/// What happens, by the second where nothing else is said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    pub(super) requests: f64,
    pub(super) input_tokens: f64,
    pub(super) output_tokens: f64,
    /// Seconds, of streams that have ended; `None` without any.
    pub(super) first_token_p50: Option<Quantile>,
    pub(super) first_token_p95: Option<Quantile>,
    /// Money by the hour, of what has a price.
    pub(super) spend: f64,
    /// Whether something had none.
    pub(super) unpriced: bool,
    /// Part of all spend; `None` where nothing is spent.
    pub(super) share: Option<f64>,
}

/// One look, for lines over time; `None` where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Point {
    /// Output tokens by the second.
    pub(super) output_tokens: Option<f64>,
    /// Median seconds, of streams that had ended in the seconds before.
    pub(super) first_token: Option<f64>,
}
