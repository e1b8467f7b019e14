//! Reads the few members of a post that the store needs. They borrow from the JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use taximeter_billing::BilledRequest;
use taximeter_ledger::{Record, RecordCost, RequestId, used_nothing};
use taximeter_pricing::{Flag, Source};

/// The members of a record that are added up or have columns. The others are not parsed.
#[derive(Debug, Deserialize)]
pub struct Post<'a> {
    /// The id.
    pub id: RequestId,
    pub(super) started_at: Timestamp,
    pub(super) ended_at: Timestamp,
    /// The gateway that carried the request.
    #[serde(borrow)]
    pub gateway: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) tenant: Cow<'a, str>,
    #[serde(borrow)]
    key_id: Option<Text<'a>>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(borrow)]
    operation: Cow<'a, str>,
    #[serde(borrow)]
    route: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) upstream: Cow<'a, str>,
    #[serde(borrow)]
    provider: Cow<'a, str>,
    #[serde(borrow)]
    request_model: Option<Text<'a>>,
    #[serde(borrow)]
    response_model: Option<Text<'a>>,
    pub(super) usage: Usage,
    timing: Timing,
    cost: Option<RecordCost>,
    #[serde(default)]
    cost_known: Option<RecordCost>,
    /// The sequence number of its entry.
    #[serde(skip)]
    pub seq: u64,
    /// The whole JSON, as it was written.
    #[serde(skip)]
    pub record: &'a str,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    source: Source,
    pub(super) input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    reasoning_output_tokens: Option<u64>,
    #[serde(default)]
    flags: Vec<Flag>,
}

#[derive(Debug, Deserialize)]
struct Timing {
    duration: f64,
}

/// `serde` borrows through an `Option` only in a type of its own.
#[derive(Debug, Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The gateway that wrote a record. The rest is not parsed, because there are millions of records.
///
/// Errors: it is no record.
pub(super) fn gateway(record: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    // The first such member is it: where a text before it says the same, its quotes are escaped.
    const MEMBER: &str = "\"gateway\":";
    let value = record.find(MEMBER).and_then(|at| record.get(at + MEMBER.len()..));
    let mut texts = serde_json::Deserializer::from_str(value.unwrap_or_default()).into_iter();
    let text = texts.next().unwrap_or_else(|| serde_json::from_str(""));
    text.map(|Text(gateway)| gateway)
}

/// Whether a record says that its request has used nothing. The rest is not parsed.
pub(super) fn says_nothing_used(record: &str) -> bool {
    // In a text the quotes would be escaped, and no label has an object.
    record.contains("\"usage\":{\"source\":\"none\"")
}

impl<'a> Post<'a> {
    /// Reads the JSON of entry `seq`.
    ///
    /// Errors: it is no record.
    pub(super) fn read(seq: u64, record: &'a str) -> Result<Self, serde_json::Error> {
        let post: Self = serde_json::from_str(record)?;
        Ok(Self { seq, record, ..post })
    }

    /// Parses the whole record.
    ///
    /// Errors: it is no record.
    pub fn whole(&self) -> Result<Record, serde_json::Error> {
        let record: Record = serde_json::from_str(self.record)?;
        Ok(Record { seq: self.seq, ..record })
    }

    /// The cost, or the known part of it; `None` if nothing of it is known.
    #[must_use]
    pub fn owed(&self) -> Option<&RecordCost> {
        self.cost.as_ref().or(self.cost_known.as_ref())
    }

    /// Whether the request has used nothing, so that no bill counts it.
    pub(super) fn used_nothing(&self) -> bool {
        used_nothing(self.usage.source, self.owed())
    }

    /// The answer's model, or the request's when there was no answer.
    pub(super) fn model(&self) -> Option<&str> {
        self.response_model.as_ref().or(self.request_model.as_ref()).map(|Text(model)| &**model)
    }

    /// The end of the request by the clock of its beginning, also if the clock was set meanwhile.
    pub(super) fn ended_at(&self) -> Timestamp {
        let is_set = self.usage.flags.contains(&Flag::Clock);
        let duration = SignedDuration::try_from_secs_f64(self.timing.duration).ok();
        let ended_at = duration.and_then(|duration| self.started_at.checked_add(duration).ok());
        ended_at.filter(|_| is_set).unwrap_or(self.ended_at)
    }

    /// The request as a row of bills.
    pub(super) fn row(&self) -> BilledRequest<'_> {
        let row = BilledRequest {
            started_at: self.started_at,
            tenant: &self.tenant,
            model: self.model(),
            provider: &self.provider,
            upstream: &self.upstream,
            operation: &self.operation,
            route: &self.route,
            key_id: self.key_id.as_ref().map(|Text(key)| &**key),
            labels: &self.labels,
            source: self.usage.source,
            input_tokens: self.usage.input_tokens,
            cache_read_input_tokens: self.usage.cache_read_input_tokens,
            output_tokens: self.usage.output_tokens,
            reasoning_output_tokens: self.usage.reasoning_output_tokens,
            cost: self.owed(),
        };
        if self.usage.flags.contains(&Flag::Pending) { row.pending() } else { row }
    }
}
