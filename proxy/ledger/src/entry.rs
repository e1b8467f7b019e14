//! Entries of the journal.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_pricing::Flag;
use utoipa::ToSchema;

use crate::id::{RequestId, TenantId};
use crate::record::{Identity, Record, RecordCost, RecordUsage};

/// One entry; what it means for a balance is the fold of all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "entry")]
pub enum Entry {
    /// Before anything is sent upstream.
    Reserve(Box<Reserve>),
    /// The request has ended and used something, or may have: its record. At most once per request.
    Post(Box<Record>),
    /// The request has ended and used nothing. At most once per request.
    Void(Void),
    /// What a running request has used so far.
    Progress(Box<Progress>),
    /// Another cost for a request that was posted. The post stays as it is.
    Correction(Box<Correction>),
    /// What the entries before add up to: where a reader may begin.
    Checkpoint(Box<Checkpoint>),
}

/// What is known of a request before it is sent: enough to make a record of it if we die.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// Ours.
    pub id: RequestId,
    /// The client's `x-request-id`, or the one made for it.
    pub request_id: String,
    /// Admission.
    pub started_at: Timestamp,
    /// Who pays.
    pub tenant: TenantId,
    /// Which key, when a key identified.
    pub key_id: Option<String>,
    /// How the tenant was identified.
    pub identity: Identity,
    /// Labels of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// `gen_ai.operation.name`.
    pub operation: String,
    /// Route template.
    pub route: String,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Upstream's name.
    pub upstream: String,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// `model` of the request.
    pub request_model: Option<String>,
    /// Service tier that was asked for, which has prices of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// Worst case cost in the book's currency; `None` when there is no upper bound or no price.
    pub amount: Option<Decimal>,
    /// All input, by the length of its body; `None` where that tells nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output before there is any: 0, or `None` where it has none that could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// What a running request has used so far: all that is known of it if we die before it ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The reserved request.
    pub id: RequestId,
    /// When it had used that.
    pub at: Timestamp,
    /// `model` of the answer, once it is known.
    pub response_model: Option<String>,
    /// Service tier that the answer says.
    pub service_tier: Option<String>,
    /// What its record would say if it ended now.
    pub usage: RecordUsage,
}

impl Reserve {
    /// What it had used by the time of its admission, and all that is known where nothing more was
    /// said of it: by the length of its body, and nothing yet of the answer. A word that it was sent
    /// would have to be in the kernel before it is, and every request would wait for that.
    #[must_use]
    pub fn admitted(&self) -> Progress {
        let flags = [Flag::Estimated, Flag::Missing];
        let mut usage = RecordUsage::counted(self.input_tokens, self.output_tokens, &flags);
        usage.flags.push(Flag::MaybeUnsent);
        Progress {
            id: self.id,
            at: self.started_at,
            response_model: None,
            service_tier: None,
            usage,
        }
    }
}

/// Another cost for a request that was posted, as a later price book has it.
///
/// Corrections of one request follow each other: the `before` of each is the cost that was in force
/// until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Correction {
    /// Its own.
    pub id: RequestId,
    /// The request.
    pub corrects: RequestId,
    /// Admission of the request: decides the period that changes.
    pub started_at: Timestamp,
    /// Who pays.
    pub tenant: TenantId,
    /// When it was decided.
    pub made_at: Timestamp,
    /// Why, for people.
    pub reason: String,
    /// What was owed until now; `None` was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordCost>,
    /// What is owed from now on; `None` is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordCost>,
}

/// What the entries before this one add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// When it was made.
    pub at: Timestamp,
    /// Requests posted.
    pub posts: u64,
    /// Requests voided.
    pub voids: u64,
    /// Corrections.
    pub corrections: u64,
    /// Sum of the costs that are in force, corrected ones included, by currency.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub costs: BTreeMap<String, Decimal>,
    /// Posts whose cost is unknown.
    pub unknown_cost: u64,
    /// Sequence number of the oldest reservation that is open; a reader who begins there misses
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_open: Option<u64>,
}

/// A request that used nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Void {
    /// The reserved request.
    pub id: RequestId,
    /// Why nothing is owed.
    pub reason: VoidReason,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// Why nothing is owed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoidReason {
    /// Not one byte reached an engine.
    NotSent,
    /// The engine refused (4xx, 5xx) and reported no usage.
    UpstreamRefused,
    /// The engine refused our own credential.
    UpstreamAuth,
    /// The client left before anything was sent.
    ClientLeft,
}

impl VoidReason {
    /// The word, as records have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::UpstreamRefused => "upstream_refused",
            Self::UpstreamAuth => "upstream_auth",
            Self::ClientLeft => "client_left",
        }
    }
}
