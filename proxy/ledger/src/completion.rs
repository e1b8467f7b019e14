//! Requests whose answers go on after them: what is kept of each until its usage is known, and the
//! completion that a correction then adds.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use taximeter_pricing::{Condition, Flag, Pass};
use utoipa::ToSchema;
use uuid::Builder;

use crate::id::{RequestId, TenantId};
use crate::record::{Record, RecordError, RecordUsage};

/// Most pending requests that a journal keeps. The oldest one goes for a new one.
pub const PENDING_MAX: usize = 2048;

/// Most bytes of pending requests that a checkpoint contains. It leaves room for the sums in an
/// entry.
pub const PENDING_BYTES_MAX: usize = 768 << 10;

/// Most bytes of a pending request in a checkpoint besides its texts: id, time, keys and lengths.
const PENDING_REST_BYTES_MAX: usize = 128;

/// Most bytes of a condition besides its text.
const CONDITION_BYTES_MAX: usize = 8;

/// How long a pending request is kept. Providers keep answers and the results of batches for 30
/// days.
pub const PENDING_AGE_MAX: SignedDuration = SignedDuration::from_hours(31 * 24);

/// What a request used whose answer went on after it. It takes the place of the usage of the
/// record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Completion {
    /// `id` of the answer.
    pub response_id: String,
    /// `model` of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// Service tier that the engine used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// How the answer ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finish_reasons: Vec<String>,
    /// What the provider calls its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// Number of requests, if it was a batch. Each one has a price of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// What each model used, if a batch had several. `usage` is their sum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Pass>,
    /// Tokens and other quantities.
    pub usage: RecordUsage,
    /// The cost that the provider reports, as on a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_cost: Option<String>,
}

/// What has to be known of a pending request to complete it: the key of its answer, and what
/// decides its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRequest {
    /// The request.
    pub id: RequestId,
    /// Time of its admission.
    pub started_at: Timestamp,
    /// The tenant that pays.
    pub tenant: TenantId,
    /// Name of the upstream.
    pub upstream: String,
    /// `id` of its answer.
    pub response_id: String,
    /// `gen_ai.operation.name`.
    pub operation: String,
    /// Route template.
    pub route: String,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// `model` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_model: Option<String>,
    /// `model` of the answer, as far as it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// Service tier that was asked for, or that the answer named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// What was known that can change the price.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<Condition, String>,
}

impl Record {
    /// Whether the answer went on after the request, so that its usage was not known yet.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.usage.flags.contains(&Flag::Pending)
    }

    /// The record with what its request used.
    #[must_use]
    pub fn completed(self, completion: &Completion) -> Self {
        let Completion {
            response_id,
            response_model,
            service_tier,
            finish_reasons,
            error,
            requests: _,
            models: _,
            usage,
            reported_cost,
        } = completion.clone();
        Self {
            response_id: Some(response_id),
            response_model: response_model.or(self.response_model),
            service_tier: service_tier.or(self.service_tier),
            finish_reasons,
            error: error.or(self.error),
            usage,
            reported_cost: reported_cost.or(self.reported_cost),
            ..self
        }
    }
}

impl PendingRequest {
    /// What is kept of a record. `None` if it is not pending, or if nobody could recognise its
    /// answer.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let response_id = record.response_id.as_ref().filter(|_| record.is_pending())?;
        Some(Self {
            id: record.id,
            started_at: record.started_at,
            tenant: record.tenant.clone(),
            upstream: record.upstream.clone(),
            response_id: response_id.clone(),
            operation: record.operation.clone(),
            route: record.route.clone(),
            provider: record.provider.clone(),
            request_model: record.request_model.clone(),
            response_model: record.response_model.clone(),
            service_tier: record.service_tier.clone(),
            conditions: record.usage.conditions.clone(),
        })
    }

    /// The id of the correction that completes the request: its own id as a UUID of version 8. So
    /// the same request cannot be completed by two corrections.
    #[must_use]
    pub fn completion_id(&self) -> RequestId {
        RequestId(Builder::from_custom_bytes(*self.id.0.as_bytes()).into_uuid())
    }

    /// The most bytes that it takes in a checkpoint.
    fn bytes_max(&self) -> usize {
        let texts = [
            self.tenant.as_str(),
            &self.upstream,
            &self.response_id,
            &self.operation,
            &self.route,
            &self.provider,
            self.request_model.as_deref().unwrap_or_default(),
            self.response_model.as_deref().unwrap_or_default(),
            self.service_tier.as_deref().unwrap_or_default(),
        ];
        let conditions = self.conditions.values().map(|value| value.len() + CONDITION_BYTES_MAX);
        let texts = texts.into_iter().map(str::len);
        PENDING_REST_BYTES_MAX + texts.chain(conditions).sum::<usize>()
    }

    fn answer(&self) -> AnswerKey {
        (self.tenant.clone(), self.upstream.clone(), self.response_id.clone())
    }
}

