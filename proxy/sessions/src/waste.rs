//! What a session paid for and did not need, or need not have needed.
//!
//! The rules, for requests of one agent in order:
//!
//! - **retry**: a request failed or its client left, and the agent sent as much input again, within 1 %, up
//!   to 60 s later. What was wasted is the first attempt; the other one is named with it. An error often
//!   reports no input: then any request of the same model counts as the other attempt.
//! - **abandoned**: the client left, and there is no other attempt.
//! - **compaction**: the request made the context shorter.
//! - **cache miss**: more than 5 minutes after the request before it, of the same model, the cache had less
//!   than half of what that one sent.
//!
//! The first rule that fits a request counts, so that no cost is in two of them.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use taximeter_ledger::{End, RequestId, RequestKind};
use utoipa::ToSchema;

use crate::request::Request;
use crate::sums::Sums;

/// Longest time from a failed request to its other attempt.
const RETRY_WITHIN: SignedDuration = SignedDuration::from_secs(60);
/// A client may send the other attempt before it is seen that it left the first one.
const SEEN_LATE_MAX: SignedDuration = SignedDuration::from_millis(100);
/// The input of both differs by one part of so many at most.
const INPUT_PART: u64 = 100;
/// Most later requests of the agent that are looked at for the other attempt.
const ATTEMPTS_LOOKED_AT_MAX: usize = 64;
/// Shortest pause after which a cache miss is one of a pause.
const PAUSE_MIN: SignedDuration = SignedDuration::from_mins(5);

/// Why it was waste.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WasteKind {
    /// It was tried again.
    Retry,
    /// Its client left.
    Abandoned,
    /// The cache had little of it after a pause.
    CacheMiss,
    /// It made the context shorter.
    Compaction,
}

impl WasteKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Retry, Self::Abandoned, Self::CacheMiss, Self::Compaction];

    /// The words for people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Retry => "retried",
            Self::Abandoned => "abandoned",
            Self::CacheMiss => "cache miss after a pause",
            Self::Compaction => "compaction",
        }
    }
}

/// The requests of one kind of waste.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Waste {
    /// The kind.
    pub kind: WasteKind,
    /// What the requests add up to. Of `cache_miss` it is all that they cost: a part of it would have been
    /// paid without the miss as well.
    pub sums: Sums,
    /// For `cache_miss`: input that was sent before, and that the cache no longer had.
    pub missed_tokens: Option<u64>,
    /// Each request, in order.
    pub requests: Vec<WastedRequest>,
}

/// A request that is waste.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WastedRequest {
    /// The request.
    pub id: RequestId,
    /// When it began.
    pub started_at: Timestamp,
    /// Its agent.
    pub agent: Option<String>,
    /// Its turn.
    pub turn: Option<String>,
    /// For `retry`: the other attempt.
    pub retried_by: Option<RequestId>,
    /// For `cache_miss`: how long the agent had paused, in seconds.
    pub pause_seconds: Option<f64>,
    /// For `cache_miss`: input that was sent before, and that the cache no longer had.
    pub missed_tokens: Option<u64>,
    /// What it adds to the sums.
    #[serde(flatten)]
    pub sums: Sums,
}

/// The waste of `requests`, which are in order: one for each kind that there is.
pub(crate) fn waste(requests: &[Request], currency: Option<&str>) -> Vec<Waste> {
    let mut agents: HashMap<Option<&str>, Vec<&Request>> = HashMap::new();
    for request in requests {
        agents.entry(request.agent.as_deref()).or_default().push(request);
    }
    let mut found: HashMap<RequestId, (WasteKind, Details)> = HashMap::new();
    for own in agents.into_values() {
        let retries = retries(&own);
        let misses = misses(&own);
        for request in own {
            if let Some(kind) = kind_of(request, &retries, &misses) {
                found.insert(request.id, kind);
            }
        }
    }
    let mut all = WasteKind::ALL.map(|kind| Waste {
        kind,
        sums: Sums::default(),
        missed_tokens: None,
        requests: Vec::new(),
    });
    for request in requests {
        let Some((kind, details)) = found.remove(&request.id) else { continue };
        let waste = all.iter_mut().find(|waste| waste.kind == kind);
        waste.into_iter().for_each(|waste| waste.add(request, &details, currency));
    }
    all.into_iter().filter(|waste| !waste.requests.is_empty()).collect()
}

