//! A request, as a bill sees it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_ledger::{Record, RecordCost};
use taximeter_pricing::Source;

/// What a bill needs to know of one request.
#[derive(Debug, Clone, Copy)]
pub struct BillRow<'a> {
    /// Admission: decides the period.
    pub started_at: Timestamp,
    /// Who pays.
    pub tenant: &'a str,
    /// The answer's model, or the request's when there was no answer.
    pub model: Option<&'a str>,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// Upstream's name.
    pub upstream: &'a str,
    /// `gen_ai.operation.name`.
    pub operation: &'a str,
    /// Route template.
    pub route: &'a str,
    /// Which key.
    pub key_id: Option<&'a str>,
    /// Labels of the key.
    pub labels: &'a BTreeMap<String, String>,
    /// Where the tokens come from.
    pub source: Source,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// What is owed; `None` is unknown, never zero.
    pub cost: Option<&'a RecordCost>,
}

impl<'a> From<&'a Record> for BillRow<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            started_at: record.started_at,
            tenant: &record.tenant.0,
            model: record.response_model.as_deref().or(record.request_model.as_deref()),
            provider: &record.provider,
            upstream: &record.upstream,
            operation: &record.operation,
            route: &record.route,
            key_id: record.key_id.as_deref(),
            labels: &record.labels,
            source: record.usage.source,
            input_tokens: record.usage.input_tokens,
            cache_read_input_tokens: record.usage.cache_read_input_tokens,
            output_tokens: record.usage.output_tokens,
            reasoning_output_tokens: record.usage.reasoning_output_tokens,
            cost: record.cost.as_ref(),
        }
    }
}

impl BillRow<'_> {
    /// Whether a part of the usage that every request of its kind has is unknown.
    pub(crate) fn usage_is_unknown(&self) -> bool {
        // What is charged in other units has no tokens that could lack.
        let in_tokens = self.input_tokens.or(self.output_tokens).is_some();
        if self.source == Source::None || self.source == Source::Reported && !in_tokens {
            return false;
        }
        let generates = matches!(self.operation, "chat" | "text_completion" | "generate_content");
        self.source == Source::Unknown
            || self.input_tokens.is_none()
            || (generates && self.output_tokens.is_none())
    }
}
