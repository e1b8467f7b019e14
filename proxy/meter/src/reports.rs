//! Collects the usage objects of one answer, and decides which numbers count.

use std::collections::{BTreeMap, BTreeSet};

use taximeter_pricing::{Flag, Member};

use crate::dialect::Reasoning;
use crate::measurement::Reported;
use crate::usage::Report;

/// Choices whose output is kept apart.
const CHOICES_MAX: usize = 128;

/// All that was reported so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reports {
    latest: Option<Box<Report>>,
    /// The latest of each part, where they come apart.
    parts: Vec<Report>,
    /// The latest is a running total.
    is_running: bool,
    /// The output of each choice, by its running totals.
    outputs: Vec<(u64, u64)>,
    /// Used when no usage object ever comes.
    timings: Option<Box<Report>>,
    /// Reports with smaller numbers than the one before.
    pub(crate) fell: u32,
    /// Members that were no whole number in range.
    invalid: u32,
    /// The same by number.
    flagged: BTreeMap<Member, BTreeSet<Flag>>,
}

impl Reports {
    /// The last report wins; a partial one wins member by member.
    pub(crate) fn add(&mut self, report: Box<Report>) {
        self.put(report, None);
    }

    /// The same for a running total of one choice.
    pub(crate) fn add_running(&mut self, report: Box<Report>, choice: u64) {
        self.put(report, Some(choice));
    }

    fn put(&mut self, report: Box<Report>, running_choice: Option<u64>) {
        self.note_invalid(&report);
        if report.is_silent() {
            return;
        }
        self.is_running = running_choice.is_some();
        let of_choice = running_choice.map(|choice| self.note_output(choice, report.output));
        let earlier = match report.part {
            None => self.latest.take(),
            Some(_) => {
                let at = self.parts.iter().position(|earlier| earlier.part == report.part);
                at.map(|at| Box::new(self.parts.swap_remove(at)))
            }
        };
        if let Some(earlier) = &earlier {
            let fell = |before: Option<u64>, now: Option<u64>| {
                before.zip(now).is_some_and(|(before, now)| now < before)
            };
            let output = of_choice.unwrap_or(earlier.output);
            let input = fell(earlier.input, report.input).then_some(Member::InputTokens);
            let output = fell(output, report.output).then_some(Member::OutputTokens);
            for member in input.into_iter().chain(output) {
                self.flag(member, Flag::Changed);
            }
            self.fell = self.fell.saturating_add(input.or(output).is_some().into());
        }
        let report = match earlier {
            Some(earlier) if report.is_partial => Box::new(report.over(*earlier)),
            _ => report,
        };
        match report.part {
            None => self.latest = Some(report),
            Some(_) if self.parts.len() < CHOICES_MAX => self.parts.push(*report),
            Some(_) => {}
        }
    }

    fn flag(&mut self, member: Member, flag: Flag) {
        self.flagged.entry(member).or_default().insert(flag);
    }

    /// Notes the output of a choice; gives what it was before.
    fn note_output(&mut self, choice: u64, output: Option<u64>) -> Option<u64> {
        let output = output?;
        let known = self.outputs.iter_mut().find(|(known, _)| *known == choice);
        if let Some((_, before)) = known {
            return Some(std::mem::replace(before, output));
        }
        if self.outputs.len() < CHOICES_MAX {
            self.outputs.push((choice, output));
        }
        None
    }

    /// Makes the running totals of several choices one, for engines that count each by itself.
    pub(crate) fn add_up_choices(&mut self) {
        if let Some(report) = self.latest.as_mut().filter(|_| self.is_running)
            && self.outputs.len() > 1
        {
            report.output = Some(self.outputs.iter().map(|(_, output)| output).sum());
            report.total = None;
        }
    }

    pub(crate) fn add_timings(&mut self, timings: Box<Report>) {
        if !timings.is_empty() {
            self.timings = Some(timings);
        }
    }

