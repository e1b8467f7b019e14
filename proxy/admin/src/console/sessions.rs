//! The page *Sessions*: the dearest, longest or latest sessions of agents.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use taximeter_gateway::gateway::Gateway;
use taximeter_sessions::{Listed, Sums};
use taximeter_system::clock;
use utoipa::IntoParams;

use super::page::{Page, SESSIONS};
use super::session::link;
use super::span::Span;
use super::sums::{period_choice, share_of};
use super::text::{
    count, count_or_unknown, duration, money_or_unknown, name, name_or_none, part, places,
};
use super::view::{PageParams, View};
use crate::problem::ApiError;
use crate::query::{self, Params};
use crate::sessions::{SessionsAnswer, SessionsParams, sessions as answer};

/// Sessions on the page.
const PAGE_SESSIONS: u32 = 50;
/// The period if none is asked for: tasks go on over the end of a month.
const PERIOD: &str = "30-days";
/// Which sessions come first: the word of the API, and what the page calls them. The first one is
/// the default.
const TOP: [(&str, &str); 3] = [("cost", "dearest"), ("length", "longest"), ("latest", "latest")];

/// The parameters of the page.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SessionsPageParams {
    /// The name of a period
    span: Option<String>,
    /// Start of the period, included: a date, or a time with an offset
    from: Option<String>,
    /// End of the period, not included. Default with `from`: now
    to: Option<String>,
    /// Which sessions come first
    top: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
}

/// The data of the page.
struct Data<'a> {
    view: &'a View,
    span: &'a Span,
    /// Which sessions come first.
    top: &'static str,
    tenant: Option<&'a str>,
    found: &'a SessionsAnswer,
}

pub(super) async fn sessions(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<SessionsPageParams>,
) -> Result<Response, ApiError> {
    let SessionsPageParams { span, from, to, top, tenant } = asked;
    let words = TOP.map(|(by, _)| by).join(", ");
    let top = query::read("top", top.as_deref(), words, |asked| {
        TOP.into_iter().map(|(by, _)| by).find(|by| *by == asked).ok_or(())
    })?;
    let top = top.unwrap_or(TOP[0].0);
    let named = span.as_deref().or((from.is_none() && to.is_none()).then_some(PERIOD));
    let span = Span::read([named, from.as_deref(), to.as_deref()], &view, clock::wall())?;
    let params = SessionsParams {
        month: None,
        from: Some(span.period.from().to_string()),
        to: Some(span.period.to().to_string()),
        zone: Some(view.zone_name().to_owned()),
        tenant: tenant.clone(),
        top: Some(top.to_owned()),
        limit: Some(PAGE_SESSIONS.to_string()),
    };
    let page = Page { title: "Sessions", at: SESSIONS, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let found = answer(State(gateway), Params(params)).await?.0;
        let tenant = tenant.as_deref();
        Ok(main(&Data { view: &view, span: &span, top, tenant, found: &found }))
    };
    frame.around(main).await
}

fn main(data: &Data<'_>) -> Markup {
    html! {
        h1 { "Sessions" @if let Some(tenant) = data.tenant { " of " (name(tenant)) } }
        p.lead {
            "A session is one task of a coding agent with all its sub-agents, as its client names "
            "it. Open one to see why it cost so much."
        }
        (choice(data))
        (table(data))
        (elsewhere(data))
    }
}

/// The period, which sessions come first, and the tenant.
fn choice(data: &Data<'_>) -> Markup {
    let Data { view, span, top, tenant, .. } = data;
    let mut kept = vec![("top", *top)];
    kept.extend(tenant.map(|tenant| ("tenant", tenant)));
    html! {
        div.choice { (period_choice(SESSIONS, &kept, span, view)) }
        div.choice {
            nav aria-label="Which come first" { ul.tabs {
                @for (by, word) in TOP {
                    li { a href=(view.with("top", Some(by)))
                        aria-current=[(by == *top).then_some("true")] { (word) } }
                }
            } }
            @if tenant.is_some() { a href=(view.with("tenant", None)) { "All tenants" } }
        }
    }
}

