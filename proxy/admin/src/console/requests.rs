//! The page *Requests*: a list of requests with filters, page by page.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use taximeter_gateway::gateway::Gateway;
use taximeter_ledger::{End, Record};

use super::page::{Page, REQUESTS};
use super::text::{
    count, count_or_unknown, money_or_unknown, name, name_or_none, places, seconds,
    seconds_or_unknown,
};
use super::view::{PageParams, View};
use crate::problem::ApiError;
use crate::query::{self, Params};
use crate::records::{RecordsPage, RecordsParams, records};

/// Default number of records on a page.
const PAGE_RECORDS: u32 = 50;
/// Most records on a page, so that a page stays below 100 KiB.
const PAGE_RECORDS_MAX: u32 = 100;

pub(super) async fn requests(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<RecordsParams>,
) -> Result<Response, ApiError> {
    let form = filters(&asked, &view);
    let is_first = asked.cursor.is_none();
    let limit = query::number("limit", asked.limit.as_deref(), PAGE_RECORDS_MAX)?;
    let limit = Some(limit.unwrap_or(PAGE_RECORDS).to_string());
    let zone = Some(view.zone_name().to_owned());
    let found = records(State(gateway), Params(RecordsParams { limit, zone, ..asked })).await?.0;
    let main = html! {
        h1 { "Requests" }
        (form)
        (table(&found, &view))
        (paging(&found, is_first, &view))
    };
    let page = Page { title: "Requests", at: REQUESTS, view: &view, reload_seconds: None };
    Ok(page.with(main))
}

fn filters(asked: &RecordsParams, view: &View) -> Markup {
    let fields = [
        ("tenant", "Tenant", &asked.tenant),
        ("model", "Model", &asked.model),
        ("upstream", "Upstream", &asked.upstream),
        ("key", "Key", &asked.key),
        ("label", "Label", &asked.label),
        ("request_id", "Request id", &asked.request_id),
    ];
    // Those that few ask for are shown where they are asked for.
    let rare = [
        ("session", "Session", &asked.session),
        ("agent", "Agent", &asked.agent),
        ("client", "Client", &asked.client),
        ("end_user", "End user", &asked.end_user),
        ("tag", "Tag", &asked.tag),
        ("without", "Without", &asked.without),
    ];
    let rare = rare.into_iter().filter(|(_, _, value)| value.is_some());
    let ends = End::ALL.map(End::as_str);
    let times = [("from", "From", &asked.from), ("to", "Before", &asked.to)];
    html! {
        form.filters method="get" action=(view.root().to(REQUESTS)) {
            @for (field, word, value) in fields.into_iter().chain(rare) {
                div {
                    label for=(field) { (word) }
                    input id=(field) name=(field) value=[value.as_deref()] autocomplete="off"
                        spellcheck="false"
                        placeholder=[(field == "label").then_some("team=search")];
                }
            }
            div {
                label for="end" { "End" }
                select #end name="end" {
                    option value="" { "any" }
                    @for end in ends {
                        option value=(end) selected[asked.end.as_deref() == Some(end)] { (end) }
                    }
                }
            }
            @for (field, word, value) in times {
                div {
                    label for=(field) { (word) }
                    input id=(field) name=(field) value=[value.as_deref()] size="11"
                        placeholder="2026-11-20" autocomplete="off";
                }
            }
            div {
                label for="order" { "Order" }
                select #order name="order" {
                    @for order in ["newest", "oldest"] {
                        option selected[asked.order.as_deref() == Some(order)] { (order) }
                    }
                }
            }
            (view.keep_zone())
            button { "Find" }
            a href=(view.to(REQUESTS, &[])) { "Clear" }
        }
    }
}

fn table(found: &RecordsPage, view: &View) -> Markup {
    let amounts = found.records.iter().filter_map(Record::owed);
    let places = places(amounts.map(|cost| cost.amount).max().unwrap_or_default());
    html! {
        div.scroll { table {
            caption {
                "Requests on this page: " (found.records.len()) ". Times are in " (view.zone_name())
                "."
                @if let Some(from) = found.details_from {
                    " Details until " (view.time(from)) ": older requests are gone."
                }
                @if found.pending_entries > 0 {
                    " Ledger entries that the store does not have yet: "
                    (count(found.pending_entries)) "."
                }
            }
            thead { tr {
                th scope="col" { "Admitted" }
                th scope="col" { "Tenant" }
                th scope="col" { "Model" }
                th scope="col" { "End" }
                th.number scope="col" { "Input" }
                th.number scope="col" { "Output" }
                th scope="col" { "Source" }
                th.number scope="col" { "First token" }
                th.number scope="col" { "Duration" }
                th.number scope="col" { "Cost" }
            } }
            tbody {
                @for record in &found.records { (row(record, places, view)) }
                @if found.records.is_empty() {
                    tr { td colspan="10" {
                        @if found.next.is_some() {
                            "No match yet. The search goes on on the next page."
                        } @else {
                            "No request matches."
                        }
                    } }
                }
            }
        } }
    }
}

fn row(record: &Record, places: u32, view: &View) -> Markup {
    let model = record.response_model.as_deref().or(record.request_model.as_deref());
    let path = format!("{REQUESTS}/{}", record.id);
    html! {
        tr {
            th scope="row" { a href=(view.to(&path, &[])) { (view.time(record.started_at)) } }
            td { (name(record.tenant.as_str())) }
            td { (name_or_none(model)) }
            td { (end(record)) }
            td.number { (count_or_unknown(record.usage.input_tokens)) }
            td.number { (count_or_unknown(record.usage.output_tokens)) }
            td { (record.usage.source.as_str()) }
            td.number {
                @if record.stream { (seconds_or_unknown(record.timing.time_to_first_token)) }
                @else { "–" }
            }
            td.number { (seconds(record.timing.duration)) }
            td.number {
                @if record.cost_known.is_some() { "≥ " }
                (money_or_unknown(record.owed().map(|cost| cost.amount), places))
                @if let Some(cost) = record.owed() { " " span.unit { (cost.currency) } }
            }
        }
    }
}

/// How a request ended. The colour shows a good end, an end by the client, or a failure.
pub(super) fn end(record: &Record) -> Markup {
    let class = match record.end {
        End::Complete => "end good",
        End::ClientLeft | End::ClientStalled | End::Refused | End::BudgetCut => "end left",
        _ => "end bad",
    };
    html! {
        span class=(class) { (record.end.as_str().replace('_', " ")) }
        @if let Some(status) = record.status.filter(|status| *status != 200) {
            " " span.unit { (status) }
        }
    }
}

fn paging(found: &RecordsPage, is_first: bool, view: &View) -> Markup {
    let given = view.given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let given = given.chain([("zone", view.zone_name())]);
    html! {
        nav.paging aria-label="More requests" {
            @if !is_first { a href=(view.with("cursor", None)) { "← First page" } }
            @if let Some(next) = &found.next {
                a rel="next" href=(view.with("cursor", Some(next))) { "Next page →" }
            }
            a href=(view.plain("/api/v1/records", given)) { "This page as JSON" }
        }
    }
}
