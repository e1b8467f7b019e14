//! `/api/v1/sessions`: what sessions of agents cost, and one of them opened.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taximeter_billing::Period;
use taximeter_gateway::gateway::Gateway;
use taximeter_sessions::{Listing, Session, TopBy};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::ApiError;
use super::query::{self, Params, PeriodParams};

/// Default number of sessions in a list.
const SESSIONS: u32 = 20;
/// Most sessions in a list.
const SESSIONS_MAX: u32 = 1000;
/// Default number of turns of a session.
const TURNS: u32 = 1000;
/// Most turns of a session.
const TURNS_MAX: u32 = 100_000;
/// The period of a list without `from` and `month`.
const PERIOD: SignedDuration = SignedDuration::from_hours(29 * 24);
/// The names that `top` can have.
const TOP: &str = "one of cost, length, latest";

/// The query parameters of a list.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SessionsParams {
    /// Only UTC days of this calendar month, such as `2026-11`
    pub(super) month: Option<String>,
    /// Only UTC days from this date or time with an offset on. Default: 30 days up to now
    pub(super) from: Option<String>,
    /// Only UTC days before this date or time
    pub(super) to: Option<String>,
    /// Time zone of months and dates, such as `Europe/Berlin`. Default: `billing.zone` of the
    /// configuration
    pub(super) zone: Option<String>,
    /// Only sessions of this tenant
    pub(super) tenant: Option<String>,
    /// Which come first: the dearest (`cost`), the longest (`length`) or the `latest`. Default: `cost`
    pub(super) top: Option<String>,
    /// Most sessions, from 1 to 1000. Default: 20
    pub(super) limit: Option<String>,
}

/// The query parameters of one session.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SessionParams {
    /// Only the session of this tenant
    pub(super) tenant: Option<String>,
    /// Most turns, from 1 to 100000: the dearest ones, in order. Default: 1000
    pub(super) turns: Option<String>,
}

/// Sessions of agents.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionsAnswer {
    /// Start of the period. The sums are those of all UTC days that the period has a part of.
    pub(super) from: Timestamp,
    /// End of the period, not included.
    pub(super) to: Timestamp,
    /// The sessions.
    #[serde(flatten)]
    pub(super) listing: Listing,
    /// Entries of this gateway's ledger that the store does not have yet. No sum has them.
    pub(super) pending_entries: u64,
}

/// The sessions of one name: one for each tenant that has it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionAnswer {
    /// The sessions, by tenant.
    pub(super) sessions: Vec<Session>,
    /// The first instant with records, if older ones are gone: what was before is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details_from: Option<Timestamp>,
    /// Entries of this gateway's ledger that the store does not have yet.
    pub(super) pending_entries: u64,
}

/// The dearest, longest or latest sessions of agents
///
/// A session is one task with all its sub-agents, as its client names it.
#[utoipa::path(get, path = "/api/v1/sessions", tag = "sessions", params(SessionsParams), responses(
    (status = 200, description = "The sessions", body = SessionsAnswer),
    ApiError,
))]
pub(super) async fn sessions(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<SessionsParams>,
) -> Result<Json<SessionsAnswer>, ApiError> {
    let zone = query::zone(asked.zone.as_deref(), &gateway.config)?;
    let (month, from, to) = (asked.month.as_deref(), asked.from.as_deref(), asked.to.as_deref());
    let now = clock::wall();
    let period = match (PeriodParams { zone: &zone, month, from, to }).period(now)? {
        Some(period) => period,
        None => Period::new(now.saturating_sub(PERIOD).unwrap_or(Timestamp::MIN), now)?,
    };
    let by = query::read("top", asked.top.as_deref(), TOP, |top| match top {
        "cost" => Ok(TopBy::Cost),
        "length" => Ok(TopBy::Length),
        "latest" => Ok(TopBy::Latest),
        _ => Err(()),
    })?;
    let most = query::number("limit", asked.limit.as_deref(), SESSIONS_MAX)?.unwrap_or(SESSIONS);
    let top = (by.unwrap_or_default(), usize::try_from(most).unwrap_or(usize::MAX));
    let (tenant, pending_entries) = (asked.tenant, gateway.pending_entries());
    let answer = ask(&gateway, move |store, deadline| {
        let listing = store.sessions(period, tenant.as_deref(), top, || deadline.has_passed())?;
        deadline.check()?;
        let (from, to) = (period.from(), period.to());
        let listing = listing.unwrap_or_default();
        Ok(SessionsAnswer { from, to, listing, pending_entries })
    });
    answer.await.map(Json)
}

/// One session: its agents, its turns and its waste
///
/// The name may be that of sessions of several tenants.
#[utoipa::path(get, path = "/api/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path, description = "The name of the session"), SessionParams),
    responses((status = 200, description = "The sessions of that name", body = SessionAnswer), ApiError),
)]
pub(super) async fn session(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    Params(asked): Params<SessionParams>,
) -> Result<Json<SessionAnswer>, ApiError> {
    let turns = query::number("turns", asked.turns.as_deref(), TURNS_MAX)?.unwrap_or(TURNS);
    let turns = usize::try_from(turns).unwrap_or(usize::MAX);
    let (tenant, pending_entries) = (asked.tenant, gateway.pending_entries());
    let missing = ApiError::NotFound(format!(
        "there is no session {id:?}; /api/v1/sessions lists those that there are, and the store has a \
         request about a second after its end"
    ));
    let (mut sessions, details_from) = ask(&gateway, move |store, _| {
        Ok((store.session(&id, tenant.as_deref())?, store.details_from()?))
    })
    .await?;
    if sessions.is_empty() {
        return Err(missing);
    }
    sessions.iter_mut().for_each(|session| session.keep_turns(turns));
    Ok(Json(SessionAnswer { sessions, details_from, pending_entries }))
}
