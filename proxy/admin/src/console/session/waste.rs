//! What a session paid for and need not have paid for, with the requests.

use maud::{Markup, html};
use taximeter_sessions::{Waste, WasteKind, WastedRequest};

use super::shown::Shown;
use crate::console::sums::share_of;
use crate::console::text::{count, count_or_unknown, seconds_text};

/// Requests that are named of each kind: the dearest ones.
const NAMED_MAX: usize = 5;

pub(super) fn waste(shown: &Shown<'_>) -> Markup {
    let session = shown.session;
    if session.waste.is_empty() {
        return html! {};
    }
    let all = session.wasted();
    html! {
        section aria-labelledby="waste" {
            h2 #waste { "Waste" }
            div.scroll { table {
                caption {
                    "No request is in two kinds. A link leads to the request."
                    @if session.waste.iter().any(|waste| waste.kind == WasteKind::CacheMiss) {
                        " A cache miss is shown with all that its request cost."
                    }
                }
                thead { tr {
                    th scope="col" { "Kind" }
                    th.number scope="col" { (shown.cost_head()) }
                    th scope="col" { "Share" }
                    th.number scope="col" { "Requests" }
                    th.number scope="col" { "Input" }
                    th scope="col" { "Which" }
                } }
                tbody { @for waste in &session.waste { (row(shown, waste)) } }
                tfoot { tr {
                    th scope="row" { "Total" }
                    td.number { (shown.cost(&all)) }
                    td.share { (share_of(all.cost, shown.whole())) }
                    td.number { (count(all.requests)) }
                    td.number { (count_or_unknown(all.input_tokens)) }
                    td {}
                } }
            } }
        }
    }
}

fn row(shown: &Shown<'_>, waste: &Waste) -> Markup {
    let mut dearest: Vec<_> = waste.requests.iter().collect();
    taximeter_collections::sort_by_key(&mut dearest, |request| {
        std::cmp::Reverse(request.sums.cost)
    });
    html! {
        tr data-waste=(waste.kind.words()) {
            th scope="row" { (waste.kind.words()) }
            td.number { (shown.cost(&waste.sums)) }
            td.share { (share_of(waste.sums.cost, shown.whole())) }
            td.number { (count(waste.sums.requests)) }
            td.number {
                (count_or_unknown(waste.sums.input_tokens))
                @if let Some(missed) = waste.missed_tokens {
                    " " span.unit { (count(missed)) " missed" }
                }
            }
            td {
                ul.requests {
                    @for request in dearest.iter().take(NAMED_MAX) { li { (one(shown, request)) } }
                }
                @if dearest.len() > NAMED_MAX {
                    span.unit { "and " (count((dearest.len() - NAMED_MAX) as u64)) " cheaper ones" }
                }
            }
        }
    }
}

fn one(shown: &Shown<'_>, request: &WastedRequest) -> Markup {
    html! {
        a href=(shown.to(request.id)) { (shown.view.text(request.started_at, "%H:%M:%S")) }
        " " (Shown::agent(request.agent.as_deref()))
        @if let Some(other) = request.retried_by {
            ", again in " a href=(shown.to(other)) { "this request" }
        }
        @if let Some(pause) = request.pause_seconds { ", after " (seconds_text(pause)) }
    }
}
