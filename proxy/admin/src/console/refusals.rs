//! The page *Refusals*: requests without a record, by tenant and reason, and the last ones.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use taximeter_gateway::gateway::Gateway;

use super::page::{Page, REFUSALS};
use super::text::{count, name, name_or_none};
use super::view::{PageParams, View};
use crate::problem::ApiError;
use crate::query::Params;
use crate::refusals::{RefusalsAnswer, RefusalsParams, refusals as answer};

/// Most of the last refusals that the page shows.
const LAST_MAX: usize = 100;

pub(super) async fn refusals(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<RefusalsParams>,
) -> Result<Response, ApiError> {
    let zone = Some(view.zone_name().to_owned());
    let found = answer(State(gateway), Params(RefusalsParams { zone, ..asked })).await?.0;
    let main = html! {
        h1 { "Refusals" }
        p.lead {
            "Requests that have no record: the gateway refused them, or they were admitted, used "
            "nothing and came in a flood."
        }
        (counts(&found, &view))
        h2 { "The last refusals" }
        (last(&found, &view))
    };
    let page = Page { title: "Refusals", at: REFUSALS, view: &view, reload_seconds: None };
    Ok(page.with(main))
}

fn counts(found: &RefusalsAnswer, view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption {
                "Requests: " (count(found.total)) ", from " (view.time(found.from)) " to "
                (view.time(found.to)) ". Times are in " (view.zone_name()) "."
            }
            thead { tr {
                th scope="col" { "Tenant" }
                th scope="col" { "Reason" }
                th scope="col" { "Status" }
                th scope="col" { "Admitted" }
                th.number scope="col" { "Requests" }
            } }
            tbody {
                @for line in &found.counts {
                    tr {
                        th scope="row" {
                            @if line.other_tenants { "other tenants" }
                            @else { (name_or_none(line.tenant.as_deref())) }
                        }
                        td { (name(&line.reason)) }
                        td { (status(line.status)) }
                        td { @if line.admitted { "yes" } @else { "no" } }
                        td.number { (count(line.requests)) }
                    }
                }
                @if found.counts.is_empty() { tr { td colspan="5" { "None." } } }
            }
        } }
    }
}

fn last(found: &RefusalsAnswer, view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption { "In the memory of this gateway. A restart forgets them." }
            thead { tr {
                th scope="col" { "Refused" }
                th scope="col" { "Tenant" }
                th scope="col" { "Key" }
                th scope="col" { "Route" }
                th scope="col" { "Upstream" }
                th scope="col" { "Status" }
                th scope="col" { "Reason" }
            } }
            tbody {
                @for refused in found.last.iter().take(LAST_MAX) {
                    tr {
                        th scope="row" { (view.time(refused.at)) }
                        td { (name_or_none(refused.tenant.as_deref())) }
                        td { (name_or_none(refused.key_id.as_deref())) }
                        td { (name_or_none(refused.route)) }
                        td { (name_or_none(refused.upstream.as_deref())) }
                        td { (status(refused.status)) }
                        td { (name(refused.reason)) }
                    }
                }
                @if found.last.is_empty() { tr { td colspan="7" { "None." } } }
            }
        } }
    }
}

/// A status, or that the client had left.
fn status(status: Option<u16>) -> String {
    status.map_or_else(|| "–".to_owned(), |status| status.to_string())
}
