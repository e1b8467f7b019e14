//! The turns of a session, in order.
//!
//! Requests of one agent that name the same turn are one turn. A request that names none is a turn of its
//! own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;
use serde::Serialize;
use taximeter_ledger::{RequestId, RequestKind};
use utoipa::ToSchema;

use crate::request::Request;
use crate::sums::{Sums, add_counts};

/// A turn of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Turn {
    /// Its place in the session, from 1: turns are in the order in which they began.
    pub number: u64,
    /// The agent. Null if the client names none.
    pub agent: Option<String>,
    /// What the client calls the turn. Null if it names none: then the turn is one request.
    pub turn: Option<String>,
    /// What its requests were for, if not for a turn: `prewarm`, `compaction`, `title` and so on.
    pub kinds: Vec<RequestKind>,
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
    /// All of its requests, in order.
    pub request_ids: Vec<RequestId>,
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// The part of its input that the cache had.
    pub cache_read_share: Option<f64>,
    /// The largest input of its requests.
    pub context_tokens: Option<u64>,
    /// By how much that is more than in the turn before, of the same agent and model.
    pub context_growth: Option<i64>,
    /// Time to the first token of its first request that has one, in seconds.
    pub time_to_first_token: Option<f64>,
    /// The longest gap in an answer, in seconds.
    pub longest_stall: Option<f64>,
    /// Tools that its answers call, by name.
    pub tools: BTreeMap<String, u64>,
    /// The model of the largest input.
    #[serde(skip)]
    context_model: Option<String>,
}

/// The turns of `requests`, which are in order.
pub(crate) fn turns(requests: &[Request], currency: Option<&str>) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut by_name: HashMap<(Option<&str>, &str), usize> = HashMap::new();
    let mut models: Vec<BTreeSet<&str>> = Vec::new();
    for request in requests {
        let mut begin = || {
            turns.push(begun(request, turns.len() as u64 + 1));
            models.push(BTreeSet::new());
            turns.len() - 1
        };
        let at = match request.turn.as_deref() {
            None => begin(),
            Some(turn) => *by_name.entry((request.agent.as_deref(), turn)).or_insert_with(begin),
        };
        turns.get_mut(at).into_iter().for_each(|turn| turn.add(request, currency));
        models.get_mut(at).into_iter().for_each(|models| models.extend(request.model.as_deref()));
    }
    for (turn, models) in turns.iter_mut().zip(models) {
        turn.cache_read_share = turn.sums.cache_read_share();
        turn.models = models.into_iter().map(str::to_owned).collect();
    }
    grow(&mut turns);
    turns
}

fn begun(request: &Request, number: u64) -> Turn {
    Turn {
        number,
        agent: request.agent.clone(),
        turn: request.turn.clone(),
        kinds: Vec::new(),
        models: Vec::new(),
        started_at: request.started_at,
        ended_at: request.ended_at,
        first_id: request.id,
        last_id: request.id,
        request_ids: Vec::new(),
        sums: Sums::default(),
        cache_read_share: None,
        context_tokens: None,
        context_growth: None,
        time_to_first_token: None,
        longest_stall: None,
        tools: BTreeMap::new(),
        context_model: None,
    }
}

impl Turn {
    fn add(&mut self, request: &Request, currency: Option<&str>) {
        self.last_id = request.id;
        self.request_ids.push(request.id);
        self.ended_at = self.ended_at.max(request.ended_at);
        self.sums.add(&Sums::of(request, currency));
        self.kinds.extend(request.kind.filter(|kind| !self.kinds.contains(kind)));
        let context = request.context_tokens();
        if context > self.context_tokens {
            self.context_tokens = context;
            self.context_model.clone_from(&request.model);
        }
        self.time_to_first_token = self.time_to_first_token.or(request.time_to_first_token);
        if let Some(stall) = request.longest_stall {
            self.longest_stall = Some(self.longest_stall.map_or(stall, |known| known.max(stall)));
        }
        add_counts(&mut self.tools, &request.tools);
    }
}

/// Compares the context of each turn with that of the turn before.
fn grow(turns: &mut [Turn]) {
    let mut before: HashMap<(Option<String>, Option<String>), u64> = HashMap::new();
    for turn in turns {
        let Some(context) = turn.context_tokens else { continue };
        let key = (turn.agent.clone(), turn.context_model.clone());
        let known = before.insert(key, context);
        turn.context_growth = known.map(|known| {
            let change = i64::try_from(context.abs_diff(known)).unwrap_or(i64::MAX);
            if context < known { -change } else { change }
        });
    }
}
