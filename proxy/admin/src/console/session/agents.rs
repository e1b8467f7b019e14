//! The agents of a session as a tree.

use std::cmp::Reverse;

use maud::{Markup, html};
use taximeter_sessions::Agent;

use super::shown::Shown;
use crate::console::page::SESSION;
use crate::console::sums::share_of;
use crate::console::text::{count, count_or_unknown, name, part, seconds, seconds_or_unknown};

/// Most agents in the table.
const AGENTS_MAX: usize = 16;
/// Deeper agents are shown no further to the right.
const INDENTS_MAX: u32 = 8;

pub(super) fn agents(shown: &Shown<'_>) -> Markup {
    let all = &shown.session.agents;
    let agents = dearest(all);
    let has_children = all.iter().any(|agent| agent.depth > 0);
    html! {
        section aria-labelledby="agents" {
            h2 #agents { "Agents" }
            div.scroll { table {
                caption {
                    "An agent stands below the one that it works for. Its name leads to its turns."
                    @if agents.len() < all.len() {
                        " These are the " (agents.len()) " dearest of " (count(all.len() as u64))
                        " agents, with those below them."
                    }
                }
                thead { tr {
                    th scope="col" { "Agent" }
                    th.number scope="col" { (shown.cost_head()) }
                    @if has_children { th.number scope="col" { "With those below" } }
                    th scope="col" { "Share" }
                    th.number scope="col" { "Turns" }
                    th.number scope="col" { "Requests" }
                    th.number scope="col" { "Input" }
                    th.number scope="col" { "Cached" }
                    th.number scope="col" { "Output" }
                    th.number scope="col" { "Largest context" }
                    th.number scope="col" { "First token" }
                    th.number scope="col" { "Stall" }
                } }
                tbody { @for agent in agents { (row(shown, agent, has_children)) } }
            } }
        }
    }
}

/// The dearest agents with all below them, in the order of the tree. An agent costs with those below
/// it at least as much as each of them, so none comes without those above it.
fn dearest(all: &[Agent]) -> Vec<&Agent> {
    let mut places: Vec<_> = all.iter().enumerate().collect();
    taximeter_collections::sort_by_key(&mut places, |(place, agent)| {
        (Reverse(agent.with_children.cost), *place)
    });
    places.truncate(AGENTS_MAX);
    taximeter_collections::sort_by_key(&mut places, |(place, _)| *place);
    places.into_iter().map(|(_, agent)| agent).collect()
}

fn row(shown: &Shown<'_>, agent: &Agent, has_children: bool) -> Markup {
    let sums = &agent.sums;
    html! {
        tr {
            th scope="row" class={ "indent-" (agent.depth.min(INDENTS_MAX)) } {
                @if agent.depth > 0 { span.sign aria-hidden="true" { "└ " } }
                @match &agent.agent {
                    Some(own) => a href=(turns_of(shown, own)) { (name(own)) },
                    None => (Shown::agent(None)),
                }
            }
            td.number { (shown.cost(sums)) }
            @if has_children { td.number { (shown.cost(&agent.with_children)) } }
            td.share { (share_of(sums.cost, shown.whole())) }
            td.number { (count(agent.turns)) }
            td.number {
                (count(sums.requests))
                @if sums.failed_requests > 0 {
                    " " span.unit { (count(sums.failed_requests)) " failed" }
                }
            }
            td.number { (count_or_unknown(sums.input_tokens)) }
            td.number { (part(agent.cache_read_share)) }
            td.number { (count_or_unknown(sums.output_tokens)) }
            td.number { (count_or_unknown(agent.context_tokens_max)) }
            td.number { (seconds_or_unknown(agent.time_to_first_token.map(|spread| spread.p50))) }
            td.number {
                @match agent.longest_stall { Some(stall) => (seconds(stall)), None => "–" }
            }
        }
    }
}

/// This page with the turns of one agent.
fn turns_of(shown: &Shown<'_>, agent: &str) -> String {
    let (session, tenant) = (shown.session.session.as_str(), shown.session.tenant.as_str());
    let link = shown.view.to(SESSION, &[("name", session), ("tenant", tenant), ("agent", agent)]);
    link + "#turns"
}
