//! Reads the few members of a record that sums and bills need. They borrow from the payload.

use jiff::Timestamp;
use taximeter_pricing::{Flag, Source};

use super::cost::{CostKeys, CostNumbers, CostNumbersReader, CostReader, LineQuantities};
use super::dimensions;
use super::entries::{CallRead, CallerRead, text};
use super::keys::{member_key as key, string};
use super::member::{DecodeError, Members, time_of};
use super::parts::Parts;
use super::payload::PostBytes;
use super::record::{ended_at, gateway_of, read_end, seconds};
use super::strings::Strings;
use super::tools;
use super::usage;
use crate::dimensions::Dimensions;
use crate::id::RequestId;
use crate::record::{End, RecordCost};

/// Reads the numbers of posts that have the same strings. It is much cheaper than a [`PostView`].
#[derive(Debug)]
pub struct PostNumbersReader {
    /// Without numbers.
    cost: Option<RecordCost>,
    costs: CostNumbersReader,
}

/// The numbers of a post that are added up.
#[derive(Debug, Clone)]
pub struct PostNumbers {
    /// Time of admission.
    pub started_at: Timestamp,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// The cost.
    pub cost: CostNumbers,
}

impl PostNumbersReader {
    /// For posts with these strings.
    ///
    /// # Errors
    /// They are no strings of a post.
    pub fn new(strings: &[u8]) -> Result<Self, DecodeError> {
        let (mut strings, mut cost) = (Strings::new(strings), CostReader::default());
        while let Some((key, bytes)) = strings.next()? {
            cost.string(CostKeys::COST, key, bytes)?;
        }
        let cost = cost.without_numbers();
        let rates = cost.as_ref().map(|cost| &*cost.lines).unwrap_or_default();
        Ok(Self { costs: CostNumbersReader::new(rates), cost })
    }

    /// The cost of each post, but for its numbers: currency, price, and one line for each rate.
    /// `None` if they have none.
    #[must_use]
    pub const fn cost(&self) -> Option<&RecordCost> {
        self.cost.as_ref()
    }

    /// Reads a post, and appends the quantity of each line of its cost to `quantities`.
    ///
    /// # Errors
    /// It is no post. What was appended then means nothing.
    pub fn read(
        &self,
        id: RequestId,
        members: &[u8],
        quantities: &mut LineQuantities,
    ) -> Result<PostNumbers, DecodeError> {
        let mut members = Members::new(members);
        let (mut started_at, mut tokens) = (None, [None; 4]);
        let (mut lines, mut written) = (None, [None; 2]);
        while let Some((key, value)) = members.next()? {
            match key {
                key::STARTED_AT => started_at = Some(value.time(time_of(id))?),
                key::TOKENS => tokens = usage::read_list(value.bytes())?,
                key::LINES => lines = Some(value.bytes()),
                key::AMOUNT => written[0] = Some(value.bytes()),
                key::LIST_AMOUNT => written[1] = Some(value.bytes()),
                _ => {}
            }
        }
        let cost = match &self.cost {
            Some(_) => self.costs.read(lines, written, quantities)?,
            None => CostNumbers::None,
        };
        let [input_tokens, output_tokens, cache_read_input_tokens, reasoning_output_tokens] =
            tokens;
        Ok(PostNumbers {
            started_at: started_at.ok_or(DecodeError::Missing("started_at"))?,
            input_tokens,
            cache_read_input_tokens,
            output_tokens,
            reasoning_output_tokens,
            cost,
        })
    }
}

