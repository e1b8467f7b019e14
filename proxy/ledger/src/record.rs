//! The record of one request, as users read it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_pricing::{Condition, Flag, Member, Modalities, Pass, Source, Usage};
use utoipa::ToSchema;

use crate::gaps::Gaps;
use crate::id::{RequestId, TenantId};
use crate::stages::Stages;

/// How the tenant was identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// An API key.
    ApiKey,
    /// A header from a trusted peer.
    Header,
    /// No credential; the configured tenant for unknown callers.
    Unknown,
}

impl Identity {
    /// The word, as records have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Header => "header",
            Self::Unknown => "unknown",
        }
    }
}

/// How a request ended (`spec.md` §5).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Whole.
    Complete,
    /// The client went away.
    ClientLeft,
    /// The client did not read for longer than the limit.
    ClientStalled,
    /// The answer ended without its own end mark.
    Truncated,
    /// The engine failed inside the answer, or its connection broke.
    UpstreamError,
    /// The engine was silent for longer than the limit.
    UpstreamStalled,
    /// The engine answered 4xx or 5xx.
    UpstreamRefused,
    /// The whole request took longer than allowed.
    Deadline,
    /// A budget was used up while it ran.
    BudgetCut,
    /// We were shutting down.
    Shutdown,
    /// We died; made at the next start from the reserve.
    GatewayDied,
    /// We refused it.
    Refused,
}

impl End {
    /// Every end.
    pub const ALL: [Self; 12] = [
        Self::Complete,
        Self::ClientLeft,
        Self::ClientStalled,
        Self::Truncated,
        Self::UpstreamError,
        Self::UpstreamStalled,
        Self::UpstreamRefused,
        Self::Deadline,
        Self::BudgetCut,
        Self::Shutdown,
        Self::GatewayDied,
        Self::Refused,
    ];

    /// Whether the engine broke off or fell silent.
    #[must_use]
    pub const fn is_upstreams_fault(self) -> bool {
        matches!(self, Self::Truncated | Self::UpstreamError | Self::UpstreamStalled)
    }

    /// The word, as records have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientLeft => "client_left",
            Self::ClientStalled => "client_stalled",
            Self::Truncated => "truncated",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamStalled => "upstream_stalled",
            Self::UpstreamRefused => "upstream_refused",
            Self::Deadline => "deadline",
            Self::BudgetCut => "budget_cut",
            Self::Shutdown => "shutdown",
            Self::GatewayDied => "gateway_died",
            Self::Refused => "refused",
        }
    }
}

/// One request, settled (`spec.md` §6). Money is exact; tokens are integers; times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// Ours.
    pub id: RequestId,
    /// The client's `x-request-id`, or the one made for it.
    pub request_id: String,
    /// Which attempt answered, from 1.
    pub attempt: u32,
    /// Sequence number of the entry in the journal; given when it is written and filled in when it
    /// is read. 0, and absent in JSON, before that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seq: u64,
    /// Which gateway wrote it.
    pub gateway: String,
    /// Admission.
    pub started_at: Timestamp,
    /// Last byte handed to the client, or the end, whoever ended it.
    pub ended_at: Timestamp,
    /// Who pays.
    pub tenant: TenantId,
    /// Which key.
    pub key_id: Option<String>,
    /// How the tenant was identified.
    pub identity: Identity,
    /// Labels of the key.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// `gen_ai.operation.name`.
    pub operation: String,
    /// Route template.
    pub route: String,
    /// Whether the answer was a stream.
    pub stream: bool,
    /// Upstream's name.
    pub upstream: String,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// `model` of the request.
    pub request_model: Option<String>,
    /// `model` of the answer.
    pub response_model: Option<String>,
    /// `id` of the answer.
    pub response_id: Option<String>,
    /// Service tier that was really used.
    pub service_tier: Option<String>,
    /// HTTP status that the client saw; `None` when it left before one.
    pub status: Option<u16>,
    /// How it ended.
    pub end: End,
    /// `error.type`; `None` on success.
    pub error_type: Option<String>,
    /// What the provider calls its error; `None` on success, and where it gave no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// One per choice.
    #[serde(default)]
    pub finish_reasons: Vec<String>,
    /// Tokens.
    pub usage: RecordUsage,
    /// Times.
    pub timing: RecordTiming,
    /// Money; `None` is unknown, never zero.
    pub cost: Option<RecordCost>,
    /// What the provider asks for it by its own word, in its own currency: a decimal number as it
    /// stood in the answer. It changes nothing of `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_cost: Option<String>,
    /// Where it ran (`k8s.pod.name` …).
    #[serde(default)]
    pub resource: BTreeMap<String, String>,
}

