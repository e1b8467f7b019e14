//! The dearest, longest or latest sessions of a period.
//!
//! Sums come in the order of tenant and session, so that a session is whole when the next one comes. So
//! only those are kept that will be shown, however many there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::RequestId;
use utoipa::ToSchema;

use crate::day_sum::DaySum;
use crate::sums::Sums;

/// Which sessions come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TopBy {
    /// The dearest
    #[default]
    Cost,
    /// Those that took longest, from the first admission to the last end
    Length,
    /// Those whose last request was admitted last
    Latest,
}

/// A session in a list. Its sums are those of the days that were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Listed {
    /// The tenant that pays.
    pub tenant: String,
    /// The name of the session.
    pub session: String,
    /// Product and version of its client; of several the first one by name.
    pub client: Option<String>,
    /// Its first admission.
    pub started_at: Timestamp,
    /// Its last end.
    pub ended_at: Timestamp,
    /// Its first request.
    pub first_id: RequestId,
    /// Its last request.
    pub last_id: RequestId,
    /// Number of its agents; 64 stands for more. Requests whose client names none are one.
    pub agents: u32,
    /// The largest input of its requests.
    pub context_tokens_max: Option<u64>,
    /// The currency of the cost.
    pub currency: Option<String>,
    /// Its sums.
    #[serde(flatten)]
    pub sums: Sums,
    /// The part of its input that the cache had.
    pub cache_read_share: Option<f64>,
}

/// The first sessions of a period.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
pub struct Listing {
    /// How many sessions there are in all.
    pub count: u64,
    /// The currency of `total`.
    pub currency: Option<String>,
    /// The sums of all of them.
    pub total: Sums,
    /// The first ones.
    pub sessions: Vec<Listed>,
}

/// Takes the sums of sessions and keeps the first ones.
#[derive(Debug)]
pub struct Top {
    by: TopBy,
    most: usize,
    current: Option<Candidate>,
    kept: BinaryHeap<Reverse<Ranked>>,
    count: u64,
    all: Option<DaySum>,
}

#[derive(Debug)]
struct Candidate {
    tenant: String,
    session: String,
    sum: DaySum,
}

/// By what is asked for; then what began later, so that the order is always the same.
type Rank = (Option<Decimal>, Option<SignedDuration>, Timestamp, RequestId);

#[derive(Debug)]
struct Ranked(Rank, Candidate);

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}

impl Top {
    /// Keeps the first `most` sessions.
    #[must_use]
    pub fn new(by: TopBy, most: usize) -> Self {
        Self { by, most, current: None, kept: BinaryHeap::new(), count: 0, all: None }
    }

    /// Takes a sum of a session. All of one session come one after the other.
    pub fn add(&mut self, tenant: &str, session: &str, sum: DaySum) {
        match &mut self.current {
            Some(known) if known.session == session && known.tenant == tenant => {
                known.sum.add(&sum);
            }
            _ => {
                let (tenant, session) = (tenant.to_owned(), session.to_owned());
                let whole = self.current.replace(Candidate { tenant, session, sum });
                whole.into_iter().for_each(|whole| self.take(whole));
            }
        }
    }

    /// The first ones, in order.
    #[must_use]
    pub fn finish(mut self) -> Listing {
        let last = self.current.take();
        last.into_iter().for_each(|last| self.take(last));
        let sessions = self.kept.into_sorted_vec();
        let sessions = sessions.into_iter().map(|Reverse(Ranked(_, found))| listed(found));
        let (currency, total) =
            self.all.map_or_else(Default::default, |all| (all.currency, all.sums));
        Listing { count: self.count, currency, total, sessions: sessions.collect() }
    }

    fn take(&mut self, whole: Candidate) {
        self.count += 1;
        match &mut self.all {
            Some(all) => all.add(&whole.sum),
            None => self.all = Some(whole.sum.clone()),
        }
        let rank = self.rank(&whole.sum);
        // Of many sessions hardly one comes before those that are kept.
        if self.kept.len() < self.most {
            self.kept.push(Reverse(Ranked(rank, whole)));
        } else if let Some(mut last) = self.kept.peek_mut()
            && rank > last.0.0
        {
            *last = Reverse(Ranked(rank, whole));
        }
    }

    fn rank(&self, sum: &DaySum) -> Rank {
        let (last, id) = sum.last;
        match self.by {
            TopBy::Cost => (sum.sums.cost, None, last, id),
            TopBy::Length => (None, Some(sum.ended_at.duration_since(sum.first.0)), last, id),
            TopBy::Latest => (None, None, last, id),
        }
    }
}

fn listed(found: Candidate) -> Listed {
    let Candidate { tenant, session, sum } = found;
    Listed {
        tenant,
        session,
        started_at: sum.first.0,
        ended_at: sum.ended_at,
        first_id: sum.first.1,
        last_id: sum.last.1,
        agents: sum.agents(),
        context_tokens_max: sum.context_tokens_max,
        cache_read_share: sum.sums.cache_read_share(),
        client: sum.client,
        currency: sum.currency,
        sums: sum.sums,
    }
}
