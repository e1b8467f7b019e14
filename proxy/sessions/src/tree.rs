//! The tree of agents.
//!
//! What clients claim is believed as far as a tree can be made of it. An agent is where the first of its
//! requests that names a parent puts it. One that cannot be there stands at the top, and
//! [`ParentState`] says why. The tree is a list in the order in which it is read, each agent with its
//! depth: a chain of as many agents as there are requests is as harmless as any other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::RequestId;
use utoipa::ToSchema;

use crate::request::Request;
use crate::spread::Spread;
use crate::sums::{Sums, add_counts, add_units};
use crate::turns::Turn;

/// How the parent fits that an agent names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParentState {
    /// It was there before.
    Known,
    /// Its first request came later than the first one of this agent.
    Later,
    /// It has no request in the session.
    Missing,
    /// The agent names itself.
    Itself,
    /// The agent is one of its own ancestors: of the circle it came first, and stands at the top.
    Cycle,
}

/// An agent of a session.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Agent {
    /// Its name. Null for the requests whose client names no agent.
    pub agent: Option<String>,
    /// The agent that it says it works for.
    pub parent_agent: Option<String>,
    /// How that fits. Null if it names none.
    pub parent_state: Option<ParentState>,
    /// Number of its requests that name another parent than the first one does.
    pub other_parent_requests: u64,
    /// How many agents are above it.
    pub depth: u32,
    /// Products and versions that sent its requests.
    pub clients: Vec<String>,
    /// Models that answered.
    pub models: Vec<String>,
    /// Its first admission.
    pub started_at: Timestamp,
    /// Its last end.
    pub ended_at: Timestamp,
    /// Its first request.
    pub first_id: RequestId,
    /// Number of its turns.
    pub turns: u64,
    /// Its own sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// The sums of it and of all agents below it.
    pub with_children: Sums,
    /// The part of its input that the cache had.
    pub cache_read_share: Option<f64>,
    /// The largest input of its requests.
    pub context_tokens_max: Option<u64>,
    /// Time to the first token of its turns, in seconds.
    pub time_to_first_token: Option<Spread>,
    /// The longest gap in an answer, in seconds.
    pub longest_stall: Option<f64>,
    /// Tools that its answers call, by name.
    pub tools: BTreeMap<String, u64>,
    /// Quantities besides tokens, by name.
    #[schema(value_type = BTreeMap<String, String>)]
    pub units: BTreeMap<String, Decimal>,
}

/// The agents of `requests`, which are in order, as a tree: each one behind its parent. `turns` are those
/// of the same requests.
pub(crate) fn agents(requests: &[Request], turns: &[Turn], currency: Option<&str>) -> Vec<Agent> {
    let (mut agents, by_name) = listed(requests, currency);
    let above = parents(&mut agents, &by_name);
    add_turns(&mut agents, &by_name, turns);
    let order = in_order(&mut agents, &above);
    // A child comes behind its parent, so that it is whole when it is added.
    for at in order.iter().rev() {
        let Some(sums) = agents.get(*at).map(|agent| agent.with_children.clone()) else { continue };
        let above = above.get(*at).copied().flatten().and_then(|above| agents.get_mut(above));
        above.into_iter().for_each(|above| above.with_children.add(&sums));
    }
    let mut agents: Vec<_> = agents.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| agents.get_mut(at)?.take()).collect()
}

type ByName<'a> = HashMap<Option<&'a str>, usize>;

/// Each agent, in the order of the first requests.
fn listed<'a>(requests: &'a [Request], currency: Option<&str>) -> (Vec<Agent>, ByName<'a>) {
    let (mut agents, mut by_name) = (Vec::new(), ByName::new());
    let mut names: Vec<[BTreeSet<&str>; 2]> = Vec::new();
    for request in requests {
        let at = *by_name.entry(request.agent.as_deref()).or_insert_with(|| {
            agents.push(begun(request));
            names.push(Default::default());
            agents.len() - 1
        });
        let Some(agent) = agents.get_mut(at) else { continue };
        agent.add(request, &Sums::of(request, currency));
        for (names, name) in names
            .get_mut(at)
            .into_iter()
            .flatten()
            .zip([request.client.as_deref(), request.model.as_deref()])
        {
            names.extend(name);
        }
    }
    for (agent, [clients, models]) in agents.iter_mut().zip(names) {
        agent.with_children = agent.sums.clone();
        agent.cache_read_share = agent.sums.cache_read_share();
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
        (agent.clients, agent.models) = (owned(clients), owned(models));
    }
    (agents, by_name)
}

