//! `/api/v1/usage`: requests, tokens and cost of a period, split by any dimensions. The sums are
//! those of `taximeter bill`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_billing::{
    Bill, BillLine, Biller, Credit, Grouping, LostRequests, PeriodStatus, Quantities, QuantityLine,
    SilentGateway, Split, Sums, Unit, WaitedGateway,
};
use taximeter_gateway::gateway::Gateway;
use taximeter_pricing::Source;
use taximeter_store::terms::{Scope, Terms};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::ApiError;
use super::query::{self, Params, PeriodParams};

/// Most lines in an answer. An export has no such limit.
const LINES_MAX: usize = 10_000;
/// The names that `by` can have.
const BY: &str = "names with commas between them, each once: tenant, model, provider, upstream, \
                  operation, route, key, label:NAME, session, agent, client, end_user, tag:NAME, \
                  month, day, hour, meter, source";

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct UsageParams {
    /// Calendar month, such as `2026-11`. Default: the current month, unless `from` is given
    month: Option<String>,
    /// Start of the period, included: a date, or a time with an offset
    from: Option<String>,
    /// End of the period, not included. Default with `from`: now
    to: Option<String>,
    /// Time zone of months, days and hours, such as `Europe/Berlin`. Default: `billing.zone` of the
    /// configuration
    zone: Option<String>,
    /// What the lines are split by: names with commas between them, out of `tenant`, `model`,
    /// `provider`, `upstream`, `operation`, `route`, `key`, `label:NAME`, `session`, `agent`,
    /// `client`, `end_user`, `tag:NAME`, `month`, `day`, `hour`, `meter`, `source`. A backslash makes
    /// the next comma a part of the name. What clients say (`session` to `tag:NAME`) is read from
    /// single requests, which takes longer and needs their details. Default: `tenant,model`
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
}

/// Requests, tokens and cost of a period. Money is an exact decimal. Null means unknown; it never
/// means zero.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageAnswer {
    /// The period. A request belongs to the time of its admission.
    period: UsagePeriod,
    /// What the lines are split by.
    by: Vec<String>,
    /// ISO 4217 code of all money. Null if no request has a known cost.
    currency: Option<String>,
    /// The lines, which add up to the total. They are in order of time if they are split by time,
    /// then the highest cost comes first, then they are in order of their names.
    lines: Vec<UsageLine>,
    /// What allowances take off, by tenant and month.
    credits: Vec<UsageCredit>,
    /// The sums of the whole period.
    total: UsageTotal,
    /// Entries of this gateway's ledger that the store does not have yet. No sum includes them.
    pending_entries: u64,
}

/// A period.
#[derive(Debug, Serialize, ToSchema)]
struct UsagePeriod {
    /// The start, included.
    from: Timestamp,
    /// The end, not included.
    to: Timestamp,
    /// Time zone of months, days and hours: a name of the IANA time zone database.
    zone: String,
    /// Whether the period is not closed. The sums can still grow then.
    provisional: bool,
    /// `final` or `provisional`: the same as a word.
    status: &'static str,
    /// When the period closes, if that time is still to come. It is the longest time that a request
    /// may take after its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    closes_at: Option<Timestamp>,
    /// The gateways that the period waits for: they have not written past the time at which it closes,
    /// or have requests of it open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits_for: Vec<UsageWaited>,
    /// The gateways that have been silent for a day. The period does not wait for them, so their
    /// requests can be missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    silent: Vec<UsageSilent>,
    /// The first instant with single requests, if those of the period before it are gone. The sums are
    /// whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    details_from: Option<Timestamp>,
    /// Requests that are lost, if some may be of the period. No sum includes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<UsageLost>,
}

/// Requests that are lost.
#[derive(Debug, Serialize, ToSchema)]
struct UsageLost {
    /// All of them ended before this time.
    before: Timestamp,
    /// How many.
    requests: u64,
}

/// A gateway that a period waits for.
#[derive(Debug, Serialize, ToSchema)]
struct UsageWaited {
    /// Its name in the store.
    gateway: String,
    /// Up to when it has written.
    written_until: Timestamp,
    /// The admission of its oldest open request, if that is in the period.
    #[serde(skip_serializing_if = "Option::is_none")]
    open_since: Option<Timestamp>,
}

/// A gateway that is silent.
#[derive(Debug, Serialize, ToSchema)]
struct UsageSilent {
    /// Its name in the store.
    gateway: String,
    /// The time of its last entry.
    since: Timestamp,
}

impl From<WaitedGateway> for UsageWaited {
    fn from(waited: WaitedGateway) -> Self {
        let WaitedGateway { gateway, written_until, open_since } = waited;
        Self { gateway, written_until, open_since }
    }
}

impl From<SilentGateway> for UsageSilent {
    fn from(silent: SilentGateway) -> Self {
        let SilentGateway { gateway, since } = silent;
        Self { gateway, since }
    }
}

