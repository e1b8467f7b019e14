//! The record of one request, as users read it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_collections::Gather as _;
use taximeter_pricing::{Condition, Flag, Member, Modalities, Pass, Source, Usage};
use utoipa::ToSchema;

use crate::dimensions::{self, Dimensions};
use crate::gaps::Gaps;
use crate::id::{RequestId, TenantId};
use crate::stages::Stages;
use crate::unknown_cost::UnknownCost;

/// How the gateway identified the tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Identity {
    /// By an API key.
    ApiKey,
    /// By a header from a trusted proxy.
    Header,
    /// Not at all. The tenant is the configured one for unknown callers.
    Unknown,
}

impl Identity {
    /// The word in records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Header => "header",
            Self::Unknown => "unknown",
        }
    }
}

/// How a request ended.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The answer is whole.
    Complete,
    /// The client closed the connection.
    ClientLeft,
    /// The client did not read for longer than the limit.
    ClientStalled,
    /// The answer ended without its end mark.
    Truncated,
    /// The engine failed during the answer, or its connection broke.
    UpstreamError,
    /// The engine sent nothing for longer than the limit.
    UpstreamStalled,
    /// The engine answered 4xx or 5xx.
    UpstreamRefused,
    /// The request took longer than the limit.
    Deadline,
    /// A budget was used up during the request.
    BudgetCut,
    /// The gateway was shutting down.
    Shutdown,
    /// The gateway died. The next start makes the record from the reservation.
    GatewayDied,
    /// The gateway refused the request.
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

    /// Whether the engine broke off or stopped sending.
    #[must_use]
    pub const fn is_upstreams_fault(self) -> bool {
        matches!(self, Self::Truncated | Self::UpstreamError | Self::UpstreamStalled)
    }

    /// The word in records.
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

/// One settled request. Money is exact, tokens are integers, times are seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Record {
    /// The gateway's id of the request.
    pub id: RequestId,
    /// The client's `x-request-id`, or the one that the gateway made.
    pub request_id: String,
    /// The attempt that answered, from 1.
    pub attempt: u32,
    /// Sequence number of the entry in the journal. It is 0, and absent in JSON, until the entry is
    /// written or read.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seq: u64,
    /// The gateway that wrote the record.
    pub gateway: String,
    /// Time of admission.
    pub started_at: Timestamp,
    /// Time when the client got the last byte, or when the request ended in another way.
    pub ended_at: Timestamp,
    /// The tenant that pays.
    pub tenant: TenantId,
    /// The API key, if the request had one.
    pub key_id: Option<String>,
    /// How the gateway identified the tenant.
    pub identity: Identity,
    /// Labels of the key.
    #[serde(default)]
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
    /// Whether the answer was a stream.
    pub stream: bool,
    /// Name of the upstream.
    pub upstream: String,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// `model` of the request.
    pub request_model: Option<String>,
    /// `model` of the answer.
    pub response_model: Option<String>,
    /// `id` of the answer.
    pub response_id: Option<String>,
    /// Service tier that the engine used.
    pub service_tier: Option<String>,
    /// HTTP status that the client got. `None` if the client left before.
    pub status: Option<u16>,
    /// How the request ended.
    pub end: End,
    /// `error.type`. `None` on success.
    pub error_type: Option<String>,
    /// What the provider calls its error; `None` on success, and where it gave no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// One for each choice.
    #[serde(default)]
    pub finish_reasons: Vec<String>,
    /// How often the answer calls each tool, by the tool's name: what the client is to run, and what
    /// the provider has asked of MCP servers (`mcp:SERVER/NAME`). Names have at most 64 bytes. Those
    /// beyond 32 share `other`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, u64>,
    /// Tokens and other quantities.
    pub usage: RecordUsage,
    /// Times.
    pub timing: RecordTiming,
    /// Cost. `None` means unknown, never zero.
    pub cost: Option<RecordCost>,
    /// The parts of an unknown cost that have a price: the request costs at least as much. `None`
    /// if the cost is known, or if nothing of it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_known: Option<RecordCost>,
    /// Why the cost is unknown, at most 16 reasons. Empty if it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost_unknown: Vec<UnknownCost>,
    /// The cost that the provider reports, in the provider's currency: a decimal number as it stood
    /// in the answer. It does not affect `cost`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_cost: Option<String>,
    /// Where the request ran, such as `k8s.pod.name`.
    #[serde(default)]
    pub resource: BTreeMap<String, String>,
}

