//! Combines reported and counted numbers to one usage, and gives each number its source.
//!
//! Reported numbers are billed. Counted numbers fill the gaps. Where the count is exact, the record
//! has both numbers, and a difference of more than a tenth is flagged.

use std::collections::BTreeMap;

use taximeter_collections::Gather as _;
use taximeter_ledger::{Counted, RecordUsage};
use taximeter_meter::{Ending, Kinds, Measurement, Output, Reported, Wire};
use taximeter_pricing::{Flag, Member, MeterName, Source, Usage};

use super::count::{Count, Tally};

/// Tokens that engines may count beside the text, such as the mark at an answer's end, and that are
/// no difference.
const MARKS_MAX: u64 = 4;

/// The same where reasoning has passed: it begins and ends with marks, and so does what follows it.
const REASONING_MARKS_MAX: u64 = 12;

/// Which numbers a request has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TokenParts {
    pub(super) input: bool,
    pub(super) output: bool,
}

impl TokenParts {
    /// Those of a wire format.
    pub(super) const fn of(wire: Wire) -> Self {
        match wire {
            Wire::Opaque | Wire::Batches => Self { input: false, output: false },
            Wire::Embeddings => Self { input: true, output: false },
            _ => Self { input: true, output: true },
        }
    }

    /// Those that can be counted from what passes.
    fn countable(self, wire: Wire) -> Self {
        Self {
            input: self.input && wire.has_countable_input(),
            output: self.output && wire.output() == Output::Text,
        }
    }

    /// None where it is charged in other units: then there are no tokens that lack.
    fn in_tokens(self, measurement: &Measurement) -> Self {
        let reported = measurement.reported.as_ref();
        let usage = reported.map(|reported| &reported.usage);
        let reports_tokens = reported.is_some_and(|Reported { usage, flagged, .. }| {
            let are_invalid = [Member::InputTokens, Member::OutputTokens]
                .iter()
                .any(|member| flagged.contains_key(member));
            are_invalid || usage.input_tokens.or(usage.output_tokens).is_some()
        });
        let stands_alone =
            |unit: &String| MeterName::of_unit(unit).is_some_and(MeterName::may_stand_alone);
        let has_units = !measurement.counted_units.is_empty()
            || usage.is_some_and(|usage| usage.units.keys().any(stands_alone));
        if has_units && !reports_tokens { Self::default() } else { self }
    }

    /// Those that have to be counted: they are not reported, or they are reported as a zero that
    /// cannot be true.
    pub(super) fn to_count(wire: Wire, measurement: &Measurement) -> Self {
        let Self { input, output } = Self::of(wire).in_tokens(measurement);
        let usage = measurement.reported.as_ref().map(|reported| &reported.usage);
        let input_tokens = usage.and_then(|usage| usage.input_tokens);
        let output_tokens = usage.and_then(|usage| usage.output_tokens);
        // A completion may repeat its prompt and generate nothing.
        let may_echo = matches!(wire, Wire::Completions | Wire::Invocations);
        let is_true_zero = may_echo && input_tokens > Some(0);
        Self {
            input: input && input_tokens.is_none_or(|tokens| tokens == 0),
            output: output && output_tokens.is_none_or(|tokens| tokens == 0 && !is_true_zero),
        }
        .countable(wire)
    }

    /// Those that are reported, and could be counted from what passed as the engine counts.
    ///
    /// A zero is counted or true. An output that is not whole, takes a form of the model's own, or was hidden by more than
    /// the engine says, cannot be compared.
    pub(super) fn comparable(self, measurement: &Measurement) -> Self {
        let Some(reported) = &measurement.reported else { return Self::default() };
        let is_plain = measurement.ending == Ending::Complete
            && !measurement.has_unread_output
            && !measurement.output_kinds.formed
            && measurement.finish_reasons.len() < 2
            && !reported.flags.contains(&Flag::Hidden);
        Self {
            input: self.input && reported.usage.input_tokens > Some(0),
            output: self.output && reported.usage.output_tokens > Some(0) && is_plain,
        }
    }
}

