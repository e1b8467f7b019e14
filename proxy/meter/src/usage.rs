//! Reads usage objects.
//!
//! The names of the members tell the shape, so the reader needs no dialect. `members` has them all.

mod cost;
mod lists;
mod members;
mod merge;
mod readings;
mod settle;
mod tools;
mod units;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use taximeter_pricing::{ByModality, Condition, Member, Modalities};

use crate::json::{Malformed, Reader};
use crate::tool_names::Units;
use cost::ReportedCost;
pub(crate) use cost::asked;
use members::{Meaning, Modality, Place, Side, meaning};
pub(crate) use readings::Reading;
use readings::{Readings, Tokens};
pub(crate) use tools::tool_count;

/// Passes of one request that are kept; providers stop at a handful.
const PASSES_MAX: usize = 64;

/// Longest model or tier name kept, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 256;

/// One usage object, its members as reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Other events carry the rest (Messages). It comes before the end.
    pub(crate) is_partial: bool,
    /// It is of one part of the answer; what the others use comes beside it.
    pub(crate) part: Option<Part>,
    /// Service tier, where the wire format has it in here (Messages).
    pub(crate) service_tier: Option<String>,
    /// What it says of each number of tokens.
    readings: Readings,
    /// It tells details of the input, so that the input includes what was cached.
    has_input_details: bool,
    /// One of its members says that reasoning is counted beside the output.
    is_reasoning_beside: bool,
    modalities: Modalities,
    /// Quantities of what is no token.
    units: BTreeMap<&'static str, Decimal>,
    /// Calls of hosted tools, by the name of their unit.
    tools: Units<u64>,
    /// It tells the calls of every hosted tool.
    tells_all_tools: bool,
    /// All calls of hosted tools, where that is told too.
    tool_calls: u64,
    /// What a search that is charged by its sources has read.
    search_sources: u64,
    /// What may change the price.
    conditions: BTreeMap<Condition, String>,
    /// What the provider asks for it.
    cost: ReportedCost,
    iterations: Vec<Iteration>,
    /// Members that are no whole number in range.
    pub(crate) invalid: u32,
}

