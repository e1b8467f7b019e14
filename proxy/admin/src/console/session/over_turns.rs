//! How a session grew from turn to turn: its context, and what it cost.

use maud::{Markup, html};
use rust_decimal::Decimal;
use taximeter_sessions::{Agent, Turn};

use super::shown::Shown;
use crate::console::charts::{Column, Stacked, colour, stacked};

/// Most columns of a chart. If there are more turns, a column has several.
const COLUMNS_MAX: usize = 40;
/// Agents with their own colour: the dearest ones.
const PARTS_MAX: usize = 5;

/// Both charts, of all turns or of those of one agent. One turn alone has none.
pub(super) fn over_turns(shown: &Shown<'_>, agent: Option<&str>) -> Markup {
    let session = shown.session;
    let is_of = |turn: &&Turn| agent.is_none() || turn.agent.as_deref() == agent;
    let turns: Vec<_> = session.turns.iter().filter(is_of).collect();
    if turns.len() < 2 {
        return html! {};
    }
    let agents = coloured(&session.agents, agent);
    let per_column = turns.len().div_ceil(COLUMNS_MAX);
    let groups: Vec<_> = turns.chunks(per_column).collect();
    let chart = |label: &str, unit: &str, values: &dyn Fn(&[&Turn]) -> Values| {
        let columns = groups.iter().map(|group| column(group, &agents, values(group)));
        let mut parts: Vec<_> =
            agents.own.iter().map(|name| Shown::agent(name.as_deref())).collect();
        if agents.has_rest {
            parts.push(html! { "other agents" });
        }
        let (label, unit) = (label.to_owned(), unit.to_owned());
        Stacked { label, unit, parts, has_rest: agents.has_rest, columns: columns.collect() }
    };
    let context = chart("Context by turn, in tokens", "tokens", &largest_context);
    let currency = session.currency.as_deref().unwrap_or("money");
    let cost = chart("Cost by turn", currency, &costs);
    let per = if per_column == 1 { "turn".to_owned() } else { format!("{per_column} turns") };
    html! {
        section aria-labelledby="over-turns" {
            h2 #over-turns { "From turn to turn" }
            div.pair {
                figure {
                    figcaption {
                        "Context: the largest input of each turn, in tokens"
                        @if per_column > 1 { ", the largest of each " (per) }
                    }
                    (stacked(&context))
                }
                figure {
                    figcaption { "Cost, " (currency) " per " (per) }
                    (stacked(&cost))
                }
            }
            ul.legend {
                @for (part, name) in context.parts.iter().enumerate() {
                    li { span class={ "swatch " (colour(&context, part)) } {} (name) }
                }
            }
        }
    }
}

/// What agents have in a column.
type Values = Vec<(Option<String>, Decimal)>;

/// The agents that have a colour.
struct Coloured {
    own: Vec<Option<String>>,
    /// Whether there are others.
    has_rest: bool,
}

fn coloured(all: &[Agent], only: Option<&str>) -> Coloured {
    let mut agents: Vec<_> =
        all.iter().filter(|agent| only.is_none() || agent.agent.as_deref() == only).collect();
    taximeter_collections::sort_by_key(&mut agents, |agent| std::cmp::Reverse(agent.sums.cost));
    let has_rest = agents.len() > PARTS_MAX;
    let own = agents.into_iter().take(PARTS_MAX).map(|agent| agent.agent.clone()).collect();
    Coloured { own, has_rest }
}

/// A column: each value stands where its agent has its colour.
fn column(group: &[&Turn], agents: &Coloured, values: Values) -> Column {
    let mut parts = vec![None; agents.own.len() + usize::from(agents.has_rest)];
    for (agent, value) in values {
        let part = agents.own.iter().position(|own| *own == agent).unwrap_or(agents.own.len());
        if let Some(sum) = parts.get_mut(part) {
            *sum = Some(sum.unwrap_or(Decimal::ZERO).saturating_add(value));
        }
    }
    let number = |turn: Option<&&Turn>| turn.map_or(0, |turn| turn.number);
    let (first, last) = (number(group.first()), number(group.last()));
    let name =
        if first == last { format!("turn {first}") } else { format!("turns {first} to {last}") };
    Column { label: first.to_string(), name, values: parts }
}

/// The largest context of the turns, alone: contexts of several agents are not added up.
fn largest_context(group: &[&Turn]) -> Values {
    let known = group.iter().filter_map(|turn| Some((turn.context_tokens?, turn)));
    let largest = known.max_by_key(|(context, _)| *context);
    largest.map(|(context, turn)| (turn.agent.clone(), context.into())).into_iter().collect()
}

fn costs(group: &[&Turn]) -> Values {
    group.iter().filter_map(|turn| Some((turn.agent.clone(), turn.sums.cost?))).collect()
}