/// An agent without a request, which begins with this one.
fn begun(request: &Request) -> Agent {
    Agent {
        agent: request.agent.clone(),
        parent_agent: None,
        parent_state: None,
        other_parent_requests: 0,
        depth: 0,
        clients: Vec::new(),
        models: Vec::new(),
        started_at: request.started_at,
        ended_at: request.ended_at,
        first_id: request.id,
        turns: 0,
        sums: Sums::default(),
        with_children: Sums::default(),
        cache_read_share: None,
        context_tokens_max: None,
        time_to_first_token: None,
        longest_stall: None,
        tools: BTreeMap::new(),
        units: BTreeMap::new(),
    }
}

impl Agent {
    fn add(&mut self, request: &Request, sums: &Sums) {
        match (&self.parent_agent, &request.parent_agent) {
            (None, Some(named)) => self.parent_agent = Some(named.clone()),
            (Some(known), Some(named)) if known != named => self.other_parent_requests += 1,
            _ => {}
        }
        self.ended_at = self.ended_at.max(request.ended_at);
        self.sums.add(sums);
        self.context_tokens_max = self.context_tokens_max.max(request.input_tokens);
        if let Some(stall) = request.longest_stall {
            self.longest_stall = Some(self.longest_stall.map_or(stall, |known| known.max(stall)));
        }
        add_counts(&mut self.tools, &request.tools);
        add_units(&mut self.units, &request.units);
    }
}

/// The agent above each one. Each agent gets its state.
fn parents(agents: &mut [Agent], by_name: &ByName<'_>) -> Vec<Option<usize>> {
    let mut above: Vec<Option<usize>> = Vec::with_capacity(agents.len());
    for (at, agent) in agents.iter_mut().enumerate() {
        let Some(named) = &agent.parent_agent else {
            above.push(None);
            continue;
        };
        let found = by_name.get(&Some(named.as_str())).copied();
        agent.parent_state = Some(match found {
            None => ParentState::Missing,
            Some(parent) if parent == at => ParentState::Itself,
            Some(parent) if parent > at => ParentState::Later,
            Some(_) => ParentState::Known,
        });
        above.push(found.filter(|parent| *parent != at));
    }
    for at in tops_of_circles(&above) {
        above.get_mut(at).into_iter().for_each(|above| *above = None);
        if let Some(agent) = agents.get_mut(at) {
            agent.parent_state = Some(ParentState::Cycle);
        }
    }
    above
}

/// Of each circle the agent that came first.
fn tops_of_circles(above: &[Option<usize>]) -> Vec<usize> {
    // By which walk an agent was passed: none twice.
    let mut passed = vec![usize::MAX; above.len()];
    let mut tops = Vec::new();
    for walk in 0..above.len() {
        let mut next = Some(walk);
        while let Some(at) = next {
            match passed.get_mut(at) {
                Some(by) if *by == usize::MAX => *by = walk,
                Some(by) if *by == walk => {
                    tops.push(first_of_circle(above, at));
                    break;
                }
                _ => break,
            }
            next = above.get(at).copied().flatten();
        }
    }
    tops
}

/// The lowest number of a circle.
fn first_of_circle(above: &[Option<usize>], start: usize) -> usize {
    let (mut first, mut at) = (start, start);
    while let Some(next) = above.get(at).copied().flatten().filter(|next| *next != start) {
        first = first.min(next);
        at = next;
    }
    first
}

/// Counts the turns of each agent, and how long they waited for their first token.
fn add_turns(agents: &mut [Agent], by_name: &ByName<'_>, turns: &[Turn]) {
    let mut waits: Vec<Vec<f64>> = vec![Vec::new(); agents.len()];
    for turn in turns {
        let Some(at) = by_name.get(&turn.agent.as_deref()).copied() else { continue };
        agents.get_mut(at).into_iter().for_each(|agent| agent.turns += 1);
        waits.get_mut(at).into_iter().for_each(|waits| waits.extend(turn.time_to_first_token));
    }
    for (agent, waits) in agents.iter_mut().zip(waits) {
        agent.time_to_first_token = Spread::of(waits);
    }
}

/// The order in which the tree is read, those that came first first. Each agent gets its depth.
fn in_order(agents: &mut [Agent], above: &[Option<usize>]) -> Vec<usize> {
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); agents.len()];
    let mut open = Vec::new();
    for (at, above) in above.iter().enumerate().rev() {
        match above.and_then(|above| below.get_mut(above)) {
            Some(below) => below.push(at),
            None => open.push((at, 0)),
        }
    }
    let mut order = Vec::with_capacity(agents.len());
    while let Some((at, depth)) = open.pop() {
        order.push(at);
        agents.get_mut(at).into_iter().for_each(|agent| agent.depth = depth);
        let below = below.get(at).map(Vec::as_slice).unwrap_or_default();
        open.extend(below.iter().map(|at| (*at, depth + 1)));
    }
    order
}
