//! Where answers stalled.

use jiff::Timestamp;
use serde::Serialize;
use taximeter_ledger::RequestId;
use utoipa::ToSchema;

use crate::request::Request;

/// Most stalls that are named: the longest ones.
pub const STALLS_MAX: usize = 10;

/// A gap in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Stall {
    /// The request: each is named with its longest gap.
    pub id: RequestId,
    /// When it began.
    pub started_at: Timestamp,
    /// Its agent.
    pub agent: Option<String>,
    /// Its turn.
    pub turn: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// How long nothing came, in seconds.
    pub seconds: f64,
}

/// The longest stalls of `requests`, the longest first.
pub(crate) fn longest(requests: &[Request]) -> Vec<Stall> {
    let mut found: Vec<_> = requests
        .iter()
        .filter_map(|request| Some((request.longest_stall.filter(|stall| *stall > 0.0)?, request)))
        .collect();
    taximeter_collections::sort_by(&mut found, |(a, _), (b, _)| b.total_cmp(a));
    let stall = |(seconds, request): (f64, &Request)| Stall {
        id: request.id,
        started_at: request.started_at,
        agent: request.agent.clone(),
        turn: request.turn.clone(),
        model: request.model.clone(),
        seconds,
    };
    found.into_iter().take(STALLS_MAX).map(stall).collect()
}