/// One line.
#[derive(Debug, Serialize, ToSchema)]
struct UsageLine {
    /// The line's value for each name in `by`. Null if its requests have no such value.
    keys: BTreeMap<String, Option<String>>,
    /// The requests of the line. Null if `by` has `meter` or `source`: one request can be in
    /// several such lines.
    requests: Option<RequestSums>,
    /// What `quantity` counts, such as `tokens`. Only if `by` has `meter` or `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// The quantity. Only if `by` has `meter` or `source`.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Decimal>,
    /// Cost at list prices. Of an unknown cost, the part that is known.
    list_cost: Option<Decimal>,
    /// Cost at the tenants' own prices, before allowances. Of an unknown cost, the part that is known.
    contracted_cost: Option<Decimal>,
}

/// The sums of the whole period.
#[derive(Debug, Serialize, ToSchema)]
struct UsageTotal {
    /// All requests.
    requests: RequestSums,
    /// Cost at list prices.
    list_cost: Option<Decimal>,
    /// Cost at the tenants' own prices, before allowances.
    contracted_cost: Option<Decimal>,
    /// The amount to pay: the contracted cost minus the credits.
    billed_cost: Option<Decimal>,
}

/// Requests and their tokens. A sum of tokens is null if it is unknown for every request.
#[derive(Debug, Serialize, ToSchema)]
struct RequestSums {
    /// Number of requests.
    count: u64,
    /// Requests whose tokens the engine reported.
    reported: u64,
    /// Requests whose tokens the gateway counted.
    counted: u64,
    /// Requests with unknown input or output tokens. Sums leave the unknown tokens out.
    unknown_usage: u64,
    /// Requests of unknown cost. Sums of money include what is known of it, so they are at least so
    /// much.
    unknown_cost: u64,
    /// Input tokens, cached or not.
    input_tokens: Option<u64>,
    /// The part of the input tokens that came from a cache.
    cache_read_input_tokens: Option<u64>,
    /// Output tokens, with reasoning.
    output_tokens: Option<u64>,
    /// The part of the output tokens that was reasoning.
    reasoning_output_tokens: Option<u64>,
}

/// What an allowance takes off the bill of one month.
#[derive(Debug, Serialize, ToSchema)]
struct UsageCredit {
    /// The tenant.
    tenant: String,
    /// The month, such as `2026-11`.
    month: String,
    /// Free tokens. Null if the allowance is an amount of money.
    tokens: Option<Decimal>,
    /// The amount that the allowance takes off.
    amount: Decimal,
}

/// What the lines are split by.
struct By {
    /// The names in the request.
    names: Vec<String>,
    grouping: Grouping,
    /// The split by meter or source, if there is one.
    split: Option<Split>,
}

/// Requests, tokens and cost of a period
///
/// The sums are those of `taximeter bill` with the gateway's configuration. With `meter` or
/// `source` in `by`, a line has the quantity and the cost of everything that has a price. The
/// number of requests is in the total then.
#[utoipa::path(get, path = "/api/v1/usage", tag = "usage", params(UsageParams), responses(
    (status = 200, description = "The sums of the period", body = UsageAnswer),
    ApiError,
))]
pub(super) async fn usage(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<UsageParams>,
) -> Result<Json<UsageAnswer>, ApiError> {
    let now = clock::wall();
    let zone = query::zone(asked.zone.as_deref(), &gateway.config)?;
    let ends = PeriodParams {
        zone: &zone,
        month: asked.month.as_deref(),
        from: asked.from.as_deref(),
        to: asked.to.as_deref(),
    };
    let period = ends.or_this_month(now)?;
    let by = query::read("by", asked.by.as_deref(), BY, By::read)?.unwrap_or_default();
    let pending_entries = gateway.pending_entries();
    let terms = Terms::of(&gateway.config);
    let tenant = asked.tenant;
    let answer = ask(&gateway, move |store, deadline| {
        let unit = by.grouping.unit().unwrap_or(Unit::Month);
        // The store is asked once for each part.
        let parts = period.parts(unit, &zone)?.len();
        if parts > LINES_MAX {
            return Err(ApiError::Lines { lines: parts, max: LINES_MAX });
        }
        let (split_by, tenant) = (&by.grouping.split_by(), tenant.as_deref());
        let scope = Scope { period, zone: &zone, unit, tenant, now, split_by };
        let status = store.status(period, now)?;
        let mut biller = Biller::new(period, zone.clone(), by.grouping.clone());
        let mut quantities =
            by.split.map(|split| Quantities::new(zone.clone(), by.grouping.clone(), split));
        let credits = terms.sums(store, scope, None, |key, hour| {
            deadline.check()?;
            if let Some(quantities) = &mut quantities {
                quantities.add(key, hour)?;
            }
            Ok::<_, ApiError>(biller.add_hour(key, hour)?)
        })?;
        for credit in credits {
            biller.add_credit(credit)?;
        }
        let lines = quantities.map(Quantities::finish);
        shape(&by, biller.finish(), lines, pending_entries, status)
    });
    answer.await.map(Json)
}

