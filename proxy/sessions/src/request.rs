//! What a session needs to know of a request.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_billing::BilledRequest;
use taximeter_ledger::{Dimensions, End, Record, RecordCost, RequestId, RequestKind};

/// The first status that is an error.
const ERROR_STATUS_MIN: u16 = 400;

/// What a request costs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Price {
    /// The cost, or the known part of it. `None` if nothing of it is known.
    pub known: Option<Decimal>,
    /// Whether it is the whole cost.
    pub is_whole: bool,
    /// ISO 4217, if anything is known.
    pub currency: Option<String>,
}

/// One request of a session.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its id.
    pub id: RequestId,
    /// Time of admission.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub end: End,
    /// HTTP status that the client got.
    pub status: Option<u16>,
    /// The agent that sent it, if its client names one.
    pub agent: Option<String>,
    /// The agent that this one works for, if its client names one.
    pub parent_agent: Option<String>,
    /// The turn, if its client names one.
    pub turn: Option<String>,
    /// What it was for, if that is not a turn.
    pub kind: Option<RequestKind>,
    /// Product and version of the client.
    pub client: Option<String>,
    /// The model of the answer, or else the one that was asked for.
    pub model: Option<String>,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Whether an input or output that such a request always has is unknown.
    pub usage_is_unknown: bool,
    /// What it costs.
    pub price: Price,
    /// Whether it was served and used nothing, such as a count of tokens.
    pub is_free: bool,
    /// Seconds to the first generated content.
    pub time_to_first_token: Option<f64>,
    /// Seconds of the longest gap in the answer.
    pub longest_stall: Option<f64>,
    /// Tools that the answer calls, by name.
    pub tools: BTreeMap<String, u64>,
    /// Quantities besides tokens, by name.
    pub units: BTreeMap<String, Decimal>,
}

impl From<&Record> for Request {
    fn from(record: &Record) -> Self {
        let row = BilledRequest::from(record);
        let nothing = Dimensions::default();
        let dimensions = record.dimensions.as_deref().unwrap_or(&nothing);
        Self {
            id: record.id,
            started_at: record.started_at,
            ended_at: record.ended_at,
            end: record.end,
            status: record.status,
            agent: dimensions.agent.clone(),
            parent_agent: dimensions.parent_agent.clone(),
            turn: dimensions.turn.clone(),
            kind: dimensions.kind,
            client: dimensions.client.clone(),
            model: row.model.map(str::to_owned),
            input_tokens: row.input_tokens,
            cache_read_input_tokens: row.cache_read_input_tokens,
            output_tokens: row.output_tokens,
            usage_is_unknown: row.usage_is_unknown(),
            price: Price {
                known: row.cost.map(|cost| cost.amount),
                is_whole: !RecordCost::is_unknown(row.cost),
                currency: row.cost.map(|cost| cost.currency.clone()),
            },
            is_free: record.used_nothing() && record.end == End::Complete,
            time_to_first_token: record.timing.time_to_first_token,
            longest_stall: record.timing.longest_stall,
            tools: record.tools.clone(),
            units: record.usage.units.clone(),
        }
    }
}

impl Request {
    /// Whether it ended as it should not, for whatever reason.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.end != End::Complete || self.status.is_some_and(|status| status >= ERROR_STATUS_MIN)
    }

    /// The input, if its request is one that goes on with a conversation: what a cache may have of it
    /// for the next one.
    pub(crate) fn context_tokens(&self) -> Option<u64> {
        self.input_tokens.filter(|tokens| *tokens > 0 && self.kind.is_none())
    }

    /// Where it comes in the session.
    pub(crate) const fn order(&self) -> (Timestamp, RequestId) {
        (self.started_at, self.id)
    }
}
