//! What a session adds up to on one UTC day of admission.
//!
//! A store keeps one for each session and day, and adds to it as requests settle.

use jiff::Timestamp;
use taximeter_billing::{self as billing, BilledRequest, add_exactly};
use taximeter_ledger::{Correction, RequestId};

use crate::agent_set::AgentSet;
use crate::codec::{Malformed, Reader, Writer};
use crate::sums::Sums;

/// The first byte of what is kept.
const VERSION: u8 = 1;

/// A request that settles: what its session's sum needs to know of it.
#[derive(Debug, Clone, Copy)]
pub struct RunningRequest<'a> {
    /// Its id.
    pub id: RequestId,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Whether it ended as it should not.
    pub has_failed: bool,
    /// The agent, if its client names one.
    pub agent: Option<&'a str>,
    /// Product and version of the client.
    pub client: Option<&'a str>,
    /// The request as bills see it.
    pub row: BilledRequest<'a>,
}

/// The sum of a session, of one day or of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaySum {
    /// The first request: its admission and its id.
    pub first: (Timestamp, RequestId),
    /// The last one.
    pub last: (Timestamp, RequestId),
    /// The last end.
    pub ended_at: Timestamp,
    /// Product and version of its client; of several the first one by name.
    pub client: Option<String>,
    /// That of the first known cost. A cost in another one counts as unknown.
    pub currency: Option<String>,
    /// The sums.
    pub sums: Sums,
    /// The largest input of its requests.
    pub context_tokens_max: Option<u64>,
    agents: AgentSet,
}

impl DaySum {
    /// The sum of one request.
    #[must_use]
    pub fn of(request: &RunningRequest<'_>) -> Self {
        let row = &request.row;
        let cacheable = row.cache_read_input_tokens.and(row.input_tokens);
        Self {
            sums: Sums {
                failed_requests: request.has_failed.into(),
                cacheable_tokens: cacheable.unwrap_or_default(),
                ..Sums::from(&billing::Sums::of(row))
            },
            currency: row.cost.map(|cost| cost.currency.clone()),
            context_tokens_max: row.input_tokens,
            ..Self::nothing(request)
        }
    }

    /// What a correction of `request` changes. The request is counted already.
    #[must_use]
    pub fn corrected(request: &RunningRequest<'_>, correction: &Correction) -> Self {
        let mut sum = Self::nothing(request);
        for (key, hour) in billing::corrected(&request.row, correction) {
            let sums = Sums::from(&hour.sums);
            sum.add(&Self { sums, currency: key.currency, ..Self::nothing(request) });
        }
        if let Some(completion) = &correction.completion {
            let usage = &completion.usage;
            let cacheable = usage.cache_read_input_tokens.and(usage.input_tokens);
            sum.sums.cacheable_tokens = cacheable.unwrap_or_default();
            sum.context_tokens_max = usage.input_tokens;
        }
        sum
    }

    /// The sum of a request that is not counted.
    fn nothing(request: &RunningRequest<'_>) -> Self {
        let at = (request.row.started_at, request.id);
        Self {
            first: at,
            last: at,
            ended_at: request.ended_at,
            client: request.client.map(str::to_owned),
            currency: None,
            sums: Sums::default(),
            context_tokens_max: None,
            agents: AgentSet::of(request.agent),
        }
    }

    /// Adds `other`, of the same session.
    pub fn add(&mut self, other: &Self) {
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
        self.ended_at = self.ended_at.max(other.ended_at);
        if other.client.is_some() && (self.client.is_none() || other.client < self.client) {
            self.client.clone_from(&other.client);
        }
        if self.currency.is_none() {
            self.currency.clone_from(&other.currency);
        }
        if other.currency.is_none() || self.currency == other.currency {
            self.sums.add(&other.sums);
        } else {
            let unknown = i64::try_from(other.sums.requests).unwrap_or(i64::MAX);
            self.sums.add(&Sums {
                cost: None,
                unknown_cost_requests: unknown,
                ..other.sums.clone()
            });
        }
        self.context_tokens_max = self.context_tokens_max.max(other.context_tokens_max);
        self.agents.add(&other.agents);
    }