/// Usage for the record, and the same for the price.
pub(super) fn usage(
    parts: TokenParts,
    measurement: &Measurement,
    count: &Count,
) -> (RecordUsage, Usage) {
    let parts = parts.in_tokens(measurement);
    let reported = measurement.reported.clone().unwrap_or_default();
    let mut usage = with_calls(reported.usage.clone(), measurement);
    let mut provenance = Provenance::new(&reported);
    let mut kept = Counted::default();
    let seen = |tokens: u64| tokens.saturating_sub(hidden(&reported, measurement.output_kinds));
    for (member, tokens, counted) in [
        (Member::InputTokens, &mut usage.input_tokens, count.input),
        (Member::OutputTokens, &mut usage.output_tokens, count.output),
    ] {
        let has_more = member == Member::InputTokens && count.context;
        if *tokens == Some(0) && (has_more || counted.is_some_and(|counted| counted.tokens > 0)) {
            *tokens = None;
            provenance.flag(member, Flag::Zero);
        }
    }
    if let Some(tokens) = usage.input_tokens {
        kept.input_tokens =
            provenance.reported(Member::InputTokens, tokens, count.input, MARKS_MAX);
    } else if parts.input {
        usage.input_tokens = provenance.not_reported(Member::InputTokens, count.input);
        kept.input_tokens = usage.input_tokens.filter(|_| !count.context);
        if count.context {
            provenance.flag(Member::InputTokens, Flag::Context);
        }
    }
    if measurement.is_pending {
        usage = provenance.pending(parts, usage);
    } else if let Some(tokens) = usage.output_tokens {
        let has_thought = measurement.output_kinds.reasoning;
        let marks_max = if has_thought { REASONING_MARKS_MAX } else { MARKS_MAX };
        kept.output_tokens =
            provenance.reported(Member::OutputTokens, seen(tokens), count.output, marks_max);
    } else if parts.output {
        usage.output_tokens = provenance.not_reported(Member::OutputTokens, count.output);
        kept.output_tokens = usage.output_tokens;
    }
    for (member, number) in [
        (Member::CacheReadInputTokens, usage.cache_read_input_tokens),
        (Member::CacheWriteInputTokens, usage.cache_write_input_tokens),
        (Member::ReasoningOutputTokens, usage.reasoning_output_tokens),
    ] {
        provenance.sources.extend(number.map(|_| (member, Source::Reported)));
    }
    let source = match provenance.sources.is_empty() {
        true if usage.units != reported.usage.units => Source::Counted,
        true if !usage.units.is_empty() => Source::Reported,
        _ => provenance.weakest(),
    };
    let recorded = RecordUsage {
        sources: provenance.sources,
        counted: (kept != Counted::default()).then_some(kept),
        flagged: provenance.flagged,
        flags: provenance.flags,
        ..RecordUsage::of(&usage, source)
    };
    (recorded, usage)
}

/// The reported usage, with what Taximeter has counted beside tokens.
fn with_calls(mut usage: Usage, measurement: &Measurement) -> Usage {
    for (name, quantity) in &measurement.counted_units {
        usage.units.entry(name.clone()).or_insert(*quantity);
    }
    usage.units.extend(measurement.calls.clone());
    usage.passes.extend(measurement.passes.iter().cloned());
    usage
}

/// Reported output of which no text passed.
fn hidden(reported: &Reported, kinds: Kinds) -> u64 {
    let reasoning = reported.usage.reasoning_output_tokens.unwrap_or(0);
    if kinds.reasoning { 0 } else { reasoning }
}

/// Whether our exact count is more than a tenth away from what was reported, marks apart.
const fn differ(reported: u64, counted: u64, marks_max: u64) -> bool {
    let difference = reported.abs_diff(counted);
    difference > marks_max && difference > reported / 10
}

/// Where the numbers come from, and what is odd about them.
struct Provenance {
    sources: BTreeMap<Member, Source>,
    flagged: BTreeMap<Member, Vec<Flag>>,
    flags: Vec<Flag>,
}

impl Provenance {
    fn new(reported: &Reported) -> Self {
        let flagged = reported.flagged.iter();
        let flagged = flagged.map(|(member, flags)| (*member, flags.iter().copied().collect()));
        let flags = reported.flags.clone();
        Self { sources: BTreeMap::new(), flagged: flagged.gather(), flags }
    }

    /// Keeps both lists sorted, each flag once.
    fn flag(&mut self, member: Member, flag: Flag) {
        for flags in [self.flagged.entry(member).or_default(), &mut self.flags] {
            if let Err(at) = flags.binary_search(&flag) {
                flags.insert(at, flag);
            }
        }
    }

    /// A number that is reported: our own count of it, if that is exact and so to be kept.
    fn reported(
        &mut self,
        member: Member,
        tokens: u64,
        counted: Option<Tally>,
        marks_max: u64,
    ) -> Option<u64> {
        self.sources.insert(member, Source::Reported);
        let counted = counted.filter(|counted| !counted.estimated)?.tokens;
        if differ(tokens, counted, marks_max) {
            self.flag(member, Flag::Differs);
        }
        Some(counted)
    }

    /// A number that is not: what it is then.
    fn not_reported(&mut self, member: Member, counted: Option<Tally>) -> Option<u64> {
        let says_why = |flag: &Flag| matches!(flag, Flag::Invalid | Flag::Zero);
        if !self.flagged.get(&member).is_some_and(|flags| flags.iter().any(says_why)) {
            self.flag(member, Flag::Missing);
        }
        let source = if counted.is_some() { Source::Counted } else { Source::Unknown };
        self.sources.insert(member, source);
        if counted.is_some_and(|counted| counted.estimated) {
            self.flag(member, Flag::Estimated);
        }
        counted.map(|counted| counted.tokens)
    }

    /// Usage of an answer that goes on: what has come of it so far is a part.
    fn pending(&mut self, parts: TokenParts, usage: Usage) -> Usage {
        if parts.output {
            let _ = self.not_reported(Member::OutputTokens, None);
        }
        self.flag(Member::OutputTokens, Flag::Pending);
        let Usage { input_tokens, conditions, .. } = usage;
        Usage { input_tokens, conditions, ..Usage::default() }
    }

    /// The weakest source of input and output; unknown where a request has neither.
    fn weakest(&self) -> Source {
        let of = |member| self.sources.get(&member).copied();
        match (of(Member::InputTokens), of(Member::OutputTokens)) {
            (None, None) | (Some(Source::Unknown), _) | (_, Some(Source::Unknown)) => {
                Source::Unknown
            }
            (Some(Source::Counted), _) | (_, Some(Source::Counted)) => Source::Counted,
            _ => Source::Reported,
        }
    }
}

#[cfg(test)]
mod tests;
