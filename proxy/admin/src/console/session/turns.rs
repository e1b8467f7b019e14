//! The turns of a session: the dearest ones, or all of them page by page.

use std::borrow::Cow;
use std::cmp::Reverse;

use maud::{Markup, html};
use taximeter_sessions::Turn;

use super::shown::Shown;
use crate::console::page::{REQUESTS, SESSION};
use crate::console::text::{
    count, count_or_unknown, grouped, name, part, seconds, seconds_or_unknown,
};

/// Turns on one page.
pub(super) const PAGE_TURNS: usize = 24;
/// Requests of a turn that have a link of their own; there is one more for all.
const LINKS_MAX: usize = 4;
/// Tools that are named in a row: the most called ones.
const TOOLS_MAX: usize = 2;
/// Longest name of a tool in a row, in characters.
const TOOL_CHARS_MAX: usize = 24;

/// Which turns the table has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Which<'a> {
    /// Only those of this agent.
    pub(super) agent: Option<&'a str>,
    /// A page of all turns, from 1. `None` means the dearest ones.
    pub(super) page: Option<usize>,
}

pub(super) fn turns(shown: &Shown<'_>, which: Which<'_>) -> Markup {
    let is_asked = |turn: &&Turn| which.agent.is_none() || turn.agent.as_deref() == which.agent;
    let all: Vec<_> = shown.session.turns.iter().filter(is_asked).collect();
    let turns = match which.page {
        Some(page) => {
            let skipped = page.saturating_sub(1).saturating_mul(PAGE_TURNS);
            all.iter().skip(skipped).take(PAGE_TURNS).copied().collect()
        }
        None => dearest(&all),
    };
    html! {
        section aria-labelledby="turns" {
            div.head {
                h2 #turns {
                    "Turns"
                    @if let Some(agent) = which.agent { " of " (name(agent)) }
                }
                @if which.agent.is_some() {
                    a href=(to(shown, Which { agent: None, page: None })) { "Turns of all agents" }
                }
            }
            (table(shown, &turns, &all, which))
            (paging(shown, all.len(), which))
        }
    }
}

/// The dearest turns, in order. Of turns that cost the same the earlier ones come.
fn dearest<'a>(all: &[&'a Turn]) -> Vec<&'a Turn> {
    let mut turns = all.to_vec();
    taximeter_collections::sort_by_key(&mut turns, |turn| (Reverse(turn.sums.cost), turn.number));
    turns.truncate(PAGE_TURNS);
    taximeter_collections::sort_by_key(&mut turns, |turn| turn.number);
    turns
}

fn table(shown: &Shown<'_>, turns: &[&Turn], all: &[&Turn], which: Which<'_>) -> Markup {
    let is_dearest = which.page.is_none() && turns.len() < all.len();
    html! {
        div.scroll { table {
            caption {
                @if is_dearest {
                    "The " (turns.len()) " dearest of " (count(all.len() as u64))
                    " turns, in order. "
                }
                "Context is the largest input of a turn. Growth is the change since the turn "
                "before, of the same agent and model. The numbers of requests lead to them."
            }
            thead { tr {
                th scope="col" { "Turn" }
                th scope="col" { "Agent" }
                th scope="col" { "Name" }
                th.number scope="col" { (shown.cost_head()) }
                th.number scope="col" { "Context" }
                th.number scope="col" { "Growth" }
                th.number scope="col" { "Cached" }
                th.number scope="col" { "Output" }
                th.number scope="col" { "First token" }
                th.number scope="col" { "Stall" }
                th scope="col" { "Tools" }
                th scope="col" { "Requests" }
            } }
            tbody {
                @for turn in turns { (row(shown, turn)) }
                @if turns.is_empty() { tr { td colspan="12" { "This page has no turns." } } }
            }
        } }
    }
}

