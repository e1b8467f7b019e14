//! Reads usage objects.
//!
//! The names of the members tell the shape, so the reader needs no dialect.

mod bedrock;
mod cohere;
mod google;
mod names;
mod number;
mod settle;
mod sum;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use taximeter_pricing::{ByModality, Condition, Member, Modalities};

use crate::dialect::Reasoning;
use crate::json::{Malformed, Reader};
use names::{condition, member, modality, placed};
use number::{put, sum};

/// Passes of one request that are kept; providers stop at a handful.
const PASSES_MAX: usize = 64;

/// Longest model or tier name kept, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// Longest cost kept, in bytes.
const COST_BYTES_MAX: usize = 40;

/// One usage object, its members as reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Other events carry the rest: members that are missing here keep what they were (Messages).
    pub(crate) is_partial: bool,
    /// It is of one choice or prompt, by its number; what the others use comes beside it.
    pub(crate) part: Option<u64>,
    /// Service tier, where the wire format has it in here (Messages).
    pub(crate) service_tier: Option<String>,
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) total: Option<u64>,
    /// A shape whose input includes what was cached (all but Anthropic's).
    includes_cache: bool,
    /// Cache reads and writes under Anthropic's names, where `input` leaves them out.
    read_outside: Option<u64>,
    write_outside: Option<u64>,
    write_outside_5m: Option<u64>,
    write_outside_1h: Option<u64>,
    /// The numbers are those that are billed (Cohere): what was read from a cache is no part of them.
    is_billed: bool,
    /// Cache reads and writes that are part of `input`.
    read_inside: Option<u64>,
    read_inside_flat: Option<u64>,
    write_inside: Option<u64>,
    write_inside_12h: Option<u64>,
    reasoning: Option<u64>,
    reasoning_flat: Option<u64>,
    /// What was cited from sources; beside the output, where the total does not say otherwise.
    citations: Option<u64>,
    /// Where its members say that reasoning is counted, if nobody else knows.
    placed: Option<Reasoning>,
    modalities: Modalities,
    /// Quantities of what is no token.
    units: BTreeMap<&'static str, Decimal>,
    /// What may change the price.
    conditions: BTreeMap<Condition, String>,
    /// What the provider asks for it, as it stands.
    pub(crate) cost: Option<String>,
    iterations: Vec<Iteration>,
    /// Members that are no whole number in range.
    pub(crate) invalid: u32,
    /// Which of the numbers that we keep they would have been.
    pub(crate) invalid_members: BTreeSet<Member>,
}

/// One entry of `usage.iterations`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Iteration {
    kind: String,
    model: Option<String>,
    report: Report,
}

impl Report {
    /// Reads a usage object. `null` reports nothing; any other type is one invalid member.
    pub(crate) fn read(value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        let mut report = Box::<Self>::default();
        match value.peek() {
            Some(b'n') => return value.skip().map(|()| None),
            Some(b'{') => {}
            _ => report.mark_unreadable(),
        }
        value.object(|key, value| {
            report.placed = report.placed.or(placed(key));
            match key {
                b"iterations" => report.read_iterations(value),
                b"service_tier" => {
                    report.service_tier = value.text()?.map(|tier| name(&tier.decode()));
                    Ok(())
                }
                _ => match condition(key) {
                    Some(condition) => {
                        let word = value.text()?.map(|word| (condition, name(&word.decode())));
                        report.conditions.extend(word);
                        Ok(())
                    }
                    None => report.read_member(key, value),
                },
            }
        })?;
        Ok(Some(report))
    }

    /// Reads llama.cpp's `timings`, which count what an absent usage object would have.
    pub(crate) fn read_timings(value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        let mut timings = Box::new(Self { includes_cache: true, ..Self::default() });
        value.object(|key, value| {
            let invalid = timings.invalid;
            match key {
                b"prompt_n" => timings.put(value, |report| &mut report.input),
                b"cache_n" => timings.put(value, |report| &mut report.read_inside),
                b"predicted_n" => timings.put(value, |report| &mut report.output),
                _ => value.skip(),
            }?;
            timings.note_invalid(invalid, key);
            Ok(())
        })?;
        // The prompt is the sum of both numbers. It is unknown where one of them is.
        if timings.lacks(Member::CacheReadInputTokens) {
            timings.invalid_members.insert(Member::InputTokens);
        }
        timings.input = timings.input.map(|input| input + timings.read_inside.unwrap_or(0));
        Ok(Some(timings))
    }

