//! The page *Upstreams*: the state of upstreams, ledger, store and gateway.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use taximeter_gateway::gateway::Gateway;

use super::page::{Page, UPSTREAMS};
use super::text::{count, grouped, name, seconds_text, sentence};
use super::view::{PageParams, View};
use crate::problem::ApiError;
use crate::query::{NoParams, Params};
use crate::status::{
    Backlog, Collector, ConfigStatus, LedgerStatus, Status, StoreStatus, UpstreamStatus, status,
};

pub(super) async fn upstreams(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<NoParams>,
) -> Result<Response, ApiError> {
    let status = status(State(gateway), Params(asked)).await.0;
    let main = html! {
        h1 { "Upstreams" }
        (table(&status, &view))
        div.pair {
            (ledger(&status.ledger, &view))
            (store(&status.store, &view))
        }
        (gateway_facts(&status, &view))
        p.elsewhere { "The same data for programs: " a href=(view.root().to("/api/v1/status")) { "JSON" } }
    };
    let page = Page { title: "Upstreams", at: UPSTREAMS, view: &view, reload_seconds: None };
    Ok(page.with(main))
}

fn table(status: &Status, view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption { "Health comes from requests. The gateway sends no health checks." }
            thead { tr {
                th scope="col" { "Upstream" }
                th scope="col" { "Health" }
                th.number scope="col" { "Open" }
                th.number scope="col" { "Failures since last answer" }
                th scope="col" { "Last answer" }
                th scope="col" { "Last failure" }
                th scope="col" { "Dialect" }
                th scope="col" { "Address" }
            } }
            tbody { @for upstream in &status.upstreams { (row(upstream, view)) } }
        } }
    }
}

fn row(upstream: &UpstreamStatus, view: &View) -> Markup {
    let class = match upstream.health {
        "answering" => "end good",
        "failing" => "end bad",
        _ => "end left",
    };
    html! {
        tr {
            th scope="row" { (name(&upstream.name)) }
            td { span class=(class) { (upstream.health) } }
            td.number { (count(upstream.open_requests as u64)) }
            td.number { (count(upstream.failures)) }
            td { @match upstream.answered_at { Some(at) => (view.time(at)), None => "none yet" } }
            td {
                @match &upstream.last_failure {
                    Some(failure) => {
                        (failure.cause.replace('_', " ")) ", " (view.time(failure.at))
                    }
                    None => "none",
                }
            }
            td {
                (upstream.dialect.as_str())
                @if let Some(recognised) = upstream.recognised {
                    ": " (recognised.as_str())
                }
                @if let Some(guessed) = upstream.guessed {
                    "; asked for usage as " (guessed.as_str())
                }
                @for refused in &upstream.refused_questions {
                    br;
                    "not asked for usage at " (name(&refused.path))
                    @if let Some(model) = &refused.model { " for " (name(model)) }
                    " until " (view.time(refused.until))
                }
            }
            td { (name(&upstream.url)) }
        }
    }
}

fn ledger(ledger: &LedgerStatus, view: &View) -> Markup {
    let bytes = |bytes: Option<u64>| {
        bytes.map_or_else(|| "unknown".to_owned(), |bytes| grouped(&bytes.to_string()))
    };
    html! {
        section aria-labelledby="ledger" {
            h2 #ledger { "Ledger" }
            dl.facts {
                div {
                    dt { "State" }
                    dd {
                        @if ledger.is_healthy && ledger.is_open {
                            span.end.good { "writable" }
                        } @else {
                            span.end.bad { "not writable" }
                        }
                    }
                }
                div { dt { "Id" } dd { (ledger.id) } }
                @if let Some(of) = ledger.copy_of.first() {
                    div { dt { "Copy of" } dd { (of) } }
                }
                div { dt { "Entries" } dd { (count(ledger.entries)) } }
                div { dt { "Lost entries" } dd { (count(ledger.lost_entries)) } }
                div { dt { "Durability" } dd { (ledger.durability) } }
                @if let Some(at) = ledger.last_sync_at {
                    div { dt { "Last sync" } dd { (view.time(at)) } }
                }
                div { dt { "Files" } dd { (bytes(ledger.segments)) } }
                div { dt { "Bytes" } dd { (bytes(ledger.bytes)) } }
                div { dt { "Bytes of the data directory" } dd { (bytes(ledger.dir_bytes)) } }
                div { dt { "Bytes left" } dd { (bytes(ledger.dir_bytes_left)) } }
                div { dt { "Days left at this rate" } dd { (days_left(ledger)) } }
            }
        }
    }
}

