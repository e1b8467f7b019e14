//! Counts of requests that have no record of their own.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::id::{RequestId, TenantId};

/// How many requests of one minute have no record: the gateway refused them, or too many like them
/// ended at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusals {
    /// The id of this entry. A store that reads the entry twice counts it once.
    pub id: RequestId,
    /// The gateway that counted.
    pub gateway: String,
    /// Time of this entry.
    pub at: Timestamp,
    /// First instant of the minute.
    pub minute: Timestamp,
    /// The counts. Each combination of the other members occurs once.
    pub counts: Vec<RefusalCount>,
}

/// How many requests ended in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalCount {
    /// What they have in common.
    #[serde(flatten)]
    pub kind: RefusalKind,
    /// How many there were.
    pub count: u64,
}

/// What requests without a record of their own have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RefusalKind {
    /// The tenant. `None` if it was not known, or with `others`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantId>,
    /// Whether these are requests of further tenants, of which each had too few to be told apart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub others: bool,
    /// Why the gateway refused them, or the `error_type` that their records would have.
    pub reason: Cow<'static, str>,
    /// The status that the clients got. `None` if they left before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Whether they were admitted and used nothing. Otherwise the gateway refused them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admitted: bool,
}