fn row(shown: &Shown<'_>, turn: &Turn) -> Markup {
    html! {
        tr data-turn=(turn.number) {
            th scope="row" { (count(turn.number)) }
            td { (Shown::agent(turn.agent.as_deref())) }
            td {
                @match &turn.turn { Some(own) => (name(own)), None => "–" }
                @for kind in &turn.kinds { " " span.kind { (kind.as_str()) } }
            }
            td.number { (shown.cost(&turn.sums)) }
            td.number {
                // A request for something else than a turn has no context that goes on.
                @if turn.context_tokens.is_none() && !turn.kinds.is_empty() { "–" }
                @else { (count_or_unknown(turn.context_tokens)) }
            }
            td.number { (growth(turn.context_growth)) }
            td.number { (part(turn.cache_read_share)) }
            td.number { (count_or_unknown(turn.sums.output_tokens)) }
            td.number { (seconds_or_unknown(turn.time_to_first_token)) }
            td.number {
                @match turn.longest_stall { Some(stall) => (seconds(stall)), None => "–" }
            }
            td { (tools(turn)) }
            td { (requests(shown, turn)) }
        }
    }
}

fn growth(change: Option<i64>) -> Markup {
    html! {
        @match change {
            Some(change) => data value=(change) {
                @if change > 0 { "+" }
                (grouped(&change.to_string()))
            },
            None => "–",
        }
    }
}

fn tools(turn: &Turn) -> Markup {
    let mut tools: Vec<_> = turn.tools.iter().collect();
    taximeter_collections::sort_by_key(&mut tools, |(_, calls)| Reverse(**calls));
    html! {
        @for (index, (tool, calls)) in tools.iter().take(TOOLS_MAX).enumerate() {
            @if index > 0 { ", " }
            (name(&shortened(tool))) " × " (calls)
        }
        @if tools.len() > TOOLS_MAX { ", …" }
        @if tools.is_empty() { "–" }
    }
}

fn shortened(tool: &str) -> Cow<'_, str> {
    match tool.char_indices().nth(TOOL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", tool.get(..end).unwrap_or_default()).into(),
        None => tool.into(),
    }
}

/// Links to the requests of a turn: by number, and to all of them if there are many.
fn requests(shown: &Shown<'_>, turn: &Turn) -> Markup {
    let ids = &turn.request_ids;
    html! {
        ul.numbers {
            @for (index, id) in ids.iter().take(LINKS_MAX).enumerate() {
                li { a href=(shown.to(*id)) { (index + 1) } }
            }
            @if ids.len() > LINKS_MAX {
                li { a href=(all_requests(shown, turn)) { "all " (ids.len()) } }
            }
            @if turn.sums.failed_requests > 0 {
                li { span.unit { (count(turn.sums.failed_requests)) " failed" } }
            }
        }
    }
}

/// The requests of the session and the turn's agent while the turn ran, the earliest first.
fn all_requests(shown: &Shown<'_>, turn: &Turn) -> String {
    let (from, to) = (turn.started_at.to_string(), turn.ended_at.to_string());
    let agent = match &turn.agent {
        Some(agent) => ("agent", agent.as_str()),
        None => ("without", "agent"),
    };
    let asked = [
        ("tenant", shown.session.tenant.as_str()),
        ("session", &shown.session.session),
        agent,
        ("from", from.as_str()),
        ("to", &to),
        ("order", "oldest"),
    ];
    shown.view.to(REQUESTS, &asked)
}

/// This page with other turns.
fn to(shown: &Shown<'_>, which: Which<'_>) -> String {
    let session = shown.session;
    let page = which.page.map(|page| page.to_string());
    let mut asked = vec![("name", session.session.as_str()), ("tenant", session.tenant.as_str())];
    asked.extend(which.agent.map(|agent| ("agent", agent)));
    asked.extend(page.as_deref().map(|page| ("page", page)));
    shown.view.to(SESSION, &asked) + "#turns"
}

/// Links to the other pages of the turns.
fn paging(shown: &Shown<'_>, turns: usize, which: Which<'_>) -> Markup {
    let last = turns.div_ceil(PAGE_TURNS).max(1);
    let page = |page| to(shown, Which { page, ..which });
    html! {
        @if last > 1 {
            nav.paging aria-label="More turns" {
                @match which.page {
                    None => a href=(page(Some(1))) { "All turns in order →" },
                    Some(number) => {
                        a href=(page(None)) { "The dearest turns" }
                        @if number > 1 {
                            a rel="prev" href=(page(Some(number.min(last + 1) - 1))) {
                                "← Previous page"
                            }
                        }
                        span { "Page " (number) " of " (last) ", " (count(turns as u64)) " turns" }
                        @if number < last {
                            a rel="next" href=(page(Some(number + 1))) { "Next page →" }
                        }
                    }
                }
            }
        }
    }
}