/// What a provider calls its error, by a status or inside an answer. Each name has at most 64
/// bytes of `[A-Za-z0-9_.:-]`.
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

/// The usage of a request. `None` means unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecordUsage {
    /// The weakest source of the input and the output that the request has. `unknown` is weaker
    /// than `counted`, and `counted` is weaker than `reported`.
    pub source: Source,
    /// The source of each number that is present, and of an input or output that should be present.
    /// Empty if nothing is known.
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
    /// Tokens by modality if there was more than text: `audio_input_tokens`, `text_output_tokens`
    /// and so on.
    pub modalities: Option<BTreeMap<String, u64>>,
    /// Quantities besides tokens or instead of tokens, exact: `web_search_requests`,
    /// `audio_seconds` and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, Decimal>,
    /// What the answer reports about itself that can change its price: `inference_geo`, `speed` and
    /// so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub conditions: BTreeMap<Condition, String>,
    /// Further model runs of this request. Their usage is charged in addition to the numbers above.
    pub passes: Option<Vec<Pass>>,
    /// What the tokenizer counted, if the engine reported nothing or the count is exact.
    pub counted: Option<Counted>,
    /// Flags of single numbers.
    #[serde(default)]
    pub flagged: BTreeMap<Member, Vec<Flag>>,
    /// Flags of the usage: all of `flagged`, and those that belong to no single number.
    #[serde(default)]
    pub flags: Vec<Flag>,
}

impl RecordUsage {
    /// The usage of a request for which the engine reported nothing, with `flags` on both numbers.
    /// `None` is a number that the request does not have.
    #[must_use]
    pub fn counted(input_tokens: Option<u64>, output_tokens: Option<u64>, flags: &[Flag]) -> Self {
        let numbers = [(Member::InputTokens, input_tokens), (Member::OutputTokens, output_tokens)];
        let members = numbers.into_iter().filter_map(|(member, number)| number.map(|_| member));
        let sources: BTreeMap<_, _> = members.map(|member| (member, Source::Counted)).gather();
        let flags = if sources.is_empty() { &[] } else { flags };
        let flagged = sources.keys().filter(|_| !flags.is_empty());
        Self {
            source: if sources.is_empty() { Source::Unknown } else { Source::Counted },
            flagged: flagged.map(|member| (*member, flags.to_vec())).gather(),
            flags: flags.to_vec(),
            sources,
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }
}

impl RecordUsage {
    /// Notes that the input is not known, because a part of the prompt is not in the request.
    pub(crate) fn lack_input(&mut self) {
        self.source = Source::Unknown;
        self.input_tokens = None;
        self.sources.insert(Member::InputTokens, Source::Unknown);
        self.flagged.insert(Member::InputTokens, vec![Flag::Missing, Flag::Context]);
        self.flags.retain(|flag| *flag != Flag::Estimated);
        self.flags.push(Flag::Context);
    }

    /// A usage of which all is known that a price depends on. Where each number comes from is not said.
    #[must_use]
    pub fn of(usage: &Usage, source: Source) -> Self {
        Self {
            source,
            input_tokens: usage.input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_write_input_tokens: usage.cache_write_input_tokens,
            cache_write_long_input_tokens: usage.cache_write_long_input_tokens,
            output_tokens: usage.output_tokens,
            reasoning_output_tokens: usage.reasoning_output_tokens,
            modalities: usage.modalities.as_deref().map(Modalities::named),
            units: usage.units.clone(),
            conditions: usage.conditions.clone(),
            passes: (!usage.passes.is_empty()).then(|| usage.passes.clone()),
            ..Self::default()
        }
    }

