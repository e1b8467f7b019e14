//! When answers came, where they stalled, and which tools they called.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::shown::Shown;
use crate::console::charts::{Piece, bar, distribution};
use crate::console::latency::bins;
use crate::console::text::{count, name, name_or_none, quantity, rough, seconds};

/// Most tools and most quantities in a table.
const LINES_MAX: usize = 15;

pub(super) fn rest(shown: &Shown<'_>) -> Markup {
    html! {
        div.pair {
            div {
                (first_token(shown))
                (tools(shown))
            }
            div {
                (stalls(shown))
                (units(shown))
            }
        }
    }
}

/// Time to the first token over the turns.
fn first_token(shown: &Shown<'_>) -> Markup {
    let session = shown.session;
    let mut waits: Vec<_> =
        session.turns.iter().filter_map(|turn| turn.time_to_first_token).collect();
    taximeter_collections::sort_by(&mut waits, f64::total_cmp);
    html! {
        section aria-labelledby="first-token" {
            h2 #first-token { "Time to the first token" }
            @match &session.time_to_first_token {
                None => p { "No turn has one." },
                Some(spread) => {
                    figure {
                        figcaption {
                            "Turns by time to the first token: half within " (seconds(spread.p50))
                            ", 95 % within " (seconds(spread.p95)) ", from "
                            (seconds(spread.min)) " to " (seconds(spread.max))
                        }
                        (distribution("Turns by time to the first token", &bins(&waits)))
                    }
                }
            }
        }
    }
}

fn stalls(shown: &Shown<'_>) -> Markup {
    html! {
        section aria-labelledby="stalls" {
            h2 #stalls { "Where it stalled" }
            div.scroll { table {
                caption { "The longest time in which nothing came, of each request." }
                thead { tr {
                    th scope="col" { "Request" }
                    th.number scope="col" { "Stall" }
                    th scope="col" { "Agent" }
                    th scope="col" { "Turn" }
                    th scope="col" { "Model" }
                } }
                tbody {
                    @for stall in &shown.session.stalls {
                        tr {
                            th scope="row" {
                                a href=(shown.to(stall.id)) {
                                    (shown.view.text(stall.started_at, "%H:%M:%S"))
                                }
                            }
                            td.number { (seconds(stall.seconds)) }
                            td { (Shown::agent(stall.agent.as_deref())) }
                            td { @match &stall.turn { Some(turn) => (name(turn)), None => "–" } }
                            td { (name_or_none(stall.model.as_deref())) }
                        }
                    }
                    @if shown.session.stalls.is_empty() {
                        tr { td colspan="5" { "Nothing stalled." } }
                    }
                }
            } }
        }
    }
}

/// Tools that the answers called, the most called ones first.
fn tools(shown: &Shown<'_>) -> Markup {
    let mut tools: Vec<_> =
        shown.session.tools.iter().map(|(tool, calls)| (tool, *calls)).collect();
    taximeter_collections::sort_by_key(&mut tools, |(_, calls)| Reverse(*calls));
    let most = tools.first().map_or(0, |(_, calls)| *calls);
    html! {
        section aria-labelledby="tools" {
            h2 #tools { "Tool calls" }
            div.scroll { table {
                caption { "Tools that answers called, by name" (more(tools.len())) "." }
                thead { tr {
                    th scope="col" { "Tool" }
                    th.number scope="col" { "Calls" }
                    th.time scope="col" { "Of the most called one" }
                } }
                tbody {
                    @for (tool, calls) in tools.iter().take(LINES_MAX) {
                        tr {
                            th scope="row" { (name(tool)) }
                            td.number { (count(*calls)) }
                            td.time { (of(*calls, most)) }
                        }
                    }
                    @if tools.is_empty() { tr { td colspan="3" { "No answer called a tool." } } }
                }
            } }
        }
    }
}

/// Quantities besides tokens.
fn units(shown: &Shown<'_>) -> Markup {
    let units = &shown.session.units;
    html! {
        @if !units.is_empty() {
            section aria-labelledby="units" {
                h2 #units { "Other quantities" }
                div.scroll { table {
                    caption { "What was used besides tokens" (more(units.len())) "." }
                    thead { tr {
                        th scope="col" { "Quantity" }
                        th.number scope="col" { "Number" }
                    } }
                    tbody {
                        @for (unit, number) in units.iter().take(LINES_MAX) {
                            tr {
                                th scope="row" { (name(&unit.replace('_', " "))) }
                                td.number { (quantity(*number)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}

/// How many lines are left out.
fn more(lines: usize) -> Markup {
    let more = lines.saturating_sub(LINES_MAX) as u64;
    html! { @if more > 0 { "; " (count(more)) " more are not shown" } }
}

fn of(calls: u64, most: u64) -> Markup {
    bar(rough(most.into()), &[Piece { class: "s0", from: 0.0, to: rough(calls.into()) }])
}