/// How long the room lasts, in words where no number says it.
fn days_left(ledger: &LedgerStatus) -> String {
    match (ledger.days_left, ledger.bytes_a_day) {
        (Some(days), _) if days < 10.0 => format!("{days:.1}"),
        (Some(days), _) => grouped(&format!("{days:.0}")),
        (None, Some(bytes)) if bytes <= 0.0 => "it does not grow".to_owned(),
        (None, _) => "unknown".to_owned(),
    }
}

fn store(store: &StoreStatus, view: &View) -> Markup {
    html! {
        section aria-labelledby="store" {
            h2 #store { "Store" }
            dl.facts {
                div {
                    dt { "State" }
                    dd {
                        @match &store.fault {
                            None => span.end.good { "works" },
                            Some(fault) => { span.end.bad { "fails" } " " (sentence(fault)) }
                        }
                    }
                }
                div { dt { "Kind" } dd { (store.kind) } }
                div { dt { "Place" } dd { (name(&store.place)) } }
                div { dt { "Entries still to read" } dd { (count(store.pending_entries)) } }
                div {
                    dt { "Last complete at" }
                    dd { @match store.fed_at { Some(at) => (view.time(at)), None => "not yet" } }
                }
            }
        }
    }
}

fn gateway_facts(status: &Status, view: &View) -> Markup {
    html! {
        section aria-labelledby="gateway" {
            h2 #gateway { "Gateway" }
            dl.facts {
                div { dt { "Name" } dd { (name(&status.gateway)) } }
                div { dt { "Version" } dd { (status.version) } }
                div { dt { "Started" } dd { (view.time(status.started_at)) } }
                div { dt { "Running for" } dd { (seconds_text(status.uptime_seconds)) } }
                div { dt { "Open requests" } dd { (count(status.requests.open as u64)) } }
                (configuration(&status.config, view))
                div { dt { "Draining" } dd { @if status.draining { "yes" } @else { "no" } } }
                @for exporter in &status.exporters {
                    div {
                        dt { "Exports to" }
                        dd { (name(&exporter.url)) @if let Some(it) = &exporter.backlog { (lacks(it, view)) } }
                    }
                }
                @for collector in &status.collectors {
                    div {
                        dt { "Sends " (collector.signal) " to" }
                        dd { (name(&collector.url)) ", " (pushing(collector, view)) }
                    }
                }
            }
        }
    }
}

/// What a receiver of events lacks.
fn lacks(backlog: &Backlog, view: &View) -> Markup {
    html! {
        ", lacks " (count(backlog.requests)) " requests since " (view.time(backlog.since)) "; "
        @if backlog.at_risk { span.end.bad { "they go" } } @else { "they go" }
        " from " (view.time(backlog.goes_at)) " on"
    }
}

/// The state of an OTLP collector.
fn pushing(collector: &Collector, view: &View) -> Markup {
    html! {
        @match (&collector.last_failure, collector.sent_at) {
            (Some(failure), _) if collector.failures > 0 => {
                span.end.bad { "fails" } " " (sentence(&failure.reason))
            }
            (_, Some(at)) => { "last sent at " (view.time(at)) }
            (_, None) => { "nothing sent yet" }
        }
        @if collector.dropped_items > 0 { "; " (count(collector.dropped_items)) " dropped" }
    }
}

fn configuration(config: &ConfigStatus, view: &View) -> Markup {
    html! {
        div { dt { "Configuration since" } dd { (view.time(config.since)) } }
        @if !config.waiting.is_empty() {
            div { dt { "Changed, needs a restart" } dd { (config.waiting.join(", ")) } }
        }
        @if let Some(rejected) = &config.rejected {
            div {
                dt { "New file read at " (view.time(rejected.at)) }
                dd {
                    span.end.bad { "rejected" }
                    @for problem in &rejected.problems { " " (sentence(problem)) }
                }
            }
        }
    }
}
