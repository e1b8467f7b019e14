//! The page *Live*: the requests that run now. The script updates its rows every second.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use taximeter_gateway::gateway::Gateway;

use super::charts::{Piece, bar};
use super::page::{LIVE, Page};
use super::text::{count_or_unknown, name, name_or_none, seconds_text};
use super::view::PageParams;
use crate::live::{LiveAnswer, LiveParams, LiveRequest, live as ask_live};
use crate::problem::ApiError;
use crate::query::Params;

/// Time between two reloads of the page in a browser without JavaScript.
const RELOAD_SECONDS: u32 = 5;

pub(super) async fn live(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<LiveParams>,
) -> Result<Response, ApiError> {
    let given: Vec<_> =
        view.given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let events = view.plain("/api/v1/live/events", given);
    let answer = ask_live(State(gateway), Params(asked)).await?.0;
    let main = html! {
        div.head {
            h1 { "Running requests" }
            p.state {
                span data-live="open" { (answer.open) } " running, "
                span #live-state { "as of " (view.time(answer.at)) }
                " " button #live-pause type="button" hidden { "Pause" }
            }
        }
        ul.legend {
            li { span.swatch.wait {} "until the first token" }
            li { span.swatch.s0 {} "generating" }
            li { span.swatch.gap {} "since the latest token" }
        }
        (rows(&answer, &events))
        noscript { p.notes {
            "This page reloads every " (RELOAD_SECONDS) " seconds, because JavaScript is off."
        } }
    };
    let reload_seconds = Some(RELOAD_SECONDS);
    let page = Page { title: "Running requests", at: LIVE, view: &view, reload_seconds };
    Ok(page.with(main))
}

fn rows(answer: &LiveAnswer, events: &str) -> Markup {
    let longest = answer.requests.iter().map(|request| request.duration).fold(0.0, f64::max);
    html! {
        div.scroll { table.live {
            caption { "The request that runs longest comes first. All bars have the same scale." }
            thead { tr {
                th scope="col" { "Tenant" }
                th scope="col" { "Model" }
                th scope="col" { "Stage" }
                th.time scope="col" { "Timeline" }
                th.number scope="col" { "First token" }
                th.number scope="col" { "Latest token" }
                th.number scope="col" { "Running" }
                th.number scope="col" { "Input" }
                th.number scope="col" { "Output" }
            } }
            tbody #live-rows data-events=(events) {
                @for request in &answer.requests { (row(Some(request), longest)) }
            }
        } }
        p #live-none hidden[!answer.requests.is_empty()] { "No request is running." }
        template #live-row { (row(None, 1.0)) }
    }
}

/// The row of one request, or an empty row that the script fills.
fn row(request: Option<&LiveRequest>, longest: f64) -> Markup {
    let text = |text: fn(&LiveRequest) -> Markup| request.map_or_else(|| html! {}, text);
    html! {
        tr {
            th scope="row" data-is="tenant" { (text(|request| name(&request.tenant))) }
            td data-is="request_model" {
                (text(|request| name_or_none(request.request_model.as_deref())))
            }
            td data-is="stage" { (text(|request| html! { (request.stage) })) }
            td.time { (bar(longest, &pieces(request))) }
            td.number data-is="time_to_first_token" {
                (text(|request| time(request.time_to_first_token)))
            }
            td.number data-is="time_to_latest_token" {
                (text(|request| time(request.time_to_latest_token)))
            }
            td.number data-is="duration" { (text(|request| time(Some(request.duration)))) }
            td.number data-is="input_tokens" {
                (text(|request| count_or_unknown(request.input_tokens)))
            }
            td.number data-is="output_tokens" {
                (text(|request| count_or_unknown(request.output_tokens)))
            }
        }
    }
}

/// A time that may not be known yet.
fn time(time: Option<f64>) -> Markup {
    html! {
        @match time {
            Some(time) => (seconds_text(time)),
            None => "–",
        }
    }
}

fn pieces(request: Option<&LiveRequest>) -> [Piece<'static>; 3] {
    let (first, latest, now) = request.map_or((0.0, 0.0, 0.0), |request| {
        let first = request.time_to_first_token.unwrap_or(request.duration);
        (first, request.time_to_latest_token.unwrap_or(first), request.duration)
    });
    [
        Piece { class: "wait", from: 0.0, to: first },
        Piece { class: "s0", from: first, to: latest },
        Piece { class: "gap", from: latest, to: now },
    ]
}
