//! The entries of the journal.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_pricing::{Flag, Source};
use utoipa::ToSchema;

use crate::charge::Charge;
use crate::completion::{Completion, PendingRequest};
use crate::dimensions::{self, Dimensions};
use crate::id::{RequestId, TenantId};
use crate::record::{Identity, Record, RecordCost, RecordUsage};
use crate::refusals::Refusals;

/// One entry. Balances are the fold of all entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "entry")]
pub enum Entry {
    /// A reservation. The gateway writes it before it sends anything upstream.
    Reserve(Box<Reserve>),
    /// The request has ended. The entry is its record. At most one per request.
    Post(Box<Record>),
    /// The request has ended without a record: it was never admitted, or too many like it ended at
    /// once and they are counted. At most one per request.
    Void(Void),
    /// What a running request has used so far.
    Progress(Box<Progress>),
    /// A new cost for a posted request, or what it used if that was pending. The post does not
    /// change.
    Correction(Box<Correction>),
    /// The sums of all entries before this one. A reader may begin here.
    Checkpoint(Box<Checkpoint>),
    /// How many requests have no record.
    Refusals(Box<Refusals>),
}

impl Entry {
    /// The time at which the entry was made. The gateway lived then.
    #[must_use]
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Reserve(reserve) => reserve.started_at,
            Self::Post(record) => record.ended_at,
            Self::Void(void) => void.ended_at,
            Self::Progress(progress) => progress.at,
            Self::Correction(correction) => correction.made_at,
            Self::Checkpoint(checkpoint) => checkpoint.at,
            Self::Refusals(refusals) => refusals.at,
        }
    }
}

/// What the gateway knows of a request before it sends the request. It is enough to make a record
/// if the gateway dies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reserve {
    /// The id that the gateway gives the request.
    pub id: RequestId,
    /// The client's `x-request-id`, or the one that the gateway makes.
    pub request_id: String,
    /// Time of admission.
    pub started_at: Timestamp,
    /// The tenant that pays.
    pub tenant: TenantId,
    /// The API key, if the request has one.
    pub key_id: Option<String>,
    /// How the tenant was identified.
    pub identity: Identity,
    /// Labels of the key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What the request is part of, as far as its client tells.
    #[serde(
        flatten,
        deserialize_with = "dimensions::read",
        skip_serializing_if = "Option::is_none"
    )]
    pub dimensions: Option<Box<Dimensions>>,
    /// `gen_ai.operation.name`.
    pub operation: String,
    /// Route template.
    pub route: String,
    /// Whether the client asks for a stream.
    pub stream: bool,
    /// Name of the upstream.
    pub upstream: String,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// `model` of the request.
    pub request_model: Option<String>,
    /// The service tier that the client asks for. Tiers can have prices of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// The most that the request can cost, in the currency of the price book. `None` if there is no
    /// upper bound or no price.
    pub amount: Option<Decimal>,
    /// An estimate of all input from the length of the request body. `None` if the length says
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output so far, which is 0. `None` if the operation has no output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Whether the prompt has more than the request, of unknown size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context: bool,
    /// Whether the client asks for an answer that goes on after the request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

/// What a running request has used so far. If the gateway dies before the request ends, nothing
/// more is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Id of the reserved request.
    pub id: RequestId,
    /// Time of this entry.
    pub at: Timestamp,
    /// `model` of the answer, once it is known.
    pub response_model: Option<String>,
    /// `id` of the answer, if it goes on after the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Service tier in the answer.
    pub service_tier: Option<String>,
    /// The usage of the record if the request ended at this time.
    pub usage: RecordUsage,
}

impl Reserve {
    /// The usage at admission. The gateway uses it for a request that has no progress entry. The
    /// input is estimated from the length of the body, and there is no output yet.
    ///
    /// There is no entry that says that the request was sent. It would have to be written before
    /// sending, and every request would wait for it.
    #[must_use]
    pub fn admitted(&self) -> Progress {
        let flags = [Flag::Estimated, Flag::Missing];
        let mut usage = RecordUsage::counted(self.input_tokens, self.output_tokens, &flags);
        if self.context {
            usage.lack_input();
        }
        if self.background {
            usage.go_on();
        }
        usage.flags.push(Flag::MaybeUnsent);
        Progress {
            id: self.id,
            at: self.started_at,
            response_model: None,
            response_id: None,
            service_tier: None,
            usage,
        }
    }
}

