//! A session for people: first what answers "why did this cost so much", then agents and turns.

use std::fmt::Write as _;

use rust_decimal::Decimal;
use taximeter_billing::text::{
    PLACES_MIN, TextColumn, grouped, money, printable, requests_of, rounded, shorten, write_columns,
};

use crate::session::Session;
use crate::sums::Sums;
use crate::tree::{Agent, ParentState};
use crate::turns::Turn;
use crate::waste::{Waste, WasteKind};
use crate::words::{column, counted, duration, growth, percent, time, tokens};

/// Most turns in the table: the dearest ones.
const TURNS_MAX: usize = 20;
/// Most agents in the table.
const AGENTS_MAX: usize = 40;
/// Most requests that are named of a kind of waste.
const NAMED_MAX: usize = 3;
/// Deeper agents are shown no further to the right.
const INDENTS_MAX: u32 = 8;

/// A session as text with at most `width` characters per line, if the names allow it.
#[must_use]
pub fn table(session: &Session, width: usize) -> String {
    let mut session = session.clone();
    session.keep_turns(TURNS_MAX);
    let mut out = String::new();
    let page = Page { session: &session, places: places(&session) };
    page.write_heading(&mut out);
    page.write_answer(&mut out);
    page.write_waste(&mut out, width);
    page.write_agents(&mut out, width);
    page.write_turns(&mut out, width);
    page.write_rest(&mut out);
    out
}

struct Page<'a> {
    session: &'a Session,
    /// Decimal places of money.
    places: u32,
}

