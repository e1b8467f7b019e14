//! One session, opened.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_collections::Gather as _;
use taximeter_ledger::RequestId;
use utoipa::ToSchema;

use crate::request::Request;
use crate::spread::Spread;
use crate::stalls::{Stall, longest};
use crate::sums::{Sums, add_counts, add_units};
use crate::tree::{self, Agent};
use crate::turns::{self, Turn};
use crate::waste::{Waste, waste};

/// Most requests of a session whose agents, turns and waste are told: bounds the memory.
pub const REQUESTS_MAX: usize = 100_000;

/// A session: what it cost, and why.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Session {
    /// The tenant that pays. The same name of two tenants is two sessions.
    pub tenant: String,
    /// The name of the session.
    pub session: String,
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
    /// Its last request.
    pub last_id: RequestId,
    /// The currency of all costs: that of the first known cost. A cost in another one counts as unknown.
    pub currency: Option<String>,
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// The part of its input that the cache had.
    pub cache_read_share: Option<f64>,
    /// The largest input of its requests.
    pub context_tokens_max: Option<u64>,
    /// Time to the first token of its turns, in seconds.
    pub time_to_first_token: Option<Spread>,
    /// Tools that its answers call, by name.
    pub tools: BTreeMap<String, u64>,
    /// Quantities besides tokens, by name.
    #[schema(value_type = BTreeMap<String, String>)]
    pub units: BTreeMap<String, Decimal>,
    /// Its agents as a tree: each one behind its parent, with its depth.
    pub agents: Vec<Agent>,
    /// Its turns, in order.
    pub turns: Vec<Turn>,
    /// Number of cheaper turns that are not in the list.
    pub turns_left_out: u64,
    /// What was wasted, by kind. No request is in two kinds.
    pub waste: Vec<Waste>,
    /// The longest stalls.
    pub stalls: Vec<Stall>,
    /// Number of later requests that are only in the sums: a session shows its first 100,000 requests.
    pub requests_left_out: u64,
}

/// Takes the requests of one session.
#[derive(Debug, Default)]
pub struct SessionBuilder {
    requests: Vec<Request>,
    currency: Option<String>,
    /// Those that there is no room for.
    left_out: LeftOut,
}

#[derive(Debug, Default)]
struct LeftOut {
    sums: Sums,
    last: Option<(Timestamp, RequestId)>,
    ended_at: Option<Timestamp>,
    tools: BTreeMap<String, u64>,
    units: BTreeMap<String, Decimal>,
}

impl SessionBuilder {
    /// Takes one more request, each once and in order of admission.
    pub fn add(&mut self, request: Request) {
        if self.currency.is_none() {
            self.currency.clone_from(&request.price.currency);
        }
        if self.requests.len() < REQUESTS_MAX {
            self.requests.push(request);
            return;
        }
        let LeftOut { sums, last, ended_at, tools, units } = &mut self.left_out;
        sums.add(&Sums::of(&request, self.currency.as_deref()));
        *last = Some(last.map_or(request.order(), |known| known.max(request.order())));
        *ended_at = Some(ended_at.map_or(request.ended_at, |known| known.max(request.ended_at)));
        add_counts(tools, &request.tools);
        add_units(units, &request.units);
    }

    /// The session of `tenant` with this name. `None` without a request.
    #[must_use]
    pub fn finish(self, tenant: &str, session: &str) -> Option<Session> {
        let Self { mut requests, currency, left_out } = self;
        taximeter_collections::sort_by_key(&mut requests, Request::order);
        let (first, last) = (requests.first()?.order(), requests.last()?.order());
        let currency = currency.as_deref();
        let turns = turns::turns(&requests, currency);
        let (mut sums, mut ended_at) = (Sums::default(), left_out.ended_at);
        let (mut tools, mut units) = (left_out.tools, left_out.units);
        let (mut clients, mut models) = (BTreeSet::new(), BTreeSet::new());
        for request in &requests {
            sums.add(&Sums::of(request, currency));
            ended_at = ended_at.max(Some(request.ended_at));
            add_counts(&mut tools, &request.tools);
            add_units(&mut units, &request.units);
            clients.extend(request.client.as_deref());
            models.extend(request.model.as_deref());
        }
        sums.add(&left_out.sums);
        let owned = |names: BTreeSet<&str>| names.into_iter().map(str::to_owned).collect();
        Some(Session {
            tenant: tenant.to_owned(),
            session: session.to_owned(),
            clients: owned(clients),
            models: owned(models),
            started_at: first.0,
            ended_at: ended_at.unwrap_or(last.0),
            first_id: first.1,
            last_id: left_out.last.map_or(last, |left_out| left_out.max(last)).1,
            currency: currency.map(str::to_owned),
            cache_read_share: sums.cache_read_share(),
            context_tokens_max: requests.iter().filter_map(|request| request.input_tokens).max(),
            time_to_first_token: Spread::of(
                turns.iter().filter_map(|turn| turn.time_to_first_token).collect(),
            ),
            tools,
            units,
            agents: tree::agents(&requests, &turns, currency),
            turns,
            turns_left_out: 0,
            waste: waste(&requests, currency),
            stalls: longest(&requests),
            requests_left_out: left_out.sums.requests,
            sums,
        })
    }
}

impl Session {
    /// Keeps the dearest turns, at most so many, in order.
    pub fn keep_turns(&mut self, turns_max: usize) {
        let Some(excess) = self.turns.len().checked_sub(turns_max) else { return };
        let mut cheapest: Vec<_> =
            self.turns.iter().map(|turn| (turn.sums.owed(), turn.number)).collect();
        // Of turns that cost the same, the later ones go.
        taximeter_collections::sort_by_key(&mut cheapest, |(cost, number)| {
            (*cost, std::cmp::Reverse(*number))
        });
        let gone: BTreeSet<_> =
            cheapest.into_iter().take(excess).map(|(_, number)| number).gather_set();
        self.turns.retain(|turn| !gone.contains(&turn.number));
        self.turns_left_out += gone.len() as u64;
    }

    /// The agent whose own requests cost most.
    #[must_use]
    pub fn dearest_agent(&self) -> Option<&Agent> {
        self.agents.iter().rev().max_by_key(|agent| agent.sums.owed())
    }

    /// The turn that cost most.
    #[must_use]
    pub fn dearest_turn(&self) -> Option<&Turn> {
        self.turns.iter().rev().max_by_key(|turn| turn.sums.owed())
    }

    /// What all waste costs. Null if nothing of it is known.
    #[must_use]
    pub fn wasted(&self) -> Sums {
        let mut all = Sums::default();
        self.waste.iter().for_each(|waste| all.add(&waste.sums));
        all
    }
}
