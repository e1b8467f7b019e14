//! Why a session cost so much, before all tables: its sums, its dearest agent and turn, its waste.

use maud::{Markup, html};
use taximeter_sessions::{Agent, ParentState, REQUESTS_MAX, Turn};

use super::shown::Shown;
use crate::console::text::{
    count, count_or_unknown, duration, grouped, money, name, part, part_text, places, unknown,
};
use crate::sessions::SessionAnswer;

/// Names of clients and models on the page.
const NAMES_MAX: usize = 6;
/// Agents of which it is said that their parent cannot be right.
const ODD_PARENTS_MAX: usize = 5;

/// The cost and the sums.
pub(super) fn meter(shown: &Shown<'_>) -> Markup {
    let (session, view) = (shown.session, shown.view);
    let sums = &session.sums;
    let turns = session.turns.len() as u64 + session.turns_left_out;
    html! {
        section.meter aria-labelledby="cost" {
            div {
                h2 #cost { "Cost" }
                p.digits {
                    @match sums.cost {
                        Some(cost) => {
                            @if sums.is_at_least() { "≥ " }
                            span data-total="cost" { (money(cost, places(cost))) }
                            @if let Some(currency) = &session.currency {
                                " " span.currency { (name(currency)) }
                            }
                        }
                        None => (unknown()),
                    }
                }
                p.when {
                    (view.time(session.started_at)) " to " (view.time(session.ended_at)) ", "
                    (view.zone_name())
                }
                p.when { (names(&session.clients)) }
                p.when { (names(&session.models)) }
            }
            dl.readouts {
                div { dt { "Length" } dd { (duration(session.started_at, session.ended_at)) } }
                div { dt { "Agents" } dd { (count(session.agents.len() as u64)) } }
                div { dt { "Turns" } dd { (count(turns)) } }
                div {
                    dt { "Requests" }
                    dd data-total="requests" {
                        (count(sums.requests))
                        @if sums.failed_requests > 0 {
                            " " span.unit { (count(sums.failed_requests)) " failed" }
                        }
                    }
                }
                div {
                    dt { "Input tokens" }
                    dd data-total="input" { (count_or_unknown(sums.input_tokens)) }
                }
                div { dt { "Cached input" } dd { (part(session.cache_read_share)) } }
                div {
                    dt { "Output tokens" }
                    dd data-total="output" { (count_or_unknown(sums.output_tokens)) }
                }
                div {
                    dt { "Largest context" }
                    dd { (count_or_unknown(session.context_tokens_max)) }
                }
            }
        }
    }
}

/// Names with commas between them, the first ones of many.
fn names(names: &[String]) -> Markup {
    html! {
        @for (index, one) in names.iter().take(NAMES_MAX).enumerate() {
            @if index > 0 { ", " }
            (name(one))
        }
        @if names.len() > NAMES_MAX { " and " (names.len() - NAMES_MAX) " more" }
    }
}

/// The sentences that say why.
pub(super) fn answer(shown: &Shown<'_>) -> Markup {
    let session = shown.session;
    let agent = session.dearest_agent().filter(|_| session.agents.len() > 1);
    let turn = session.dearest_turn().filter(|_| session.turns.len() > 1);
    html! {
        section.answer aria-labelledby="why" {
            h2 #why { "Why" }
            ul {
                @if let Some(agent) = agent { li { (dearest_agent(shown, agent)) } }
                @if let Some(turn) = turn { li { (dearest_turn(shown, turn)) } }
                li { (wasted(shown)) }
            }
        }
    }
}

fn dearest_agent(shown: &Shown<'_>, agent: &Agent) -> Markup {
    html! {
        "The dearest agent is " b data-dearest="agent" { (Shown::agent(agent.agent.as_deref())) }
        ": " b { (shown.priced(&agent.sums)) } " for "
        (counted(agent.sums.requests, "request")) " in " (counted(agent.turns, "turn")) "."
    }
}

fn dearest_turn(shown: &Shown<'_>, turn: &Turn) -> Markup {
    html! {
        "The dearest turn is "
        a data-dearest="turn" href=(shown.to(turn.first_id)) { "turn " (turn.number) } " of "
        (Shown::agent(turn.agent.as_deref())) ": " b { (shown.priced(&turn.sums)) }
        @if turn.sums.requests > 1 { " for " (counted(turn.sums.requests, "request")) }
        @if let Some(context) = turn.context_tokens {
            ", with a context of " (count(context)) " tokens"
            @if let Some(growth) = turn.context_growth.filter(|growth| *growth != 0) {
                ", " (count(growth.unsigned_abs()))
                @if growth > 0 { " more" } @else { " fewer" }
                " than before"
            }
        }
        @if let Some(share) = turn.cache_read_share {
            ". The cache had " (part_text(share)) " of its input"
        }
        "."
    }
}

fn wasted(shown: &Shown<'_>) -> Markup {
    let session = shown.session;
    let wasted = session.wasted();
    html! {
        @if wasted.requests == 0 {
            "No waste was found."
        } @else {
            "Waste: " b data-total="wasted" { (shown.priced(&wasted)) } " in "
            (counted(wasted.requests, "request"))
            @for (index, waste) in session.waste.iter().enumerate() {
                @if index == 0 { ": " } @else { ", " }
                (waste.kind.words()) " " (shown.cost(&waste.sums))
            }
            "."
        }
    }
}

fn counted(number: u64, what: &str) -> Markup {
    html! { (count(number)) " " (what) @if number != 1 { "s" } }
}

/// What to know of the numbers.
pub(super) fn notes(shown: &Shown<'_>, found: &SessionAnswer) -> Markup {
    let session = shown.session;
    let mut said = Vec::new();
    if let Ok(unknown @ 1..) = u64::try_from(session.sums.unknown_cost_requests) {
        said.push(html! {
            "Requests of unknown cost: " (count(unknown))
            ". Sums have only what is known of it, so they are at least so much."
        });
    }
    let odd: Vec<_> = session.agents.iter().filter_map(odd_parent).collect();
    let more = odd.len().saturating_sub(ODD_PARENTS_MAX);
    said.extend(odd.into_iter().take(ODD_PARENTS_MAX));
    if more > 0 {
        said.push(html! { "The parents of " (more) " more agents cannot be right." });
    }
    if session.requests_left_out > 0 {
        said.push(html! {
            "Agents, turns and waste are those of the first "
            (grouped(&REQUESTS_MAX.to_string())) " requests. "
            "Later ones, which are in the sums only: "
            (count(session.requests_left_out)) "."
        });
    }
    if let Some(from) = found.details_from.filter(|from| *from > session.started_at) {
        said.push(html! { "Requests before " (shown.view.time(from)) " are gone." });
    }
    if found.pending_entries > 0 {
        said.push(html! {
            "Ledger entries that the store does not have yet: " (count(found.pending_entries)) "."
        });
    }
    html! {
        @if !said.is_empty() { ul.notes { @for said in said { li.warn { (said) } } } }
    }
}

/// Why an agent stands at the top, though it names a parent.
fn odd_parent(agent: &Agent) -> Option<Markup> {
    let why = match agent.parent_state? {
        ParentState::Missing => "which has no request here",
        ParentState::Itself => "which is the agent itself",
        ParentState::Cycle => "which works for it in turn",
        ParentState::Known | ParentState::Later => return None,
    };
    let (own, parent) = (agent.agent.as_deref(), agent.parent_agent.as_deref());
    Some(html! {
        (Shown::agent(own)) " names " (Shown::agent(parent)) " as its parent, " (why) "."
    })
}