impl Page<'_> {
    fn write_heading(&self, out: &mut String) {
        let session = self.session;
        let _ = writeln!(
            out,
            "Session {} of {}: {} for {} in {}",
            printable(&session.session),
            printable(&session.tenant),
            self.cost(&session.sums),
            requests_of(session.sums.requests),
            duration(session.ended_at.duration_since(session.started_at)),
        );
        let names = |names: &[String]| {
            names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ")
        };
        let turns = session.turns.len() as u64 + session.turns_left_out;
        let parts = [
            format!("{} to {}", time(session.started_at), time(session.ended_at)),
            names(&session.clients),
            names(&session.models),
            format!(
                "{}, {}",
                counted(session.agents.len() as u64, "agent"),
                counted(turns, "turn")
            ),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let _ = writeln!(out, "{}\n", parts.join(" · "));
    }

    /// What makes it dear.
    fn write_answer(&self, out: &mut String) {
        let session = self.session;
        if let Some(agent) = session.dearest_agent() {
            let _ = writeln!(
                out,
                "Dearest agent  {}: {}, {} in {}",
                agent_name(agent.agent.as_deref()),
                self.cost_and_share(&agent.sums),
                requests_of(agent.sums.requests),
                counted(agent.turns, "turn"),
            );
        }
        if let Some(turn) = session.dearest_turn() {
            let _ = writeln!(
                out,
                "Dearest turn   {} of {}: {}{}{}",
                turn.number,
                agent_name(turn.agent.as_deref()),
                self.cost_and_share(&turn.sums),
                context(turn),
                percent(turn.cache_read_share)
                    .map_or(String::new(), |share| format!(", {share} from the cache")),
            );
        }
        let sums = &session.sums;
        let _ = writeln!(
            out,
            "Tokens         {} in, {} from the cache, {} out{}",
            tokens(sums.input_tokens),
            percent(session.cache_read_share).unwrap_or_else(|| "unknown".to_owned()),
            tokens(sums.output_tokens),
            session.context_tokens_max.map_or(String::new(), |tokens| {
                format!("; largest input {}", grouped(&tokens.to_string()))
            }),
        );
        let wasted = session.wasted();
        let waste = match wasted.requests {
            0 => "none found".to_owned(),
            requests => format!("{} in {}", self.cost_and_share(&wasted), requests_of(requests)),
        };
        let _ = writeln!(out, "Waste          {waste}\n");
    }

    fn write_waste(&self, out: &mut String, width: usize) {
        let waste = &self.session.waste;
        if waste.is_empty() {
            return;
        }
        let wasted = self.session.wasted();
        let cells = |of: &dyn Fn(&Waste) -> String| waste.iter().map(of).collect::<Vec<_>>();
        let mut columns = vec![
            column("waste", cells(&|waste| waste.kind.words().to_owned()), "total", false),
            column("requests", cells(&which), "", false),
            column(
                "input",
                cells(&|waste| tokens(waste.sums.input_tokens)),
                &tokens(wasted.input_tokens),
                true,
            ),
            self.cost_column(waste.iter().map(|waste| &waste.sums), &wasted),
        ];
        shorten(&mut columns, 2, width);
        write_columns(out, &columns);
        out.push('\n');
    }

    fn write_agents(&self, out: &mut String, width: usize) {
        let session = self.session;
        let agents = session.agents.get(..AGENTS_MAX).unwrap_or(&session.agents);
        let cells = |of: &dyn Fn(&Agent) -> String| agents.iter().map(of).collect::<Vec<_>>();
        let sums = &session.sums;
        let turns = session.turns.len() as u64 + session.turns_left_out;
        let mut columns = vec![
            column("agent", cells(&tree_name), "total", false),
            column(
                "turns",
                cells(&|a| grouped(&a.turns.to_string())),
                &grouped(&turns.to_string()),
                true,
            ),
            self.requests_column(agents.iter().map(|agent| &agent.sums), sums),
            column(
                "input",
                cells(&|a| tokens(a.sums.input_tokens)),
                &tokens(sums.input_tokens),
                true,
            ),
            column(
                "cached",
                cells(&|agent| percent(agent.cache_read_share).unwrap_or_default()),
                &percent(session.cache_read_share).unwrap_or_default(),
                true,
            ),
            column(
                "output",
                cells(&|a| tokens(a.sums.output_tokens)),
                &tokens(sums.output_tokens),
                true,
            ),
            self.cost_column(agents.iter().map(|agent| &agent.sums), sums),
        ];
        if agents.iter().any(|agent| agent.with_children != agent.sums) {
            let all: Vec<_> = agents.iter().map(|agent| &agent.with_children).collect();
            let mut below = self.cost_column(all.into_iter(), sums);
            below.head = "with those below".to_owned();
            columns.push(below);
        }
        shorten(&mut columns, 1, width);
        write_columns(out, &columns);
        let left_out = session.agents.len() - agents.len();
        if left_out > 0 {
            let _ = writeln!(out, "{} are not shown.", counted(left_out as u64, "further agent"));
        }
        out.push('\n');
    }

    fn write_turns(&self, out: &mut String, width: usize) {
        let session = self.session;
        let turns = &session.turns;
        let cells = |of: &dyn Fn(&Turn) -> String| turns.iter().map(of).collect::<Vec<_>>();
        let sums = &session.sums;
        let seconds = |time: Option<f64>| time.map_or(String::new(), |time| format!("{time:.2} s"));
        let mut columns = vec![
            column("agent", cells(&|turn| agent_name(turn.agent.as_deref())), "total", false),
            column("turn", cells(&turn_name), "", false),
            self.requests_column(turns.iter().map(|turn| &turn.sums), sums),
            column("context", cells(&|turn| tokens(turn.context_tokens)), "", true),
            column("growth", cells(&|turn| growth(turn.context_growth)), "", true),
            column(
                "cached",
                cells(&|turn| percent(turn.cache_read_share).unwrap_or_default()),
                &percent(session.cache_read_share).unwrap_or_default(),
                true,
            ),
            column(
                "output",
                cells(&|t| tokens(t.sums.output_tokens)),
                &tokens(sums.output_tokens),
                true,
            ),
            column("first token", cells(&|turn| seconds(turn.time_to_first_token)), "", true),
            self.cost_column(turns.iter().map(|turn| &turn.sums), sums),
        ];
        shorten(&mut columns, 2, width);
        write_columns(out, &columns);
        if session.turns_left_out > 0 {
            let _ = writeln!(
                out,
                "The dearest turns. {} cheaper {} not shown: --json has all.",
                grouped(&session.turns_left_out.to_string()),
                if session.turns_left_out == 1 { "one is" } else { "ones are" },
            );
        }
        out.push('\n');
    }

    /// Times, tools, and what to know of the numbers.
    fn write_rest(&self, out: &mut String) {
        let session = self.session;
        if let Some(spread) = session.time_to_first_token {
            let _ = writeln!(
                out,
                "First token of {}: half within {:.2} s, 95 % within {:.2} s, from {:.2} s to {:.2} s.",
                counted(spread.count, "turn"),
                spread.p50,
                spread.p95,
                spread.min,
                spread.max,
            );
        }
        let stalls = session.stalls.iter().take(NAMED_MAX);
        let stalls: Vec<_> =
            stalls.map(|stall| format!("{:.2} s in {}", stall.seconds, stall.id)).collect();
        if !stalls.is_empty() {
            let _ = writeln!(out, "Longest stalls: {}.", stalls.join(", "));
        }
        let mut tools: Vec<_> = session.tools.iter().collect();
        taximeter_collections::sort_by_key(&mut tools, |(_, count)| std::cmp::Reverse(**count));
        let tools = tools.into_iter().map(|(name, count)| format!("{} × {count}", printable(name)));
        let units = session.units.iter();
        let units =
            units.map(|(name, quantity)| format!("{} {}", quantity.normalize(), printable(name)));
        for (head, parts) in [("Tools", tools.collect::<Vec<_>>()), ("Units", units.collect())] {
            if !parts.is_empty() {
                let _ = writeln!(out, "{head}: {}.", parts.join(", "));
            }
        }
        self.write_notes(out);
    }

    fn write_notes(&self, out: &mut String) {
        let session = self.session;
        if session.sums.unknown_cost_requests > 0 {
            let _ = writeln!(
                out,
                "≥ means at least: the cost of {} is unknown or known in part.",
                requests_of(session.sums.unknown_cost_requests.unsigned_abs()),
            );
        }
        for agent in &session.agents {
            let name = agent_name(agent.agent.as_deref());
            let parent = agent_name(agent.parent_agent.as_deref());
            let what = match agent.parent_state {
                Some(ParentState::Missing) => "has no request here",
                Some(ParentState::Itself) => "is the agent itself",
                Some(ParentState::Cycle) => "works for it in turn",
                _ => continue,
            };
            let _ = writeln!(out, "{name} names {parent} as its parent, which {what}.");
        }
        if session.waste.iter().any(|waste| waste.kind == WasteKind::CacheMiss) {
            out.push_str("A cache miss is shown with all that its request cost.\n");
        }
        if session.requests_left_out > 0 {
            let _ = writeln!(
                out,
                "{} after the first {} are in the sums only.",
                requests_of(session.requests_left_out),
                grouped(&crate::session::REQUESTS_MAX.to_string()),
            );
        }
    }

    fn cost_column<'b>(&self, rows: impl Iterator<Item = &'b Sums>, total: &Sums) -> TextColumn {
        let currency = self.session.currency.as_deref();
        TextColumn {
            head: currency.map_or("cost".to_owned(), |code| format!("cost ({})", printable(code))),
            cells: rows.map(|sums| self.amount(sums)).collect(),
            total: self.amount(total),
            right: true,
        }
    }

    #[expect(clippy::unused_self, reason = "it is one of the columns of a page")]
    fn requests_column<'b>(
        &self,
        rows: impl Iterator<Item = &'b Sums>,
        total: &Sums,
    ) -> TextColumn {
        let cell = |sums: &Sums| grouped(&sums.requests.to_string());
        column("requests", rows.map(cell).collect(), &cell(total), true)
    }

    fn amount(&self, sums: &Sums) -> String {
        let Some(cost) = sums.cost else { return "unknown".to_owned() };
        format!("{}{}", if sums.is_at_least() { "≥" } else { "" }, money(cost, self.places))
    }

    fn cost(&self, sums: &Sums) -> String {
        let currency = self.session.currency.as_deref().map(|code| format!(" {}", printable(code)));
        match sums.cost {
            None => "unknown cost".to_owned(),
            Some(_) => self.amount(sums) + &currency.unwrap_or_default(),
        }
    }

    /// The cost, and which part of the session's it is.
    fn cost_and_share(&self, sums: &Sums) -> String {
        let whole = self.session.sums.owed();
        let share = sums.cost.and_then(|cost| (cost * Decimal::ONE_HUNDRED).checked_div(whole));
        let share = share.map_or(String::new(), |share| format!(" ({} %)", share.round()));
        self.cost(sums) + &share
    }
}