    /// Reads a member that counts something; steps over any other.
    pub(crate) fn read_member(
        &mut self,
        key: &[u8],
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let invalid = self.invalid;
        self.read_number(key, value)?;
        self.note_invalid(invalid, key);
        Ok(())
    }

    /// Marks a usage member that is no object, so that input and output are unknown.
    fn mark_unreadable(&mut self) {
        self.invalid = 1;
        self.invalid_members.extend([Member::InputTokens, Member::OutputTokens]);
    }

    /// Whether the engine reported this, and the value is no number.
    fn lacks(&self, member: Member) -> bool {
        self.is_unknown(member) && self.invalid_members.contains(&member)
    }

    fn is_unknown(&self, member: Member) -> bool {
        let value = match member {
            Member::InputTokens => self.input,
            Member::CacheReadInputTokens => self.cache_read(),
            Member::CacheWriteInputTokens => self.cache_write(),
            Member::OutputTokens => self.output,
            Member::ReasoningOutputTokens => self.reasoning(),
        };
        value.is_none()
    }

    /// Cache reads, under any of their names.
    fn cache_read(&self) -> Option<u64> {
        self.read_outside.or(self.read_inside).or(self.read_inside_flat)
    }

    /// Cache writes of every time to live, under any of their names.
    fn cache_write(&self) -> Option<u64> {
        self.cache_write_outside().or(self.write_inside)
    }

    /// Cache writes under Anthropic's names: one number, or one for each time to live.
    fn cache_write_outside(&self) -> Option<u64> {
        self.write_outside.or_else(|| sum(self.write_outside_5m, self.write_outside_1h))
    }

    /// The part of the cache writes with the long time to live.
    fn cache_write_long(&self) -> Option<u64> {
        self.write_outside_1h.or(self.write_inside_12h)
    }

    fn reasoning(&self) -> Option<u64> {
        self.reasoning.or(self.reasoning_flat)
    }

    /// Notes which number `key` would have told, if it told none since so many were `invalid`.
    fn note_invalid(&mut self, invalid: u32, key: &[u8]) {
        if self.invalid > invalid {
            self.invalid_members.extend(member(key));
        }
    }

    fn read_number(&mut self, key: &[u8], value: &mut Reader<'_>) -> Result<(), Malformed> {
        match key {
            b"prompt_tokens" | b"tokens_evaluated" => {
                self.includes_cache = true;
                self.put(value, |report| &mut report.input)
            }
            b"input_tokens" | b"prompt_eval_count" | b"input_length" => {
                self.put(value, |report| &mut report.input)
            }
            b"completion_tokens" | b"output_tokens" | b"eval_count" | b"tokens_predicted"
            | b"generated_tokens" => self.put(value, |report| &mut report.output),
            b"total_tokens" => self.put(value, |report| &mut report.total),
            b"cache_read_input_tokens" => self.put(value, |report| &mut report.read_outside),
            b"cache_creation_input_tokens" => self.put(value, |report| &mut report.write_outside),
            b"cached_tokens"
            | b"num_cached_tokens"
            | b"cached_prompt_text_tokens"
            | b"prompt_cache_hit_tokens" => self.put(value, |report| &mut report.read_inside_flat),
            b"reasoning_tokens" => self.put(value, |report| &mut report.reasoning_flat),
            // Of sound that is charged by its length.
            b"seconds" | b"prompt_audio_seconds" => self.read_quantity("audio_seconds", value),
            b"citation_tokens" => self.put(value, |report| &mut report.citations),
            b"cache_creation" => value.object(|key, value| self.read_lifetime(key, value)),
            b"prompt_tokens_details"
            | b"prompt_token_details"
            | b"input_tokens_details"
            | b"input_token_details" => {
                self.includes_cache |= value.peek() == Some(b'{');
                value.object(|key, value| match modality(&mut self.modalities.input, key) {
                    Some(part) => put(value, part, &mut self.invalid),
                    None => self.read_detail(key, value),
                })
            }
            b"completion_tokens_details"
            | b"completion_token_details"
            | b"output_tokens_details"
            | b"output_token_details" => {
                value.object(|key, value| match modality(&mut self.modalities.output, key) {
                    Some(part) => put(value, part, &mut self.invalid),
                    None => self.read_detail(key, value),
                })
            }
            b"cost" => self.read_cost(value),
            b"server_tool_use" => value.object(|key, value| match key {
                b"web_search_requests" => self.read_unit("web_search_requests", value),
                b"web_fetch_requests" => self.read_unit("web_fetch_requests", value),
                _ => value.skip(),
            }),
            b"num_search_queries" => self.read_unit("search_queries", value),
            b"billed_units" | b"tokens" => self.read_cohere(key == b"billed_units", value),
            _ => self.read_bedrock(key, value),
        }
    }