/// The pending requests of a journal, bounded by [`PENDING_MAX`], [`PENDING_BYTES_MAX`] and
/// [`PENDING_AGE_MAX`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PendingRequests {
    /// In the order of admission, as ids begin with their time; each with its length in a
    /// checkpoint.
    requests: BTreeMap<RequestId, (PendingRequest, usize)>,
    /// By tenant, upstream and `id` of the answer. If an engine gives an id again, it has
    /// forgotten the answer that had it before.
    answers: HashMap<AnswerKey, RequestId>,
    bytes: usize,
    dropped: u64,
}

/// Tenant, upstream and `id` of an answer.
type AnswerKey = (TenantId, String, String);

impl PendingRequests {
    /// Adds a request.
    pub(crate) fn add(&mut self, request: &PendingRequest) {
        if self.requests.contains_key(&request.id) {
            return;
        }
        let bytes = request.bytes_max();
        if bytes > PENDING_BYTES_MAX {
            self.dropped += 1;
            return;
        }
        while self.requests.len() >= PENDING_MAX || self.bytes + bytes > PENDING_BYTES_MAX {
            self.drop_oldest();
        }
        if let Some(before) = self.answers.get(&request.answer()).copied() {
            self.remove(before);
            self.dropped += 1;
        }
        self.answers.insert(request.answer(), request.id);
        self.requests.insert(request.id, (request.clone(), bytes));
        self.bytes += bytes;
    }

    /// The request of this tenant whose answer by this upstream has this `id`.
    #[must_use]
    pub fn find(
        &self,
        tenant: &TenantId,
        upstream: &str,
        response_id: &str,
    ) -> Option<&PendingRequest> {
        let answer = (tenant.clone(), upstream.to_owned(), response_id.to_owned());
        self.requests.get(self.answers.get(&answer)?).map(|(request, _)| request)
    }

    /// Whether a request is pending.
    #[must_use]
    pub fn contains(&self, id: RequestId) -> bool {
        self.requests.contains_key(&id)
    }

    /// Number of pending requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Number of requests that were given up because of a limit.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The pending requests, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &PendingRequest> {
        self.requests.values().map(|(request, _)| request)
    }

    /// Takes a request out. Returns whether it was pending.
    pub(crate) fn remove(&mut self, id: RequestId) -> bool {
        let Some((request, bytes)) = self.requests.remove(&id) else { return false };
        self.answers.remove(&request.answer());
        self.bytes -= bytes;
        true
    }

    /// Gives up the requests that were admitted so long before `now` that their answers are gone.
    pub(crate) fn drop_old(&mut self, now: Timestamp) {
        let is_old =
            |request: &PendingRequest| now.duration_since(request.started_at) > PENDING_AGE_MAX;
        while self.iter().next().is_some_and(is_old) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.requests.keys().next().copied() {
            self.remove(oldest);
            self.dropped += 1;
        }
    }
}

impl<'a> FromIterator<&'a PendingRequest> for PendingRequests {
    fn from_iter<I: IntoIterator<Item = &'a PendingRequest>>(requests: I) -> Self {
        let mut all = Self::default();
        requests.into_iter().for_each(|request| all.add(request));
        all
    }
}