fn places(session: &Session) -> u32 {
    let agents = session.agents.iter().map(|agent| &agent.sums);
    let turns = session.turns.iter().map(|turn| &turn.sums);
    let all = agents.chain(turns).chain([&session.sums]).filter_map(|sums| sums.cost);
    all.map(|cost| rounded(cost).scale()).max().unwrap_or_default().max(PLACES_MIN)
}

/// The requests of a kind of waste: the first ones by id.
fn which(waste: &Waste) -> String {
    let named: Vec<_> =
        waste.requests.iter().take(NAMED_MAX).map(|request| request.id.to_string()).collect();
    let more = waste.requests.len() - named.len();
    let count = grouped(&waste.requests.len().to_string());
    let more = if more > 0 { " …" } else { "" };
    format!("{count}: {}{more}", named.join(" "))
}

fn agent_name(agent: Option<&str>) -> String {
    agent.map_or_else(|| "(no agent named)".to_owned(), printable)
}

fn tree_name(agent: &Agent) -> String {
    let indent = usize::try_from(agent.depth.min(INDENTS_MAX)).unwrap_or_default();
    "  ".repeat(indent) + &agent_name(agent.agent.as_deref())
}

fn turn_name(turn: &Turn) -> String {
    let kinds: Vec<_> = turn.kinds.iter().map(|kind| kind.as_str()).collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let name = turn.turn.as_deref().map_or(String::new(), |name| format!(" {}", printable(name)));
    format!("{}{name}{kinds}", turn.number)
}

/// `, context 182,000 (+90,000)`.
fn context(turn: &Turn) -> String {
    let Some(context) = turn.context_tokens else { return String::new() };
    let growth = turn.context_growth.map(|change| format!(" ({})", growth(Some(change))));
    format!(", context {}{}", grouped(&context.to_string()), growth.unwrap_or_default())
}