/// A new cost for a posted request: a price changed, or the usage of a pending request has become
/// known.
///
/// Corrections of one request form a sequence: the `before` of each is the cost that was in force
/// until then.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Correction {
    /// The id of this correction.
    pub id: RequestId,
    /// Id of the corrected request.
    pub corrects: RequestId,
    /// Admission of the corrected request. It decides which billing period changes.
    pub started_at: Timestamp,
    /// The tenant that pays.
    pub tenant: TenantId,
    /// Time of the correction.
    pub made_at: Timestamp,
    /// The reason, for people.
    pub reason: String,
    /// The cost until now, or its known part (`at_least`). `None` means that it was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<RecordCost>,
    /// The cost from now on, or its known part (`at_least`). `None` means that it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<RecordCost>,
    /// What the request used, if its usage was pending until now. At most one correction of a
    /// request has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion: Option<Box<Completion>>,
    /// What the costs are for, if an earlier correction has completed the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Completed>,
}

impl Correction {
    /// The record with what this correction knows better: the cost, and the usage if it completes
    /// the request.
    #[must_use]
    pub fn apply_to(&self, record: Record) -> Record {
        let mut record = match &self.completion {
            Some(completion) => record.completed(completion),
            None => record,
        };
        let cost = self.after.clone();
        let reasons = std::mem::take(&mut record.cost_unknown);
        let is_unknown = RecordCost::is_unknown(cost.as_ref());
        record.charge(Charge { cost, unknown: if is_unknown { reasons } else { Vec::new() } });
        record
    }
}

/// What of an earlier completion decides where a cost belongs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Completed {
    /// `model` of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The source of the usage.
    pub source: Source,
}

impl Completed {
    /// What of `completion` later corrections repeat.
    #[must_use]
    pub fn of(completion: &Completion) -> Self {
        let response_model = completion.response_model.clone();
        Self { response_model, source: completion.usage.source }
    }
}

/// The sums of all entries before this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Time of the checkpoint.
    pub at: Timestamp,
    /// Number of posted requests.
    pub posts: u64,
    /// Number of voided requests.
    pub voids: u64,
    /// Number of corrections.
    pub corrections: u64,
    /// Sum of the costs in force, by currency. Corrected requests count with their corrected cost,
    /// and those of unknown cost with its known part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub costs: BTreeMap<String, Decimal>,
    /// Number of posts whose cost is unknown.
    pub unknown_cost: u64,
    /// Sequence number of the oldest open reservation. A reader that begins there sees all open
    /// reservations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_open: Option<u64>,
    /// The posted requests whose usage is not known yet, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<PendingRequest>,
    /// Up to when everything is settled. `None` if the gateway has not looked at its clock yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
}

/// Up to when everything is settled: with it others know when nothing of a day can come any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// The time of the checkpoint, or an earlier one that is known if the clock is in doubt.
    pub at: Timestamp,
    /// No request that was admitted before this time has an open reservation: the admission of the
    /// oldest open one, or the same as `at`.
    pub until: Timestamp,
    /// The longest time that a request may take, in seconds.
    pub request_seconds_max: u64,
}

/// A request that has used nothing and has no record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Void {
    /// Id of the reserved request.
    pub id: RequestId,
    /// Why the request costs nothing.
    pub reason: VoidReason,
    /// Time of the end.
    pub ended_at: Timestamp,
}

/// Why a request costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VoidReason {
    /// No byte reached an engine.
    NotSent,
    /// The engine refused the request (4xx, 5xx) and reported no usage.
    UpstreamRefused,
    /// The engine refused the gateway's own credential.
    UpstreamAuth,
    /// The client left before the gateway sent anything.
    ClientLeft,
}

impl VoidReason {
    /// The word in records.
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