    fn read_detail(&mut self, key: &[u8], value: &mut Reader<'_>) -> Result<(), Malformed> {
        let invalid = self.invalid;
        match key {
            b"cached_tokens" | b"cached_read_tokens" | b"cache_read_input_tokens" => {
                self.put(value, |report| &mut report.read_inside)
            }
            b"cached_tokens_details" => {
                value.object(|key, value| match modality(&mut self.modalities.cache_read, key) {
                    Some(part) => put(value, part, &mut self.invalid),
                    None => value.skip(),
                })
            }
            b"cache_write_tokens"
            | b"cached_write_tokens"
            | b"created_cache_tokens"
            | b"cache_creation_tokens"
            | b"cache_creation_input_tokens" => self.put(value, |report| &mut report.write_inside),
            b"cache_creation" | b"cache_creation_token_details" => {
                value.object(|key, value| self.read_lifetime(key, value))
            }
            b"cache_write_tokens_details" => value.member(b"ttl_12h_tokens", |value| {
                self.put(value, |report| &mut report.write_inside_12h)
            }),
            b"reasoning_tokens" | b"thinking_tokens" => {
                self.put(value, |report| &mut report.reasoning)
            }
            _ => value.skip(),
        }?;
        self.note_invalid(invalid, key);
        Ok(())
    }

    /// Reads the cache writes of one time to live.
    fn read_lifetime(&mut self, key: &[u8], value: &mut Reader<'_>) -> Result<(), Malformed> {
        let invalid = self.invalid;
        match key {
            b"ephemeral_5m_input_tokens" => self.put(value, |report| &mut report.write_outside_5m),
            b"ephemeral_1h_input_tokens" => self.put(value, |report| &mut report.write_outside_1h),
            _ => value.skip(),
        }?;
        self.note_invalid(invalid, key);
        Ok(())
    }

    fn read_iterations(&mut self, value: &mut Reader<'_>) -> Result<(), Malformed> {
        self.iterations.clear();
        value.array(|entry| {
            let mut iteration = Iteration::default();
            entry.object(|key, value| {
                match key {
                    b"type" => {
                        iteration.kind =
                            value.text()?.map(|kind| name(&kind.decode())).unwrap_or_default();
                    }
                    b"model" => iteration.model = value.text()?.map(|model| name(&model.decode())),
                    _ => iteration.report.read_member(key, value)?,
                }
                Ok(())
            })?;
            self.invalid = self.invalid.saturating_add(iteration.report.invalid);
            if self.iterations.len() < PASSES_MAX {
                self.iterations.push(iteration);
            }
            Ok(())
        })
    }

