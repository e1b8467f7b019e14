//! One poll of a gateway: the answers of its admin address, added up by tenant and by model.
//!
//! Metrics count the tokens of a request when it ends. The tokens of running requests are added to
//! them here.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::distribution::Distribution;
use super::exposition::series;

/// The metrics that a poll reads.
pub(super) const METRICS: [&str; 5] = [REQUESTS, TOKENS, COST, UNPRICED, FIRST_TOKENS];
const REQUESTS: &str = "taximeter_requests_total";
const TOKENS: &str = "taximeter_tokens_total";
const COST: &str = "taximeter_cost_total";
const UNPRICED: &str = "taximeter_unpriced_total";
const FIRST_TOKENS: &str = "taximeter_first_token_wait_seconds";
const FIRST_TOKENS_BUCKET: &str = "taximeter_first_token_wait_seconds_bucket";
/// The label value of tenants or models without their own series.
const OTHER: &str = "other";
/// The name for requests without a model.
const NONE: &str = "(none)";

/// The members of `/api/v1/status` that are shown.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
    /// The name of the gateway.
    pub(super) gateway: String,
    pub(super) started_at: Timestamp,
    pub(super) uptime_seconds: f64,
    pub(super) draining: bool,
    pub(super) requests: OpenRequests,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) ledger: Ledger,
    pub(super) store: Store,
}

/// The number of running requests.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct OpenRequests {
    pub(super) open: usize,
    pub(super) open_streams: usize,
}

/// The state of an upstream.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) open_requests: usize,
    /// `unknown`, `answering` or `failing`.
    pub(super) health: String,
    pub(super) answered_at: Option<Timestamp>,
    /// Failures since the last answer.
    pub(super) failures: u64,
    pub(super) last_failure: Option<UpstreamFailure>,
}

/// A request that failed at an upstream.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct UpstreamFailure {
    pub(super) at: Timestamp,
    pub(super) cause: String,
}

/// The state of the ledger.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Ledger {
    pub(super) is_open: bool,
    pub(super) is_healthy: bool,
    pub(super) lost_entries: u64,
}

/// The state of the store.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Store {
    pub(super) pending_entries: u64,
    pub(super) fault: Option<String>,
}

/// The answer of `/api/v1/live`.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Live {
    /// The time of the poll, by the gateway's clock.
    pub(super) at: Timestamp,
    /// Running requests. The ones that run longest come first.
    pub(super) requests: Vec<Running>,
}

/// A running request. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Running {
    /// The id, which its record has too.
    pub(super) id: String,
    pub(super) tenant: String,
    pub(super) request_model: Option<String>,
    pub(super) upstream: String,
    pub(super) duration: f64,
    /// Its stage, such as `generating`.
    pub(super) stage: String,
    pub(super) time_to_first_token: Option<f64>,
    /// The longest gap between two tokens so far.
    pub(super) longest_stall: Option<f64>,
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

/// Sums since the start of the gateway. They include the tokens of running requests, but not their
/// cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sums {
    /// Finished requests.
    pub(super) requests: f64,
    pub(super) input_tokens: f64,
    pub(super) output_tokens: f64,
    pub(super) cost: f64,
    /// OpenRequests of unknown cost.
    pub(super) unpriced: f64,
    /// Waits of streams for their first token, whatever ended them.
    pub(super) first_tokens: Distribution,
}

/// One poll.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) status: Status,
    pub(super) live: Live,
    pub(super) total: Sums,
    pub(super) tenants: BTreeMap<String, Sums>,
    /// By requested model.
    pub(super) models: BTreeMap<String, Sums>,
    /// ISO 4217 code. `None` while no request has a known cost.
    pub(super) currency: Option<String>,
}

impl Sample {
    /// Adds up the three answers. `metrics` is older than `live`.
    pub(super) fn of(metrics: &str, live: Live, status: Status) -> Self {
        let mut sample = Self {
            status,
            live,
            total: Sums::default(),
            tenants: BTreeMap::new(),
            models: BTreeMap::new(),
            currency: None,
        };
        sample.add_metrics(metrics);
        sample.add_running();
        sample
    }

    /// The names under which metrics will count a running request: tenant and model.
    pub(super) fn names<'a>(&self, running: &'a Running) -> (&'a str, &'a str) {
        let (tenants, models) = (&self.tenants, &self.models);
        let tenant = named(tenants, &running.tenant);
        (tenant, named(models, running.request_model.as_deref().unwrap_or(NONE)))
    }

    fn add_metrics(&mut self, metrics: &str) {
        for series in series(metrics) {
            let value = series.value;
            let of_type = |kind: &str| series.label("gen_ai_token_type") == Some(kind);
            let bound = || series.label("le").and_then(|bound| bound.parse::<f64>().ok());
            let mut add = |add: &dyn Fn(&mut Sums)| {
                let tenant = series.label("taximeter_tenant").unwrap_or(NONE);
                let model = series.label("gen_ai_request_model").unwrap_or(NONE);
                add(&mut self.total);
                add(self.tenants.entry(tenant.to_owned()).or_default());
                add(self.models.entry(model.to_owned()).or_default());
            };
            match series.name {
                REQUESTS => add(&|sums| sums.requests += value),
                TOKENS if of_type("input") => add(&|sums| sums.input_tokens += value),
                TOKENS if of_type("output") => add(&|sums| sums.output_tokens += value),
                UNPRICED => add(&|sums| sums.unpriced += value),
                // Without a stream the first token comes with the whole answer.
                FIRST_TOKENS_BUCKET if series.label("taximeter_stream").is_some() => {
                    if let Some(bound) = bound() {
                        add(&|sums| sums.first_tokens.add(bound, value));
                    }
                }
                COST => {
                    add(&|sums| sums.cost += value);
                    self.currency = series.label("taximeter_currency").map(str::to_owned);
                }
                _ => {}
            }
        }
    }

    fn add_running(&mut self) {
        for running in &self.live.requests {
            let (tenant, model) = self.names(running);
            let (tenant, model) = (tenant.to_owned(), model.to_owned());
            let tokens = |number: Option<u64>| number.unwrap_or_default() as f64;
            let sums = [
                &mut self.total,
                self.tenants.entry(tenant).or_default(),
                self.models.entry(model).or_default(),
            ];
            for sums in sums {
                sums.input_tokens += tokens(running.input_tokens);
                sums.output_tokens += tokens(running.output_tokens);
            }
        }
    }
}

/// The label value that metrics use for a name. Names without their own series share one.
fn named<'a>(known: &BTreeMap<String, Sums>, name: &'a str) -> &'a str {
    if known.contains_key(name) || !known.contains_key(OTHER) { name } else { OTHER }
}

impl Sums {
    /// The growth since `earlier`. A sum can shrink if a request used fewer tokens than it seemed
    /// while it ran. The growth is zero then.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let more = |number: fn(&Self) -> f64| (number(self) - number(earlier)).max(0.0);
        Self {
            requests: more(|sums| sums.requests),
            input_tokens: more(|sums| sums.input_tokens),
            output_tokens: more(|sums| sums.output_tokens),
            cost: more(|sums| sums.cost),
            unpriced: more(|sums| sums.unpriced),
            first_tokens: self.first_tokens.since(&earlier.first_tokens),
        }
    }
}
