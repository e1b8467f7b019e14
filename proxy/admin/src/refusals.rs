//! `/api/v1/refusals`: how many requests have no record, and the last ones that the gateway refused.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_gateway::gateway::Gateway;
use taximeter_gateway::refusals::RefusedRequest;
use taximeter_store::refusals::{Every, RefusalQuestion, RefusalSum, RefusalSums};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::ApiError;
use super::query::{self, Params, PeriodParams};

/// Most lines in an answer.
const LINES_MAX: usize = 10_000;
/// The names that `by` can have.
const BY: &str = "one of minute, hour, day";

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct RefusalsParams {
    /// Calendar month, such as `2026-11`. Default: the current month, unless `from` is given
    pub(super) month: Option<String>,
    /// Start of the period, included: a date, or a time with an offset
    pub(super) from: Option<String>,
    /// End of the period, not included. Default with `from`: now
    pub(super) to: Option<String>,
    /// Time zone of months, days and hours, such as `Europe/Berlin`. Default: `billing.zone` of the
    /// configuration
    pub(super) zone: Option<String>,
    /// A line for each `minute`, `hour` or `day`. Default: one for the whole period
    pub(super) by: Option<String>,
    /// Only this tenant
    pub(super) tenant: Option<String>,
    /// Only this reason, such as `invalid_api_key`
    pub(super) reason: Option<String>,
}

/// How many requests have no record, and the last ones that the gateway refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusalsAnswer {
    /// Start of the period, included.
    pub(super) from: Timestamp,
    /// End of the period, not included.
    pub(super) to: Timestamp,
    /// The lines: in order of time, then the most requests first.
    pub(super) counts: Vec<RefusalLine>,
    /// All requests of the lines.
    pub(super) total: u64,
    /// The last requests that this gateway refused, at most a hundred of each reason, the newest
    /// first. They are in memory: a restart forgets them. Not only those of the period.
    pub(super) last: Vec<LastRefusal>,
    /// Entries of this gateway's ledger that the store does not have yet. Counts in them are missing.
    pub(super) pending_entries: u64,
}

/// Requests without a record that ended in the same way.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RefusalLine {
    /// First instant of the minute, hour or day. Null if those are not told apart.
    from: Option<Timestamp>,
    /// The tenant. Null if it was not known, or with `other_tenants`.
    pub(super) tenant: Option<String>,
    /// Whether these are requests of tenants that are not told apart, because there were too many.
    pub(super) other_tenants: bool,
    /// The error code of the refusal, or the `error_type` that the records would have.
    pub(super) reason: String,
    /// The status that the clients got. Null if they had left.
    pub(super) status: Option<u16>,
    /// Whether the requests were admitted, used nothing and came in a flood. Otherwise the gateway
    /// refused them.
    pub(super) admitted: bool,
    /// How many there were.
    pub(super) requests: u64,
}

/// A request that the gateway refused.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LastRefusal {
    /// `x-taximeter-request-id` of the answer.
    id: String,
    /// When it was refused.
    pub(super) at: Timestamp,
    /// The tenant. Null if it was not known.
    pub(super) tenant: Option<String>,
    /// The `id` of the API key. Null if none was known.
    pub(super) key_id: Option<String>,
    /// The template of the route. Null if there is none.
    pub(super) route: Option<&'static str>,
    /// The upstream that it was meant for. Null if it did not come so far.
    pub(super) upstream: Option<String>,
    /// The status that the client got. Null if it had left.
    pub(super) status: Option<u16>,
    /// The error code.
    pub(super) reason: &'static str,
}

/// How many requests have no record, and the last ones that the gateway refused
///
/// A request has a record or is counted here, never both.
#[utoipa::path(get, path = "/api/v1/refusals", tag = "records", params(RefusalsParams), responses(
    (status = 200, description = "The counts of the period", body = RefusalsAnswer),
    ApiError,
))]
pub(super) async fn refusals(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<RefusalsParams>,
) -> Result<Json<RefusalsAnswer>, ApiError> {
    let zone = query::zone(asked.zone.as_deref(), &gateway.config)?;
    let (month, from, to) = (asked.month.as_deref(), asked.from.as_deref(), asked.to.as_deref());
    let period = PeriodParams { zone: &zone, month, from, to }.or_this_month(clock::wall())?;
    let every = query::read("by", asked.by.as_deref(), BY, |by| match by {
        "minute" => Ok(Every::Minute),
        "hour" => Ok(Every::Hour),
        "day" => Ok(Every::Day),
        _ => Err(()),
    })?;
    let RefusalsParams { tenant, reason, .. } = asked;
    let is_wanted = |last: &RefusedRequest| {
        let of = last.tenant.as_ref().map(|tenant| tenant.as_str());
        (tenant.is_none() || of == tenant.as_deref())
            && reason.as_deref().is_none_or(|reason| reason == last.reason)
    };
    let last = gateway.refusals.recent().into_iter().filter(is_wanted).map(LastRefusal::from);
    let last = last.collect();
    let (unwritten, pending_entries) = (gateway.refusals.unwritten(), gateway.pending_entries());
    let question = RefusalQuestion { period, zone, every, tenant, reason };
    let sums = ask(&gateway, move |store, deadline| {
        let mut sums = RefusalSums::new(question);
        store.add_refusals(&mut sums, |sums| {
            deadline.check()?;
            if sums.len() > LINES_MAX {
                return Err(ApiError::Lines { lines: sums.len(), max: LINES_MAX });
            }
            Ok::<_, ApiError>(())
        })?;
        for (minute, count) in unwritten {
            sums.add_new(minute, count);
        }
        Ok(sums.finish())
    })
    .await?;
    let total = sums.iter().map(|sum| sum.count).fold(0, u64::saturating_add);
    let counts = sums.into_iter().map(RefusalLine::from).collect();
    let (from, to) = (period.from(), period.to());
    Ok(Json(RefusalsAnswer { from, to, counts, total, last, pending_entries }))
}

impl From<RefusalSum> for RefusalLine {
    fn from(sum: RefusalSum) -> Self {
        let RefusalSum { from, kind, count } = sum;
        Self {
            from,
            tenant: kind.tenant.map(|tenant| tenant.as_str().to_owned()),
            other_tenants: kind.others,
            reason: kind.reason.into_owned(),
            status: kind.status,
            admitted: kind.admitted,
            requests: count,
        }
    }
}

impl From<RefusedRequest> for LastRefusal {
    fn from(refused: RefusedRequest) -> Self {
        Self {
            id: refused.id.to_string(),
            at: refused.at,
            tenant: refused.tenant.map(|tenant| tenant.as_str().to_owned()),
            key_id: refused.key_id,
            route: refused.route,
            upstream: refused.upstream.map(|upstream| upstream.as_ref().to_owned()),
            status: refused.status,
            reason: refused.reason,
        }
    }
}