fn table(data: &Data<'_>) -> Markup {
    let Data { view, found, .. } = data;
    let listing = &found.listing;
    let costs = listing.sessions.iter().map(|it| &it.sums).chain([&listing.total]);
    let places = places(costs.filter_map(|sums| sums.cost).max().unwrap_or_default());
    let cost = |sums: &Sums| {
        html! {
            @if sums.is_at_least() { "≥ " }
            (money_or_unknown(sums.cost, places))
        }
    };
    html! {
        div.scroll { table {
            caption { (caption(data)) }
            thead { tr {
                th scope="col" { "Session" }
                th scope="col" { "Tenant" }
                th.number scope="col" {
                    "Cost" @if let Some(currency) = &listing.currency { ", " (name(currency)) }
                }
                th scope="col" { "Share" }
                th scope="col" { "Client" }
                th scope="col" { "Started" }
                th.number scope="col" { "Length" }
                th.number scope="col" { "Agents" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Input" }
                th.number scope="col" { "Cached" }
                th.number scope="col" { "Output" }
            } }
            tbody {
                @for session in &listing.sessions {
                    tr {
                        (names(session, view))
                        td.number { (cost(&session.sums)) }
                        td.share { (share_of(session.sums.cost, listing.total.cost)) }
                        (facts(session, view))
                    }
                }
                @if listing.sessions.is_empty() {
                    tr { td colspan="12" { "No request of this period names a session." } }
                }
            }
            @if !listing.sessions.is_empty() {
                tfoot { tr {
                    th scope="row" colspan="2" {
                        @if listing.count > listing.sessions.len() as u64 { "All sessions" }
                        @else { "Total" }
                    }
                    td.number data-total="cost" { (cost(&listing.total)) }
                    td {}
                    td {}
                    td {}
                    td {}
                    td {}
                    (counts(&listing.total))
                } }
            }
        } }
    }
}

fn caption(data: &Data<'_>) -> Markup {
    let Data { view, span, found, .. } = data;
    let (all, shown) = (found.listing.count, found.listing.sessions.len() as u64);
    let word = TOP.iter().find(|(by, _)| *by == data.top).map_or("", |(_, word)| word);
    html! {
        @if shown < all { "The " (count(shown)) " " (word) " of " (count(all)) " sessions" }
        @else { "Sessions: " (count(all)) ", the " (word) " first" }
        ". Requests admitted in " (span.words(view)) ", " (view.zone_name())
        "; the sums are those of all UTC days that this period has a part of."
        @if found.pending_entries > 0 {
            " Ledger entries that the store does not have yet: " (count(found.pending_entries)) "."
        }
    }
}

/// The cells with the names of a session.
fn names(session: &Listed, view: &View) -> Markup {
    html! {
        th scope="row" {
            a href=(link(view, &session.tenant, &session.session)) { (name(&session.session)) }
        }
        td { (name(&session.tenant)) }
    }
}

fn facts(session: &Listed, view: &View) -> Markup {
    html! {
        td { (name_or_none(session.client.as_deref())) }
        td { (view.time(session.started_at)) }
        td.number { (duration(session.started_at, session.ended_at)) }
        td.number { (count(session.agents.into())) }
        (counts(&session.sums))
    }
}

/// The cells with numbers of requests and tokens.
fn counts(sums: &Sums) -> Markup {
    html! {
        td.number { (count(sums.requests)) }
        td.number { (count_or_unknown(sums.input_tokens)) }
        td.number { (part(sums.cache_read_share())) }
        td.number { (count_or_unknown(sums.output_tokens)) }
    }
}

/// A link to the same sessions for programs.
fn elsewhere(data: &Data<'_>) -> Markup {
    let (from, to) = (data.found.from.to_string(), data.found.to.to_string());
    let limit = PAGE_SESSIONS.to_string();
    let mut asked =
        vec![("from", from.as_str()), ("to", &to), ("top", data.top), ("limit", &limit)];
    asked.extend(data.tenant.map(|tenant| ("tenant", tenant)));
    html! {
        p.elsewhere {
            "The same sessions for programs: "
            a data-api="sessions" href=(data.view.plain("/api/v1/sessions", asked)) { "JSON" }
        }
    }
}
