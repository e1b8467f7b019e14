//! The result of metering one exchange.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rust_decimal::Decimal;
use taximeter_pricing::{Flag, Member, Pass, Usage};

use crate::content::Transcript;
use crate::dialect::Dialect;
use crate::exponential_histogram::ExponentialHistogram;
use crate::provider_error::ProviderError;

/// Everything measured about one exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// How the answer ended, by the provider's own marks first.
    pub ending: Ending,
    /// The dialect that was known before, or else the one whose marks the answer has. A mark changes
    /// nothing in this measurement.
    pub dialect: Dialect,
    /// Usage as the engine reported it; `None` when it reported none. The usage has no number where
    /// the gateway can read none of those that the engine reported.
    pub reported: Option<Reported>,
    /// What is no token and was counted from what passed, in place of tokens, by its name in
    /// [`Usage::units`](taximeter_pricing::Usage::units): `images`.
    pub counted_units: BTreeMap<String, Decimal>,
    /// Calls of tools of the provider's own that passed, beside the tokens, by their names in the
    /// same: `web_search_requests`, `file_search_calls`, `code_interpreter_sessions`,
    /// `computer_calls`. Those that the usage tells are not among them.
    pub calls: BTreeMap<String, Decimal>,
    /// Calls of tools by the tool's own name: those that the client is to run, and those of MCP
    /// servers that the provider has asked, as `mcp:SERVER/NAME`.
    pub tools: BTreeMap<String, u64>,
    /// The answer has what was said so far in a shorter form, from which the client goes on.
    pub is_compaction: bool,
    /// What hosted tools used of other models, beside the usage.
    pub passes: Vec<Pass>,
    /// What the provider asks for it, in its own currency.
    pub reported_cost: Option<String>,
    /// `model` of the answer.
    pub response_model: Option<String>,
    /// `id` of the answer.
    pub response_id: Option<String>,
    /// Service tier that was really used.
    pub service_tier: Option<String>,
    /// `system_fingerprint` of the answer: what the engine runs on, in a word of its own.
    pub system_fingerprint: Option<String>,
    /// One per choice that finished, in order of choice.
    pub finish_reasons: Vec<String>,
    /// What the provider calls the error that it gave inside the answer.
    pub error: Option<ProviderError>,
    /// The answer goes on behind this exchange (a response in the background): what it will use is
    /// told in another.
    pub is_pending: bool,
    /// Times.
    pub timing: Timing,
    /// Text that was generated and has passed: answer, reasoning, tool arguments, refusals, one
    /// after another; without what [`Meter::fold_text`](crate::Meter::fold_text) has taken.
    pub output_text: String,
    /// Bytes of all generated text; more than was kept when the limit for that was reached.
    pub output_text_bytes: u64,
    /// Content may have passed that could not be read: `output_text` is not all of it.
    pub has_unread_output: bool,
    /// What else than plain text that was.
    pub output_kinds: Kinds,
    /// Oddities, each for its own counter.
    pub counts: Counts,
    /// What the answer says, where that was kept.
    pub transcript: Option<Box<Transcript>>,
}

impl Measurement {
    /// Whether the engine reported a number that can be read.
    #[must_use]
    pub fn reports_usage(&self) -> bool {
        self.reported.as_ref().is_some_and(|reported| reported.usage != Usage::default())
    }

    /// Whether the engine reported that it used something: a number above zero.
    #[must_use]
    pub fn reports_use(&self) -> bool {
        self.reported.as_ref().is_some_and(|Reported { usage, .. }| {
            let tokens = [
                usage.input_tokens,
                usage.cache_read_input_tokens,
                usage.cache_write_input_tokens,
                usage.cache_write_long_input_tokens,
                usage.output_tokens,
                usage.reasoning_output_tokens,
            ];
            tokens.iter().any(|tokens| *tokens > Some(0))
                || usage.units.values().any(|quantity| !quantity.is_zero())
                || !usage.passes.is_empty()
        })
    }
}

/// What else than plain text was generated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// Reasoning, shown as it was generated.
    pub reasoning: bool,
    /// What takes more, or other, tokens than the text that was shown: calls, summaries of
    /// reasoning, sound.
    pub formed: bool,
}

/// Usage that the engine reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reported {
    /// The numbers, by the twelve rules.
    pub usage: Usage,
    /// What to know about them; sorted, each once.
    pub flags: Vec<Flag>,
    /// Which of the numbers that is said of, where it is said of one.
    pub flagged: BTreeMap<Member, BTreeSet<Flag>>,
}

/// Who closed the exchange, as the relay saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamEnd {
    /// The upstream's message ended as HTTP says it must.
    Clean,
    /// The upstream's connection broke inside the message.
    UpstreamReset,
    /// The provider's message is not valid HTTP.
    UpstreamProtocol,
    /// The upstream was silent for longer than the limit.
    UpstreamStalled,
    /// The client went away.
    ClientLeft,
    /// The client did not read for longer than the limit.
    ClientStalled,
    /// The whole request took longer than allowed.
    Deadline,
    /// We are shutting down.
    Shutdown,
    /// Something is wrong in the gateway itself.
    Internal,
}

/// How the answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The provider's end mark was seen, or the message ended cleanly after a finish reason or
    /// usage.
    Complete,
    /// The message ended, but its own end mark is missing.
    Truncated,
    /// The provider said that it failed, inside the answer.
    UpstreamError,
    /// Somebody cut it.
    Cut(StreamEnd),
}

/// Times since the start: the last byte of the request head.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timing {
    /// First event of any kind with data.
    pub time_to_first_chunk: Option<Duration>,
    /// First event with generated content.
    pub time_to_first_token: Option<Duration>,
    /// Last event with generated content.
    pub time_to_last_token: Option<Duration>,
    /// Events with generated content.
    pub output_chunks: u64,
    /// The longest gap between two of them.
    pub longest_stall: Option<Duration>,
    /// All gaps between them.
    pub gaps: GapHistogram,
    /// From the start to the end.
    pub duration: Duration,
}

/// Gaps between content events, in the buckets of `gen_ai.client.operation.time_per_output_chunk`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GapHistogram {
    /// Samples per bucket, not cumulative; the last is above the highest bound.
    pub buckets: [u32; GapHistogram::BOUNDS_SECONDS.len() + 1],
    /// Sum of all samples.
    pub sum: Duration,
    /// The same samples in seconds, in buckets that nobody chose; `None` where nobody asks for them.
    pub fine: Option<Box<ExponentialHistogram>>,
}

impl GapHistogram {
    /// Upper bounds, inclusive, in seconds (OpenTelemetry GenAI v1.41, "D").
    pub const BOUNDS_SECONDS: [f64; 14] =
        [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
}

/// Oddities of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events whose data is not the JSON it should be.
    pub not_json: u32,
    /// Lines, events and documents of which so much was left out that they may say more; messages
    /// that could not be read.
    pub lines_too_long: u32,
    /// Events after the end mark.
    pub after_done: u32,
    /// Usage members that are no whole number in range.
    pub usage_invalid: u32,
    /// Usage reported again with smaller numbers.
    pub usage_fell: u32,
    /// The content type said one thing, the bytes another.
    pub type_mismatch: u32,
    /// An encoded body that could not be read to its end: damaged, over a limit, or of an unknown
    /// coding.
    pub decode_stopped: u32,
}