    /// OpenRouter tells it as a number, Perplexity as an object with the total in it.
    fn read_cost(&mut self, value: &mut Reader<'_>) -> Result<(), Malformed> {
        match value.peek() {
            Some(b'0'..=b'9') => {
                let amount = value.verbatim()?.decode();
                self.cost = (amount.len() <= COST_BYTES_MAX).then(|| amount.into_owned());
                Ok(())
            }
            Some(b'{') => value.member(b"total_cost", |value| match value.peek() {
                Some(b'{') => value.skip(),
                _ => self.read_cost(value),
            }),
            _ => value.skip(),
        }
    }

    fn put(
        &mut self,
        value: &mut Reader<'_>,
        member: impl FnOnce(&mut Self) -> &mut Option<u64>,
    ) -> Result<(), Malformed> {
        let mut invalid = 0;
        put(value, member(self), &mut invalid)?;
        self.invalid = self.invalid.saturating_add(invalid);
        Ok(())
    }

    /// Whether each member is a whole number in range.
    pub(crate) const fn is_valid(&self) -> bool {
        self.invalid == 0
    }

    /// Input that is not told apart is sound, unless that is told by its length.
    pub(crate) fn hears(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.input == ByModality::default() && self.units.is_empty() {
            self.modalities.input.audio = self.input;
        }
        self
    }

    /// Output that is not told apart is sound.
    pub(crate) fn speaks(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.output == ByModality::default() {
            self.modalities.output.audio = self.output;
        }
        self
    }

    /// Output that is not told apart is pictures.
    pub(crate) fn paints(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.output == ByModality::default() {
            self.modalities.output.image = self.output;
        }
        self
    }

    /// Whether it has no number and no value that ought to be one.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_silent() && self.is_valid()
    }

    /// Whether it has no number, such as `{}`.
    pub(crate) fn is_silent(&self) -> bool {
        self.input.is_none()
            && self.output.is_none()
            && self.total.is_none()
            && self.read_outside.is_none()
            && self.write_outside.is_none()
            && self.units.is_empty()
            && self.iterations.is_empty()
    }

    /// Puts `self` over an earlier report, member by member.
    pub(crate) fn over(self, earlier: Self) -> Self {
        let mut invalid_members = self.invalid_members.clone();
        let is_still_lacking = |member: &Member| self.is_unknown(*member);
        invalid_members.extend(earlier.invalid_members.iter().copied().filter(is_still_lacking));
        Self {
            is_partial: self.is_partial,
            includes_cache: self.includes_cache || earlier.includes_cache,
            is_billed: self.is_billed || earlier.is_billed,
            part: self.part,
            service_tier: None,
            input: self.input.or(earlier.input),
            output: self.output.or(earlier.output),
            total: self.total.or(earlier.total),
            read_outside: self.read_outside.or(earlier.read_outside),
            write_outside: self.write_outside.or(earlier.write_outside),
            write_outside_5m: self.write_outside_5m.or(earlier.write_outside_5m),
            write_outside_1h: self.write_outside_1h.or(earlier.write_outside_1h),
            read_inside: self.read_inside.or(earlier.read_inside),
            read_inside_flat: self.read_inside_flat.or(earlier.read_inside_flat),
            write_inside: self.write_inside.or(earlier.write_inside),
            write_inside_12h: self.write_inside_12h.or(earlier.write_inside_12h),
            reasoning: self.reasoning.or(earlier.reasoning),
            reasoning_flat: self.reasoning_flat.or(earlier.reasoning_flat),
            citations: self.citations.or(earlier.citations),
            placed: self.placed.or(earlier.placed),
            modalities: if self.modalities == Modalities::default() {
                earlier.modalities
            } else {
                self.modalities
            },
            units: if self.units.is_empty() { earlier.units } else { self.units },
            conditions: earlier.conditions.into_iter().chain(self.conditions).collect(),
            cost: self.cost.or(earlier.cost),
            iterations: if self.iterations.is_empty() {
                earlier.iterations
            } else {
                self.iterations
            },
            invalid: self.invalid.saturating_add(earlier.invalid),
            invalid_members,
        }
    }
}

/// A name that an engine chose, cut to a length that may be kept.
pub(crate) fn name(name: &str) -> String {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
