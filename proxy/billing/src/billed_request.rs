//! A request in a bill.

use std::collections::BTreeMap;

use jiff::Timestamp;
use taximeter_ledger::{Dimensions, Record, RecordCost};
use taximeter_pricing::Source;

/// What a bill needs to know of one request.
#[derive(Debug, Clone, Copy)]
pub struct BilledRequest<'a> {
    /// Time of admission, which decides the period.
    pub started_at: Timestamp,
    /// The tenant that pays.
    pub tenant: &'a str,
    /// The model of the answer, or of the request if there was no answer.
    pub model: Option<&'a str>,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// Name of the upstream.
    pub upstream: &'a str,
    /// `gen_ai.operation.name`.
    pub operation: &'a str,
    /// Route template.
    pub route: &'a str,
    /// The API key.
    pub key_id: Option<&'a str>,
    /// Labels of the key.
    pub labels: &'a BTreeMap<String, String>,
    /// Source of the tokens.
    pub source: Source,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// The cost, or its known part (`at_least`). `None` means unknown, never zero.
    pub cost: Option<&'a RecordCost>,
    /// What the client says of it.
    pub dimensions: Option<&'a Dimensions>,
}

impl<'a> From<&'a Record> for BilledRequest<'a> {
    fn from(record: &'a Record) -> Self {
        let row = Self {
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
            cost: record.owed(),
            dimensions: record.dimensions.as_deref(),
        };
        if record.is_pending() { row.pending() } else { row }
    }
}

impl BilledRequest<'_> {
    /// The same request while its usage is pending: no number is known. The correction that
    /// completes it adds all of them.
    #[must_use]
    pub const fn pending(mut self) -> Self {
        self.source = Source::Unknown;
        (self.input_tokens, self.output_tokens) = (None, None);
        (self.cache_read_input_tokens, self.reasoning_output_tokens) = (None, None);
        self
    }

    /// Whether an input or output that such a request always has is unknown.
    #[must_use]
    pub fn usage_is_unknown(&self) -> bool {
        // Requests that are charged in other units need no tokens.
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