    /// Notes that the output is not known, because the answer goes on after the request.
    pub fn go_on(&mut self) {
        self.source = Source::Unknown;
        self.output_tokens = None;
        self.sources.insert(Member::OutputTokens, Source::Unknown);
        self.flagged.insert(Member::OutputTokens, vec![Flag::Missing, Flag::Pending]);
        self.flags.push(Flag::Pending);
    }
}

/// The usage that is priced. A record contains everything that a price depends on.
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

/// What the tokenizer counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Counted {
    /// Tokens of the request.
    pub input_tokens: Option<u64>,
    /// Tokens of the text that passed through. Hidden reasoning is not part of it.
    pub output_tokens: Option<u64>,
}

/// The times of a request, in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordTiming {
    /// From the start to the first event.
    pub time_to_first_chunk: Option<f64>,
    /// From the start to the first generated content.
    pub time_to_first_token: Option<f64>,
    /// (last − first content event) ÷ (output tokens − 1).
    pub time_per_output_token: Option<f64>,
    /// Number of events with generated content.
    pub output_chunks: u64,
    /// The longest gap between two events.
    pub longest_stall: Option<f64>,
    /// Number of gaps up to 0.01, 0.02, 0.04 … 81.92 s long, and number of longer gaps. Zeros at
    /// the end are left out. `None` if there were no gaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<u32>>)]
    pub gaps: Option<Gaps>,
    /// From the start to the end.
    pub duration: f64,
    /// The part of the duration that the gateway took.
    pub gateway: f64,
    /// How long each stage took. `None` if the gateway died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
}

/// The cost of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordCost {
    /// Whether this is only the known part of an unknown cost. Absent if it is the whole cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// ISO 4217.
    pub currency: String,
    /// The cost with discounts and other contract terms.
    pub amount: Decimal,
    /// The cost at list price.
    pub list_amount: Decimal,
    /// Version and row of the price book.
    pub price_id: String,
    /// What found that row: `exact`, or the rules by which the name of the model led to it, as
    /// `region+date`. Older records lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub price_match: Option<Cow<'static, str>>,
    /// One for each meter with a quantity.
    pub lines: Vec<RecordLine>,
}

/// One line of a cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RecordLine {
    /// `input`, `cache_read`, `output`, `web_search_requests` and so on: the keys of a price file.
    pub meter: String,
    /// Model of a further model run. Absent for the request's own model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What found the row of a further model run, if it differs from that of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub price_match: Option<Cow<'static, str>>,
    /// Quantity, for a meter that counts tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Quantity in `unit`, for any other meter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantity: Option<Decimal>,
    /// What `quantity` counts: `seconds`, `calls` and so on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Price of one token, or of one `unit`.
    pub unit_price: Decimal,
    /// The list price of the same, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list_unit_price: Option<Decimal>,
    /// Quantity × `unit_price`, exact.
    pub amount: Decimal,
}

impl RecordLine {
    /// The quantity, whatever the meter counts.
    #[must_use]
    pub fn count(&self) -> Decimal {
        self.tokens.map(Decimal::from).or(self.quantity).unwrap_or_default()
    }

    /// The unit of the quantity: `tokens` or `unit`.
    #[must_use]
    pub fn counted_in(&self) -> &str {
        self.unit.as_deref().unwrap_or("tokens")
    }

    /// The list price of one.
    #[must_use]
    pub fn list_price(&self) -> Decimal {
        self.list_unit_price.unwrap_or(self.unit_price)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
const fn is_zero(seq: &u64) -> bool {
    *seq == 0
}