/// What a provider calls its error, by a status or inside an answer. Each name has at most 64 bytes of
/// `[A-Za-z0-9_.:-]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordError {
    /// Its status, in digits or a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Its type.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Its code, in digits or a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Tokens of a record. `None` is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordUsage {
    /// Where the numbers come from, in one word: the weakest source among input and output, of
    /// those that the request has. `unknown` is weaker than `counted`, `counted` than `reported`.
    pub source: Source,
    /// Where each number comes from: of each that is there, and of an input or output that should
    /// be. Empty on records of before this was told.
    #[serde(default)]
    pub sources: BTreeMap<Member, Source>,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_write_input_tokens: Option<u64>,
    /// Part of the cache writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_long_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// Tokens by modality where there was more than text: `audio_input_tokens`,
    /// `text_output_tokens` and so on.
    pub modalities: Option<BTreeMap<String, u64>>,
    /// What is counted beside tokens or in their place, exact: `web_search_requests`,
    /// `audio_seconds` and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, Decimal>,
    /// What the answer said of itself that may change its price: `inference_geo`, `speed` and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<Condition, String>,
    /// Further model runs, charged beside the numbers above.
    pub passes: Option<Vec<Pass>>,
    /// What our tokenizer counted, where nothing was reported or our count is exact.
    pub counted: Option<Counted>,
    /// What to know about single numbers.
    #[serde(default)]
    pub flagged: BTreeMap<Member, Vec<Flag>>,
    /// What to know about the usage: all of `flagged`, and what belongs to no single number.
    #[serde(default)]
    pub flags: Vec<Flag>,
}

impl RecordUsage {
    /// What we counted of a request of which nothing was reported, and what to know about both
    /// numbers; one that is `None` it does not have.
    #[must_use]
    pub fn counted(input_tokens: Option<u64>, output_tokens: Option<u64>, flags: &[Flag]) -> Self {
        let numbers = [(Member::InputTokens, input_tokens), (Member::OutputTokens, output_tokens)];
        let members = numbers.into_iter().filter_map(|(member, number)| number.map(|_| member));
        let sources: BTreeMap<_, _> = members.map(|member| (member, Source::Counted)).collect();
        let flags = if sources.is_empty() { &[] } else { flags };
        let flagged = sources.keys().filter(|_| !flags.is_empty());
        Self {
            source: if sources.is_empty() { Source::Unknown } else { Source::Counted },
            flagged: flagged.map(|member| (*member, flags.to_vec())).collect(),
            flags: flags.to_vec(),
            sources,
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }
}

/// What is priced: all that a price depends on is on the record.
impl From<&RecordUsage> for Usage {
    fn from(usage: &RecordUsage) -> Self {
        if usage.source == Source::None {
            let none = Some(0);
            return Self { input_tokens: none, output_tokens: none, ..Self::default() };
        }
        Self {
            input_tokens: usage.input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_write_input_tokens: usage.cache_write_input_tokens,
            cache_write_long_input_tokens: usage.cache_write_long_input_tokens,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.reasoning_output_tokens,
            modalities: usage.modalities.as_ref().map(|named| Box::new(Modalities::from(named))),
            units: usage.units.clone(),
            conditions: usage.conditions.clone(),
            passes: usage.passes.clone().unwrap_or_default(),
        }
    }
}

/// What our tokenizer counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counted {
    /// Of the request.
    pub input_tokens: Option<u64>,
    /// Of the text that passed: hidden reasoning is not part of it.
    pub output_tokens: Option<u64>,
}

/// Times of a record, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordTiming {
    /// Start to the first event.
    pub time_to_first_chunk: Option<f64>,
    /// Start to the first generated content.
    pub time_to_first_token: Option<f64>,
    /// (last − first content event) ÷ (output tokens − 1).
    pub time_per_output_token: Option<f64>,
    /// Events with generated content.
    pub output_chunks: u64,
    /// The longest gap.
    pub longest_stall: Option<f64>,
    /// How many gaps were up to 0.01, 0.02, 0.04 … 81.92 s long, and how many longer; zeros at the end
    /// are left out. `None` where there were none, and on records of before this was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<u32>>)]
    pub gaps: Option<Gaps>,
    /// Start to end.
    pub duration: f64,
    /// The part of the duration that was ours.
    pub gateway: f64,
    /// Where the time went; `None` on records of before this was told, and where the gateway died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
}

/// Money of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordCost {
    /// ISO 4217.
    pub currency: String,
    /// What is owed.
    pub amount: Decimal,
    /// At list price.
    pub list_amount: Decimal,
    /// Version and row of the price book.
    pub price_id: String,
    /// One per meter with a quantity.
    pub lines: Vec<RecordLine>,
}

/// One line of a cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordLine {
    /// `input`, `cache_read`, `output`, `web_search_requests` and so on: the keys of a price file.
    pub meter: String,
    /// Model of a further pass; absent on the request's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Quantity, on meters of tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Quantity in `unit`, on all other meters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Decimal>,
    /// What `quantity` counts: `seconds`, `calls` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Money per token, or per one of `unit`.
    pub unit_price: Decimal,
    /// The same at list price, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_unit_price: Option<Decimal>,
    /// Quantity × `unit_price`, exact.
    pub amount: Decimal,
}

impl RecordLine {
    /// How many, whatever is counted.
    #[must_use]
    pub fn count(&self) -> Decimal {
        self.tokens.map(Decimal::from).or(self.quantity).unwrap_or_default()
    }

    /// What is counted: `tokens` or `unit`.
    #[must_use]
    pub fn counted_in(&self) -> &str {
        self.unit.as_deref().unwrap_or("tokens")
    }

    /// Money per one at list price.
    #[must_use]
    pub fn list_price(&self) -> Decimal {
        self.list_unit_price.unwrap_or(self.unit_price)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
const fn is_zero(seq: &u64) -> bool {
    *seq == 0
}