/// The members of a record that are added up or searched. The others are not read.
#[derive(Debug)]
pub struct PostView<'a> {
    /// The id.
    pub id: RequestId,
    /// Time of admission.
    pub started_at: Timestamp,
    /// Time of the end, by the wall clock.
    pub ended_at: Timestamp,
    /// From the start to the end, in seconds.
    pub duration: f64,
    /// The gateway that carried the request.
    pub gateway: &'a str,
    /// The tenant that pays.
    pub tenant: &'a str,
    /// The API key.
    pub key_id: Option<String>,
    /// Labels of the key.
    pub labels: std::collections::BTreeMap<String, String>,
    /// What the request is part of.
    pub dimensions: Option<Box<Dimensions>>,
    /// HTTP status that the client got.
    pub status: Option<u16>,
    /// How the request ended.
    pub end: End,
    /// `gen_ai.operation.name`.
    pub operation: &'a str,
    /// Route template.
    pub route: &'a str,
    /// Name of the upstream.
    pub upstream: &'a str,
    /// `gen_ai.provider.name`.
    pub provider: &'a str,
    /// `model` of the request.
    pub request_model: Option<&'a str>,
    /// `model` of the answer.
    pub response_model: Option<&'a str>,
    /// How often the answer calls each tool.
    pub tools: std::collections::BTreeMap<String, u64>,
    /// The weakest source of its numbers.
    pub source: Source,
    /// Flags of the usage.
    pub flags: Vec<Flag>,
    /// All input.
    pub input_tokens: Option<u64>,
    /// Part of the input.
    pub cache_read_input_tokens: Option<u64>,
    /// All output.
    pub output_tokens: Option<u64>,
    /// Part of the output.
    pub reasoning_output_tokens: Option<u64>,
    /// The cost, or the known part of it.
    pub owed: Option<RecordCost>,
}

impl<'a> PostView<'a> {
    /// Reads a complete payload of a post.
    ///
    /// # Errors
    /// It is none.
    pub fn read(payload: &'a [u8]) -> Result<Self, DecodeError> {
        Self::of(Parts::split(payload)?)
    }

    /// Reads the pieces of a post.
    ///
    /// # Errors
    /// They are none.
    pub fn of_pieces(post: &PostBytes<'a>) -> Result<Self, DecodeError> {
        Self::of(post.parts())
    }

    pub(crate) fn of(parts: Parts<'a>) -> Result<Self, DecodeError> {
        let Parts { id, mut strings, mut members } = parts;
        let mut cost = CostReader::default();
        let (mut tenant, mut gateway, mut caller) = (None, None, None);
        let mut call = CallRead::default();
        let (mut request_model, mut response_model) = (None, None);
        let (mut source, mut flags) = (Source::Unknown, Vec::new());
        let mut outcome = (None, None);
        while let Some((key, bytes)) = strings.next()? {
            match key {
                string::TENANT => tenant = Some(text(bytes)?),
                string::CALLER => caller = Some(CallerRead::read(bytes)?),
                string::CALL => call = CallRead::read(bytes)?,
                string::REQUEST_MODEL => request_model = Some(text(bytes)?),
                string::RESPONSE_MODEL => response_model = Some(text(bytes)?),
                string::ORIGIN => gateway = Some(gateway_of(bytes)?),
                string::SOURCES => (source, flags) = usage::read_source(bytes)?,
                string::OUTCOME => outcome = read_end(bytes)?,
                _ => cost.string(CostKeys::COST, key, bytes)?,
            }
        }
        let (mut started_at, mut duration, mut drift) = (None, 0, 0);
        let (mut tokens, mut told) = ([None; 4], None);
        let mut called = std::collections::BTreeMap::new();
        while let Some((key, value)) = members.next()? {
            match key {
                key::STARTED_AT => started_at = Some(value.time(time_of(id))?),
                key::DIMENSIONS => told = dimensions::read(value)?,
                key::TOOLS => called = tools::read(value)?,
                key::DURATION => duration = value.number(),
                key::ENDED_AT => drift = value.number(),
                key::TOKENS => tokens = usage::read_list(value.bytes())?,
                _ => cost.member(CostKeys::COST, key, value),
            }
        }
        let started_at = started_at.ok_or(DecodeError::Missing("started_at"))?;
        let caller = caller.ok_or(DecodeError::Missing("identity"))?;
        let [input, output, cache_read, reasoning] = tokens;
        Ok(Self {
            id,
            started_at,
            ended_at: ended_at(started_at, duration, drift)?,
            duration: seconds(duration),
            gateway: gateway.ok_or(DecodeError::Missing("gateway"))?,
            tenant: tenant.ok_or(DecodeError::Missing("tenant"))?,
            key_id: caller.key_id,
            labels: caller.labels,
            dimensions: told,
            status: outcome.0,
            end: outcome.1.ok_or(DecodeError::Missing("end"))?,
            operation: call.operation,
            route: call.route,
            upstream: call.upstream,
            provider: call.provider,
            request_model,
            response_model,
            tools: called,
            source,
            flags,
            input_tokens: input,
            cache_read_input_tokens: cache_read,
            output_tokens: output,
            reasoning_output_tokens: reasoning,
            owed: cost.finish()?,
        })
    }
}