/// A part of an answer that has a report of its own, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The answer to a prompt.
    Prompt(u64),
    /// One of several answers to the same prompt.
    Choice(u64),
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
        Self::read_at(Place::Usage, value)
    }

    /// Reads Gemini's usage object. A zero is left out in there, so what stands alone is all of it.
    pub(crate) fn read_google(value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        Self::read_at(Place::UsageMetadata, value)
    }

    /// Reads llama.cpp's `timings`, which count what an absent usage object would have.
    pub(crate) fn read_timings(value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        let mut timings = Box::<Self>::default();
        timings.read_object(Place::Timings, value)?;
        Ok(Some(timings))
    }

    /// Reads a member that counts something; steps over any other.
    pub(crate) fn read_member(
        &mut self,
        key: &[u8],
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        match meaning(Place::Usage, key) {
            Some(Meaning::Condition(_) | Meaning::ServiceTier | Meaning::Iterations) => {
                value.skip()
            }
            meaning => self.read_meaning(meaning, value),
        }
    }

    fn read_at(place: Place, value: &mut Reader<'_>) -> Result<Option<Box<Self>>, Malformed> {
        let mut report = Box::<Self>::default();
        match value.peek() {
            Some(b'n') => return value.skip().map(|()| None),
            Some(b'{') => {}
            _ => report.mark_unreadable(),
        }
        report.read_object(place, value)?;
        report.complete_by_total();
        Ok(Some(report))
    }

    fn read_object(&mut self, place: Place, value: &mut Reader<'_>) -> Result<(), Malformed> {
        if place.holds_tools() {
            return self.read_tools(place, value);
        }
        value.object(|key, value| self.read_meaning(meaning(place, key), value))
    }

    fn read_meaning(
        &mut self,
        meaning: Option<Meaning>,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        self.is_reasoning_beside |= meaning.is_some_and(Meaning::is_reasoning_beside);
        match meaning {
            None | Some(Meaning::NoTool) => value.skip(),
            Some(Meaning::Tokens(tokens)) => {
                let reading = self.read_tokens(value)?;
                self.readings.take(tokens, reading);
                Ok(())
            }
            Some(Meaning::Modality(side, modality)) => {
                if let Some(tokens) = self.read_tokens(value)?.number() {
                    *self.modality(side, modality) = Some(tokens);
                }
                Ok(())
            }
            Some(Meaning::Unit(name)) => self.read_unit(name, value),
            Some(Meaning::Quantity(name)) => self.read_quantity(name, value),
            Some(Meaning::Condition(condition)) => {
                let word = value.text()?.map(|word| (condition, name(&word.decode())));
                self.conditions.extend(word);
                Ok(())
            }
            Some(Meaning::ServiceTier) => {
                self.service_tier = value.text()?.map(|tier| name(&tier.decode()));
                Ok(())
            }
            Some(
                meaning @ (Meaning::Cost
                | Meaning::CostTicks
                | Meaning::EstimatedCost
                | Meaning::UpstreamCost
                | Meaning::OwnKey),
            ) => self.cost.read(meaning, value),
            Some(Meaning::Tool(unit)) => {
                if let Some(count) = tool_count(value)? {
                    self.count_tool(Cow::Borrowed(unit), count);
                }
                Ok(())
            }
            Some(Meaning::ToolCalls) => {
                self.tool_calls = value.index()?.unwrap_or(0).max(self.tool_calls);
                Ok(())
            }
            Some(Meaning::Sources) => {
                self.search_sources = value.index()?.unwrap_or(0).max(self.search_sources);
                Ok(())
            }
            Some(Meaning::Iterations) => self.read_iterations(value),
            Some(Meaning::Object(place)) => {
                let is_object = value.peek() == Some(b'{');
                self.has_input_details |= is_object && place == Place::InputDetails;
                self.read_object(place, value)
            }
            Some(Meaning::Modalities(side)) => self.read_modalities(side, value),
            Some(Meaning::Lifetimes) => self.read_lifetimes(value),
            Some(Meaning::Sequences) => self.read_sequences(value),
        }
    }

    /// Reads a number of tokens. Counts it where it is none.
    fn read_tokens(&mut self, value: &mut Reader<'_>) -> Result<Reading, Malformed> {
        let reading = Reading::read(value)?;
        self.invalid = self.invalid.saturating_add(u32::from(reading == Reading::Unreadable));
        Ok(reading)
    }

    const fn modality(&mut self, side: Side, modality: Modality) -> &mut Option<u64> {
        let parts = match side {
            Side::Input => &mut self.modalities.input,
            Side::Output => &mut self.modalities.output,
            Side::CacheRead => &mut self.modalities.cache_read,
        };
        match modality {
            Modality::Text => &mut parts.text,
            Modality::Audio => &mut parts.audio,
            Modality::Image => &mut parts.image,
            Modality::Video => &mut parts.video,
            Modality::Multimodal => &mut parts.multimodal,
        }
    }

    /// Marks a usage member that is no object, so that input and output are unknown.
    fn mark_unreadable(&mut self) {
        self.invalid = 1;
        for tokens in [Tokens::Input, Tokens::Output] {
            self.readings.take(tokens, Reading::Unreadable);
        }
    }

    /// The numbers that the engine reported, and that cannot be read.
    pub(crate) fn invalid_members(&self) -> BTreeSet<Member> {
        let of_usage = [
            (Member::InputTokens, self.input()),
            (Member::CacheReadInputTokens, self.cache_read()),
            (Member::CacheWriteInputTokens, self.cache_write()),
            (Member::CacheWriteInputTokens, self.cache_lifetimes()),
            (Member::OutputTokens, self.output()),
            (Member::ReasoningOutputTokens, self.reasoning()),
        ];
        let unreadable =
            of_usage.into_iter().filter(|(_, reading)| *reading == Reading::Unreadable);
        unreadable.map(|(member, _)| member).collect()
    }

    /// Whether each member is a whole number in range.
    pub(crate) const fn is_valid(&self) -> bool {
        self.invalid == 0
    }

    /// Whether it has no number and no value that ought to be one.
    pub(crate) fn is_empty(&self) -> bool {
        self.is_silent() && self.is_valid()
    }

    /// Whether it has no number, such as `{}`.
    pub(crate) fn is_silent(&self) -> bool {
        self.readings.all().all(|reading| reading.number().is_none())
            && self.units.is_empty()
            && self.tools.is_empty()
            && self.tool_calls == 0
            && self.iterations.is_empty()
    }

    /// Whether it says that something was used, or something that cannot be read: zeros may mean
    /// that nobody has counted.
    pub(crate) fn has_tokens(&self) -> bool {
        !self.is_zero() || !self.is_valid()
    }

    /// Whether it has no number above zero. Engines send zeros before they know the numbers.
    pub(crate) fn is_zero(&self) -> bool {
        !self.readings.all().any(Reading::is_positive)
            && self.units.values().all(Decimal::is_zero)
            && self.tools.values().all(|count| *count == 0)
            && self.tool_calls == 0
            && self.iterations.is_empty()
            && self.cost.is_none()
    }

    /// What the provider asks for it, in its own currency.
    pub(crate) fn cost(&self) -> Option<String> {
        self.cost.amount()
    }

    /// The same without the output that was told before any was generated.
    pub(crate) fn without_output(mut self: Box<Self>) -> Box<Self> {
        for tokens in [Tokens::Output, Tokens::Total] {
            *self.readings.get_mut(tokens) = Reading::Absent;
        }
        self
    }

    /// Takes it for the usage of what generates no output. Older engines give the total alone.
    pub(crate) fn of_input_only(mut self: Box<Self>) -> Box<Self> {
        if self.readings.get(Tokens::Output) == Reading::Unreadable {
            *self.readings.get_mut(Tokens::Output) = Reading::Absent;
        }
        if !self.input().is_positive() && self.input() != Reading::Unreadable {
            self.readings.take(Tokens::Input, self.readings.get(Tokens::Total));
        }
        if self.input().number().is_some() {
            self.readings.take(Tokens::Output, Reading::Number(0));
        }
        self
    }

    /// Replaces the output by the sum of all choices.
    pub(crate) fn set_output(&mut self, output: u64) {
        *self.readings.get_mut(Tokens::Output) = Reading::Number(output);
        *self.readings.get_mut(Tokens::Total) = Reading::Absent;
    }

    /// Input that is not told apart is sound, unless that is told by its length.
    pub(crate) fn hears(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.input == ByModality::default() && self.units.is_empty() {
            self.modalities.input.audio = self.input().number();
        }
        self
    }

    /// Output that is not told apart is sound.
    pub(crate) fn speaks(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.output == ByModality::default() {
            self.modalities.output.audio = self.output().number();
        }
        self
    }

    /// Output that is not told apart is pictures.
    pub(crate) fn paints(mut self: Box<Self>) -> Box<Self> {
        if self.modalities.output == ByModality::default() {
            self.modalities.output.image = self.output().number();
        }
        self
    }
}

/// A name that an engine chose, cut to a length that may be kept.
pub(crate) fn name(name: &str) -> String {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
