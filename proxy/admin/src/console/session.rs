//! One session of agents: what it cost, and why.

mod agents;
mod answer;
mod over_turns;
mod rest;
mod shown;
mod turns;
mod waste;

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use taximeter_gateway::gateway::Gateway;
use taximeter_sessions::{REQUESTS_MAX, Session};
use utoipa::IntoParams;

use self::shown::Shown;
use self::turns::Which;
use super::page::{Page, SESSION, SESSIONS};
use super::text::{count, duration, money_or_unknown, name, places};
use super::view::{PageParams, View, segment};
use crate::problem::ApiError;
use crate::query::{self, Params};
use crate::sessions::{SessionAnswer, SessionParams, session as answer};

/// The parameters of the page.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SessionPageParams {
    /// The name of the session
    name: Option<String>,
    /// Its tenant
    tenant: Option<String>,
    /// Only the turns of this agent
    agent: Option<String>,
    /// Page of the turns, from 1. Without it: the dearest turns
    page: Option<String>,
}

/// A link to the page of a session.
pub(super) fn link(view: &View, tenant: &str, session: &str) -> String {
    view.to(SESSION, &[("name", session), ("tenant", tenant)])
}

pub(super) async fn session(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<SessionPageParams>,
) -> Result<Response, ApiError> {
    let SessionPageParams { name, tenant, agent, page } = asked;
    let allowed = "the name of a session, as the page Sessions has it".to_owned();
    let name = name.ok_or(ApiError::Missing { name: "name", allowed })?;
    let pages_max = u32::try_from(REQUESTS_MAX.div_ceil(turns::PAGE_TURNS)).unwrap_or(u32::MAX);
    let number = query::number("page", page.as_deref(), pages_max)?;
    let turns = Some(REQUESTS_MAX.to_string());
    let page = Page { title: "One session", at: SESSIONS, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let params = Params(SessionParams { tenant, turns });
        let found = answer(State(gateway), Path(name), params).await?.0;
        let which = Which { agent: agent.as_deref(), page: number.map(|number| number as usize) };
        Ok(match found.sessions.as_slice() {
            [session] => one(&found, session, &view, which),
            several => choice(several, &view),
        })
    };
    frame.around(main).await
}

/// The sessions of several tenants that have the same name.
fn choice(sessions: &[Session], view: &View) -> Markup {
    let costs = sessions.iter().filter_map(|session| session.sums.cost);
    let places = places(costs.max().unwrap_or_default());
    html! {
        p.crumb { a href=(view.to(SESSIONS, &[])) { "Sessions" } }
        h1 {
            "Sessions with the name "
            @if let Some(session) = sessions.first() { (name(&session.session)) }
        }
        div.scroll { table {
            caption { "Several tenants use this name. Each of them has a session of its own." }
            thead { tr {
                th scope="col" { "Tenant" }
                th.number scope="col" { "Cost" }
                th.number scope="col" { "Requests" }
                th scope="col" { "Started" }
                th.number scope="col" { "Length" }
            } }
            tbody {
                @for session in sessions {
                    tr {
                        th scope="row" {
                            a href=(link(view, &session.tenant, &session.session)) {
                                (name(&session.tenant))
                            }
                        }
                        td.number {
                            @if session.sums.is_at_least() { "≥ " }
                            (money_or_unknown(session.sums.cost, places))
                            @if let Some(currency) = &session.currency {
                                " " span.unit { (name(currency)) }
                            }
                        }
                        td.number { (count(session.sums.requests)) }
                        td { (view.time(session.started_at)) }
                        td.number { (duration(session.started_at, session.ended_at)) }
                    }
                }
            }
        } }
    }
}

fn one(found: &SessionAnswer, session: &Session, view: &View, which: Which<'_>) -> Markup {
    let shown = Shown::new(session, view);
    html! {
        p.crumb { a href=(view.to(SESSIONS, &[])) { "Sessions" } }
        h1 { "Session " (name(&session.session)) " of " (name(&session.tenant)) }
        (answer::meter(&shown))
        (answer::answer(&shown))
        (answer::notes(&shown, found))
        (waste::waste(&shown))
        (agents::agents(&shown))
        (over_turns::over_turns(&shown, which.agent))
        (turns::turns(&shown, which))
        (rest::rest(&shown))
        p.elsewhere {
            "The same session for programs: "
            a href=(json(session, view)) { "JSON" }
        }
    }
}

/// What the API says of the session.
fn json(session: &Session, view: &View) -> String {
    let path = format!("/api/v1/sessions/{}", segment(&session.session));
    view.plain(&path, [("tenant", session.tenant.as_str())])
}

#[cfg(test)]
mod tests;
