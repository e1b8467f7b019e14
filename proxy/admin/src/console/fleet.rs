//! The page *Fleet*: engines, GPUs and hosts as they are now, side by side.

mod chart;
mod curves;
mod events;
mod figures;
mod history;
mod measures;
mod subject;
mod tables;

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use taximeter_gateway::gateway::Gateway;
use taximeter_system::clock;

pub(super) use self::chart::{TimeAxis, chart, happened};
pub(super) use self::curves::{Asked, Curves, Measure, seconds};
pub(super) use self::events::events;
pub(super) use self::history::{history, unreadable};
pub(super) use self::measures::{ENGINES, GPUS, HOSTS};
use self::subject::{ENGINE, GPU, HOST, subjects};
use super::page::{FLEET, FLEET_HISTORY, Page};
use super::text::{count, name, seconds_or_unknown, sentence, unknown};
use super::view::{PageParams, View};
use crate::ask::ask_thread;
use crate::fleet::events::{EventsAnswer, events_between};
use crate::fleet::{FleetAnswer, FleetJoin, FleetLinks, FleetParams, FleetSource, fleet as answer};
use crate::problem::ApiError;
use crate::query::{NoParams, Params};

/// The time of the events of the page.
const EVENTS_OF: SignedDuration = SignedDuration::from_hours(7 * 24);

pub(super) async fn fleet(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked: NoParams {}, view }: PageParams<NoParams>,
) -> Result<Response, ApiError> {
    let is_read = gateway.config.fleet.is_some();
    let page = Page { title: "Fleet", at: FLEET, view: &view, reload_seconds: None };
    let frame = page.frame();
    let params = FleetParams { layer: None, source: None, limit: None };
    let main = async move {
        let found = answer(State(gateway.clone()), Params(params)).await?.0;
        let (kept, to) = (gateway.clone(), clock::wall());
        let from = to.checked_sub(EVENTS_OF).unwrap_or(Timestamp::UNIX_EPOCH);
        let events = ask_thread(&gateway, move |_| events_between(&kept, (from, to), Vec::new()));
        // The rest of the page does without them.
        let events = if is_read { Some(events.await) } else { None };
        Ok(main(&found, events.as_ref(), &view))
    };
    frame.around(main).await
}

fn main(
    found: &FleetAnswer,
    events: Option<&Result<EventsAnswer, ApiError>>,
    view: &View,
) -> Markup {
    html! {
        h1 { "Fleet" }
        p.lead {
            "What engines, GPUs and hosts tell now. What a source does not tell is unknown, never 0: "
            "point at the word to see why."
        }
        @if let Some(events) = events {
            p { a href=(view.to(FLEET_HISTORY, &[])) { "Over time" } ", beside the same hour of last week" }
            (sources(found, view))
            (joins(found))
            (tables::engines(&subjects(found, &ENGINE)))
            (tables::gpus(&subjects(found, &GPU)))
            (tables::hosts(&subjects(found, &HOST)))
            (events::events(events.as_ref(), view))
            @if found.more {
                p { "There are more quantities than a page shows. The command "
                    code { "taximeter fleet" } " shows those of one layer or source." }
            }
        } @else {
            p {
                "Nothing is read: the configuration has no section " code { "fleet" } ". With "
                code { "fleet: {}" } " Taximeter reads the metrics of upstreams at private addresses, "
                "and the host that it runs on."
            }
        }
        p.elsewhere {
            "The same for programs: "
            a data-api="fleet" href=(view.root().to("/api/v1/fleet")) { "JSON" }
        }
    }
}

fn sources(found: &FleetAnswer, view: &View) -> Markup {
    html! {
        div.scroll { table {
            caption { "Sources: what is asked for metrics, as of " (view.time(found.at)) "." }
            thead { tr {
                th scope="col" { "Source" }
                th scope="col" { "State" }
                th scope="col" { "Program" }
                th scope="col" { "Upstreams" }
                th.number scope="col" { "Age of the values" }
                th.number scope="col" { "Asked each" }
                th.number scope="col" { "Quantities" }
                th.number scope="col" { "Skipped lines" }
            } }
            tbody {
                @for source in &found.sources { (source_row(source)) }
                @if found.sources.is_empty() {
                    tr { td colspan="8" {
                        "None. No upstream has a private address, and the configuration names no exporter."
                    } }
                }
            }
        } }
    }
}

fn source_row(source: &FleetSource) -> Markup {
    let class = match source.state {
        "up" => "end good",
        "waiting" => "end left",
        _ => "end bad",
    };
    html! {
        tr {
            th scope="row" { (name(&source.name)) }
            td {
                span class=(class) { (source.state) }
                @if let Some(why) = &source.why { br; (sentence(why)) }
            }
            td {
                @for (at, program) in source.programs.iter().enumerate() {
                    @if at > 0 { br; }
                    (program.title)
                    @if let Some(generation) = program.generation { ", " (generation) }
                    @if !program.certain { " (one mark alone says so)" }
                }
                @if source.programs.is_empty() { (unknown()) }
                @for version in &source.versions {
                    br; (version.of) " " (name(&version.version))
                    @if let Some(host) = &version.host { " of " (name(host)) }
                }
            }
            td { (name(&source.upstreams.join(", "))) }
            td.number { (seconds_or_unknown(source.age)) }
            td.number { (seconds_or_unknown(Some(source.every))) }
            td.number { (count(source.quantities.len() as u64)) }
            td.number { (count(source.skipped_lines)) }
        }
    }
}

/// What serves each upstream.
fn joins(found: &FleetAnswer) -> Markup {
    html! {
        section aria-labelledby="joins" {
            h2 #joins { "Upstreams" }
            div.scroll { table {
                caption {
                    "What serves each upstream, and what that rests on. The configuration comes before "
                    "addresses, these before the kubelet (podresources), and it before labels."
                }
                thead { tr {
                    th scope="col" { "Upstream" }
                    th scope="col" { "Engine" }
                    th scope="col" { "Pod" }
                    th scope="col" { "GPUs" }
                    th scope="col" { "Host" }
                    th scope="col" { "Doubts" }
                } }
                tbody { @for join in &found.joins { (join_row(join)) } }
            } }
        }
    }
}

fn join_row(join: &FleetJoin) -> Markup {
    html! {
        tr {
            th scope="row" { (name(&join.upstream)) }
            td { (links(&join.engines)) }
            td { (links(&join.pods)) }
            td { (links(&join.gpus)) }
            td { (links(&join.hosts)) }
            td {
                @for doubt in &join.doubts { div { (sentence(doubt)) } }
                @if join.doubts.is_empty() { "none" }
            }
        }
    }
}

fn links(of: &FleetLinks) -> Markup {
    html! {
        @for link in &of.links { div { (name(&link.to)) " by " (link.basis) } }
        @if let Some(why) = of.unknown { span.unknown title=(why) { "unknown" } }
    }
}
