//! `/api/v1/usage`: what was used and is owed, by whatever one likes. The sums of `taximeter bill`.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_billing::{
    Bill, BillLine, Biller, Credit, Grouping, Quantities, QuantityLine, Split, Sums, Unit,
};
use taximeter_gateway::gateway::Gateway;
use taximeter_pricing::Source;
use taximeter_store::terms::{Scope, Terms};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::Refused;
use super::query::{self, Asked, Ends};

/// Most lines of an answer; those of larger questions are exports.
const LINES_MAX: usize = 10_000;
/// What requests can be split by.
const BY: &str = "names with commas between them, each once: tenant, model, provider, upstream, \
                  operation, route, key, label:NAME, month, day, hour, meter, source";

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct UsageParams {
    /// Calendar month, `2026-11`; the current one where no end is given
    month: Option<String>,
    /// Start, included: a date, or a time with offset
    from: Option<String>,
    /// End, not included; now where only the start is given
    to: Option<String>,
    /// Time zone of months, days and hours, `Europe/Berlin`; `billing.zone` of the configuration by
    /// default
    zone: Option<String>,
    /// One line for each, with commas between them: `tenant`, `model`, `provider`, `upstream`,
    /// `operation`, `route`, `key`, `label:NAME`, `month`, `day`, `hour`, `meter`, `source`;
    /// `tenant,model` by default
    by: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
}

/// What was used and is owed in a period. Money is exact, in decimal; unknown is null, never zero.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageAnswer {
    /// When the requests were admitted.
    period: UsagePeriod,
    /// What the lines are split by.
    by: Vec<String>,
    /// ISO 4217; null where no request has a known cost.
    currency: Option<String>,
    /// In order of time where split by time, then the largest cost first, then by name. They add up
    /// to the total.
    lines: Vec<UsageLine>,
    /// What is free, by tenant and month.
    credits: Vec<UsageCredit>,
    /// Of all requests, however they are split.
    total: UsageTotal,
    /// Entries of this gateway's ledger that are on their way to the store, and in no sum yet.
    pending_entries: u64,
}

/// A span of time, start included, end not.
#[derive(Debug, Serialize, ToSchema)]
struct UsagePeriod {
    from: Timestamp,
    to: Timestamp,
    /// Whose months, days and hours: a name of the IANA time zone database.
    zone: String,
    /// Whether it is not over: the sums are those so far.
    provisional: bool,
}

/// One line.
#[derive(Debug, Serialize, ToSchema)]
struct UsageLine {
    /// Its value in each dimension; null where the requests have none.
    keys: BTreeMap<String, Option<String>>,
    /// Its requests; null where it is split by meter or source, since a request has many.
    requests: Option<RequestSums>,
    /// What is counted, such as `tokens`; only where it is split by meter or source.
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// How many; only where it is split by meter or source.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Decimal>,
    /// At list price.
    list_cost: Option<Decimal>,
    /// At the tenants' prices, before what is free.
    contracted_cost: Option<Decimal>,
}

/// All of it.
#[derive(Debug, Serialize, ToSchema)]
struct UsageTotal {
    requests: RequestSums,
    /// At list price.
    list_cost: Option<Decimal>,
    /// At the tenants' prices, before what is free.
    contracted_cost: Option<Decimal>,
    /// What is owed: the same less the credits.
    billed_cost: Option<Decimal>,
}

/// Requests and their tokens; null where not one request's number is known.
#[derive(Debug, Serialize, ToSchema)]
struct RequestSums {
    /// How many.
    count: u64,
    /// Those whose tokens the engine reported.
    reported: u64,
    /// Those whose tokens the gateway counted.
    counted: u64,
    /// Those whose tokens are unknown, in part or all: in no sum of tokens.
    unknown_usage: u64,
    /// Those whose cost is unknown: in no sum of money.
    unknown_cost: u64,
    /// All input.
    input_tokens: Option<u64>,
    /// Part of the input.
    cache_read_input_tokens: Option<u64>,
    /// All output.
    output_tokens: Option<u64>,
    /// Part of the output.
    reasoning_output_tokens: Option<u64>,
}

/// What a tenant need not pay of a month.
#[derive(Debug, Serialize, ToSchema)]
struct UsageCredit {
    /// Whose.
    tenant: String,
    /// `2026-11`.
    month: String,
    /// Tokens that were free; null where money is.
    tokens: Option<Decimal>,
    /// What is taken off.
    amount: Decimal,
}

/// How lines are split.
struct By {
    /// As it was asked for.
    names: Vec<String>,
    grouping: Grouping,
    /// Lines of quantities in place of requests.
    split: Option<Split>,
}

/// What was used and is owed, by whatever one likes
///
/// The sums are those of `taximeter bill` with the gateway's configuration. A line split by `meter`
/// or `source` has quantities and money of what has a price; requests are in the total.
#[utoipa::path(get, path = "/api/v1/usage", tag = "usage", params(UsageParams), responses(
    (status = 200, description = "The sums", body = UsageAnswer),
    Refused,
))]
pub(super) async fn usage(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<UsageParams>,
) -> Result<Json<UsageAnswer>, Refused> {
    let now = clock::wall();
    let zone = query::zone(asked.zone.as_deref(), &gateway.config)?;
    let ends = Ends {
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
        // Each is a question of its own to the store.
        let parts = period.parts(unit, &zone)?.len();
        if parts > LINES_MAX {
            return Err(Refused::Lines { lines: parts, max: LINES_MAX });
        }
        let scope = Scope { period, zone: &zone, unit, tenant: tenant.as_deref(), now };
        let mut biller = Biller::new(period, zone.clone(), by.grouping.clone());
        let mut quantities =
            by.split.map(|split| Quantities::new(zone.clone(), by.grouping.clone(), split));
        let credits = terms.sums(store, scope, None, |key, hour| {
            deadline.check()?;
            if let Some(quantities) = &mut quantities {
                quantities.add(key, hour)?;
            }
            Ok::<_, Refused>(biller.add_hour(key, hour)?)
        })?;
        for credit in credits {
            biller.add_credit(credit)?;
        }
        let lines = quantities.map(Quantities::finish);
        shape(&by, biller.finish(), lines, pending_entries, now)
    });
    answer.await.map(Json)
}

fn shape(
    by: &By,
    bill: Bill,
    quantities: Option<Vec<QuantityLine>>,
    pending_entries: u64,
    now: Timestamp,
) -> Result<UsageAnswer, Refused> {
    let lines: Vec<_> = match quantities {
        Some(quantities) => quantities.into_iter().map(|line| by.quantity(line)).collect(),
        None => bill.rows.into_iter().map(|line| by.requests(line)).collect(),
    };
    if lines.len() > LINES_MAX {
        return Err(Refused::Lines { lines: lines.len(), max: LINES_MAX });
    }
    // What is free is already taken off the bill's total.
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
            provisional: now < bill.period.to(),
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
    /// Errors: a name that is none, or twice.
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
    }
}

/// By tenant and model, as bills are.
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
            unknown_usage: sums.unknown_usage_requests,
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