    /// Whether usage was reported that comes at an end. Partial and running reports begin with the
    /// first event.
    pub(crate) fn has_final(&self) -> bool {
        let mut latest =
            self.latest.as_deref().filter(|_| !self.is_running).into_iter().chain(&self.parts);
        self.timings.is_some() || latest.any(|report| !report.is_partial)
    }

    /// Whether any report says that something was used.
    pub(crate) fn has_tokens(&self) -> bool {
        let mut reports = self.latest.as_deref().into_iter().chain(&self.parts);
        self.timings.is_some() || self.invalid > 0 || reports.any(Report::has_tokens)
    }

    /// What the provider asks for it, as it stands.
    pub(crate) fn cost(&self) -> Option<&str> {
        self.latest.as_ref()?.cost.as_deref()
    }

    /// Forgets that there was no output, and no input either: an input that was told stays.
    pub(crate) fn drop_zero(&mut self) {
        let is_zero = |tokens: Option<u64>| tokens == Some(0);
        self.latest.take_if(|report| is_zero(report.output) && report.input.is_none_or(|n| n == 0));
        if let Some(report) = self.latest.as_mut().filter(|report| is_zero(report.output)) {
            report.output = None;
            report.total = None;
        }
    }

    /// The usage that the engine reported, or else `counted`; `None` when there is neither. Where
    /// the engine reported values and none of them is a number, the flags say so.
    pub(crate) fn settle(
        mut self,
        placed: Reasoning,
        counted: Option<Reported>,
    ) -> Option<Reported> {
        let parts = std::mem::take(&mut self.parts).into_iter().reduce(Report::plus).map(Box::new);
        let Some(report) = self.latest.take().or(parts).or_else(|| self.take_timings()) else {
            return if self.invalid > 0 {
                Some(self.flags_on(counted.unwrap_or_default()))
            } else {
                counted
            };
        };
        let mut flags = Vec::new();
        let usage = report.settle(placed, &mut flags);
        if flags.contains(&Flag::Hidden) {
            self.flag(Member::OutputTokens, Flag::Hidden);
        }
        for member in usage.inconsistent() {
            self.flag(member, Flag::Inconsistent);
        }
        // A sum is invalid where one of its parts is.
        for (member, reported, settled) in [
            (Member::InputTokens, report.input, usage.input_tokens),
            (Member::OutputTokens, report.output, usage.output_tokens),
        ] {
            if reported.is_some() && settled.is_none() {
                self.flag(member, Flag::Invalid);
            }
        }
        Some(self.flags_on(Reported { usage, flags, flagged: BTreeMap::new() }))
    }

    /// Members that are no whole number in range. llama.cpp's timings count where nothing else
    /// does.
    pub(crate) fn invalid(&self) -> u32 {
        let is_alone = self.latest.is_none() && self.parts.is_empty();
        let timings = self.timings.as_ref().filter(|_| is_alone);
        self.invalid.saturating_add(timings.map_or(0, |timings| timings.invalid))
    }

    /// llama.cpp's timings. They count where the engine reports nothing else.
    fn take_timings(&mut self) -> Option<Box<Report>> {
        let timings = self.timings.take()?;
        self.note_invalid(&timings);
        (!timings.is_silent()).then_some(timings)
    }

    fn note_invalid(&mut self, report: &Report) {
        self.invalid = self.invalid.saturating_add(report.invalid);
        for member in &report.invalid_members {
            self.flag(*member, Flag::Invalid);
        }
    }

    /// Adds the flags of all reports.
    fn flags_on(self, mut reported: Reported) -> Reported {
        for (member, flags) in self.flagged {
            reported.flagged.entry(member).or_default().extend(flags);
        }
        reported.flags.extend((self.fell > 0).then_some(Flag::Changed));
        reported.flags.extend((self.invalid > 0).then_some(Flag::Invalid));
        reported.flags.sort_unstable();
        reported.flags.dedup();
        reported
    }
}