    /// Whether [`add`](Self::add) of `other` keeps its cost: it is of the same currency, and the sum has
    /// no more digits than can be kept. Otherwise the result depends on the order.
    #[must_use]
    pub fn adds_exactly(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.currency, &other.currency);
        (ours.is_none() || theirs.is_none() || ours == theirs)
            && match (self.sums.cost, other.sums.cost) {
                (Some(a), Some(b)) => add_exactly(a, b).is_some(),
                _ => true,
            }
    }

    /// Whether both are sums of the same requests, in whatever order these were added; `with_cost` says
    /// whether their costs are looked at.
    #[must_use]
    pub fn is_of_same_requests(&self, other: &Self, with_cost: bool) -> bool {
        let is_full = self.agents.is_full() && other.agents.is_full();
        let mut same = other.clone();
        if is_full {
            same.agents.clone_from(&self.agents);
        }
        if !with_cost {
            same.currency.clone_from(&self.currency);
            same.sums.cost = self.sums.cost;
            same.sums.unknown_cost_requests = self.sums.unknown_cost_requests;
        }
        *self == same
    }

    /// How many agents there are; 64 stands for more. Requests whose client names none are one.
    #[must_use]
    pub fn agents(&self) -> u32 {
        self.agents.count()
    }

    /// As bytes for a store.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.byte(VERSION);
        for (at, id) in [self.first, self.last] {
            out.signed(at.as_microsecond());
            out.bytes(id.0.as_bytes());
        }
        out.signed(self.ended_at.as_microsecond());
        for text in [&self.client, &self.currency] {
            out.text(text.as_deref());
        }
        let sums = &self.sums;
        for count in [sums.requests, sums.failed_requests, sums.cacheable_tokens] {
            out.unsigned(count);
        }
        for count in [sums.unknown_usage_requests, sums.unknown_cost_requests] {
            out.signed(count);
        }
        for tokens in [
            sums.input_tokens,
            sums.cache_read_input_tokens,
            sums.output_tokens,
            self.context_tokens_max,
        ] {
            out.maybe(tokens);
        }
        out.decimal(sums.cost);
        out.unsigned(self.agents.numbers().len() as u64);
        self.agents.numbers().for_each(|agent| out.bytes(&agent.to_le_bytes()));
        out.finish()
    }

    /// Reads what [`encode`](Self::encode) gave.
    ///
    /// # Errors
    /// It is something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        if from.byte()? != VERSION {
            return Err(Malformed);
        }
        let (first, last) = (from.request()?, from.request()?);
        let ended_at = from.time()?;
        let (client, currency) = (from.text()?, from.text()?);
        let [requests, failed_requests, cacheable_tokens] =
            [from.unsigned()?, from.unsigned()?, from.unsigned()?];
        let [unknown_usage_requests, unknown_cost_requests] = [from.signed()?, from.signed()?];
        let [input_tokens, cache_read_input_tokens, output_tokens, context_tokens_max] =
            [from.maybe()?, from.maybe()?, from.maybe()?, from.maybe()?];
        let cost = from.decimal()?;
        let count = from.unsigned()?;
        let mut agents = Vec::new();
        for _ in 0..count {
            agents.push(u32::from_le_bytes(from.array()?));
        }
        from.end()?;
        Ok(Self {
            first,
            last,
            ended_at,
            client,
            currency,
            sums: Sums {
                requests,
                failed_requests,
                input_tokens,
                cache_read_input_tokens,
                output_tokens,
                unknown_usage_requests,
                cost,
                unknown_cost_requests,
                cacheable_tokens,
            },
            context_tokens_max,
            agents: AgentSet::from_numbers(agents.into_iter()),
        })
    }
}

/// What is added up again to be compared with a sum that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSum {
    /// The sum.
    pub sum: DaySum,
    /// Whether its cost is the same in every order of what was added.
    pub is_exact: bool,
}

impl DueSum {
    /// The first one.
    #[must_use]
    pub const fn of(sum: DaySum) -> Self {
        Self { sum, is_exact: true }
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.is_exact &= other.is_exact && self.sum.adds_exactly(&other.sum);
        self.sum.add(&other.sum);
    }
}