fn shape(
    by: &By,
    bill: Bill,
    quantities: Option<Vec<QuantityLine>>,
    pending_entries: u64,
    status: PeriodStatus,
) -> Result<UsageAnswer, ApiError> {
    let lines: Vec<_> = match quantities {
        Some(quantities) => quantities.into_iter().map(|line| by.quantity(line)).collect(),
        None => bill.rows.into_iter().map(|line| by.requests(line)).collect(),
    };
    if lines.len() > LINES_MAX {
        return Err(ApiError::Lines { lines: lines.len(), max: LINES_MAX });
    }
    // The bill's total is after allowances.
    let free: Decimal = bill.credits.iter().map(|credit| credit.amount).sum();
    let total = UsageTotal {
        requests: RequestSums::from(&bill.total),
        list_cost: bill.total.list_cost,
        contracted_cost: bill.total.cost.map(|cost| (cost + free).normalize()),
        billed_cost: bill.total.cost,
    };
    Ok(UsageAnswer {
        period: UsagePeriod {
            from: bill.period.from(),
            to: bill.period.to(),
            zone: bill.zone.to_string(),
            provisional: !status.is_final(),
            status: status.status.as_str(),
            closes_at: status.closes_at,
            waits_for: status.waits_for.into_iter().map(UsageWaited::from).collect(),
            silent: status.silent.into_iter().map(UsageSilent::from).collect(),
            details_from: status.details_from,
            lost: status
                .lost
                .map(|LostRequests { before, requests }| UsageLost { before, requests }),
        },
        by: by.names.clone(),
        currency: bill.currency,
        lines,
        credits: bill.credits.into_iter().map(UsageCredit::from).collect(),
        total,
        pending_entries,
    })
}

impl By {
    /// Errors: a name is unknown, or comes twice.
    fn read(text: &str) -> Result<Self, ()> {
        let names = Grouping::names(text);
        let is_split = |name: &&String| matches!(name.as_str(), "meter" | "source");
        let of = |word: &str| names.iter().filter(|name| *name == word).count();
        if of("meter") > 1 || of("source") > 1 {
            return Err(());
        }
        let split = Split { meter: of("meter") > 0, source: of("source") > 0 };
        let rest = names.iter().filter(|name| !is_split(name));
        let grouping = Grouping::named(rest).map_err(|_| ())?;
        let split = (split != Split::default()).then_some(split);
        Ok(Self { names, grouping, split })
    }

    fn keys(&self, values: Vec<Option<String>>) -> BTreeMap<String, Option<String>> {
        let names = self.grouping.dimensions().iter().map(ToString::to_string);
        names.zip(values).collect()
    }

    fn requests(&self, line: BillLine) -> UsageLine {
        UsageLine {
            requests: Some(RequestSums::from(&line.sums)),
            keys: self.keys(line.keys),
            unit: None,
            quantity: None,
            list_cost: line.sums.list_cost,
            contracted_cost: line.sums.cost,
        }
    }

    fn quantity(&self, line: QuantityLine) -> UsageLine {
        let mut keys = self.keys(line.keys);
        keys.extend(line.meter.map(|meter| ("meter".to_owned(), Some(meter))));
        keys.extend(line.source.map(|source| ("source".to_owned(), Some(word(source).to_owned()))));
        UsageLine {
            keys,
            requests: None,
            unit: Some(line.unit),
            quantity: Some(line.quantity),
            list_cost: Some(line.list_cost),
            contracted_cost: Some(line.cost),
        }
    }
}

const fn word(source: Source) -> &'static str {
    match source {
        Source::Reported => "reported",
        Source::Counted => "counted",
        Source::Unknown => "unknown",
        Source::None => "none",
    }
}

/// By tenant and model, as in a bill.
impl Default for By {
    fn default() -> Self {
        let grouping = Grouping::default();
        let names = grouping.dimensions().iter().map(ToString::to_string).collect();
        Self { names, grouping, split: None }
    }
}

impl From<&Sums> for RequestSums {
    fn from(sums: &Sums) -> Self {
        Self {
            count: sums.requests,
            reported: sums.reported_requests(),
            counted: sums.counted_requests,
            unknown_usage: sums.unknown_usages(),
            unknown_cost: sums.unknown_costs(),
            input_tokens: sums.input_tokens,
            cache_read_input_tokens: sums.cache_read_input_tokens,
            output_tokens: sums.output_tokens,
            reasoning_output_tokens: sums.reasoning_output_tokens,
        }
    }
}

impl From<Credit> for UsageCredit {
    fn from(credit: Credit) -> Self {
        Self {
            month: credit.month.strftime("%Y-%m").to_string(),
            tenant: credit.tenant,
            tokens: credit.tokens,
            amount: credit.amount,
        }
    }
}