impl Waste {
    fn add(&mut self, request: &Request, details: &Details, currency: Option<&str>) {
        let sums = Sums::of(request, currency);
        self.sums.add(&sums);
        if let Some(missed) = details.missed_tokens {
            self.missed_tokens = Some(self.missed_tokens.unwrap_or_default() + missed);
        }
        self.requests.push(WastedRequest {
            id: request.id,
            started_at: request.started_at,
            agent: request.agent.clone(),
            turn: request.turn.clone(),
            retried_by: details.retried_by,
            pause_seconds: details.pause.map(|pause| pause.as_secs_f64()),
            missed_tokens: details.missed_tokens,
            sums,
        });
    }
}

/// What is told of a request that is waste.
#[derive(Debug, Clone, Copy, Default)]
struct Details {
    retried_by: Option<RequestId>,
    pause: Option<SignedDuration>,
    missed_tokens: Option<u64>,
}

fn kind_of(
    request: &Request,
    retries: &HashMap<RequestId, RequestId>,
    misses: &HashMap<RequestId, Details>,
) -> Option<(WasteKind, Details)> {
    if let Some(by) = retries.get(&request.id) {
        return Some((WasteKind::Retry, Details { retried_by: Some(*by), ..Details::default() }));
    }
    if request.end == End::ClientLeft {
        return Some((WasteKind::Abandoned, Details::default()));
    }
    if request.kind == Some(RequestKind::Compaction) {
        return Some((WasteKind::Compaction, Details::default()));
    }
    Some((WasteKind::CacheMiss, *misses.get(&request.id)?))
}

/// Requests that failed, each with its other attempt. `own` are those of one agent, in order.
fn retries(own: &[&Request]) -> HashMap<RequestId, RequestId> {
    let mut retries = HashMap::new();
    let mut attempts = HashSet::new();
    for (at, first) in own.iter().enumerate().filter(|(_, request)| request.has_failed()) {
        let later = own.iter().skip(at + 1).take(ATTEMPTS_LOOKED_AT_MAX);
        let mut later = later.filter(|other| !attempts.contains(&other.id));
        if let Some(other) = later.find(|other| is_attempt(first, other)) {
            attempts.insert(other.id);
            retries.insert(first.id, other.id);
        }
    }
    retries
}

/// Whether `other` does again what `first` did.
fn is_attempt(first: &Request, other: &Request) -> bool {
    if other.is_free {
        return false;
    }
    let behind = other.started_at.duration_since(first.ended_at);
    if behind > RETRY_WITHIN || behind < -SEEN_LATE_MAX {
        return false;
    }
    match (first.input_tokens.filter(|tokens| *tokens > 0), other.input_tokens) {
        (Some(a), Some(b)) => {
            u128::from(a.abs_diff(b)) * u128::from(INPUT_PART) <= u128::from(a.max(b))
        }
        _ => first.model == other.model && first.kind == other.kind,
    }
}

/// Requests of which the cache had little after a pause. `own` are those of one agent, in order.
fn misses(own: &[&Request]) -> HashMap<RequestId, Details> {
    let mut misses = HashMap::new();
    // Of each model what was sent last, and when that ended.
    let mut before: HashMap<Option<&str>, (u64, Timestamp)> = HashMap::new();
    for request in own {
        let model = request.model.as_deref();
        if request.kind == Some(RequestKind::Compaction) {
            // What comes next is another context.
            before.remove(&model);
            continue;
        }
        let Some(context) = request.context_tokens() else { continue };
        let known = before.insert(model, (context, request.ended_at));
        let (Some((sent, ended_at)), Some(read)) = (known, request.cache_read_input_tokens) else {
            continue;
        };
        let pause = request.started_at.duration_since(ended_at);
        if pause > PAUSE_MIN && read < sent.div_ceil(2) {
            let details =
                Details { pause: Some(pause), missed_tokens: Some(sent - read), retried_by: None };
            misses.insert(request.id, details);
        }
    }
    misses
}
